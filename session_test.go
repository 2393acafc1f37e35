package dynactor_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/persistence"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/protobuf/proto"

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

// TestSessionFailures provokes each failure of a session once: it is typed, and
// logged and counted once.
func TestSessionFailures(t *testing.T) {
	t.Parallel()
	big := text(strings.Repeat("x", 400<<10))
	type env struct {
		p  *dynactor.Provider
		db *dynactortest.DB
		s  persistence.ProviderState // recovered, unless the case does it
	}
	refuse := func(op string, do dynactortest.Action) func(*testing.T, env) {
		return func(_ *testing.T, e env) { e.db.Faults.Add(dynactortest.Rule{Op: op, Do: do}) }
	}
	for _, c := range []struct {
		name   string
		before func(*testing.T, env)
		do     func(env)
		want   error // nil: an error of the SDK's
		op, id string
		index  int64
		silent bool // no panic
	}{
		{"persist at a wrong index", nil, func(e env) { e.s.PersistEvent("a", 3, text("x")) }, dynactor.ErrConflict, "persist event", "a", 3, false},
		{"persist what is taken", func(t *testing.T, e env) {
			t.Helper()
			if _, err := e.p.Journal().Append(t.Context(), "a", 6, text("other")); err != nil {
				t.Fatal(err)
			}
		}, func(e env) { e.s.PersistEvent("a", 6, text("x")) }, dynactor.ErrConflict, "persist event", "a", 6, false},
		{"persist too large", nil, func(e env) { e.s.PersistEvent("a", 6, big) }, dynactor.ErrTooLarge, "persist event", "a", 6, false},
		{"persist nil", nil, func(e env) { e.s.PersistEvent("a", 6, nil) }, dynactor.ErrInvalid, "persist event", "a", 6, false},
		{"persist a nil message that panics", nil, func(e env) { e.s.PersistEvent("a", 6, struct{ proto.Message }{}) }, dynactor.ErrInvalid, "persist event", "a", 6, false},
		{"persist while recovering", nil, func(e env) {
			s := e.p.GetState()
			s.GetSnapshot("a")
			s.PersistEvent("a", 6, text("x"))
		}, dynactor.ErrRecovering, "persist event", "a", 6, false},
		{"persist refused", refuse("PutItem", denied), func(e env) { e.s.PersistEvent("a", 6, text("x")) }, nil, "persist event", "a", 6, false},
		{"persist throttled", refuse("PutItem", dynactortest.Throttle()), func(e env) { e.s.PersistEvent("a", 6, text("x")) }, dynactor.ErrThrottled, "persist event", "a", 6, false},
		{"persist with an unknown outcome", func(_ *testing.T, e env) {
			e.db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: dynactortest.DropAnswer()})
			e.db.Faults.Add(dynactortest.Rule{Op: "PutItem", Do: dynactortest.Throttle()})
		}, func(e env) { e.s.PersistEvent("a", 6, text("x")) }, dynactor.ErrOutcomeUnknown, "persist event", "a", 6, false},
		{"persist when closed", func(t *testing.T, e env) {
			t.Helper()
			if err := e.p.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, func(e env) { e.s.PersistEvent("a", 6, text("x")) }, dynactor.ErrClosed, "persist event", "a", 6, false},
		{"no id", nil, func(e env) { e.s.PersistEvent("", 0, text("x")) }, dynactor.ErrInvalid, "persist event", "", 0, false},
		{"a long id", nil, func(e env) { e.s.GetEvents(strings.Repeat("x", 1025), 0, 0, nil) }, dynactor.ErrInvalid, "replay", strings.Repeat("x", 1025), -1, false},
		{"the reserved id", nil, func(e env) { e.s.GetSnapshot("__dynactor__") }, dynactor.ErrInvalid, "load snapshot", "__dynactor__", -1, false},
		{"B13 a generated id", nil, func(e env) { e.s.GetSnapshot("$1A") }, dynactor.ErrUnstableID, "load snapshot", "$1A", -1, false},

		{"a snapshot that cannot be decoded", func(t *testing.T, e env) {
			t.Helper()
			garble(t, e.db, e.db.SnapshotsTable, "a", 3)
		}, func(e env) { recovered(e.s, "a") }, dynactor.ErrDecode, "load snapshot", "a", 3, false},
		{"no snapshot for a deleted history", func(t *testing.T, e env) {
			t.Helper()
			if err := errors.Join(e.p.Journal().DeleteTo(t.Context(), "a", 3), e.p.Snapshots().DeleteTo(t.Context(), "a", 3)); err != nil {
				t.Fatal(err)
			}
		}, func(e env) { recovered(e.s, "a") }, dynactor.ErrNoSnapshot, "load snapshot", "a", -1, false},
		{
			"a snapshot ahead of the journal", func(t *testing.T, e env) { t.Helper(); saveSnapshot(t, e.p, "a", 7) },
			func(e env) { recovered(e.s, "a") }, dynactor.ErrAhead, "load snapshot", "a", -1, false,
		},
		{"a start ahead of the journal", nil, func(e env) { e.s.GetEvents("a", 7, 0, nil) }, dynactor.ErrAhead, "replay", "a", -1, false},
		{"a start in a deleted history", func(t *testing.T, e env) {
			t.Helper()
			if err := e.p.Journal().DeleteTo(t.Context(), "a", 3); err != nil {
				t.Fatal(err)
			}
		}, func(e env) { e.s.GetEvents("a", 2, 0, nil) }, dynactor.ErrNoSnapshot, "replay", "a", -1, false},
		{"a negative start", nil, func(e env) { e.s.GetEvents("a", -1, 0, nil) }, dynactor.ErrInvalid, "replay", "a", -1, false},
		{"a negative end", nil, func(e env) { e.s.GetEvents("a", 0, -1, nil) }, dynactor.ErrInvalid, "replay", "a", -1, false},
		{
			"a gap", func(t *testing.T, e env) { t.Helper(); dropItem(t, e.db, e.db.EventsTable, "a", 5) },
			func(e env) { recovered(e.s, "a") }, dynactor.ErrGap, "replay", "a", 4, false,
		},
		{
			"B07 an event that cannot be decoded", func(t *testing.T, e env) { t.Helper(); garble(t, e.db, e.db.EventsTable, "a", 5) },
			func(e env) { recovered(e.s, "a") }, dynactor.ErrDecode, "replay", "a", 4, false,
		},
		{"B09 a throttled snapshots table", func(_ *testing.T, e env) {
			e.db.Faults.Add(dynactortest.Rule{Table: e.db.SnapshotsTable, Do: dynactortest.Throttle()})
		}, func(e env) { recovered(e.s, "a") }, dynactor.ErrThrottled, "load snapshot", "a", -1, false},
		{"a throttled events table", func(_ *testing.T, e env) {
			e.db.Faults.Add(dynactortest.Rule{Table: e.db.EventsTable, Do: dynactortest.Throttle()})
		}, func(e env) { recovered(e.s, "a") }, dynactor.ErrThrottled, "load snapshot", "a", -1, false},
		{"a forbidden read", refuse("Query", denied), func(e env) { recovered(e.s, "a") }, nil, "load snapshot", "a", -1, false},

		{"events deleted beyond the snapshot", nil, func(e env) { e.s.DeleteEvents("a", 3) }, dynactor.ErrNoSnapshot, "delete events", "a", 3, false},
		{
			"the last snapshot deleted", func(_ *testing.T, e env) { e.s.DeleteEvents("a", 2) },
			func(e env) { e.s.DeleteSnapshots("a", 3) }, dynactor.ErrNoSnapshot, "delete snapshots", "a", -1, false,
		},
		{"events deletion refused", refuse("UpdateItem", denied), func(e env) { e.s.DeleteEvents("a", 2) }, nil, "delete events", "a", 2, false},
		{"snapshots deletion refused", refuse("BatchWriteItem", denied), func(e env) { e.s.DeleteSnapshots("a", 3) }, nil, "delete snapshots", "a", -1, false},

		{"snapshot of events that are not there", nil, func(e env) { e.s.PersistSnapshot("a", 7, text("x")) }, dynactor.ErrAhead, "save snapshot", "a", 7, true},
		{"snapshot too large", nil, func(e env) { e.s.PersistSnapshot("a", 6, big) }, dynactor.ErrTooLarge, "save snapshot", "a", 6, true},
		{"snapshot nil", nil, func(e env) { e.s.PersistSnapshot("a", 6, nil) }, dynactor.ErrInvalid, "save snapshot", "a", 6, true},
		{"snapshot refused", refuse("PutItem", denied), func(e env) { e.s.PersistSnapshot("a", 6, text("x")) }, nil, "save snapshot", "a", 6, true},
		{"snapshot throttled", refuse("PutItem", dynactortest.Throttle()), func(e env) { e.s.PersistSnapshot("a", 6, text("x")) }, dynactor.ErrThrottled, "save snapshot", "a", 6, true},
		{"snapshot while recovering", nil, func(e env) {
			s := e.p.GetState()
			s.GetSnapshot("a")
			s.PersistSnapshot("a", 6, text("x"))
		}, dynactor.ErrRecovering, "save snapshot", "a", 6, true},
		{"snapshot with a generated id", nil, func(e env) { e.s.PersistSnapshot("$1A", 6, text("x")) }, dynactor.ErrUnstableID, "save snapshot", "$1A", 6, true},
		{"prune refused", refuse("BatchWriteItem", denied), func(e env) { e.s.PersistSnapshot("a", 6, text("6")) }, nil, "delete snapshots", "a", -1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := dynactor.Options{SnapshotInterval: 3, KeepSnapshots: 1}
			if errors.Is(c.want, dynactor.ErrThrottled) || errors.Is(c.want, dynactor.ErrOutcomeUnknown) {
				o.ReadTimeout, o.WriteTimeout, o.RecoveryTimeout = time.Second, time.Second, time.Second
			}
			p, db, seen := observe(t, o)
			fill(t, p.Journal(), "a", 6)
			saveSnapshot(t, p, "a", 3)
			e := env{p, db, p.GetState()}
			recovered(e.s, "a")
			if c.before != nil {
				c.before(t, e)
			}
			err := caught(func() { c.do(e) })
			if (err == nil) != c.silent {
				t.Fatalf("panicked with %v, want one: %v", err, !c.silent)
			}
			logged := seen.log.last()
			if logged == nil || (err != nil && *err != *logged) {
				t.Fatalf("logged %v, want %v", logged, err)
			}
			if c.want == nil {
				var api smithy.APIError
				if !errors.As(logged, &api) || api.ErrorCode() != "AccessDeniedException" {
					t.Errorf("%v is not the server's refusal", logged)
				}
			} else {
				isError(t, logged, c.want)
			}
			type report struct {
				Op, ID string
				Index  int64
				Logged int
				Count  map[string]int64
			}
			want := report{c.op, c.id, c.index, 1, map[string]int64{c.op: 1}}
			got := report{logged.Op, logged.ID, logged.Index, seen.log.len(), seen.failures(t)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("failure (-want +got):\n%s", diff)
			}
		})
	}
}

