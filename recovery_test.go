package dynactor_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// TestRecovery holds a recovery at one of its reads while another process goes on
// with the stream: what does not fit together is an error only when the one was
// read after the other.
func TestRecovery(t *testing.T) {
	t.Parallel()

	for _, interval := range []int{3, 0} {
		with := fmt.Sprintf(", interval %d", interval)
		end := "end"
		if interval == 0 {
			end = "page"
		}

		t.Run("a snapshot that was pruned after it was read is no missing one"+with, func(t *testing.T) {
			t.Parallel()
			d := newDuel(t, interval)
			d.during(1, []string{"mark", end}, []string{"snapshot"}, func() { d.goOn(9, 9) })
			d.recovers("9", nil)
		})

		t.Run("a snapshot that was saved after the end was read is not ahead"+with, func(t *testing.T) {
			t.Parallel()
			d := newDuel(t, interval)
			d.during(1, []string{"snapshot"}, []string{"mark", end}, func() { d.goOn(9, 0); saveSnapshot(t, d.other, "a", 8) })
			d.recovers("8", []string{"9"})
		})

		t.Run("a second look at the end makes the snapshot old again"+with, func(t *testing.T) {
			t.Parallel()
			d := newDuel(t, interval)
			d.during(1, []string{"snapshot"}, []string{"mark", end}, func() { d.goOn(9, 0); saveSnapshot(t, d.other, "a", 8) })
			second := 2
			if interval == 0 {
				second = 1 // the first look was one page
			}
			d.during(second, []string{"mark"}, nil, func() { d.goOn(12, 12) })
			d.recovers("12", nil)
		})

		t.Run("a second look at the snapshot makes the end old again"+with, func(t *testing.T) {
			t.Parallel()
			d := newDuel(t, interval)
			d.during(1, []string{"mark", end}, []string{"snapshot"}, func() { d.goOn(9, 9) })
			d.during(2, []string{"snapshot"}, nil, func() { d.goOn(12, 0); saveSnapshot(t, d.other, "a", 11) })
			d.recovers("11", []string{"12"})
		})

		t.Run("looks that take turns make each other old again"+with, func(t *testing.T) {
			t.Parallel()
			second := map[bool]int{true: 1, false: 2}[interval == 0]
			d := newDuel(t, interval)
			d.during(1, []string{"mark", end}, []string{"snapshot"}, func() { d.goOn(9, 9) })
			d.during(2, []string{"snapshot"}, nil, func() { d.goOn(12, 0); saveSnapshot(t, d.other, "a", 11) })
			d.during(second, []string{"mark"}, nil, func() { d.goOn(15, 15) })
			d.recovers("15", nil)

			d = newDuel(t, interval)
			d.during(1, []string{"snapshot"}, []string{"mark", end}, func() { d.goOn(9, 0); saveSnapshot(t, d.other, "a", 8) })
			d.during(second, []string{"mark"}, nil, func() { d.goOn(12, 12) })
			d.during(2, []string{"snapshot"}, nil, func() { d.goOn(15, 0); saveSnapshot(t, d.other, "a", 14) })
			d.recovers("14", []string{"15"})
		})

		t.Run("a missing snapshot is found out by two looks at it"+with, func(t *testing.T) {
			t.Parallel()
			d := newDuel(t, interval)
			d.goOn(9, 9)
			dropItem(t, d.db, d.db.SnapshotsTable, "a", 9)
			d.fails(dynactor.ErrNoSnapshot)
			d.reads("snapshot", 2)
		})

		t.Run("a snapshot too old for the deleted events is as good as none"+with, func(t *testing.T) {
			t.Parallel()
			d := newDuel(t, interval)
			if err := d.other.Journal().DeleteTo(t.Context(), "a", 4); err != nil {
				t.Fatal(err)
			}
			d.fails(dynactor.ErrNoSnapshot)
		})

		t.Run("lost events are found out by two looks at the end"+with, func(t *testing.T) {
			t.Parallel()
			d := newDuel(t, interval)
			saveSnapshot(t, d.other, "a", 5)
			dropItem(t, d.db, d.db.EventsTable, "a", 5)
			d.fails(dynactor.ErrAhead)
			d.reads("snapshot", 1)
			d.reads("mark", map[bool]int{true: 1, false: 2}[interval == 0])
		})

		t.Run("an event that is seen late is no gap"+with, func(t *testing.T) {
			t.Parallel()
			for reads := range 4 {
				d := newDuel(t, interval)
				d.goOn(7, 0)
				d.hide(reads, 5, 6)
				d.recovers("3", texts(4, 7))
			}
		})

		t.Run("an event that nobody sees is a gap"+with, func(t *testing.T) {
			t.Parallel()
			d := newDuel(t, interval)
			d.goOn(7, 0)
			dropItem(t, d.db, d.db.EventsTable, "a", 5)
			err, got := d.broken()
			isError(t, err, dynactor.ErrGap)
			if err != nil && err.Index != 4 {
				t.Errorf("the gap is at index %d, want 4", err.Index)
			}
			if diff := cmp.Diff(texts(4, 4), got); diff != "" {
				t.Errorf("delivered (-want +got):\n%s", diff)
			}
		})

		t.Run("a gap that a deletion reaches meanwhile is a conflict"+with, func(t *testing.T) {
			t.Parallel()
			d := newDuel(t, interval)
			d.goOn(9, 0)
			dropItem(t, d.db, d.db.EventsTable, "a", 5)
			again := 2
			if interval > 0 {
				again = 3 // the tail was too short, so there is a page before
			}
			d.during(again, []string{"page"}, nil, func() { d.goOn(9, 9) })
			d.fails(dynactor.ErrConflict)
			d.recovers("9", nil)
		})

		t.Run("a deletion beyond the snapshot while pages are read is a conflict"+with, func(t *testing.T) {
			t.Parallel()
			d := newDuel(t, interval)
			pages := 1
			if interval == 0 { // make it more than the first page
				for i := range 6 {
					if _, err := d.other.Journal().Append(t.Context(), "a", int64(i+5), text(strings.Repeat("x", 300<<10))); err != nil {
						t.Fatal(err)
					}
				}
				pages = 2
			}
			d.goOn(13, 0)
			d.during(pages, []string{"page"}, nil, func() { d.goOn(13, 13) })
			d.fails(dynactor.ErrConflict)
			d.recovers("13", nil)
		})

		t.Run("a whole look is not looked at again"+with, func(t *testing.T) {
			t.Parallel()
			d := newDuel(t, interval)
			d.recovers("3", texts(4, 5))
			d.reads("", map[bool]int{true: 2, false: 3}[interval == 0])
		})

		t.Run("the snapshot at hand is used whatever the interval, and its tail read"+with, func(t *testing.T) {
			t.Parallel()
			for _, head := range []int{3, 4, 6, 7, 8, 30} {
				d := newDuel(t, interval, head)
				d.recovers("3", texts(4, head))
			}
		})

		t.Run("an expired snapshot is none"+with, func(t *testing.T) {
			t.Parallel()
			now := &clock{}
			p, _ := open(t, dynactor.Options{SnapshotInterval: interval, SnapshotTTL: time.Hour, Now: now.Now})
			fill(t, p.Journal(), "a", 5)
			saveSnapshot(t, p, "a", 3)
			if snapshot, _, got := recovered(p.GetState(), "a"); snapshot != "3" || !slices.Equal(got, texts(4, 5)) {
				t.Errorf("before: snapshot %q and events %v", snapshot, got)
			}
			now.Advance(time.Hour + time.Second)
			if snapshot, index, got := recovered(p.GetState(), "a"); snapshot != "" || index != 0 || !slices.Equal(got, texts(1, 5)) {
				t.Errorf("after: snapshot %q at %d and events %v", snapshot, index, got)
			}
		})

		t.Run("a past that was ended stays so"+with, func(t *testing.T) {
			t.Parallel()
			d := newDuel(t, interval)
			if err := d.other.Journal().DeleteAll(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			d.recovers("*dynactor.Reset", nil)
			d.goOn(8, 0)
			d.recovers("*dynactor.Reset", texts(6, 8)) // the snapshot at 3 is still there
			s := d.p.GetState()
			if m, index, ok := s.GetSnapshot("a"); !ok || index != 5 || m.(*dynactor.Reset).Seq != 5 {
				t.Errorf("got %v at %d, %v, want the reset at 5", m, index, ok)
			}
			saveSnapshot(t, d.other, "a", 7)
			d.recovers("7", texts(8, 8))
		})

		for _, which := range []string{"snapshot", "mark", end, "page"} {
			t.Run("C07 an empty page is no end: "+which+with, func(t *testing.T) {
				t.Parallel()
				for times := 1; times <= 3; times++ {
					d := newDuel(t, interval, 12)
					d.db.Faults.Add(dynactortest.Rule{
						Op: "Query", Times: times, Do: dynactortest.EmptyPage(),
						Match: func(r dynactortest.Request) bool { return kind(d.db, r) == which },
					})
					d.recovers("3", texts(4, 12))
				}
			})
		}

		t.Run("of an append that is half visible all is delivered or nothing"+with, func(t *testing.T) {
			t.Parallel()
			for hidden := 1; hidden < 8; hidden++ {
				for reads := 1; reads <= 3; reads++ {
					d := newDuel(t, interval)
					if _, err := d.other.Journal().Append(t.Context(), "a", 5, numbered(6, 8)...); err != nil {
						t.Fatal(err)
					}
					var seqs []int
					for bit, seq := range []int{6, 7, 8} {
						if hidden&(1<<bit) != 0 {
							seqs = append(seqs, seq)
						}
					}
					d.hide(reads, seqs...)
					snapshot, _, got := recovered(d.p.GetState(), "a")
					if snapshot != "3" || (!slices.Equal(got, texts(4, 8)) && (len(seqs) < 3 || !slices.Equal(got, texts(4, 5)))) {
						t.Errorf("with %v hidden from %d reads: snapshot %q and events %v", seqs, reads, snapshot, got)
					}
				}
			}
		})

		t.Run("an append that stays half visible is a gap"+with, func(t *testing.T) {
			t.Parallel()
			for _, seq := range []int{6, 8} {
				d := newDuel(t, interval)
				if _, err := d.other.Journal().Append(t.Context(), "a", 5, numbered(6, 8)...); err != nil {
					t.Fatal(err)
				}
				dropItem(t, d.db, d.db.EventsTable, "a", seq)
				err, got := d.broken()
				isError(t, err, dynactor.ErrGap)
				if diff := cmp.Diff(texts(4, 5), got); diff != "" {
					t.Errorf("delivered without %d (-want +got):\n%s", seq, diff)
				}
			}
		})
	}

	t.Run("a tail that 1 MB cuts off is completed", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 20})
		var want []string
		for i := range 9 {
			want = append(want, strconv.Itoa(i+1)+strings.Repeat("x", 300<<10))
			if _, err := p.Journal().Append(t.Context(), "a", int64(i), text(want[i])); err != nil {
				t.Fatal(err)
			}
		}
		saveSnapshot(t, p, "a", 1)
		db.Faults.Reset()
		if snapshot, _, got := recovered(p.GetState(), "a"); snapshot != "1" || !slices.Equal(got, want[1:]) {
			t.Errorf("snapshot %q and %d events, want 1 and 8, or they differ", snapshot, len(got))
		}
	})

	for _, interval := range []int{1, 999, 1000, 1001, math.MaxInt} {
		t.Run("the look at the end is bounded, interval "+strconv.Itoa(interval), func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{SnapshotInterval: interval})
			fill(t, p.Journal(), "a", 1100)
			db.Faults.Reset()
			if _, _, got := recovered(p.GetState(), "a"); !slices.Equal(got, texts(1, 1100)) {
				t.Errorf("%d events, want 1100, or they differ", len(got))
			}
			for _, r := range db.Faults.Requests() {
				if limit, _ := r.Input()["Limit"].(float64); kind(db, r) == "end" && limit != float64(min(interval, 999)+1) {
					t.Errorf("the look at the end has the limit %v", limit)
				}
			}
		})
	}

	t.Run("a replay whose events were deleted before it began starts over", func(t *testing.T) {
		t.Parallel()
		d := newDuel(t, 3, 12)
		d.during(1, []string{"page"}, nil, func() { d.goOn(14, 10); d.sweep() })
		got, err := replayed(t.Context(), d.p.Journal(), "a", 0, 0)
		if diff := cmp.Diff(texts(11, 14), got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})

	t.Run("the head is as old as the request that showed it", func(t *testing.T) {
		t.Parallel()
		for _, interval := range []int{3, 0} {
			d := newDuel(t, interval)
			reached, release := make(chan struct{}), make(chan struct{})
			d.db.Faults.Add(dynactortest.Rule{Op: "Query", Table: d.db.EventsTable, Times: 1, Do: dynactortest.HoldAnswer(reached, release)})
			go func() {
				<-reached
				d.now.Advance(dynactor.DefaultDeleteDelay/2 + time.Minute) // asleep, say
				close(release)
			}()
			s := d.p.GetState()
			func() {
				defer func() { _ = recover() }()
				recovered(s, "a")
			}()
			d.db.Faults.Reset()
			s.PersistEvent("a", 5, text("6"))
			onlyRequests(t, d.db, map[string]int{"GetItem": 1, "Query": 1, "PutItem": 1})
		}
	})
}

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
