package main

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// scenario is one case: what it prepares, and how much of it is measured.
type scenario struct {
	name    string
	ops     int // operations to measure of each loop
	batch   int // operations in a row
	long    bool
	via     func(http.RoundTripper) (http.RoundTripper, error) // nil: straight to the server
	prepare func(context.Context, *lab) (*workload, error)
}

// scenarios are all cases in the order in which they run.
var scenarios = []scenario{
	{name: "persist", ops: 4000, batch: 10, prepare: persisting(0)},
	{name: "persist-null", ops: 20000, batch: 50, via: toNowhere, prepare: persistingNowhere},
	{name: "persist-at-0", ops: 1000, batch: 10, prepare: persisting(0)},
	{name: "persist-at-1000", ops: 1000, batch: 10, prepare: persisting(1000)},
	{name: "persist-at-10000", ops: 1000, batch: 10, prepare: persisting(10_000)},
	{name: "persist-at-100000", ops: 1000, batch: 10, long: true, prepare: persisting(100_000)},
	{name: "persist-at-1000000", ops: 1000, batch: 10, long: true, prepare: persisting(1_000_000)},
	{name: "journal-append", ops: 400, batch: 10, prepare: appending},
	{name: "snapshot-save", ops: 600, batch: 10, prepare: saving},
	{name: "recover", ops: 200, batch: 5, prepare: recovering},
	{name: "recover-5ms", ops: 100, batch: 5, via: far, prepare: recovering},
	{name: "replay", ops: 12, batch: 1, prepare: replaying(5000)},
	{name: "replay-5ms", ops: 8, batch: 1, via: toShelf(shelved, 5*time.Millisecond), prepare: replayingShelf(shelved)},
	{name: "replay-50ms", ops: 4, batch: 1, via: toShelf(shelved, 50*time.Millisecond), prepare: replayingShelf(shelved)},
}

// shelved is the length of the histories in memory.
const shelved = 50_000

// far is a server 5 ms away.
func far(base http.RoundTripper) (http.RoundTripper, error) {
	return distance{base: base, time: 5 * time.Millisecond}, nil
}

func toNowhere(http.RoundTripper) (http.RoundTripper, error) { return nowhere{}, nil }

// toShelf is a history in memory, a distance away.
func toShelf(length int, away time.Duration) func(http.RoundTripper) (http.RoundTripper, error) {
	return func(http.RoundTripper) (http.RoundTripper, error) {
		s, err := newShelf(length, hundreds)
		return distance{base: s, time: away}, err
	}
}

// counted is how many operations are counted at the wire.
const counted = 8

// run prepares a case, counts what it consumes, and measures it. ops 0 leaves
// the number of operations to the case.
func (s scenario) run(ctx context.Context, srv *server, ops int) (result, error) {
	if ops == 0 {
		ops = s.ops
	}
	l, err := newLab(srv, s.via, ops)
	if err != nil {
		return result{}, err
	}
	defer l.close(ctx)
	w, err := s.prepare(ctx, l)
	if err != nil {
		return result{}, err
	}
	n := min(counted, s.batch)
	used, err := l.wire.record(func() error {
		for range n {
			if err := w.ours(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return result{}, err
	}
	ours, bare, err := measure(ctx, w, ops, s.batch)
	if err == nil && w.check != nil {
		err = w.check(ctx)
	}
	if err != nil {
		return result{}, err
	}
	r := result{
		Case: s.name, About: w.about, Server: srv.about, Item: w.item,
		Requests: float64(used.Requests) / float64(n), WCU: used.WriteUnits / float64(n), RCU: used.ReadUnits / float64(n),
		NsPerOp: math.Round(middle(ours.times)), Ratio: rounded(middle(ours.times) / middle(bare.times)),
	}
	if w.nowhere {
		r.Server = "none"
	}
	if !srv.inside || w.nowhere {
		per, of := middle(ours.allocs), middle(bare.allocs)
		r.Allocs = &allocs{PerOp: rounded(per), Bare: rounded(of), Ratio: rounded(per / of)}
	}
	return r, nil
}

// rounded has three decimals.
func rounded(f float64) float64 { return math.Round(f*1000) / 1000 }

// grouped shows a number with commas.
func grouped(n int) string {
	s := strconv.Itoa(n)
	var parts []string
	for len(s) > 3 {
		parts = append([]string{s[len(s)-3:]}, parts...)
		s = s[:len(s)-3]
	}
	return strings.Join(append([]string{s}, parts...), ",")
}
