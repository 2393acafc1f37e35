package dynactor_test

import (
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// duel is a recovery and another process, whose requests nobody touches. The
// stream "a" has events 1 to 5, or as many as given, and a snapshot at 3.
type duel struct {
	t     *testing.T
	db    *dynactortest.DB
	now   *clock
	p     *dynactor.Provider // recovers
	other *dynactor.Provider // goes on meanwhile
}

func newDuel(t *testing.T, interval int, heads ...int) *duel {
	t.Helper()
	db := dynactortest.New(t)
	d := &duel{t: t, db: db, now: &clock{}}
	client, _ := db.NewClient()
	o := dynactor.Options{SnapshotInterval: interval, Now: d.now.Now}
	d.p, d.other = openOn(t, db, db.Client, o), openOn(t, db, client, o)
	for seq := range append(heads, 5)[0] {
		if _, err := d.other.Journal().Append(t.Context(), "a", int64(seq), numbered(seq+1, seq+1)...); err != nil {
			t.Fatal(err)
		}
	}
	saveSnapshot(t, d.other, "a", 3)
	ready(t, d.p, db)
	return d
}

// goOn makes the other process append events up to a head, and, with a mark above
// 0, save a snapshot there, and delete the older ones and the events.
func (d *duel) goOn(head, mark int) {
	d.t.Helper()
	j := d.other.Journal()
	at, err := j.Head(d.t.Context(), "a")
	if err == nil && int(at) < head {
		_, err = j.Append(d.t.Context(), "a", at, numbered(int(at)+1, head)...)
	}
	if err == nil && mark > 0 {
		saveSnapshot(d.t, d.other, "a", mark)
		if err = d.other.Snapshots().DeleteTo(d.t.Context(), "a", int64(mark)-1); err == nil {
			err = j.DeleteTo(d.t.Context(), "a", int64(mark))
		}
	}
	if err != nil {
		d.t.Error(err)
	}
}

// sweep removes the items of deleted events as if their time had come.
func (d *duel) sweep() {
	d.t.Helper()
	client, _ := d.db.NewClient()
	later := openOn(d.t, d.db, client, dynactor.Options{Now: func() time.Time { return d.now.Now().Add(dynactor.DefaultDeleteDelay + time.Hour) }})
	if _, err := later.Journal().Sweep(d.t.Context(), "a"); err != nil {
		d.t.Error(err)
	}
}

// during makes something happen while the n-th reads of the held kinds wait, and
// after those of the other kinds have been answered.
func (d *duel) during(n int, held, answered []string, happen func()) {
	d.t.Helper()
	reached, release := make(chan struct{}), make(chan struct{})
	waiting := 0
	for _, k := range held {
		if k == "mark" && d.firstLookIsOnePage() && n == 1 && slices.Contains(held, "page") {
			continue // the page shows it
		}
		waiting++
		d.db.Faults.Add(dynactortest.Rule{
			Match: func(r dynactortest.Request) bool { return kind(d.db, r) == k && d.count(k, false) == n },
			Times: 1, Do: dynactortest.Hold(reached, release),
		})
	}
	var happened atomic.Bool
	d.t.Cleanup(func() {
		if !happened.Load() {
			d.t.Errorf("reads number %d of %v never waited", n, held)
		}
	})
	go func() {
		defer close(release)
		for range waiting {
			select {
			case <-reached:
			case <-time.After(longest):
				return
			}
		}
		for _, k := range answered {
			if k != "mark" || !d.firstLookIsOnePage() {
				eventually(d.t, "the answer to "+k, func() bool { return d.count(k, true) >= n })
			}
		}
		happen()
		happened.Store(true)
	}()
}

func (d *duel) firstLookIsOnePage() bool { return d.p.GetState().GetSnapshotInterval() == math.MaxInt }

// count counts the reads of a kind, all or those that were answered.
func (d *duel) count(k string, answered bool) int {
	n := 0
	for _, r := range d.db.Faults.Requests() {
		if (k == "" || kind(d.db, r) == k) && (!answered || !r.End.IsZero()) {
			n++
		}
	}
	return n
}

// hide keeps events from so many reads of the recovery.
func (d *duel) hide(reads int, seqs ...int) {
	if reads == 0 {
		return
	}
	d.db.Faults.Add(dynactortest.Rule{Table: d.db.EventsTable, Op: "Query", Times: reads, Do: dynactortest.HideItems(func(it map[string]any) bool {
		seq, _ := it["seq"].(map[string]any)
		n, _ := seq["N"].(string)
		at, err := strconv.Atoi(n)
		return err == nil && slices.Contains(seqs, at)
	})})
}

// recovers checks what a recovery finds.
func (d *duel) recovers(snapshot string, want []string) {
	d.t.Helper()
	got, index, list := recovered(d.p.GetState(), "a")
	if n, err := strconv.Atoi(snapshot); err == nil && index != n {
		d.t.Errorf("the snapshot is at index %d, want %d", index, n)
	}
	if got != snapshot {
		d.t.Errorf("snapshot %q, want %q", got, snapshot)
	}
	if diff := cmp.Diff(want, list); diff != "" {
		d.t.Errorf("events (-want +got):\n%s", diff)
	}
}

// broken recovers, and returns the failure and what was delivered before it.
func (d *duel) broken() (err *dynactor.Error, got []string) {
	err = caught(func() {
		s := d.p.GetState()
		_, index, _ := s.GetSnapshot("a")
		s.GetEvents("a", index, 0, func(e any) { got = append(got, textOf(e)) })
	})
	return err, got
}

// fails checks that a recovery fails.
func (d *duel) fails(want error) {
	d.t.Helper()
	err, _ := d.broken()
	isError(d.t, err, want)
}

// reads checks how many reads of a kind there were.
func (d *duel) reads(k string, want int) {
	d.t.Helper()
	if got := d.count(k, false); got != want {
		d.t.Errorf("%d reads of kind %q, want %d: %v", got, k, want, d.db.Faults.Requests())
	}
}