// events checks what a session delivers.
func events(t *testing.T, s persistence.ProviderState, id string, start, end int, want ...string) {
	t.Helper()
	var got []string
	s.GetEvents(id, start, end, func(e any) { got = append(got, textOf(e)) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events from %d to %d (-want +got):\n%s", start, end, diff)
	}
}

// isError checks that a session's panic is one for a cause.
func isError(t *testing.T, err *dynactor.Error, want error) {
	t.Helper()
	if err == nil || !errors.Is(err, want) {
		t.Errorf("got %v, want an error that matches %q", err, want)
	}
}

// saveSnapshot saves one with its number as its text.
func saveSnapshot(t *testing.T, p *dynactor.Provider, id string, seq int) {
	t.Helper()
	if err := p.Snapshots().Save(t.Context(), id, int64(seq), text(strconv.Itoa(seq))); err != nil {
		t.Fatal(err)
	}
}

// itemKey is the primary key of an item.
func itemKey(id string, seq int) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pid": &types.AttributeValueMemberS{Value: id},
		"seq": &types.AttributeValueMemberN{Value: strconv.Itoa(seq)},
	}
}

// dropItem removes an item behind the library's back.
func dropItem(t *testing.T, db *dynactortest.DB, table, id string, seq int) {
	t.Helper()
	_, err := db.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: itemKey(id, seq)})
	if err != nil {
		t.Fatal(err)
	}
}

