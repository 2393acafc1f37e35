package dynactor

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"
)

// codes are in the order of what matters more where an error matches several.
var codes = []struct {
	err  error
	code string
}{
	{ErrOutcomeUnknown, "outcome_unknown"},
	{ErrConflict, "conflict"},
	{ErrGap, "gap"},
	{ErrAhead, "ahead"},
	{ErrNoSnapshot, "no_snapshot"},
	{ErrDecode, "decode"},
	{ErrTooLarge, "too_large"},
	{ErrInvalid, "invalid"},
	{ErrUnstableID, "unstable_id"},
	{ErrRecovering, "recovering"},
	{ErrStopped, "stopped"},
	{ErrClosed, "closed"},
	{ErrSchema, "schema"},
	{ErrThrottled, "throttled"},
}

// Code names the sentinel that the error matches, for programs that get it as a
// message: "outcome_unknown", "conflict", "gap", "ahead", "no_snapshot", "decode",
// "too_large", "invalid", "unstable_id", "recovering", "stopped", "closed",
// "schema", "throttled". All else is "failed". Of several it is the first in this list.
func (e *Error) Code() string {
	for _, c := range codes {
		if errors.Is(e, c.err) {
			return c.code
		}
	}
	return "failed"
}

// NewPersistenceFailure makes the answer to the sender of a message that failed
// with e. Unless its code is "outcome_unknown", nothing that the message asked for
// was stored by the write that failed.
func NewPersistenceFailure(e *Error) *PersistenceFailure {
	return &PersistenceFailure{Code: e.Code(), Id: e.ID, Message: e.Error()}
}

// Decider is a supervisor's decision about an actor that failed, for example for
// actor.NewOneForOneStrategy. What another try cannot help stops the actor: a
// history that cannot be read, an id that is refused, a closed provider, a handler
// that persists while it recovers. All else restarts it, so that it recovers what is
// stored. It never resumes one, whose state may not be what is stored.
func Decider(reason any) actor.Directive {
	err, ok := reason.(error)
	if !ok {
		return actor.RestartDirective
	}
	for _, final := range []error{ErrGap, ErrAhead, ErrNoSnapshot, ErrDecode, ErrUnstableID, ErrRecovering, ErrClosed} {
		if errors.Is(err, final) {
			return actor.StopDirective
		}
	}
	return actor.RestartDirective
}
