package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/dynactor/dynactor/examples/bank/bankpb"
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
	Name  string `json:"name"`
	State string `json:"state"`
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
		Repeated: p.teller.repeated.Load(), Conflicts: p.teller.conflicts.Load(),
		Accounts: p.load.accounts, Balances: b.balances(),
	}
	for _, n := range p.cast.all() {
		s.Nodes = append(s.Nodes, nodeStatus{n.name, n.is()})
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

func (b *books) balances() []int64 {
	b.load.mu.Lock()
	acked := b.load.acked
	b.load.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sheet == nil {
		b.sheet = map[string]int64{}
	}
	for _, t := range acked[min(b.seen, len(acked)):] {
		if t.from != "" {
			b.sheet[t.from] += bankpb.Entry{Amount: t.amount, Takes: true}.Change()
		}
		if t.to != "" {
			b.sheet[t.to] += t.amount
		}
	}
	b.seen = max(b.seen, len(acked))
	list := make([]int64, len(b.load.accounts))
	for i, a := range b.load.accounts {
		list[i] = b.sheet[a]
	}
	return list
}
