package dynactor_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/persistence"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// TestActor runs actors with the framework's own persistence.Using and Mixin.
func TestActor(t *testing.T) {
	t.Parallel()

	for _, interval := range []int{0, 1, 3} {
		t.Run("B01 B02 no event is lost or doubled, interval "+strconv.Itoa(interval), func(t *testing.T) {
			t.Parallel()
			p, _ := open(t, dynactor.Options{SnapshotInterval: interval})
			w := newProcess(t)
			w.spawn(p, "a")
			for k := range 13 {
				w.expect("a", add(strconv.Itoa(k+1)), texts(1, k+1))
				w.send("a", fail{})
				w.expect("a", get{}, texts(1, k+1))
				w.stop("a")
				w.spawn(p, "a")
				w.expect("a", get{}, texts(1, k+1))
			}
			got, err := replayed(t.Context(), p.Journal(), "a", 0, 0)
			if diff := cmp.Diff(texts(1, 13), got); diff != "" || err != nil {
				t.Errorf("the journal, %v (-want +got):\n%s", err, diff)
			}
		})
	}

	for interval, want := range map[int]struct {
		asked int
		saved []int64
	}{
		0: {1, nil}, -1: {1, nil}, math.MaxInt: {1, nil}, // the framework always asks at index 0
		1: {10, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9}},
		3: {4, []int64{3, 6, 9}},
	} {
		t.Run("B03 snapshots are asked for at the interval "+strconv.Itoa(interval), func(t *testing.T) {
			t.Parallel()
			p, _ := open(t, dynactor.Options{SnapshotInterval: interval, KeepSnapshots: -1})
			w := newProcess(t)
			w.spawn(p, "a")
			for i := range 10 {
				w.expect("a", add(strconv.Itoa(i+1)), texts(1, i+1))
			}
			saved, err := p.Snapshots().List(t.Context(), "a")
			if asked := w.count("RequestSnapshot"); err != nil || asked != want.asked || !cmp.Equal(saved, want.saved) {
				t.Errorf("asked %d times, saved %v, %v, want %d and %v", asked, saved, err, want.asked, want.saved)
			}
			if n := w.count(""); n != 1+1+10+want.asked { // Started, ReplayComplete, commands
				t.Errorf("%d messages, want %d", n, 12+want.asked)
			}
			w.noFailures()
		})
	}

	t.Run("B04 the sender that was taken before persisting gets its reply", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{SnapshotInterval: 1}) // due with every event
		w := newProcess(t)
		w.spawn(p, "a")
		for i := range 5 {
			w.expect("a", add(strconv.Itoa(i+1)), texts(1, i+1))
		}
	})

	t.Run("B06 an instance that is used again recovers from the table", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		w := newProcess(t)
		same := &ledger{world: w}
		w.spawnProps("a", actor.PropsFromProducer(func() actor.Actor { return same }, actor.WithReceiverMiddleware(persistence.Using(p))))
		w.expect("a", add("1"), texts(1, 1))
		if _, err := p.Journal().Append(t.Context(), "a", 1, numbered(2, 3)...); err != nil {
			t.Fatal(err)
		}
		w.send("a", fail{})
		w.expect("a", get{}, texts(1, 3))
		w.expect("a", add("4"), texts(1, 4))
	})

	t.Run("a persist that another writer was faster than fails and heals", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{SnapshotInterval: 3})
		w := newProcess(t)
		w.spawn(p, "a")
		w.expect("a", add("1"), texts(1, 1))
		if _, err := p.Journal().Append(t.Context(), "a", 1, numbered(2, 5)...); err != nil {
			t.Fatal(err)
		}
		w.send("a", add("lost"))
		w.failed(dynactor.ErrConflict)
		w.expect("a", add("6"), texts(1, 6))
	})

	t.Run("B07 an event that cannot be decoded ends the recovery before it", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		fill(t, p.Journal(), "a", 5)
		garble(t, db, db.EventsTable, "a", 2)
		before := itemTexts(t, db, "a")
		db.Faults.Reset()
		w := newProcess(t)
		w.spawn(p, "a")
		w.stopped("a", dynactor.ErrDecode)
		if got := w.received(); slices.Contains(got, "event 3") || slices.Contains(got, "ReplayComplete") {
			t.Errorf("the actor got more than the first event: %v", got)
		}
		noWrites(t, db)
		if diff := cmp.Diff(before, itemTexts(t, db, "a")); diff != "" {
			t.Errorf("the items changed (-want +got):\n%s", diff)
		}
	})

	t.Run("B08 a page that cannot be read ends the recovery, and no command runs on half a state", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		big := strings.Repeat("x", 300<<10)
		var want []string
		for i := range 10 {
			want = append(want, strconv.Itoa(i)+big)
			if _, err := p.Journal().Append(t.Context(), "a", int64(i), text(want[i])); err != nil {
				t.Fatal(err)
			}
		}
		db.Faults.Reset()
		db.Faults.Add(dynactortest.Rule{Op: "Query", Match: func(r dynactortest.Request) bool { return bound(r, ":lo") > 4 }, Times: 1, Do: denied})
		w := newProcess(t)
		w.spawn(p, "a")
		w.expect("a", get{}, want)
		w.failed(nil)
		w.noFailures()
		noWrites(t, db)
	})

	t.Run("B09 a snapshot that cannot be read is not taken for none", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 3, DeleteEventsOnSnapshot: true, KeepSnapshots: 1, ReadTimeout: time.Second, RecoveryTimeout: time.Second})
		w := newProcess(t)
		w.spawn(p, "a")
		for i := range 8 {
			w.expect("a", add(strconv.Itoa(i+1)), texts(1, i+1))
		}
		w.stop("a")
		db.Faults.Reset()
		db.Faults.Add(dynactortest.Rule{Table: db.SnapshotsTable, Do: dynactortest.Throttle()})
		w.spawn(p, "a")
		w.send("a", get{})
		w.failed(dynactor.ErrThrottled)
		if n := w.count("get"); n != 0 {
			t.Errorf("%d commands ran, want none", n)
		}
		noWrites(t, db)
		db.Faults.Clear()
		w.expect("a", add("9"), texts(1, 9))
	})

	for name, do := range map[string]dynactortest.Action{
		"denied":    denied,
		"invalid":   dynactortest.Answer(400, "ValidationException", "invalid"),
		"throttled": dynactortest.Throttle(),
	} {
		t.Run("B10 a write that is "+name+" fails the actor", func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{SnapshotInterval: 3, WriteTimeout: time.Second})
			w := newProcess(t)
			w.spawn(p, "a")
			w.expect("a", add("1"), texts(1, 1))
			db.Faults.Add(dynactortest.Rule{Op: "PutItem", Match: func(r dynactortest.Request) bool { return strings.Contains(string(r.Body), `"seq":{"N":"2"}`) }, Do: do})
			reply := w.request("a", add("2"))
			behind := w.request("a", get{}) // in the queue already
			w.failed(nil)
			db.Faults.Clear()
			w.answered(behind, texts(1, 1))
			if got := reply.Load(); got != nil {
				t.Errorf("the failed write was answered: %v", *got)
			}
			w.expect("a", add("two"), []string{"1", "two"}) // at the same index
			events(t, p.GetState(), "a", 0, 0, "1", "two")
		})
	}

	for name, c := range map[string]struct {
		first dynactortest.Action
		after []string
	}{
		"and was carried out":     {dynactortest.DropAnswer(), texts(1, 2)},
		"and was not carried out": {dynactortest.Hold(nil, nil), texts(1, 1)},
	} {
		t.Run("A21 a write whose outcome is unknown "+name+" leaves the actor with what the journal says", func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{WriteTimeout: time.Second})
			w := newProcess(t)
			w.spawn(p, "a")
			w.expect("a", add("1"), texts(1, 1))
			db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: c.first})
			db.Faults.Add(dynactortest.Rule{Op: "PutItem", Do: dynactortest.Throttle()})
			w.send("a", add("2"))
			w.failed(dynactor.ErrOutcomeUnknown)
			db.Faults.Clear()
			w.expect("a", get{}, c.after)
			w.expect("a", add("3"), append(slices.Clone(c.after), "3"))
		})
	}

	t.Run("the eleventh failure stops the actor", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		w := newProcess(t)
		w.spawn(p, "a")
		w.expect("a", add("1"), texts(1, 1))
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Do: denied})
		for range 11 {
			w.send("a", add("2"))
		}
		w.stopped("a", nil)
		if n := w.count("Started"); n != 11 {
			t.Errorf("%d incarnations, want 11", n)
		}
		events(t, p.GetState(), "a", 0, 0, "1")
	})

	t.Run("a recovery that fails for a passing cause waits in the session", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 3})
		w := newProcess(t)
		w.spawn(p, "a")
		for i := range 5 {
			w.expect("a", add(strconv.Itoa(i+1)), texts(1, i+1))
		}
		w.stop("a")
		// More often than an actor may fail, with what the SDK does not repeat.
		db.Faults.Add(dynactortest.Rule{Op: "Query", Times: 15, Do: dynactortest.Answer(400, "ResourceNotFoundException", "no such table")})
		before := w.count("Started")
		w.spawn(p, "a")
		w.expect("a", add("6"), texts(1, 6))
		if n := w.count("Started") - before; n != 1 {
			t.Errorf("%d incarnations, want 1", n)
		}
		w.noFailures()
	})

	t.Run("a failure that lasts stops the actor at once", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		fill(t, p.Journal(), "a", 3)
		dropItem(t, db, db.EventsTable, "a", 1)
		if err := p.Journal().DeleteTo(t.Context(), "a", 2); err != nil {
			t.Fatal(err)
		}
		w := newProcess(t)
		w.spawn(p, "a")
		w.stopped("a", dynactor.ErrNoSnapshot)
	})

	t.Run("B13 an actor without a name of its own is refused", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		for range 2 { // two processes, which generate the same names
			w := newProcess(t)
			pid := w.system.Root.Spawn(w.props(p))
			w.stopped(pid.Id, dynactor.ErrUnstableID)
		}
		if n := db.Faults.Count(""); n != 0 {
			t.Errorf("%d requests, want none", n)
		}
	})

	t.Run("B13 an option allows what looks generated", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{StableID: func(id string) bool { return id == "price$1" }})
		w := newProcess(t)
		w.spawn(p, "price$1")
		w.expect("price$1", add("1"), texts(1, 1))
	})

	t.Run("B14 deletions at every snapshot leave the state exact", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 3, KeepSnapshots: 1, DeleteEventsOnSnapshot: true})
		w := newProcess(t)
		w.eager = true
		w.spawn(p, "a")
		for k := range 13 {
			w.expect("a", add(strconv.Itoa(k+1)), texts(1, k+1))
			w.stop("a")
			w.spawn(p, "a")
			w.expect("a", get{}, texts(1, k+1))
		}
		w.noFailures()
		var want []int64
		for n := range int64(13) { // the items stay for DeleteDelay
			want = append(want, n+1)
		}
		if diff := cmp.Diff(want, stored(t, db, "a")); diff != "" {
			t.Errorf("numbers used (-want +got):\n%s", diff)
		}
		isError(t, caught(func() { p.GetState().GetEvents("a", 11, 0, func(any) {}) }), dynactor.ErrNoSnapshot)
	})

	t.Run("a handler that forgets to check Recovering doubles nothing", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		fill(t, p.Journal(), "a", 3)
		w := newProcess(t)
		w.forgetful = true
		w.spawn(p, "a")
		w.stopped("a", dynactor.ErrRecovering)
		events(t, p.GetState(), "a", 0, 0, texts(1, 3)...)
	})

	t.Run("an actor may persist when its replay is complete", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{SnapshotInterval: 2})
		w := newProcess(t)
		w.onComplete = "woken"
		for k := range 5 {
			w.spawn(p, "a")
			w.expect("a", get{}, slices.Repeat([]string{"woken"}, k+1))
			w.stop("a")
		}
		w.noFailures()
	})

	t.Run("a snapshot that cannot be saved harms nothing", func(t *testing.T) {
		t.Parallel()
		p, db, seen := observe(t, dynactor.Options{SnapshotInterval: 3})
		w := newProcess(t)
		w.spawn(p, "a")
		w.expect("a", get{}, nil)
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Table: db.SnapshotsTable, Do: denied})
		for i := range 8 {
			w.expect("a", add(strconv.Itoa(i+1)), texts(1, i+1))
		}
		w.noFailures()
		if diff := cmp.Diff(map[string]int64{"save snapshot": 2}, seen.failures(t)); diff != "" {
			t.Errorf("failures (-want +got):\n%s", diff)
		}
		w.send("a", fail{})
		w.expect("a", get{}, texts(1, 8))
	})
}
