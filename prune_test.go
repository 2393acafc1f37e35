package dynactor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/persistence"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// incarnation is an actor that counts: its state is the texts of all its events.
type incarnation struct {
	t     *testing.T
	s     persistence.ProviderState
	state []string
	index int
}

// start recovers the actor "a". The state must be that of events "1" to "n".
func start(t *testing.T, p *dynactor.Provider, n int) *incarnation {
	t.Helper()
	a := &incarnation{t: t, s: p.GetState()}
	a.s.Restart()
	if m, index, ok := a.s.GetSnapshot("a"); ok {
		a.index = index
		if _, reset := m.(*dynactor.Reset); !reset {
			a.state = strings.Fields(textOf(m))
		}
	}
	a.s.GetEvents("a", a.index, 0, func(e any) { a.state, a.index = append(a.state, textOf(e)), a.index+1 })
	a.is(n)
	return a
}

func (a *incarnation) is(n int) {
	a.t.Helper()
	if diff := cmp.Diff(texts(1, n), a.state); diff != "" || a.index != n {
		a.t.Errorf("state at index %d, want %d (-want +got):\n%s", a.index, n, diff)
	}
}

// run persists n events.
func (a *incarnation) run(n int) {
	a.t.Helper()
	for range n {
		e := fmt.Sprint(a.index + 1)
		a.s.PersistEvent("a", a.index, text(e))
		a.state, a.index = append(a.state, e), a.index+1
	}
}

// save saves a snapshot of the state.
func (a *incarnation) save() { a.s.PersistSnapshot("a", a.index, text(strings.Join(a.state, " "))) }

// ops are the requests since the last time, without those of reading the journal's end.
func ops(f *dynactortest.Faults) []string {
	var list []string
	for _, r := range f.Requests() {
		list = append(list, r.Op+" "+strings.SplitN(r.Table, "-", 2)[0])
	}
	f.Reset()
	return list
}

// failures reads how many failures were counted, by operation.
func failures(t *testing.T, reader metric.Reader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if m.Name != "dynactor.failures" || !ok {
				continue
			}
			for _, p := range sum.DataPoints {
				op, _ := p.Attributes.Value("op")
				got[op.AsString()] += p.Value
			}
		}
	}
	return got
}

