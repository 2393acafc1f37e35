package dynactor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// about matches the requests that name a persistence id.
func about(id string) func(dynactortest.Request) bool {
	return func(r dynactortest.Request) bool { return strings.Contains(string(r.Body), `{"S":"`+id+`"}`) }
}

// inFlight sends on until n requests of an operation are held, and returns what
// releases them.
func inFlight(t *testing.T, db *dynactortest.DB, op string, n int, send func(i int) error) (release func(), errs chan error) {
	t.Helper()
	reached, done := make(chan struct{}, 2*n), make(chan struct{})
	db.Faults.Add(dynactortest.Rule{Op: op, Do: dynactortest.Hold(reached, done)})
	errs = make(chan error, 2*n)
	for i := range 2 * n {
		go func() { errs <- send(i) }()
	}
	for range n {
		<-reached
	}
	return func() { close(done) }, errs
}

func TestClient_ConcurrencyLimits(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		o    dynactor.Options
		op   string
		send func(context.Context, *dynactor.Provider, int) error
	}{
		"writes": {
			dynactor.Options{MaxConcurrentWrites: 2},
			"PutItem",
			func(ctx context.Context, p *dynactor.Provider, i int) error {
				_, err := p.Journal().Append(ctx, fmt.Sprint("held-", i), 0, text("x"))
				return err
			},
		},
		"reads": {
			dynactor.Options{MaxConcurrentReads: 2},
			"GetItem",
			func(ctx context.Context, p *dynactor.Provider, i int) error {
				return p.Journal().DeleteTo(ctx, fmt.Sprint("held-", i), 0)
			},
		},
	} {
		t.Run("of "+name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, tc.o)
			ready(t, p, db)
			release, errs := inFlight(t, db, tc.op, 2, func(i int) error { return tc.send(t.Context(), p, i) })
			// Two are held and two more want to: one that comes now finds no place in all its time.
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			err := tc.send(ctx, p, 9)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "waiting for one of 2 places") {
				t.Errorf("got %v, want that it waited for a place", err)
			}
			if errors.Is(err, dynactor.ErrOutcomeUnknown) {
				t.Errorf("%v: what was never sent is not unknown", err)
			}
			if n := db.Faults.Count(tc.op); n != 2 {
				t.Errorf("%d requests at the same time, want at most 2", n)
			}
			release()
			for range cap(errs) {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
		})
	}

	t.Run("of one table do not stop the other, nor writes the reads", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{MaxConcurrentWrites: 1, MaxConcurrentReads: 2})
		ready(t, p, db)
		reached, release := make(chan struct{}), make(chan struct{})
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Table: db.SnapshotsTable, Do: dynactortest.Hold(reached, release)})
		saved := make(chan error, 1)
		go func() { saved <- p.Snapshots().Save(t.Context(), "a", 1, text("x")) }()
		<-reached
		if _, err := p.Journal().Append(t.Context(), "a", 0, text("x")); err != nil {
			t.Errorf("an append beside a held save: %v", err)
		}
		if _, _, err := p.Snapshots().Latest(t.Context(), "a"); err != nil {
			t.Errorf("a load beside a held save: %v", err)
		}
		close(release)
		if err := <-saved; err != nil {
			t.Error(err)
		}
	})

	t.Run("are not used up by one that waits between its attempts", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{MaxConcurrentWrites: 1, WriteTimeout: time.Minute})
		ready(t, p, db)
		throttled := make(chan struct{}, 1000)
		db.Faults.Add(dynactortest.Rule{
			Op: "PutItem", Match: about("slow"),
			Do: dynactortest.Sequence(dynactortest.EditAnswer(func(_ string, b []byte) []byte {
				throttled <- struct{}{}
				return b
			}), dynactortest.Throttle()),
		})
		ctx, cancel := context.WithCancel(t.Context())
		slow := make(chan error, 1)
		go func() {
			_, err := p.Journal().Append(ctx, "slow", 0, text("x"))
			slow <- err
		}()
		for i := range 5 {
			<-throttled
			if _, err := p.Journal().Append(t.Context(), fmt.Sprint("quick-", i), 0, text("x")); err != nil {
				t.Error(err)
			}
		}
		cancel()
		if err := <-slow; !errors.Is(err, dynactor.ErrThrottled) || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that it was throttled and cancelled", err)
		}
	})

	t.Run("are not used up by a consumer", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{MaxConcurrentReads: 1, MaxConcurrentWrites: 1})
		ready(t, p, db)
		fill(t, p.Journal(), "a", 3)
		n := 0
		for _, err := range p.Journal().Replay(t.Context(), "a", 1, 0) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			if _, err := p.Journal().Append(t.Context(), fmt.Sprint("b-", n), 0, text("x")); err != nil {
				t.Error(err)
			}
		}
		if n != 3 {
			t.Errorf("%d events, want 3", n)
		}
	})
}
