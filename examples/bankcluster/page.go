package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"
)

//go:embed page.html
var pageHTML []byte

// page is the status page while the play lasts.
type page struct {
	url    string
	server *http.Server
}

func (p *page) close() { _ = p.server.Close() }

// status is what the page shows.
type status struct {
	Phase        string       `json:"phase"`
	Seconds      float64      `json:"seconds"`
	Acknowledged int          `json:"acknowledged"`
	Repeated     int64        `json:"repeated"`
	Conflicts    int64        `json:"conflicts"`
	Nodes        []nodeStatus `json:"nodes"`
	Accounts     []string     `json:"accounts"`
	Balances     []int64      `json:"balances"` // in cents, of what was acknowledged
	News         []string     `json:"news"`
}

type nodeStatus struct {
	Name      string `json:"name"`
	State     state  `json:"state"`
	Answers   int64  `json:"answers"`
	Conflicts int64  `json:"conflicts"`
}

// serve starts the page on a free port of the local host.
func (p *play) serve(ctx context.Context) (*page, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.flags.page)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(pageHTML)
	})
	books := &books{load: p.load}
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(p.status(books))
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	return &page{url: "http://" + listener.Addr().String() + "/", server: server}, nil
}

func (p *play) status(b *books) status {
	s := status{
		Seconds: time.Since(p.began).Seconds(), Acknowledged: p.load.acknowledged(),
		Repeated: p.client.repeats.Load(), Conflicts: p.fleet.conflicts(),
		Accounts: p.load.accounts, Balances: b.balances(),
	}
	for _, m := range p.fleet.members {
		s.Nodes = append(s.Nodes, nodeStatus{m.name, m.get(), m.answers.Load(), m.conflicts.Load()})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Phase, s.News = p.phase, append([]string(nil), p.news...)
	return s
}

// books add up what was acknowledged.
type books struct {
	load *load

	mu    sync.Mutex
	seen  int
	sheet map[string]int64
}

// balances are in the order of the accounts.
func (b *books) balances() []int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sheet == nil {
		b.sheet = map[string]int64{}
	}
	decided := b.load.decisions()
	for _, d := range decided[b.seen:] {
		if d.refused() {
			continue
		}
		for i, e := range d.entries() {
			b.sheet[d.accounts()[i]] += e.Change()
		}
	}
	b.seen = len(decided)
	list := make([]int64, len(b.load.accounts))
	for i, a := range b.load.accounts {
		list[i] = b.sheet[a]
	}
	return list
}
