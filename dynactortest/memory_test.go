package dynactortest_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/persistence"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// counter is an actor under test.
type counter struct {
	persistence.Mixin

	sum int64
}

func (c *counter) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *wrapperspb.Int64Value:
		sender := ctx.Sender()
		if !c.Recovering() {
			c.PersistReceive(m)
		}
		c.sum += m.GetValue()
		if sender != nil {
			ctx.Send(sender, c.sum)
		}
	case *persistence.RequestSnapshot:
		c.PersistSnapshot(wrapperspb.UInt64(uint64(c.sum)))
	case *wrapperspb.UInt64Value:
		c.sum = int64(m.GetValue())
	}
}

func ExampleNewMemory() {
	memory := dynactortest.NewMemory()
	system := actor.NewActorSystem()
	defer system.Shutdown()
	props := actor.PropsFromProducer(func() actor.Actor { return &counter{} }, actor.WithReceiverMiddleware(persistence.Using(memory)))
	for range 2 { // it lives twice
		pid, err := system.Root.SpawnNamed(props, "alice")
		if err != nil {
			fmt.Println(err)
			return
		}
		sum, err := system.Root.RequestFuture(pid, wrapperspb.Int64(21), -1).Result()
		fmt.Println(sum, err)
		if err := system.Root.PoisonFuture(pid).Wait(); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(memory.Aliased())
	// Output:
	// 21 <nil>
	// 42 <nil>
	// []
}

// The rest is tested by the suites of package conformance.
func TestMemory_Aliased(t *testing.T) {
	t.Parallel()
	m := dynactortest.NewMemory()
	s := m.GetState()
	first, second, snapshot := wrapperspb.Int64(1), wrapperspb.Int64(2), wrapperspb.UInt64(3)
	s.PersistEvent("a", 0, first)
	s.PersistEvent("a", 1, second)
	s.PersistSnapshot("a", 2, snapshot)
	if got := m.Aliased(); got != nil {
		t.Errorf("nothing was changed, and %q is named", got)
	}
	second.Value, snapshot.Value = 20, 30
	if diff := cmp.Diff([]string{`event 2 of "a"`, `snapshot 2 of "a"`}, m.Aliased()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMemory_ErrorsAreTheLibrarys(t *testing.T) {
	t.Parallel()
	m := dynactortest.NewMemory()
	_, err := m.Journal().Append(t.Context(), "a", 5, wrapperspb.Int64(1))
	e, ok := errors.AsType[*dynactor.Error](err)
	if !ok || !errors.Is(err, dynactor.ErrConflict) || e.Op != "append" || e.ID != "a" || e.Index != 5 {
		t.Errorf("got %#v", err)
	}
}

// Tags, ends and lists are as the library's; the suites look at the rest.
func TestMemory_State(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	m := &dynactortest.Memory{Now: func() time.Time { return now }}
	s, until := m.State(), now.Add(time.Hour)
	save := func(id string, st dynactor.State) {
		t.Helper()
		if _, err := s.SaveState(t.Context(), id, 0, st); err != nil {
			t.Error(err)
		}
	}
	load := func(want dynactor.State) {
		t.Helper()
		got, err := s.LoadState(t.Context(), want.ID)
		if diff := cmp.Diff(want, got, protocmp.Transform()); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	save("b", dynactor.State{Message: wrapperspb.Int64(1), Tags: []string{"y", "x", "y"}, Until: until})
	save("a", dynactor.State{Message: wrapperspb.Int64(2)})
	load(dynactor.State{ID: "b", Message: wrapperspb.Int64(1), Tags: []string{"x", "y"}, Until: until, Revision: 1, Type: "google.protobuf.Int64Value", Time: now})
	load(dynactor.State{ID: "none"})
	saved := now
	now = until
	load(dynactor.State{ID: "b", Until: until, Revision: 1, Time: saved})
	if _, err := s.SaveState(t.Context(), "c", 0, dynactor.State{Message: wrapperspb.Int64(3), Until: now}); !errors.Is(err, dynactor.ErrInvalid) {
		t.Errorf("a value that ends now: %v", err)
	}
	var rows []dynactor.StateRow
	for row, err := range s.IDs(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if diff := cmp.Diff([]dynactor.StateRow{{ID: "a", Revision: 1, Exists: true}, {ID: "b", Revision: 1}}, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if err := errors.Join(s.Purge(t.Context(), "b", 1), s.Purge(t.Context(), "b", 1)); err != nil {
		t.Error(err)
	}
	if err := s.Purge(t.Context(), "a", 1); !errors.Is(err, dynactor.ErrInvalid) {
		t.Errorf("purge of a value: %v", err)
	}
}

func TestMemory_StartAt(t *testing.T) {
	t.Parallel()
	m := dynactortest.NewMemory()
	m.StartAt("a", 1_000_000)
	m.StartAt("a", 5) // it has a head now
	if head, err := m.Journal().Append(t.Context(), "a", 1_000_000, wrapperspb.Int64(1)); head != 1_000_001 || err != nil {
		t.Errorf("head %d, %v", head, err)
	}
	for e, err := range m.Journal().Replay(t.Context(), "a", 1, 0) {
		if e.Seq != 1_000_001 || err != nil {
			t.Errorf("number %d, %v", e.Seq, err)
		}
	}
	if err := m.Snapshots().Save(t.Context(), "a", 1_000_000, wrapperspb.Int64(0)); err != nil {
		t.Fatal(err)
	}
	s := m.GetState() // a snapshot stands in for the deleted
	if _, index, ok := s.GetSnapshot("a"); index != 1_000_000 || !ok {
		t.Errorf("snapshot at index %d, %t", index, ok)
	}
	s.GetEvents("a", 1_000_000, 0, func(any) {})
	s.PersistEvent("a", 1_000_001, wrapperspb.Int64(2))
}

// A snapshot that stands in for deleted events does not expire.
func TestMemory_SnapshotsThatStay(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	m := &dynactortest.Memory{SnapshotTTL: time.Hour, Now: func() time.Time { return now }}
	for _, id := range []string{"a", "b"} {
		s := m.GetState()
		if id == "b" {
			m.StartAt(id, 1)
		} else {
			s.PersistEvent(id, 0, wrapperspb.Int64(1))
		}
		s.PersistSnapshot(id, 1, wrapperspb.UInt64(1))
	}
	now = now.Add(2 * time.Hour)
	for id, want := range map[string]bool{"a": false, "b": true} {
		if _, found, err := m.Snapshots().Latest(t.Context(), id); found != want || err != nil {
			t.Errorf("%s: found %t, %v", id, found, err)
		}
	}
}
