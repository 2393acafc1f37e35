package dynactor_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
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
