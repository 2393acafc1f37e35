package dynactor_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/persistence"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

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
