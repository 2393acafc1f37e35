package dynactor_test

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// TestRecoveryInMotion changes the stream, or breaks the way to it, before each
// single request of a recovery in turn. What is recovered must be the state of
// some moment since it began, or a conflict.
func TestRecoveryInMotion(t *testing.T) {
	t.Parallel()

	// How the stream looks before: the recovery's kind, head and snapshot.
	shapes := []struct {
		name     string
		interval int
		head     int
		snapshot int
		page     int // items of a page, 0 for what fits
	}{
		{"snapshot and tail", 5, 12, 10, 0},
		{"snapshot and more than the tail", 2, 14, 3, 3},
		{"no snapshots", 0, 7, 0, 0},
		{"no snapshots, more than a page", 0, 12, 0, 3},
		{"new", 3, 0, 0, 0},
	}
	throttle := func(table func(*journey) string) func(*journey) {
		return func(j *journey) {
			j.db.Faults.Add(dynactortest.Rule{Table: table(j), Times: 4, Do: dynactortest.Throttle()})
		}
	}
	events := func(j *journey) string { return j.db.EventsTable }
	snapshots := func(j *journey) string { return j.db.SnapshotsTable }
	for _, motion := range []struct {
		name    string
		happen  func(*journey)
		deletes bool // so that a recovery may meet a conflict
	}{
		{"append one", func(j *journey) { j.append(1) }, false},
		{"append three at once", func(j *journey) { j.append(3) }, false},
		{"append three, half visible", func(j *journey) { j.append(3); j.hide(j.head-2, j.head); j.hide(j.head - 1) }, false},
		{"append three, begun to be visible", func(j *journey) { j.append(3); j.hide(j.head-1, j.head); j.hide(j.head) }, false},
		{"save a snapshot and prune the others", func(j *journey) { j.save(); j.prune() }, false},
		{"append, save and prune, append", func(j *journey) { j.append(2); j.save(); j.prune(); j.append(1) }, false},
		{"save, prune and delete events", func(j *journey) { j.save(); j.prune(); j.delete() }, true},
		{"append, save, delete and remove, append", func(j *journey) {
			j.append(2)
			j.save()
			j.delete()
			j.prune()
			j.sweep()
			j.append(1)
		}, true},
		{"delete and remove all but the last", func(j *journey) { j.save(); j.delete(); j.sweep(); j.prune() }, true},
		{"throttle events", throttle(events), false},
		{"throttle snapshots", throttle(snapshots), false},
		{"lose the tables", func(j *journey) {
			j.db.Faults.Add(dynactortest.Rule{Times: 4, Do: dynactortest.Answer(400, "ResourceNotFoundException", "no such table")})
		}, false},
		{"lose the name", func(j *journey) { j.db.Faults.Add(dynactortest.Rule{Times: 4, Do: dynactortest.NoSuchHost()}) }, false},
		{"lose answers", func(j *journey) { j.db.Faults.Add(dynactortest.Rule{Times: 2, Do: dynactortest.DropAnswer()}) }, false},
		{"cut answers", func(j *journey) { j.db.Faults.Add(dynactortest.Rule{Times: 2, Do: dynactortest.CutBody(20)}) }, false},
		{"garble answers", func(j *journey) { j.db.Faults.Add(dynactortest.Rule{Times: 2, Do: dynactortest.FlipByte()}) }, false},
		{"throttle while another saves and deletes", func(j *journey) {
			throttle(events)(j)
			j.append(1)
			j.save()
			j.prune()
			j.delete()
			j.sweep()
		}, true},
	} {
		for _, shape := range shapes {
			t.Run(motion.name+"; "+shape.name, func(t *testing.T) {
				t.Parallel()
				j := newJourney(t, shape.interval)
				j.client.page = shape.page
				for k, n := 0, 1; k < n; k++ {
					for at, order := range j.orders(k) {
						j.begin(fmt.Sprintf("%d-%d", k, at), order)
						for i := 0; j.head < shape.head; i++ {
							j.append(min(1+i%4, shape.head-j.head))
						}
						if shape.snapshot > 0 {
							j.saveAt(shape.snapshot)
						}
						before := j.head
						j.client.before = func(i int) {
							if i == k {
								motion.happen(j)
							}
						}
						j.check(before, motion.deletes)
						n = max(n, j.client.served) // also those that the motion brought about
						j.db.Faults.Clear()
						j.client.before = nil
						j.check(j.head, false)
					}
				}
			})
		}
	}

	for _, interval := range []int{3, 0} {
		t.Run(fmt.Sprintf("a stream that never rests, interval %d", interval), func(t *testing.T) {
			t.Parallel()
			j := newJourney(t, interval)
			j.begin("a", nil)
			j.append(5)
			j.save()
			before := j.head
			j.client.before = func(i int) {
				if i < 12 {
					j.append(2)
					j.save()
					j.prune()
					j.delete()
					j.sweep()
				}
			}
			j.check(before, true)
			j.client.before = nil
			j.check(j.head, false)
		})

		t.Run(fmt.Sprintf("a past that is ended meanwhile, interval %d", interval), func(t *testing.T) {
			t.Parallel()
			j := newJourney(t, interval)
			for k := range 6 {
				j.begin(strconv.Itoa(k), nil)
				for range 9 {
					j.append(1)
				}
				j.saveAt(3)
				j.client.before = func(i int) {
					if i == k {
						j.must(j.other.Journal().DeleteAll(t.Context(), j.id))
						j.append(2)
					}
				}
				snapshot, index, got, err := j.recover()
				j.client.before = nil
				old := snapshot == "3" && index == 3 && slices.Equal(got, texts(4, 9))
				fresh := snapshot == "*dynactor.Reset" && index == 9 && (len(got) == 0 || slices.Equal(got, texts(10, 11)))
				if !errors.Is(err, dynactor.ErrConflict) && (err != nil || (!old && !fresh)) {
					t.Errorf("before request %d: snapshot %q at %d and events %v, %v", k, snapshot, index, got, err)
				}
			}
		})
	}
}