func TestPrune_KeepsSnapshots(t *testing.T) {
	t.Parallel()
	for _, keep := range []int{1, 2, 3, 0, -1} {
		t.Run(fmt.Sprintf("S-19 keep %d", keep), func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{SnapshotInterval: 1, KeepSnapshots: keep})
			a := start(t, p, 0)
			most := map[int]int{0: dynactor.DefaultKeepSnapshots, -1: 100}[keep]
			if keep > 0 {
				most = keep
			}
			for k := 1; k <= 5; k++ {
				a.run(2)
				a.save()
				a.save() // D03: counts once
				want := upTo(max(1, int64(k-most+1)), int64(k))
				for i := range want {
					want[i] *= 2
				}
				if diff := cmp.Diff(want, numbers(t, db, db.SnapshotsTable, "a")); diff != "" {
					t.Errorf("after %d saves (-want +got):\n%s", k, diff)
				}
				if k == 3 {
					a = start(t, p, 6)
				}
			}
			start(t, p, 10)
			checkNumbers(t, db, "a", upTo(1, 10)...) // events are kept for ever
		})
	}
	t.Run("S-20 a late, older save", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 1, KeepSnapshots: 2})
		a := start(t, p, 0)
		for range 2 {
			a.run(3)
			a.save()
		}
		a.s.PersistSnapshot("a", 2, text("1 2"))
		if diff := cmp.Diff([]int64{3, 6}, numbers(t, db, db.SnapshotsTable, "a")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		a.s.PersistSnapshot("a", 5, text("1 2 3 4 5"))
		if diff := cmp.Diff([]int64{5, 6}, numbers(t, db, db.SnapshotsTable, "a")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		checkNewest(t, p, 6)
	})
	t.Run("S-21 pruning fails, the next save prunes the rest", func(t *testing.T) {
		t.Parallel()
		reader := metric.NewManualReader()
		log, lines := logged()
		p, db := open(t, dynactor.Options{
			SnapshotInterval: 1, KeepSnapshots: 1, Logger: log,
			MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)),
		})
		a := start(t, p, 0)
		a.run(1)
		a.save()
		db.Faults.Add(dynactortest.Rule{Op: "BatchWriteItem", Times: 2, Do: dynactortest.Answer(400, "AccessDeniedException", "no")})
		for range 2 {
			a.run(1)
			a.save()
		}
		if diff := cmp.Diff(map[string]int64{"delete snapshots": 2}, failures(t, reader)); diff != "" {
			t.Errorf("counted (-want +got):\n%s", diff)
		}
		if all := strings.Join(lines(), "\n"); strings.Count(all, "level=ERROR") != 2 || !strings.Contains(all, `op="delete snapshots" persistence_id=a`) {
			t.Errorf("logged:\n%s", all)
		}
		if diff := cmp.Diff([]int64{1, 2, 3}, numbers(t, db, db.SnapshotsTable, "a")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		a.run(1)
		a.save()
		if diff := cmp.Diff([]int64{4}, numbers(t, db, db.SnapshotsTable, "a")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		start(t, p, 4)
	})
	t.Run("D08 killed between save and prune", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 1, KeepSnapshots: 2})
		db.Faults.Add(dynactortest.Rule{Op: "BatchWriteItem", Do: dynactortest.Answer(400, "AccessDeniedException", "killed")})
		for k := range 10 {
			a := start(t, p, 3*k)
			a.run(3)
			a.save()
		}
		if n := len(numbers(t, db, db.SnapshotsTable, "a")); n != 10 {
			t.Errorf("%d snapshots, of 10 never pruned", n)
		}
		db.Faults.Clear()
		db.Faults.Add(dynactortest.Rule{Match: forward, Table: db.SnapshotsTable, Do: smallPages(3)}) // C06
		a := start(t, p, 30)
		a.run(1)
		a.save()
		if diff := cmp.Diff([]int64{30, 31}, numbers(t, db, db.SnapshotsTable, "a")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		start(t, p, 31)
	})
}

// checkNewest compares the number of the newest snapshot of "a".
func checkNewest(t *testing.T, p *dynactor.Provider, want int64) {
	t.Helper()
	if snap, found, err := p.Snapshots().Latest(t.Context(), "a"); !found || err != nil || snap.Seq != want {
		t.Errorf("newest snapshot: %d, %t, %v; want %d", snap.Seq, found, err, want)
	}
}

