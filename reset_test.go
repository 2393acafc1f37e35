package dynactor_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// checkRecovery compares what a fresh incarnation is rebuilt from: the state in
// the place of a snapshot ("reset" stands for *Reset, "" for none), its index,
// and the events "lo" to "hi".
func checkRecovery(t *testing.T, p *dynactor.Provider, id, state string, index, lo, hi int) {
	t.Helper()
	s := p.GetState()
	s.Restart()
	var gotState string
	var events []string
	m, gotIndex, ok := s.GetSnapshot(id)
	if reset, is := m.(*dynactor.Reset); is {
		gotState = "reset"
		if reset.Seq != int64(gotIndex) {
			t.Errorf("reset at %d, index %d", reset.Seq, gotIndex)
		}
	} else if ok {
		gotState = textOf(m)
	}
	if ok == (m == nil) {
		t.Errorf("state %v, %t", m, ok)
	}
	s.GetEvents(id, gotIndex, 0, func(e any) { events = append(events, textOf(e)) })
	type recovery struct {
		State  string
		Index  int
		Events []string
	}
	if diff := cmp.Diff(recovery{state, index, texts(lo, hi)}, recovery{gotState, gotIndex, events}); diff != "" {
		t.Errorf("recovery of %q (-want +got):\n%s", id, diff)
	}
}

// checkRefused wants the recovery of an actor to fail, with no event delivered.
func checkRefused(t *testing.T, p *dynactor.Provider, id string, want error) {
	t.Helper()
	s, delivered := p.GetState(), 0
	err := caught(func() {
		s.Restart()
		_, index, _ := s.GetSnapshot(id)
		s.GetEvents(id, index, 0, func(any) { delivered++ })
	})
	if !errors.Is(err, want) || delivered != 0 {
		t.Errorf("recovery of %q: %v, with %d events delivered; want %v", id, err, delivered, want)
	}
}

func save(t *testing.T, p *dynactor.Provider, id string, seqs ...int64) {
	t.Helper()
	for _, seq := range seqs {
		if err := p.Snapshots().Save(t.Context(), id, seq, text(fmt.Sprintf("s-%d", seq))); err != nil {
			t.Fatal(err)
		}
	}
}

func deleteAll(t *testing.T, j *dynactor.Journal, id string) {
	t.Helper()
	if err := j.DeleteAll(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

func TestReset_DeleteAll(t *testing.T) {
	t.Parallel()
	for _, interval := range []int{0, 2} {
		t.Run(fmt.Sprintf("the life after, with interval %d", interval), func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{SnapshotInterval: interval})
			j := p.Journal()
			five(t, j, "a")
			save(t, p, "a", 3, 5) // of the past: they no longer count
			for range 2 {
				deleteAll(t, j, "a")
				checkMark(t, db, "a", "5", "5")
				checkNumbers(t, db, "a", 0, 1, 2, 3, 4, 5)
				checkReplay(t, j, "a", 1, 0, 1, 0)
				checkHead(t, j, "a", 5)
				checkRecovery(t, p, "a", "reset", 5, 1, 0)
			}
			q, _ := later(t, db)
			sweep(t, q.Journal(), "a", 4)
			checkRecovery(t, p, "a", "reset", 5, 1, 0)

			s := p.GetState()
			_, index, _ := recovered(s, "a")
			s.PersistEvent("a", index, text("6"))
			s.PersistEvent("a", index+1, text("7"))
			checkRecovery(t, p, "a", "reset", 5, 6, 7)
			save(t, p, "a", 6)
			checkRecovery(t, p, "a", "s-6", 6, 7, 7)

			deleteAll(t, j, "a")
			checkMark(t, db, "a", "7", "7")
			checkRecovery(t, p, "a", "reset", 7, 1, 0)
			if _, err := j.Append(t.Context(), "a", 7, text("8")); err != nil {
				t.Error(err)
			}
			checkRecovery(t, p, "a", "reset", 7, 8, 8)
		})
	}
	t.Run("DeleteTo after it needs a snapshot", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		j := p.Journal()
		five(t, j, "a")
		save(t, p, "a", 4)
		deleteAll(t, j, "a")
		deleteTo(t, j, "a", 5)
		checkRecovery(t, p, "a", "reset", 5, 1, 0)
		if _, err := j.Append(t.Context(), "a", 5, numbered(6, 8)...); err != nil {
			t.Fatal(err)
		}
		deleteTo(t, j, "a", 6)
		checkMark(t, db, "a", "6", "5")
		checkReplay(t, j, "a", 1, 0, 7, 8)
		checkRefused(t, p, "a", dynactor.ErrNoSnapshot)
		save(t, p, "a", 7)
		checkRecovery(t, p, "a", "s-7", 7, 8, 8)
		deleteAll(t, j, "a")
		checkRecovery(t, p, "a", "reset", 8, 1, 0)
	})
	t.Run("after DeleteTo everything", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		five(t, p.Journal(), "a")
		deleteTo(t, p.Journal(), "a", 5)
		checkRefused(t, p, "a", dynactor.ErrNoSnapshot)
		deleteAll(t, p.Journal(), "a")
		checkMark(t, db, "a", "5", "5")
		checkRecovery(t, p, "a", "reset", 5, 1, 0)
	})
	t.Run("Erase is the same", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{SnapshotInterval: 10})
		five(t, p.Journal(), "a")
		save(t, p, "a", 5)
		if err := p.Journal().Erase(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		checkRecovery(t, p, "a", "reset", 5, 1, 0)
		if _, err := p.Journal().Append(t.Context(), "a", 5, text("6")); err != nil {
			t.Error(err)
		}
		checkRecovery(t, p, "a", "reset", 5, 6, 6)
	})
	t.Run("a writer that is alive is a conflict", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		five(t, p.Journal(), "a")
		client, _ := db.NewClient()
		other := openOn(t, db, client, dynactor.Options{}).Journal()
		reached, release := make(chan struct{}), make(chan struct{})
		db.Faults.Add(dynactortest.Rule{Op: "UpdateItem", Times: 1, Do: dynactortest.Hold(reached, release)})
		go func() {
			<-reached
			defer close(release)
			if _, err := other.Append(t.Context(), "a", 5, text("6")); err != nil {
				t.Error(err)
			}
			if err := other.DeleteTo(t.Context(), "a", 6); err != nil {
				t.Error(err)
			}
		}()
		if err := p.Journal().DeleteAll(t.Context(), "a"); !errors.Is(err, dynactor.ErrConflict) {
			t.Errorf("got %v", err)
		}
		checkMark(t, db, "a", "6", "")
	})
}

