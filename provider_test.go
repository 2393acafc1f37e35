package dynactor_test

import (
	"context"
	"errors"
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

func openOn(t *testing.T, db *dynactortest.DB, client dynactor.Client, o dynactor.Options) *dynactor.Provider {
	t.Helper()
	o.EventsTable, o.SnapshotsTable = db.EventsTable, db.SnapshotsTable
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

func text(s string) proto.Message { return wrapperspb.String(s) }

func TestSmoke(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{SnapshotInterval: 10})
	ctx := t.Context()
	j := p.Journal()
	for i := range 5 {
		head, err := j.Append(ctx, "a", int64(i), text("x"))
		if err != nil || head != int64(i)+1 {
			t.Fatal(head, err)
		}
	}
	if _, err := j.Append(ctx, "a", 5, text("y"), text("z")); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(ctx, "a", 4, text("y")); !errors.Is(err, dynactor.ErrConflict) {
		t.Fatal(err)
	}
	n := 0
	for e, err := range j.Replay(ctx, "a", 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		_ = e
	}
	if n != 7 {
		t.Fatal(n)
	}
	s := p.GetState()
	s.Restart()
	_, _, ok := s.GetSnapshot("a")
	if ok {
		t.Fatal("snapshot")
	}
	db.Faults.Reset()
	s.GetEvents("a", 0, 0, func(any) { n++ })
	s.PersistEvent("a", 7, text("q"))
	for _, r := range db.Faults.Requests() {
		t.Log(r.Op, r.Usage)
	}
}
