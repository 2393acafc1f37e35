package dynactor_test

import (
	"errors"
	"testing"
	"time"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// An actor cannot delete what it needs to recover.
func TestGuard_DeletionsOfActors(t *testing.T) {
	t.Parallel()
	ten := func(t *testing.T, o dynactor.Options) (*incarnation, *dynactor.Provider, *dynactortest.DB) {
		t.Helper()
		o.SnapshotInterval, o.KeepSnapshots = 3, 2
		p, db := open(t, o)
		a := start(t, p, 0)
		for range 3 {
			a.run(3)
			a.save()
		}
		a.run(1)
		return a, p, db // events 1 to 10, snapshots at 6 and 9
	}
	refused := func(t *testing.T, want error, index int64, f func()) {
		t.Helper()
		if err := caught(f); !errors.Is(err, want) || err.Index != index || err.ID != "a" {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	t.Run("B14 events beyond the oldest kept snapshot", func(t *testing.T) {
		t.Parallel()
		a, p, db := ten(t, dynactor.Options{})
		for _, index := range []int{6, 8, 9, 100} {
			refused(t, dynactor.ErrNoSnapshot, int64(index), func() { a.s.DeleteEvents("a", index) })
		}
		a.s.DeleteEvents("a", -1)
		checkMark(t, db, "a", "", "")
		for _, index := range []int{2, 5, 5, 3} { // inclusive: events up to number index + 1
			a.s.DeleteEvents("a", index)
		}
		checkMark(t, db, "a", "6", "")
		a.run(2)
		a = start(t, p, 12)
		a.save()
		a.s.DeleteEvents("a", 8)
		checkMark(t, db, "a", "9", "")
		start(t, p, 12)
	})
	t.Run("a snapshot below the mark is no kept one", func(t *testing.T) {
		t.Parallel()
		a, p, db := ten(t, dynactor.Options{})
		deleteTo(t, p.Journal(), "a", 7)
		a.s.DeleteEvents("a", 8)
		checkMark(t, db, "a", "9", "")
		start(t, p, 10)
	})
	t.Run("events without a snapshot", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		a := start(t, p, 0)
		a.run(3)
		refused(t, dynactor.ErrNoSnapshot, 0, func() { a.s.DeleteEvents("a", 0) })
		save(t, p, "a", 7) // ahead of the head: of no use
		refused(t, dynactor.ErrNoSnapshot, 2, func() { a.s.DeleteEvents("a", 2) })
		checkMark(t, db, "a", "", "")
	})
	t.Run("events under snapshots of a past that was ended", func(t *testing.T) {
		t.Parallel()
		a, p, db := ten(t, dynactor.Options{})
		deleteAll(t, p.Journal(), "a")
		_, index, _ := recovered(a.s, "a")
		a.s.PersistEvent("a", index, text("11"))
		refused(t, dynactor.ErrNoSnapshot, 10, func() { a.s.DeleteEvents("a", 10) })
		a.s.DeleteSnapshots("a", 9) // of no use any more
		checkMark(t, db, "a", "10", "10")
		checkSnapshots(t, p.Snapshots(), "a")
		checkRecovery(t, p, "a", "reset", 10, 11, 11)
	})
	t.Run("events under snapshots that expire", func(t *testing.T) {
		t.Parallel()
		a, _, db := ten(t, dynactor.Options{SnapshotTTL: time.Hour})
		refused(t, dynactor.ErrInvalid, 2, func() { a.s.DeleteEvents("a", 2) })
		checkMark(t, db, "a", "", "")
	})
	t.Run("the last usable snapshot", func(t *testing.T) {
		t.Parallel()
		a, p, db := ten(t, dynactor.Options{})
		a.s.DeleteEvents("a", 5)
		refused(t, dynactor.ErrNoSnapshot, -1, func() { a.s.DeleteSnapshots("a", 9) })
		refused(t, dynactor.ErrNoSnapshot, -1, func() { a.s.DeleteSnapshots("a", 100) })
		checkSnapshots(t, p.Snapshots(), "a", 6, 9)
		for _, index := range []int{8, 8, 0, -1, 5} {
			a.s.DeleteSnapshots("a", index)
		}
		checkSnapshots(t, p.Snapshots(), "a", 9)
		start(t, p, 10)
		a.run(2)
		a.save()
		a.s.DeleteSnapshots("a", 9)
		checkSnapshots(t, p.Snapshots(), "a", 12)
		checkMark(t, db, "a", "6", "")
		start(t, p, 12)
	})
	t.Run("snapshots while all events are there", func(t *testing.T) {
		t.Parallel()
		a, p, _ := ten(t, dynactor.Options{})
		a.s.DeleteSnapshots("a", 100)
		checkSnapshots(t, p.Snapshots(), "a")
		start(t, p, 10)
		a.run(1)
		a.save()
		checkSnapshots(t, p.Snapshots(), "a", 11)
	})
	t.Run("the only snapshot while another incarnation is about to delete the events", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 3, KeepSnapshots: 1, DeleteEventsOnSnapshot: true})
		a := start(t, p, 0)
		a.run(3)
		reached, release := make(chan struct{}), make(chan struct{})
		db.Faults.Add(dynactortest.Rule{Op: "UpdateItem", Times: 1, Do: dynactortest.Hold(reached, release)})
		saved := make(chan struct{})
		go func() { defer close(saved); a.save() }()
		<-reached
		other := start(t, p, 3)
		refused(t, dynactor.ErrNoSnapshot, -1, func() { other.s.DeleteSnapshots("a", 100) })
		close(release)
		<-saved
		checkMark(t, db, "a", "3", "")
		start(t, p, 3)
	})
	t.Run("in the midst of a replay", func(t *testing.T) {
		t.Parallel()
		_, p, db := ten(t, dynactor.Options{})
		s, calls := p.GetState(), 0
		s.GetEvents("a", 0, 0, func(any) {
			if calls++; calls > 1 {
				return
			}
			db.Faults.Reset()
			refused(t, dynactor.ErrRecovering, 0, func() { s.DeleteEvents("a", 0) })
			refused(t, dynactor.ErrRecovering, -1, func() { s.DeleteSnapshots("a", 9) })
			s.PersistSnapshot("a", 1, text("1"))
			if n := db.Faults.Count(""); n != 0 {
				t.Errorf("%d requests", n)
			}
		})
		checkSnapshots(t, p.Snapshots(), "a", 6, 9)
	})
	t.Run("after a failed write", func(t *testing.T) {
		t.Parallel()
		a, p, db := ten(t, dynactor.Options{})
		if _, err := p.Journal().Append(t.Context(), "a", 10, text("11")); err != nil {
			t.Fatal(err)
		}
		conflict := caught(func() { a.run(1) })
		db.Faults.Reset()
		refused(t, dynactor.ErrConflict, conflict.Index, func() { a.s.DeleteEvents("a", 0) })
		refused(t, dynactor.ErrConflict, conflict.Index, func() { a.s.DeleteSnapshots("a", 9) })
		a.save()
		if n := db.Faults.Count(""); n != 0 {
			t.Errorf("%d requests", n)
		}
		checkSnapshots(t, p.Snapshots(), "a", 6, 9)
		start(t, p, 11)
	})
}
