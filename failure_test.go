package dynactor_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

func TestFailure(t *testing.T) {
	t.Parallel()
	other := errors.New("access denied")
	for _, tc := range []struct {
		err       error
		code      string
		directive actor.Directive
	}{
		{dynactor.ErrConflict, "conflict", actor.RestartDirective},
		{dynactor.ErrOutcomeUnknown, "outcome_unknown", actor.RestartDirective},
		{fmt.Errorf("%w: %w", dynactor.ErrThrottled, dynactor.ErrOutcomeUnknown), "outcome_unknown", actor.RestartDirective},
		{dynactor.ErrGap, "gap", actor.StopDirective},
		{dynactor.ErrAhead, "ahead", actor.StopDirective},
		{dynactor.ErrNoSnapshot, "no_snapshot", actor.StopDirective},
		{dynactor.ErrDecode, "decode", actor.StopDirective},
		{dynactor.ErrTooLarge, "too_large", actor.RestartDirective},
		{dynactor.ErrInvalid, "invalid", actor.RestartDirective},
		{dynactor.ErrUnstableID, "unstable_id", actor.StopDirective},
		{dynactor.ErrRecovering, "recovering", actor.StopDirective},
		{dynactor.ErrThrottled, "throttled", actor.RestartDirective},
		{dynactor.ErrStopped, "stopped", actor.RestartDirective},
		{dynactor.ErrClosed, "closed", actor.StopDirective},
		{dynactor.ErrSchema, "schema", actor.RestartDirective},
		{other, "failed", actor.RestartDirective},
	} {
		e := &dynactor.Error{Op: "persist event", ID: "a", Index: 3, Err: fmt.Errorf("wrapped: %w", tc.err)}
		if got := e.Code(); got != tc.code {
			t.Errorf("%v: code %q, want %q", tc.err, got, tc.code)
		}
		if got := dynactor.Decider(e); got != tc.directive {
			t.Errorf("%v: directive %v, want %v", tc.err, got, tc.directive)
		}
		want := &dynactor.PersistenceFailure{Code: tc.code, Id: "a", Message: e.Error()}
		if got := dynactor.NewPersistenceFailure(e); !proto.Equal(got, want) {
			t.Errorf("%v: got %v, want %v", tc.err, got, want)
		}
	}
	if got := dynactor.Decider("not an error"); got != actor.RestartDirective {
		t.Errorf("directive %v for a panic with a string", got)
	}
}

// A supervisor with Decider restarts an actor whose write failed, and stops one
// whose history cannot be read, at once.
func TestDecider(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{})
	ready(t, p, db)
	fill(t, p.Journal(), "broken", 3)
	garble(t, db, db.EventsTable, "broken", 2)
	h := newHouse(t)
	spawn := func(id string) {
		h.spawnProps(id, actor.PropsFromProducer(func() actor.Actor { return &member{h: h} },
			actor.WithReceiverMiddleware(dynactor.Using(p, dynactor.UsingOptions{})),
			actor.WithGuardian(actor.NewOneForOneStrategy(10, longest, dynactor.Decider))))
	}
	db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: denied})
	spawn("good")
	if _, ok := h.ask("good", pay("1")).(*dynactor.PersistenceFailure); !ok {
		t.Error("a denied write was not answered")
	}
	h.failed(nil)
	h.expect("good", pay("1"), texts(1, 1))
	spawn("broken")
	e := <-h.failures
	h.check(e, actor.StopDirective, dynactor.ErrDecode)
}