// outage is how long the outages of TestOutage last. Reports speak of 10 and 20 seconds.
var outage = flag.Duration("outage", 2*time.Second, "how long outages last")

// TestOutage has 200 actors wait for what passes, under the default supervision:
// none is stopped, none loses its queue, and the requests have a limit.
func TestOutage(t *testing.T) {
	t.Parallel()
	const actors = 200

	// Back-off grows to half a second on average, so an actor tries five times in
	// the first second and then twice in each; a recovery has three reads.
	budget := actors * 3 * (6 + 3*int(outage.Seconds()+1))

	setUp := func(t *testing.T, o dynactor.Options) (*dynactor.Provider, *dynactortest.DB, *process) {
		t.Helper()
		db := dynactortest.New(t)
		seed := openOn(t, db, db.Client, dynactor.Options{})
		ready(t, seed, db)
		o.SnapshotInterval = 2
		return openOn(t, db, db.Client, o), db, newProcess(t)
	}
	// heal ends the outage and checks what came meanwhile, and what comes until all have answered.
	heal := func(t *testing.T, db *dynactortest.DB, end func(), answered func()) {
		t.Helper()
		time.Sleep(*outage)
		during := db.Faults.Count("")
		end()
		answered()
		after := db.Faults.Count("") - during
		t.Logf("%d requests during %s, %d after it", during, *outage, after)
		if during > budget {
			t.Errorf("%d requests during the outage, want at most %d", during, budget)
		}
		// Each actor recovers, and writes once; what was in flight fails once more.
		if most := actors * (2*3 + 4); after > most {
			t.Errorf("%d requests after the outage, want at most %d", after, most)
		}
	}
	name := func(i int) string { return "actor-" + strconv.Itoa(i) }

	t.Run("B12 a table that is missing", func(t *testing.T) {
		t.Parallel()
		p, db, w := setUp(t, dynactor.Options{})
		ready(t, p, db)
		for i := range actors {
			fill(t, p.Journal(), name(i), 1)
		}
		db.Faults.Reset()
		db.Faults.Add(dynactortest.Rule{Do: dynactortest.Answer(400, "ResourceNotFoundException", "no such table")})
		for i := range actors {
			w.spawn(p, name(i))
			w.send(name(i), add("2"))
		}
		heal(t, db, db.Faults.Clear, func() {
			for i := range actors {
				w.expect(name(i), get{}, texts(1, 2))
			}
		})
		w.noFailures()
	})

	t.Run("B12 tables that are not there yet", func(t *testing.T) {
		t.Parallel()
		db := dynactortest.New(t)
		client, _ := db.NewClient()
		other := openOn(t, db, client, dynactor.Options{})
		p, w := openOn(t, db, db.Client, dynactor.Options{NoCreateTables: true, SnapshotInterval: 2}), newProcess(t)
		for i := range actors {
			w.spawn(p, name(i))
			w.send(name(i), add("1"))
		}
		heal(t, db, func() {
			if err := other.EnsureTables(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, func() {
			for i := range actors {
				w.expect(name(i), get{}, texts(1, 1))
			}
		})
		w.noFailures()
	})

	t.Run("G15 names that do not resolve, for actors that start", func(t *testing.T) {
		t.Parallel()
		p, db, w := setUp(t, dynactor.Options{})
		db.Faults.Add(dynactortest.Rule{Do: dynactortest.NoSuchHost()})
		for i := range actors {
			w.spawn(p, name(i))
			w.send(name(i), add("1"))
		}
		heal(t, db, db.Faults.Clear, func() {
			for i := range actors {
				w.expect(name(i), get{}, texts(1, 1))
			}
		})
		w.noFailures()
	})

	t.Run("G15 names that do not resolve, for actors at work", func(t *testing.T) {
		t.Parallel()
		p, db, w := setUp(t, dynactor.Options{})
		for i := range actors {
			w.spawn(p, name(i))
		}
		for i := range actors {
			w.expect(name(i), add("1"), texts(1, 1))
		}
		db.Faults.Reset()
		db.Faults.Add(dynactortest.Rule{Do: dynactortest.NoSuchHost()})
		acknowledged := make([]*atomic.Pointer[[]string], actors)
		for i := range actors {
			acknowledged[i] = w.request(name(i), add("2"))
		}
		heal(t, db, db.Faults.Clear, func() {
			for i := range actors {
				w.send(name(i), add("3"))
			}
			for i := range actors {
				got, err := w.system.Root.RequestFuture(w.pid(name(i)), get{}, 2*longest).Result()
				want := []string{"1", "3"} // what was not acknowledged never left
				if acknowledged[i].Load() != nil {
					want = texts(1, 3)
				}
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Errorf("state, %v (-want +got):\n%s", err, diff)
				}
			}
		})
		for i := range actors {
			if _, alive := w.system.ProcessRegistry.GetLocal(name(i)); !alive {
				t.Errorf("%s was stopped", name(i))
			}
		}
	})
}
