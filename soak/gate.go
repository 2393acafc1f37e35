package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// lateBy is how late a put can land by its time stamp. AWS refuses a signature
// that is some minutes old; emulators do not look, so the gate does.
const lateBy = deleteDelay / 4

// gate is the transport next to the server. All that happens at the server passes
// it, so it knows the truth. It keeps the assumption about late puts, lets
// requests land after their callers have given up, and shows transactions by half.
type gate struct {
	base  http.RoundTripper
	clock *clock
	truth *truth
	luck  *luck
	tally *tally

	late   sync.WaitGroup // requests that have left their callers
	mu     sync.Mutex
	hidden map[slot]string          // events that queries do not see yet, by the operation that stores them
	busy   map[string]chan struct{} // transactions in progress, by operation
	calm   bool                     // no more trouble
}

type slot struct {
	id  string
	seq int64
}

var errReset = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}

// RoundTrip implements [http.RoundTripper].
func (g *gate) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	if err != nil {
		return nil, err //nolint:wrapcheck // a transport passes errors on
	}
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		return nil, err //nolint:wrapcheck // as above
	}
	w := parseWire(req, body)
	detached := req.Clone(context.WithoutCancel(ctx))
	detached.Body = io.NopCloser(bytes.NewReader(body))
	var wait time.Duration
	if w.writes() && g.luck.in(40) && !g.isCalm() {
		wait = g.luck.upTo(lateLanding)
	}
	type answer struct {
		response *http.Response
		err      error
	}
	answered := make(chan answer, 1)
	g.late.Go(func() {
		time.Sleep(wait)
		resp, err := g.serve(detached, w) //nolint:bodyclose // pass has read the body; the caller closes what it gets
		answered <- answer{resp, err}
	})
	if wait > 0 {
		g.tally.fault("lands late")
		return nil, errReset
	}
	select {
	case a := <-answered:
		return a.response, a.err
	case <-ctx.Done():
		return nil, ctx.Err() //nolint:wrapcheck // as above
	}
}

// serve lets a request reach the server at one moment of the clock.
func (g *gate) serve(req *http.Request, w wire) (*http.Response, error) {
	if w.op == "DescribeTable" { // the embedded server counts items meanwhile
		g.clock.mu.Lock()
		defer g.clock.mu.Unlock()
		return g.pass(req)
	}
	puts := w.puts()
	if len(puts) > 1 {
		g.begin(puts[0].op)
		defer g.end(puts[0].op)
	}
	g.clock.mu.RLock()
	defer g.clock.mu.RUnlock()
	for _, p := range puts {
		if g.clock.read().Sub(time.UnixMilli(p.ts)) > lateBy {
			g.tally.fault("signature expired")
			return refusal(req), nil
		}
	}
	if id, del, ok := w.mark(); ok {
		g.truth.of(id).asked(del)
	}
	if len(puts) > 1 && g.luck.in(3) && !g.isCalm() {
		defer g.hide(puts[g.luck.n(len(puts))])()
	}
	resp, err := g.pass(req)
	if err == nil && resp.StatusCode == http.StatusOK {
		for _, p := range puts {
			g.truth.of(p.id).landed(p)
		}
	}
	return resp, err
}

// pass reads the whole answer, so that nothing is left on the connection when
// nobody takes it.
func (g *gate) pass(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), serverTimeout)
	defer cancel()
	resp, err := g.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, err //nolint:wrapcheck // the SDK must see the transport's own error
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, err //nolint:wrapcheck // as above
}

func refusal(req *http.Request) *http.Response {
	const body = `{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"Signature expired"}`
	return &http.Response{
		StatusCode: http.StatusBadRequest, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header:        http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
	}
}

// begin waits until no other request of the same transaction is in progress.
func (g *gate) begin(op string) {
	for {
		g.mu.Lock()
		other := g.busy[op]
		if other == nil {
			g.busy[op] = make(chan struct{})
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		<-other
	}
}

func (g *gate) end(op string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.busy[op])
	delete(g.busy, op)
}

// hide makes an event of a transaction invisible to queries, unless an earlier
// request has stored it. What it returns is called when the server has answered,
// and lets it appear after a while.
func (g *gate) hide(p put) (appear func()) {
	if g.truth.of(p.id).has(p.seq) {
		return func() {}
	}
	g.tally.fault("half a transaction")
	at := slot{p.id, p.seq}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hidden[at] = p.op
	return func() {
		time.Sleep(g.luck.upTo(halfVisible))
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.hidden[at] == p.op {
			delete(g.hidden, at)
		}
	}
}

// hides tells whether queries do not see an item in wire form.
func (g *gate) hides(it map[string]any) bool {
	at := slot{id: textOf(it["pid"], "S"), seq: numberOf(it["seq"])}
	g.mu.Lock()
	defer g.mu.Unlock()
	op, hidden := g.hidden[at]
	return hidden && op == textOf(it["op"], "S")
}

func (g *gate) hidesAny() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.hidden) > 0
}

// settle ends the trouble and waits for what is still on its way.
func (g *gate) settle() {
	g.mu.Lock()
	g.calm = true
	g.mu.Unlock()
	g.late.Wait()
}

func (g *gate) isCalm() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calm
}
