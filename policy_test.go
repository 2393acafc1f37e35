package dynactor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
)

func TestSnapshotPolicy(t *testing.T) {
	t.Parallel()
	now := dynactor.Progress{Event: text("x"), Head: 10, Events: 3, Bytes: 100, Age: time.Minute}
	for name, tc := range map[string]struct {
		policy dynactor.SnapshotPolicy
		want   bool
	}{
		"events, not yet":   {dynactor.EveryEvents(4), false},
		"events":            {dynactor.EveryEvents(3), true},
		"events, overdue":   {dynactor.EveryEvents(2), true},
		"every 0 events":    {dynactor.EveryEvents(0), false},
		"every -1 events":   {dynactor.EveryEvents(-1), false},
		"bytes, not yet":    {dynactor.EveryBytes(101), false},
		"bytes":             {dynactor.EveryBytes(100), true},
		"every 0 bytes":     {dynactor.EveryBytes(0), false},
		"time, not yet":     {dynactor.Every(time.Minute + 1), false},
		"time":              {dynactor.Every(time.Minute), true},
		"every 0 s":         {dynactor.Every(0), false},
		"type":              {dynactor.OnEvents(&wrapperspb.Int64Value{}, &wrapperspb.StringValue{}), true},
		"another type":      {dynactor.OnEvents(&structpb.Struct{}), false},
		"no type":           {dynactor.OnEvents(), false},
		"never":             {dynactor.NoSnapshots(), false},
		"one of several":    {dynactor.AnyOf(dynactor.NoSnapshots(), dynactor.EveryEvents(3)), true},
		"none of several":   {dynactor.AnyOf(dynactor.NoSnapshots(), dynactor.EveryEvents(4)), false},
		"none of no policy": {dynactor.AnyOf(), false},
	} {
		if got := tc.policy(now); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

// What a policy is told, over recoveries and snapshots.
func TestSnapshotPolicy_Progress(t *testing.T) {
	t.Parallel()
	now := &clock{}
	p, _ := open(t, dynactor.Options{Now: now.Now})
	h := newHouse(t)
	told := make(chan string, 100)
	o := dynactor.UsingOptions{Snapshot: func(p dynactor.Progress) bool {
		told <- fmt.Sprintf("%s: head %d, events %d, bytes %d, age %s", textOf(p.Event), p.Head, p.Events, p.Bytes, p.Age.Round(time.Minute))
		return p.Head == 4
	}}
	h.using(p, "a", o)
	list := func(n int) (got []string) {
		for range n {
			got = append(got, <-told)
		}
		return got
	}
	check := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, list(len(want))); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	}
	h.expect("a", pay("1"), texts(1, 1))
	now.Advance(10 * time.Minute)
	h.run("a", func(m *member, _ actor.Context) {
		if err := m.applied(m.PersistAll(numbered(2, 3)...), texts(2, 3)...); err != nil {
			t.Error(err)
		}
	})
	check("1: head 1, events 1, bytes 3, age 0s", "2: head 2, events 2, bytes 6, age 10m0s", "3: head 3, events 3, bytes 9, age 10m0s")
	h.send("a", fail{})
	h.expect("a", pay("4"), texts(1, 4))
	check("4: head 4, events 4, bytes 12, age 0s")
	h.expect("a", get{}, texts(1, 4)) // the snapshot is saved
	now.Advance(time.Minute)
	h.expect("a", pay("5"), texts(1, 5)) // after a snapshot
	check("5: head 5, events 1, bytes 3, age 1m0s")
	h.stop("a")
	h.using(p, "a", o)
	h.expect("a", pay("6"), texts(1, 6)) // recovered from it
	check("6: head 6, events 2, bytes 6, age 0s")
	h.run("a", func(m *member, _ actor.Context) {
		if err := m.SaveSnapshot(m.list()); err != nil {
			t.Error(err)
		}
	})
	h.expect("a", pay("7"), texts(1, 7))
	check("7: head 7, events 1, bytes 3, age 0s")
}
