package dynactor_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// TestWire counts requests and capacity units where they leave the process.
func TestWire(t *testing.T) {
	t.Parallel()

	t.Run("one event costs one request and one write unit", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 100})
		s := p.GetState()
		recovered(s, "a")
		// The documented size: 960 bytes of payload, less those of the id and of the type.
		largest := strings.Repeat("x", 960-len("a")-len("google.protobuf.StringValue")-len("\x0a\x84\x07"))
		for i, event := range []string{"small", "", largest} {
			db.Faults.Reset()
			s.PersistEvent("a", i, text(event))
			cost(t, db, map[string]int{"PutItem": 1}, 1, 0)
		}
	})

	t.Run("the cost of an event does not grow with its stream", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 100})
		lengths := []int{0, 100, 1_000}
		if db.Ring == "emulator" {
			lengths = append(lengths, 5_000, 20_000) // the embedded server searches through all its items
		}
		for _, n := range lengths {
			id := "of " + strconv.Itoa(n)
			fill(t, p.Journal(), id, n)
			saveSnapshot(t, p, id, max(n-1, 1))
			s := p.GetState()
			if n > 0 {
				db.Faults.Reset()
				recovered(s, id)
				cost(t, db, map[string]int{"Query": 2, "GetItem": 1}, 0, 5)
			}
			db.Faults.Reset()
			if n == 0 {
				s.GetEvents(id, 0, 0, nil)
				db.Faults.Reset()
			}
			s.PersistEvent(id, n, text("x"))
			cost(t, db, map[string]int{"PutItem": 1}, 1, 0)
		}
	})

	t.Run("many events at once are one request of two units each", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		for _, k := range []int{2, 10, dynactor.MaxEvents} {
			db.Faults.Reset()
			if _, err := p.Journal().Append(t.Context(), strconv.Itoa(k), 0, numbered(1, k)...); err != nil {
				t.Fatal(err)
			}
			// A caller without a session has its expectation checked first.
			cost(t, db, map[string]int{"GetItem": 1, "Query": 1, "TransactWriteItems": 1}, float64(2*k), 2)
		}
	})

	t.Run("a usual recovery is three requests in one round trip", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 3})
		fill(t, p.Journal(), "a", 5)
		saveSnapshot(t, p, "a", 3)
		inOneRoundTrip(t, p, db, 3)
		var kinds []string
		for _, r := range db.Faults.Requests() {
			kinds = append(kinds, kind(db, r))
		}
		slices.Sort(kinds)
		if diff := cmp.Diff([]string{"end", "mark", "snapshot"}, kinds); diff != "" {
			t.Errorf("reads (-want +got):\n%s", diff)
		}
		cost(t, db, map[string]int{"Query": 2, "GetItem": 1}, 0, 3)
	})

	t.Run("a new actor's recovery is three requests in one round trip", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 3})
		inOneRoundTrip(t, p, db, 3)
	})

	t.Run("a recovery without snapshots is two requests in one round trip", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		fill(t, p.Journal(), "a", 50)
		inOneRoundTrip(t, p, db, 2)
		cost(t, db, map[string]int{"Query": 2}, 0, 3)
	})

	for _, interval := range []int{0, 5} {
		t.Run("a recovery of 3 MB delivers every event, with the interval "+strconv.Itoa(interval), func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{SnapshotInterval: interval})
			// All of one size: ranges of a page each end where their pages do.
			const n, pages = 31, 4
			pad := strings.Repeat("x", 100<<10)
			var want []string
			for i := range n {
				want = append(want, strconv.Itoa(1000+i)+pad)
				if _, err := p.Journal().Append(t.Context(), "a", int64(i), text(want[i])); err != nil {
					t.Fatal(err)
				}
			}
			db.Faults.Reset()
			_, _, got := recovered(p.GetState(), "a")
			if !slices.Equal(want, got) {
				t.Errorf("%d events, want %d, or they differ", len(got), len(want))
			}
			requests := db.Faults.Requests()
			// The first round, a look at the end, the pages, and the mark once more.
			if most := 3 + 2 + pages + 1; len(requests) > most {
				t.Errorf("%d requests, want at most %d: %v", len(requests), most, requests)
			}
			for _, r := range requests {
				if rangeTurnedRound(r) {
					t.Errorf("a range that DynamoDB refuses: %s", r.Body)
				}
			}
		})
	}

	t.Run("saving a snapshot with pruning is two requests in the long run", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 3, KeepSnapshots: 2})
		s := p.GetState()
		for i := range 12 {
			s.PersistEvent("a", i, text("x"))
		}
		for seq, want := range [][]int{3: {1, 1, 0}, 6: {1, 0, 0}, 9: {1, 0, 1}, 12: {1, 0, 1}} {
			if want == nil {
				continue
			}
			db.Faults.Reset()
			s.PersistSnapshot("a", seq, text("state"))
			onlyRequests(t, db, map[string]int{"PutItem": want[0], "Query": want[1], "BatchWriteItem": want[2]})
		}
	})

	t.Run("deleting events with it adds one request, and two and one for each 25 when their items are due", func(t *testing.T) {
		t.Parallel()
		now := &clock{}
		p, db := open(t, dynactor.Options{SnapshotInterval: 3, KeepSnapshots: 1, DeleteEventsOnSnapshot: true, Now: now.Now})
		s := p.GetState()
		persist := func(lo, hi int) {
			for i := lo; i < hi; i++ {
				s.PersistEvent("a", i, text("x"))
			}
		}
		persist(0, 60)
		s.PersistSnapshot("a", 3, text("state"))
		db.Faults.Reset()
		s.PersistSnapshot("a", 6, text("state"))
		onlyRequests(t, db, map[string]int{"PutItem": 1, "BatchWriteItem": 1, "UpdateItem": 1})
		now.Advance(dynactor.DefaultDeleteDelay + time.Minute)
		db.Faults.Reset()
		s.PersistSnapshot("a", 58, text("state")) // 57 items are due
		onlyRequests(t, db, map[string]int{"PutItem": 1, "BatchWriteItem": 1 + 3, "UpdateItem": 1, "Query": 1})
		if diff := cmp.Diff([]int64{58, 59, 60}, stored(t, db, "a")); diff != "" {
			t.Errorf("items (-want +got):\n%s", diff)
		}
	})

	t.Run("A20 C09 every read of a recovery is strong, of the table itself, and no scan", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 3})
		q := openOn(t, db, db.Client, dynactor.Options{SnapshotInterval: -1, SnapshotFallback: true})
		for _, id := range []string{"short", "long", "hole", "broken", "reset", "none"} {
			if id != "none" {
				fill(t, p.Journal(), id, 12)
				saveSnapshot(t, p, id, 3)
			}
		}
		saveSnapshot(t, p, "short", 10)
		saveSnapshot(t, p, "broken", 10)
		garble(t, db, db.SnapshotsTable, "broken", 10)
		dropItem(t, db, db.EventsTable, "hole", 6)
		if err := p.Journal().DeleteAll(t.Context(), "reset"); err != nil {
			t.Fatal(err)
		}
		ready(t, q, db)
		for _, id := range []string{"short", "long", "hole", "broken", "reset", "none"} {
			for _, provider := range []*dynactor.Provider{p, q} {
				s := provider.GetState()
				_ = caught(func() { recovered(s, id) })
			}
		}
		for _, r := range db.Faults.Requests() {
			_, indexed := r.Input()["IndexName"]
			if !r.ConsistentRead() || indexed || (r.Op != "Query" && r.Op != "GetItem") {
				t.Errorf("%v: %s", r, r.Body)
			}
		}
	})

	t.Run("C10 a recovery reads what it delivers and hardly more", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 10})
		pad := strings.Repeat("x", 300)
		for head := 0; head < 1000; head += 100 {
			batch := numbered(head+1, head+100)
			for i := range batch {
				batch[i] = text(strconv.Itoa(head+i+1) + pad)
			}
			if _, err := p.Journal().Append(t.Context(), "a", int64(head), batch...); err != nil {
				t.Fatal(err)
			}
		}
		saveSnapshot(t, p, "a", 990)
		db.Faults.Reset()
		if _, _, got := recovered(p.GetState(), "a"); len(got) != 10 {
			t.Errorf("%d events, want 10", len(got))
		}
		// 11 items of 0.4 KB, the mark and the snapshot.
		cost(t, db, map[string]int{"Query": 2, "GetItem": 1}, 0, 4)

		// The whole of it: fewer than ten reads.
		db.Faults.Reset()
		events := 0
		p.GetState().GetEvents("a", 0, 0, func(any) { events++ })
		if n := db.Faults.Count(""); events != 1000 || n >= 10 {
			t.Errorf("%d events by %d requests, want 1000 by fewer than 10", events, n)
		}
	})

	t.Run("a whole life makes no other requests", func(t *testing.T) {
		t.Parallel()
		now := &clock{}
		p, db := open(t, dynactor.Options{SnapshotInterval: 3, KeepSnapshots: 1, DeleteEventsOnSnapshot: true, Now: now.Now})
		w := newProcess(t)
		w.spawn(p, "a")
		for i := range 10 {
			w.expect("a", add(strconv.Itoa(i+1)), texts(1, i+1))
			now.Advance(dynactor.DefaultDeleteDelay)
		}
		w.stop("a")
		if err := p.Journal().Erase(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		known := []string{
			"DescribeTable", "CreateTable", "DescribeTimeToLive", "UpdateTimeToLive",
			"PutItem", "GetItem", "UpdateItem", "Query", "BatchWriteItem",
		}
		for _, r := range db.Faults.Requests() {
			if !slices.Contains(known, r.Op) {
				t.Errorf("unexpected request: %v", r)
			}
		}
	})
}