// garble gives an item a type that nobody knows, behind the library's back.
func garble(t *testing.T, db *dynactortest.DB, table, id string, seq int) {
	t.Helper()
	out, err := db.Client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: itemKey(id, seq), ConsistentRead: aws.Bool(true)})
	if err != nil || len(out.Item) == 0 {
		t.Fatal(err, out.Item)
	}
	out.Item["type"] = &types.AttributeValueMemberS{Value: "nobody.Knows"}
	if _, err := db.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: out.Item}); err != nil {
		t.Fatal(err)
	}
}

// stored lists the numbers of the event items that are in the table.
func stored(t *testing.T, db *dynactortest.DB, id string) []int64 {
	t.Helper()
	out, err := db.Client.Query(t.Context(), &dynamodb.QueryInput{
		TableName: &db.EventsTable, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("pid = :id AND seq >= :lo"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":id": &types.AttributeValueMemberS{Value: id}, ":lo": &types.AttributeValueMemberN{Value: "1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var seqs []int64
	for _, it := range out.Items {
		n, err := strconv.ParseInt(it["seq"].(*types.AttributeValueMemberN).Value, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, n)
	}
	return seqs
}

// watcher sees the failures that a provider reports.
type watcher struct {
	log    *errorLog
	reader *metric.ManualReader
}

// observe makes a provider whose failures are seen.
func observe(t *testing.T, o dynactor.Options) (*dynactor.Provider, *dynactortest.DB, watcher) {
	t.Helper()
	w := watcher{log: &errorLog{}, reader: metric.NewManualReader()}
	o.Logger = slog.New(w.log)
	o.MeterProvider = metric.NewMeterProvider(metric.WithReader(w.reader))
	p, db := open(t, o)
	return p, db, w
}

// failures are the counts of dynactor.failures, by operation.
func (w watcher) failures(t *testing.T) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := w.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if !ok || m.Name != "dynactor.failures" {
				continue
			}
			for _, point := range sum.DataPoints {
				op, _ := point.Attributes.Value("op")
				counts[op.AsString()] += point.Value
			}
		}
	}
	return counts
}

// errorLog keeps the errors that are logged at ERROR.
type errorLog struct {
	mu   sync.Mutex
	errs []*dynactor.Error
}

func (l *errorLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }
func (l *errorLog) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *errorLog) WithGroup(string) slog.Handler                    { return l }

// Handle makes the error anew from what was logged about it.
func (l *errorLog) Handle(_ context.Context, r slog.Record) error {
	e := &dynactor.Error{}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "op":
			e.Op = a.Value.String()
		case "persistence_id":
			e.ID = a.Value.String()
		case "index":
			e.Index = a.Value.Int64()
		case "error":
			e.Err, _ = a.Value.Any().(error)
		}
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, e)
	return nil
}

func (l *errorLog) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.errs)
}

// last is the error logged last, nil for none.
func (l *errorLog) last() *dynactor.Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.errs) == 0 {
		return nil
	}
	return l.errs[len(l.errs)-1]
}
