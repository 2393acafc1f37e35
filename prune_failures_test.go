package dynactor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// Each step of save, delete snapshots, delete events can fail: the state stays exact.
func TestPrune_FailsAtAnyStep(t *testing.T) {
	t.Parallel()
	steps := map[string]func(*dynactortest.DB) dynactortest.Rule{
		"save": func(db *dynactortest.DB) dynactortest.Rule {
			return dynactortest.Rule{Op: "PutItem", Table: db.SnapshotsTable}
		},
		"list snapshots": func(db *dynactortest.DB) dynactortest.Rule {
			return dynactortest.Rule{Op: "Query", Table: db.SnapshotsTable}
		},
		"delete snapshots": func(db *dynactortest.DB) dynactortest.Rule {
			return dynactortest.Rule{Op: "BatchWriteItem", Table: db.SnapshotsTable}
		},
		"raise the mark": func(db *dynactortest.DB) dynactortest.Rule {
			return dynactortest.Rule{Op: "UpdateItem", Table: db.EventsTable}
		},
		"look for items": func(db *dynactortest.DB) dynactortest.Rule {
			return dynactortest.Rule{Op: "Query", Table: db.EventsTable}
		},
		"remove items": func(db *dynactortest.DB) dynactortest.Rule {
			return dynactortest.Rule{Op: "BatchWriteItem", Table: db.EventsTable}
		},
	}
	hows := map[string]dynactortest.Action{
		"refused":               dynactortest.Answer(400, "AccessDeniedException", "no"),
		"done, without answers": dynactortest.FailAfter(500), // until the time is up
	}
	for step, rule := range steps {
		for how, do := range hows {
			if how != "refused" && (step == "list snapshots" || step == "look for items") {
				continue // they do nothing
			}
			t.Run("D09 "+step+" "+how, func(t *testing.T) {
				t.Parallel()
				var c clock
				o := dynactor.Options{
					SnapshotInterval: 5, KeepSnapshots: 2, DeleteEventsOnSnapshot: true, Now: c.Now,
					WriteTimeout: 6 * time.Second,
				}
				p, db := open(t, o)
				a := start(t, p, 0)
				for range 3 {
					a.run(5)
					a.save()
				}
				c.Advance(2 * dynactor.DefaultDeleteDelay)
				a = start(t, p, 15) // it will list and look
				a.run(5)
				r := rule(db)
				r.Do = do
				db.Faults.Add(r)
				a.save()
				db.Faults.Clear()
				start(t, p, 20)
				kept := numbers(t, db, db.SnapshotsTable, "a")
				for _, seq := range kept[max(0, len(kept)-2):] { // each of them could be recovered from
					checkReplay(t, p.Journal(), "a", seq+1, 0, int(seq)+1, 20)
				}
				a.run(3)
				a.save()
				a.is(23)
				b := start(t, p, 23)
				b.run(1)
				b.save()
				start(t, p, 24)
				if diff := cmp.Diff([]int64{23, 24}, numbers(t, db, db.SnapshotsTable, "a")); diff != "" {
					t.Errorf("snapshots in the end (-want +got):\n%s", diff)
				}
				checkMark(t, db, "a", "23", "")
			})
		}
	}
}

// Guarantee 7: a failed snapshot harms nothing.
func TestSnapshots_FailuresAreHarmless(t *testing.T) {
	t.Parallel()
	reader := metric.NewManualReader()
	log, lines := logged()
	p, db := open(t, dynactor.Options{
		SnapshotInterval: 1, Logger: log, WriteTimeout: 4 * time.Second,
		MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)),
	})
	a := start(t, p, 0)
	for _, do := range []dynactortest.Action{
		dynactortest.Answer(400, "AccessDeniedException", "no"), dynactortest.Throttle(), dynactortest.Refuse(), dynactortest.DropAnswer(),
	} {
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Table: db.SnapshotsTable, Do: do})
		a.run(1)
		a.save()
		db.Faults.Clear()
	}
	a.run(1)
	for name, save := range map[string]func(){
		"no state":  func() { a.s.PersistSnapshot("a", 5, nil) },
		"too large": func() { a.s.PersistSnapshot("a", 5, text(strings.Repeat("x", 400<<10))) },
		"ahead":     func() { a.s.PersistSnapshot("a", 6, text("1 2 3 4 5 6")) },
		"negative":  func() { a.s.PersistSnapshot("a", -1, text("x")) },
	} {
		db.Faults.Reset()
		if save(); db.Faults.Count("") != 0 {
			t.Errorf("%s: %v", name, ops(db.Faults))
		}
	}
	db.Faults.Reset()
	a.s.PersistSnapshot("a", 0, text("covers nothing"))
	if n := db.Faults.Count(""); n != 0 {
		t.Errorf("a snapshot of nothing made %d requests", n)
	}
	if diff := cmp.Diff(map[string]int64{"save snapshot": 8}, failures(t, reader)); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
	if all := strings.Join(lines(), "\n"); strings.Count(all, "level=ERROR") != 8 || !strings.Contains(all, `op="save snapshot" persistence_id=a index=1`) {
		t.Errorf("logged:\n%s", all)
	}
	if diff := cmp.Diff([]int64{4}, numbers(t, db, db.SnapshotsTable, "a")); diff != "" { // its answer was lost
		t.Errorf("(-want +got):\n%s", diff)
	}
	start(t, p, 5).run(1)
	start(t, p, 6)
}