// inOneRoundTrip recovers "a" and checks that n requests are sent before any is
// answered, and none after that.
func inOneRoundTrip(t *testing.T, p *dynactor.Provider, db *dynactortest.DB, n int) {
	t.Helper()
	ready(t, p, db)
	reached, release := make(chan struct{}), make(chan struct{})
	db.Faults.Add(dynactortest.Rule{Do: dynactortest.Hold(reached, release)})
	done := make(chan struct{})
	go func() {
		defer close(done)
		recovered(p.GetState(), "a")
	}()
	for i := range n {
		select {
		case <-reached:
		case <-time.After(longest):
			t.Fatalf("only %d requests were sent", i)
		}
	}
	close(release)
	for {
		select {
		case <-reached:
			t.Error("a request was sent after the first round")
		case <-done:
			return
		}
	}
}

// kind tells what a read on the way of a recovery is for.
func kind(db *dynactortest.DB, r dynactortest.Request) string {
	forward, given := r.Input()["ScanIndexForward"].(bool)
	switch {
	case r.Op == "Query" && r.Table == db.SnapshotsTable:
		return "snapshot"
	case r.Op == "GetItem":
		return "mark"
	case r.Op == "Query" && given && !forward:
		return "end"
	case r.Op == "Query":
		return "page"
	}
	return r.Op
}

// cost checks the requests since the last reset, all of which must be first
// attempts, and what they consumed: read units may be fewer.
func cost(t *testing.T, db *dynactortest.DB, ops map[string]int, writeUnits, readUnits float64) {
	t.Helper()
	onlyRequests(t, db, ops)
	for _, r := range db.Faults.Requests() {
		if r.Attempt != 1 {
			t.Errorf("repeated: %v", r)
		}
	}
	if got := db.Faults.Usage(); got.WriteUnits != writeUnits || got.ReadUnits > readUnits {
		t.Errorf("consumed %v, want %v write units and at most %v read units", got, writeUnits, readUnits)
	}
}

// onlyRequests checks the requests since the last reset. An operation that is not
// to occur may be listed with 0.
func onlyRequests(t *testing.T, db *dynactortest.DB, want map[string]int) {
	t.Helper()
	got := map[string]int{}
	for op := range want {
		got[op] = 0
	}
	for _, r := range db.Faults.Requests() {
		got[r.Op]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
