package dynactor_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// open makes a provider on a database of the test's own.
func open(t *testing.T, o dynactor.Options) (*dynactor.Provider, *dynactortest.DB) {
	t.Helper()
	db := dynactortest.New(t)
	return openOn(t, db, db.Client, o), db
}

// openOn makes another provider on the same tables, as a second process would.
func openOn(t *testing.T, db *dynactortest.DB, client dynactor.Client, o dynactor.Options) *dynactor.Provider {
	t.Helper()
	o.EventsTable, o.SnapshotsTable = db.EventsTable, db.SnapshotsTable
	if o.StateTables == nil {
		o.StateTables = []string{db.StateTable}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	p, err := dynactor.New(client, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return p
}

// ready makes the tables, so that a test sees only the requests that it makes itself.
func ready(t *testing.T, p *dynactor.Provider, db *dynactortest.DB) {
	t.Helper()
	if err := p.EnsureTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	db.Faults.Reset()
}

// text is a small message.
func text(s string) proto.Message { return wrapperspb.String(s) }

// textOf is the text in a message made by text.
func textOf(m any) string {
	if s, ok := m.(*wrapperspb.StringValue); ok {
		return s.GetValue()
	}
	return fmt.Sprintf("%T", m)
}

// numbered are messages with the texts "lo" to "hi".
func numbered(lo, hi int) []proto.Message {
	var list []proto.Message
	for i := lo; i <= hi; i++ {
		list = append(list, text(strconv.Itoa(i)))
	}
	return list
}

// texts are the texts "lo" to "hi"; nil for none.
func texts(lo, hi int) []string {
	var list []string
	for i := lo; i <= hi; i++ {
		list = append(list, strconv.Itoa(i))
	}
	return list
}

// fill appends events with the texts "1" to "n" to an empty stream, up to 100 at a time.
func fill(t *testing.T, j *dynactor.Journal, id string, n int) {
	t.Helper()
	for head := 0; head < n; {
		next := min(head+dynactor.MaxEvents, n)
		if _, err := j.Append(t.Context(), id, int64(head), numbered(head+1, next)...); err != nil {
			t.Fatal(err)
		}
		head = next
	}
}

// replayed collects the texts of a replay.
func replayed(ctx context.Context, j *dynactor.Journal, id string, from, to int64) (got []string, err error) {
	for e, err := range j.Replay(ctx, id, from, to) {
		if err != nil {
			return got, err
		}
		got = append(got, textOf(e.Message))
	}
	return got, nil
}

// recovered collects what a fresh session of id delivers, as the framework asks
// for it: the snapshot's text, where there is one, and the events' texts.
func recovered(s interface {
	Restart()
	GetSnapshot(string) (any, int, bool)
	GetEvents(string, int, int, func(any))
}, id string,
) (snapshot string, index int, events []string) {
	s.Restart()
	m, index, ok := s.GetSnapshot(id)
	if ok {
		snapshot = textOf(m)
	}
	s.GetEvents(id, index, 0, func(e any) { events = append(events, textOf(e)) })
	return snapshot, index, events
}

// caught runs f and returns the *dynactor.Error that it panics with, nil when it
// returns. Any other panic goes on.
func caught(f func()) (err *dynactor.Error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*dynactor.Error)
			if !ok {
				panic(r)
			}
			err = e
		}
	}()
	f()
	return nil
}

// clock is a wall clock that a test sets. It starts at the real time.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

// Now is for Options.Now.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

// Advance puts the clock forward.
func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}