// Each save costs what it must, and no more.
func TestPrune_Costs(t *testing.T) {
	t.Parallel()
	t.Run("snapshots only", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 1, KeepSnapshots: 2})
		a := start(t, p, 0)
		for k := range 5 {
			a.run(1)
			db.Faults.Reset()
			a.save()
			want := [][]string{
				{"PutItem snapshots", "Query snapshots"},
				{"PutItem snapshots"},
				{"PutItem snapshots", "BatchWriteItem snapshots"},
				{"PutItem snapshots", "BatchWriteItem snapshots"},
				{"PutItem snapshots", "BatchWriteItem snapshots"},
			}[k]
			if diff := cmp.Diff(want, ops(db.Faults)); diff != "" {
				t.Errorf("save %d (-want +got):\n%s", k+1, diff)
			}
		}
	})
	t.Run("all are kept", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 1, KeepSnapshots: -1})
		a := start(t, p, 0)
		for range 3 {
			a.run(1)
			db.Faults.Reset()
			a.save()
			if diff := cmp.Diff([]string{"PutItem snapshots"}, ops(db.Faults)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	})
	t.Run("with events", func(t *testing.T) {
		t.Parallel()
		var c clock
		p, db := open(t, dynactor.Options{SnapshotInterval: 30, KeepSnapshots: 1, DeleteEventsOnSnapshot: true, Now: c.Now})
		a := start(t, p, 0)
		const snap, drop = "PutItem snapshots", "BatchWriteItem snapshots"
		const raise, look, gone = "UpdateItem events", "Query events", "BatchWriteItem events"
		for _, step := range []struct {
			name  string
			later time.Duration
			want  []string
			items []int64 // present afterwards
		}{
			{"the first lists and looks", 0, []string{snap, "Query snapshots", raise, look}, upTo(0, 30)},
			{"the oldest is remembered to be young", 0, []string{snap, drop, raise}, upTo(0, 60)},
			{"still young", 23 * time.Hour, []string{snap, drop, raise}, upTo(0, 90)},
			{"old enough: 60 in 3 batches", 2 * time.Hour, []string{snap, drop, raise, look, gone, gone, gone}, append([]int64{0}, upTo(61, 120)...)},
			{"and looks anew", 0, []string{snap, drop, raise, look}, append([]int64{0}, upTo(61, 150)...)},
			{"steady state: 90, each save as many as came in since", 48 * time.Hour, []string{snap, drop, raise, look, gone, gone, gone, gone}, append([]int64{0}, upTo(151, 180)...)},
		} {
			c.Advance(step.later)
			a.run(30)
			db.Faults.Reset()
			a.save()
			if diff := cmp.Diff(step.want, ops(db.Faults)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", step.name, diff)
			}
			if diff := cmp.Diff(step.items, numbers(t, db, db.EventsTable, "a")); diff != "" {
				t.Errorf("%s: items (-want +got):\n%s", step.name, diff)
			}
			checkMark(t, db, "a", fmt.Sprint(a.index), "")
		}
		start(t, p, a.index)
	})
	t.Run("as little as possible", func(t *testing.T) {
		t.Parallel()
		var c clock
		p, db := open(t, dynactor.Options{SnapshotInterval: 1, KeepSnapshots: 1, DeleteEventsOnSnapshot: true, Now: c.Now})
		a := start(t, p, 0)
		for _, step := range []struct {
			name   string
			events int
			later  time.Duration
			want   string
		}{
			{"nothing is below the mark", 1, 0, "PutItem snapshots, Query snapshots, UpdateItem events"},
			{"the mark is there", 0, 0, "PutItem snapshots"},
			{"one is below the mark, and young", 1, 0, "PutItem snapshots, BatchWriteItem snapshots, UpdateItem events, Query events"},
			{"it is remembered", 0, 0, "PutItem snapshots"},
			{"it is old", 0, 48 * time.Hour, "PutItem snapshots, Query events, BatchWriteItem events"},
		} {
			a.run(step.events)
			c.Advance(step.later)
			db.Faults.Reset()
			a.save()
			if diff := cmp.Diff(step.want, strings.Join(ops(db.Faults), ", ")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", step.name, diff)
			}
		}
		checkNumbers(t, db, "a", 0, 2) // what is at the mark stays
		start(t, p, 2)
	})
	for _, came := range []int{1, 70} {
		t.Run(fmt.Sprintf("bounded, after %d events", came), func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			fill(t, p.Journal(), "a", 300)
			deleteTo(t, p.Journal(), "a", 299)
			var c clock
			c.Advance(2 * dynactor.DefaultDeleteDelay)
			q := openOn(t, db, db.Client, dynactor.Options{SnapshotInterval: 1000, KeepSnapshots: 1, DeleteEventsOnSnapshot: true, Now: c.Now})
			save(t, q, "a", 300)
			s := q.GetState()
			_, index, _ := recovered(s, "a")
			for range came {
				s.PersistEvent("a", index, text("x"))
				index++
			}
			left := 300 + came
			for range 2 {
				s.PersistSnapshot("a", index, text("x"))
				left -= max(2*came, 100)
				if n := len(numbers(t, db, db.EventsTable, "a")) - 1; n != left {
					t.Errorf("%d items are left, want %d", n, left)
				}
				came = 0 // since then
			}
		})
	}
}
