package dynactor_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// TestSession uses sessions as the framework does, without an actor.
func TestSession(t *testing.T) {
	t.Parallel()

	t.Run("B11 the first event has index 0", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		s := p.GetState()
		s.PersistEvent("a", 0, text("1"))

		events(t, p.GetState(), "a", 0, 0, "1")
		events(t, p.GetState(), "a", 1, 0)
		if got := stored(t, db, "a"); !cmp.Equal(got, []int64{1}) {
			t.Errorf("items %v, want the one with number 1", got)
		}
	})

	t.Run("start is inclusive, end is exclusive, 0 is the head", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		fill(t, p.Journal(), "a", 5)
		for _, c := range []struct {
			start, end int
			want       []string
		}{
			{0, 0, texts(1, 5)},
			{0, 5, texts(1, 5)},
			{0, 1, texts(1, 1)},
			{1, 3, texts(2, 3)},
			{4, 5, texts(5, 5)},
			{4, 0, texts(5, 5)},
			{5, 0, nil},
			{3, 9, texts(4, 5)},
			{2, 2, nil},
			{0, math.MaxInt, texts(1, 5)},
			{3, 1, nil},
			{7, 9, nil},
		} {
			var got []string
			p.GetState().GetEvents("a", c.start, c.end, func(e any) { got = append(got, textOf(e)) })
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("events from %d to %d (-want +got):\n%s", c.start, c.end, diff)
			}
		}
	})

	t.Run("the interval is never 0 or negative", func(t *testing.T) {
		t.Parallel()
		db := dynactortest.New(t)
		for interval, want := range map[int]int{
			0: math.MaxInt, -1: math.MaxInt, math.MinInt: math.MaxInt, 1: 1, 3: 3, math.MaxInt: math.MaxInt,
		} {
			p := openOn(t, db, db.Client, dynactor.Options{SnapshotInterval: interval})
			if got := p.GetState().GetSnapshotInterval(); got != want {
				t.Errorf("SnapshotInterval %d gives %d, want %d", interval, got, want)
			}
		}
	})

	t.Run("an index that is not the next stores nothing and ends the session", func(t *testing.T) {
		t.Parallel()
		for _, index := range []int{0, 2, 4, -1} {
			p, db := open(t, dynactor.Options{})
			fill(t, p.Journal(), "a", 3)
			s := p.GetState()
			recovered(s, "a")
			db.Faults.Reset()
			isError(t, caught(func() { s.PersistEvent("a", index, text("x")) }), dynactor.ErrConflict)
			isError(t, caught(func() { s.PersistEvent("a", 3, text("x")) }), dynactor.ErrConflict)
			if n := db.Faults.Count(""); n != 0 {
				t.Errorf("index %d: %d requests, want none: %v", index, n, db.Faults.Requests())
			}
		}
	})

	t.Run("without a recovery the head is read once, before the first write", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		fill(t, p.Journal(), "a", 3)
		isError(t, caught(func() { p.GetState().PersistEvent("a", 0, text("x")) }), dynactor.ErrConflict)

		db.Faults.Reset()
		s := p.GetState()
		s.PersistEvent("a", 3, text("4"))
		s.PersistEvent("a", 4, text("5"))
		if reads, writes := db.Faults.Count("Query"), db.Faults.Count("PutItem"); reads != 1 || writes != 2 {
			t.Errorf("%d queries and %d puts, want 1 and 2", reads, writes)
		}
		events(t, p.GetState(), "a", 0, 0, texts(1, 5)...)
	})

	t.Run("several ids on one session do not touch each other", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{SnapshotInterval: 3})
		s := p.GetState()
		for i := range 4 {
			for _, id := range []string{"a", "b", "c"} {
				s.PersistEvent(id, i, text(id+strconv.Itoa(i)))
			}
		}
		s.PersistSnapshot("b", 3, text("state of b"))
		isError(t, caught(func() { s.PersistEvent("c", 9, text("x")) }), dynactor.ErrConflict)
		s.PersistEvent("a", 4, text("a4")) // the failure of c is not a's

		type state struct {
			Snapshot string
			Index    int
			Events   []string
		}
		got := map[string]state{}
		for _, id := range []string{"a", "b", "c"} {
			var st state
			st.Snapshot, st.Index, st.Events = recovered(s, id)
			got[id] = st
		}
		want := map[string]state{
			"a": {"", 0, []string{"a0", "a1", "a2", "a3", "a4"}},
			"b": {"state of b", 3, []string{"b3"}},
			"c": {"", 0, []string{"c0", "c1", "c2", "c3"}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("recovered (-want +got):\n%s", diff)
		}
	})

	t.Run("a write during a replay is refused and doubles nothing", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 3})
		fill(t, p.Journal(), "a", 5)
		saveSnapshot(t, p, "a", 3)
		s := p.GetState()
		_, index, ok := s.GetSnapshot("a")
		if !ok || index != 3 {
			t.Fatalf("snapshot at %d, %v, want one at 3", index, ok)
		}
		db.Faults.Reset()
		refused := func() { isError(t, caught(func() { s.PersistEvent("a", 5, text("x")) }), dynactor.ErrRecovering) }
		refused() // by the handler of the snapshot
		s.GetEvents("a", 3, 0, func(any) {
			refused() // by a handler of an event
			s.PersistSnapshot("a", 4, text("x"))
		})
		if n := db.Faults.Count(""); n != 0 {
			t.Errorf("%d requests, want none: %v", n, db.Faults.Requests())
		}
		s.PersistEvent("a", 5, text("6"))
		if snapshot, _, got := recovered(s, "a"); snapshot != "3" || !cmp.Equal(got, texts(4, 6)) {
			t.Errorf("recovered snapshot %q and events %v, want 3 and 4 to 6", snapshot, got)
		}
	})

	t.Run("a part of the history does not end a replay", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		fill(t, p.Journal(), "a", 5)
		s := p.GetState()
		s.GetEvents("a", 0, 0, func(e any) {
			if textOf(e) == "2" {
				events(t, s, "a", 0, 2, texts(1, 2)...)
			}
			isError(t, caught(func() { s.PersistEvent("a", 5, text("x")) }), dynactor.ErrRecovering)
		})
		events(t, s, "a", 0, 2, texts(1, 2)...) // nor does it begin one
		s.PersistEvent("a", 5, text("6"))
	})

	t.Run("a replay that a handler breaks off goes on being one", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		fill(t, p.Journal(), "a", 3)
		s := p.GetState()
		func() {
			defer func() {
				if r := recover(); r != "broken" {
					t.Errorf("the handler's panic became %v", r)
				}
			}()
			s.GetEvents("a", 0, 0, func(any) { panic("broken") })
		}()
		isError(t, caught(func() { s.PersistEvent("a", 3, text("x")) }), dynactor.ErrRecovering)
		recovered(s, "a")
		s.PersistEvent("a", 3, text("4"))
	})

	t.Run("B06 a restart reads the table, not what the session knew", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{SnapshotInterval: 2})
		s := p.GetState()
		for i := range 3 {
			s.PersistEvent("a", i, text(strconv.Itoa(i+1)))
		}
		if _, err := p.Journal().Append(t.Context(), "a", 3, numbered(4, 6)...); err != nil {
			t.Fatal(err)
		}
		saveSnapshot(t, p, "a", 5)
		if snapshot, _, got := recovered(s, "a"); snapshot != "5" || !cmp.Equal(got, texts(6, 6)) {
			t.Errorf("recovered snapshot %q and events %v, want 5 and 6", snapshot, got)
		}
		s.PersistEvent("a", 6, text("7"))
	})

	t.Run("after a failed write only a restart helps", func(t *testing.T) {
		t.Parallel()
		p, db, seen := observe(t, dynactor.Options{SnapshotInterval: 3})
		fill(t, p.Journal(), "a", 4)
		saveSnapshot(t, p, "a", 3)
		s := p.GetState()
		recovered(s, "a")
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: denied})
		first := caught(func() { s.PersistEvent("a", 4, text("5")) })
		db.Faults.Reset()
		for name, write := range map[string]func(){
			"event":             func() { s.PersistEvent("a", 4, text("5")) },
			"events deletion":   func() { s.DeleteEvents("a", 0) },
			"snaps deletion":    func() { s.DeleteSnapshots("a", 1) },
			"replay then write": func() { s.GetEvents("a", 0, 1, func(any) {}); s.PersistEvent("a", 4, text("5")) },
		} {
			if got := caught(write); got != first {
				t.Errorf("%s: %v, want the first failure %v", name, got, first)
			}
		}
		s.PersistSnapshot("a", 4, text("never"))
		if last := seen.log.last(); *last != *first {
			t.Errorf("the refused snapshot was logged as %v, want %v", last, first)
		}
		if n := db.Faults.Count("PutItem") + db.Faults.Count("UpdateItem") + db.Faults.Count("BatchWriteItem"); n != 0 {
			t.Errorf("%d writes were sent, want none: %v", n, db.Faults.Requests())
		}
		recovered(s, "a")
		s.PersistEvent("a", 4, text("5"))
		events(t, p.GetState(), "a", 0, 0, texts(1, 5)...)
	})

	t.Run("what was refused before it was sent leaves the session alive", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		s := p.GetState()
		s.PersistEvent("a", 0, text("1"))
		isError(t, caught(func() { s.PersistEvent("a", 1, text(strings.Repeat("x", 400<<10))) }), dynactor.ErrTooLarge)
		isError(t, caught(func() { s.PersistEvent("a", 1, nil) }), dynactor.ErrInvalid)
		s.PersistEvent("a", 1, text("2"))
		events(t, p.GetState(), "a", 0, 0, texts(1, 2)...)
	})

	t.Run("a snapshot of nothing is not stored", func(t *testing.T) {
		t.Parallel()
		p, _, seen := observe(t, dynactor.Options{SnapshotInterval: 3})
		s := p.GetState()
		s.PersistEvent("a", 0, text("1"))
		s.PersistSnapshot("a", 0, text("x"))
		if got, err := p.Snapshots().List(t.Context(), "a"); err != nil || len(got) != 0 {
			t.Errorf("snapshots %v, %v, want none", got, err)
		}
		if n := seen.log.len(); n != 0 {
			t.Errorf("%d errors were logged, want none", n)
		}
	})

	t.Run("B14 deletions keep what recovery needs", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{SnapshotInterval: 3})
		fill(t, p.Journal(), "a", 9)
		for _, seq := range []int{3, 6} {
			saveSnapshot(t, p, "a", seq)
		}
		s := p.GetState()
		recovered(s, "a")
		// DeleteEvents is inclusive: at the snapshot's index it would take an
		// event that the snapshot does not cover.
		isError(t, caught(func() { s.DeleteEvents("a", 3) }), dynactor.ErrNoSnapshot)
		isError(t, caught(func() { s.DeleteEvents("a", 100) }), dynactor.ErrNoSnapshot)
		events(t, p.GetState(), "a", 0, 0, texts(1, 9)...)
		s.DeleteEvents("a", -1)
		s.DeleteEvents("a", 2)
		isError(t, caught(func() { s.DeleteSnapshots("a", 6) }), dynactor.ErrNoSnapshot)
		s.DeleteSnapshots("a", 5)
		if got, err := p.Snapshots().List(t.Context(), "a"); err != nil || !cmp.Equal(got, []int64{6}) {
			t.Errorf("snapshots %v, %v, want the one at 6", got, err)
		}
		s.DeleteEvents("a", 5)
		s.PersistEvent("a", 9, text("10"))
		if snapshot, index, got := recovered(s, "a"); snapshot != "6" || index != 6 || !cmp.Equal(got, texts(7, 10)) {
			t.Errorf("recovered snapshot %q at %d and events %v, want 6 and 7 to 10", snapshot, index, got)
		}
	})
}