// One bad item must not put an actor into a failing recovery for ever.
func TestReset_WayOutOfABadEvent(t *testing.T) {
	t.Parallel()
	bad := func(t *testing.T) (*dynactor.Provider, *dynactor.Journal) {
		t.Helper()
		p, db := open(t, dynactor.Options{})
		five(t, p.Journal(), "a")
		it := eventOf(t, "a", 3, text("3"))
		it["type"] = &types.AttributeValueMemberS{Value: "gone.Message"}
		put(t, db, db.EventsTable, it)
		var got []string
		s := p.GetState()
		err := caught(func() { s.GetEvents("a", 0, 0, func(e any) { got = append(got, textOf(e)) }) })
		if diff := cmp.Diff(texts(1, 2), got); diff != "" || !errors.Is(err, dynactor.ErrDecode) || err.Index != 2 {
			t.Errorf("C13: %v (-want +got):\n%s", err, diff)
		}
		if err := caught(func() { s.PersistEvent("a", 5, text("6")) }); !errors.Is(err, dynactor.ErrRecovering) {
			t.Errorf("persisting after a failed recovery: %v", err)
		}
		return p, p.Journal()
	}
	t.Run("L02 DeleteAll", func(t *testing.T) {
		t.Parallel()
		p, j := bad(t)
		deleteAll(t, j, "a")
		checkRecovery(t, p, "a", "reset", 5, 1, 0)
	})
	t.Run("L02 Erase", func(t *testing.T) {
		t.Parallel()
		p, j := bad(t)
		if err := j.Erase(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		checkRecovery(t, p, "a", "reset", 5, 1, 0)
	})
	t.Run("L02 a snapshot behind it", func(t *testing.T) {
		t.Parallel()
		p, j := bad(t)
		save(t, p, "a", 3)
		checkRecovery(t, p, "a", "s-3", 3, 4, 5)
		deleteTo(t, j, "a", 3)
		checkRecovery(t, p, "a", "s-3", 3, 4, 5)
	})
	t.Run("C13 a flipped byte", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		five(t, p.Journal(), "a")
		it := eventOf(t, "a", 2, text("2"))
		data := it["data"].(*types.AttributeValueMemberB)
		data.Value[1] ^= 0x40
		put(t, db, db.EventsTable, it)
		got, err := watch(t.Context(), t, p.Journal(), "a", 1, 0)
		got.wants(t, err, outcome{Events: texts(1, 1), Err: dynactor.ErrDecode, Index: 1}, "google.protobuf.StringValue")
	})
}
