package dynactor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/ctxext"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// stateActivation is one incarnation of an actor under UsingState. It knows at
// which revision the actor's state is. It hangs on the actor's context, and is for
// the actor's goroutine alone. As with a session, contexts and panics are made here.
type stateActivation struct {
	u     *usingState
	ctx   actor.Context
	id    string
	stage stage

	revision int64
	op       string    // of the row; a revision alone may be that of another life of the id
	known    time.Time // wall clock: that was so then, or later

	dead     *Error // the write that failed
	failed   *Error // the last panic
	handling bool   // a message is in the middleware
}

var _ ctxext.ContextExtension = (*stateActivation)(nil)

var stateActivationID = ctxext.NextContextExtensionID()

func (a *stateActivation) ExtensionID() ctxext.ContextExtensionID { return stateActivationID }

// stateActivationOf is what UsingState has put on an actor's context when it started.
func stateActivationOf(ctx actor.ReceiverContext) *stateActivation {
	a, _ := ctx.Get(stateActivationID).(*stateActivation)
	return a
}

// load reads the state, and tries again for RecoveryTimeout while it fails for a
// passing cause. It panics with all else. An id that somebody chose on purpose is
// not one that the framework generated.
func (a *stateActivation) load(chosen bool) State {
	const op = "load state"
	a.stage = recovering
	a.must(op, checkStable(a.id, chosen, a.u.p.o))
	ctx := context.Background()
	wait := a.u.p.newPatience(a.id)
	for {
		st, err := a.look(ctx)
		if err == nil {
			a.stage = live
			return st
		}
		a.must(op, wait.again(ctx, err))
	}
}

// look reads the row and notes where it is.
func (a *stateActivation) look(ctx context.Context) (State, error) {
	sent := a.u.p.o.wall()
	st, op, err := a.u.p.state.load(ctx, a.id)
	if err != nil {
		return State{}, err
	}
	a.revision, a.op, a.known = st.Revision, op, sent
	return st, nil
}

// save stores a state at the next revision.
func (a *stateActivation) save(op string, st State, extra []types.TransactWriteItem) error {
	if a == nil {
		return fail(op, "", noSeq, errNoState)
	}
	return a.answering(func() error {
		if err := a.writable(op); err != nil {
			return err
		}
		w, err := a.u.p.state.newSave(a.id, a.revision, a.known, st, extra)
		if err != nil {
			return fail(op, a.id, noSeq, err)
		}
		return a.write(op, w)
	})
}

// remove deletes the state at the next revision, unless there is no row.
func (a *stateActivation) remove(op string) error {
	if a == nil {
		return fail(op, "", noSeq, errNoState)
	}
	return a.answering(func() error {
		if err := a.writable(op); err != nil || a.revision == 0 {
			return err
		}
		w, err := a.u.p.state.newDelete(a.id, a.revision, a.known)
		if err != nil {
			return fail(op, a.id, noSeq, err)
		}
		return a.write(op, w)
	})
}

// writable refuses to write before the state is loaded. It panics when this
// incarnation has ended, or a write of it has failed.
func (a *stateActivation) writable(op string) error {
	switch {
	case a.stage == ended:
		a.must(op, errEnded)
	case a.stage < live:
		return fail(op, a.id, noSeq, errNotLoaded)
	case a.dead != nil:
		a.again()
	}
	return nil
}

var errNotLoaded = fmt.Errorf("%w: the state is not loaded", ErrRecovering)

// checkAlive panics when a write of the actor has failed before, or its state is
// not loaded, and yet its supervisor, or its own handler, lets it go on.
func (a *stateActivation) checkAlive() {
	if a.dead != nil {
		a.again()
	}
	if a.stage < live {
		a.must("handle message", errNotLoaded)
	}
}

// hurt is called when a handler has failed.
func (a *stateActivation) hurt(sender *actor.PID) {
	if a.failed != nil { // else it is a panic that is not ours
		answer(a.ctx, sender, a.failed, a.u.o.Reply)
	}
}

// answering runs what may panic. The continuations of ReenterAfter do not pass
// through the middleware, but have the sender of the message that they continue.
func (a *stateActivation) answering(write func() error) error {
	panics := true
	defer func() {
		if panics && !a.handling {
			a.hurt(a.ctx.Sender())
		}
	}()
	err := write()
	panics = false
	return err
}

// write sends what has been prepared. It returns the failed condition of one of the
// actor's own writes, which changes nothing, and panics with all else.
func (a *stateActivation) write(op string, w *saving) error {
	ctx := context.Background()
	err := a.refresh(ctx)
	if err == nil {
		w.known, w.row = a.known, a.op
		err = w.write(ctx)
	}
	if errors.As(err, new(*ExtraError)) && !errors.Is(err, ErrOutcomeUnknown) {
		return fail(op, a.id, noSeq, err)
	}
	if err != nil {
		a.dead, _ = errors.AsType[*Error](fail(op, a.id, noSeq, err))
		a.must(op, a.dead)
	}
	a.revision, a.op = w.expected+1, w.op
	if w.firstSent.After(a.known) {
		a.known = w.firstSent
	}
	return nil
}

// refresh reads the row again when the revision is known for too long. It must be
// the very same row.
func (a *stateActivation) refresh(ctx context.Context) error {
	if !a.u.p.state.stale(a.known) {
		return nil
	}
	revision, op := a.revision, a.op
	if _, err := a.look(ctx); err != nil {
		return err
	}
	if a.revision != revision || a.op != op {
		return &RevisionConflict{Expected: revision, Current: a.revision}
	}
	return nil
}

// must panics with an *Error when there is an error, after logging it.
func (a *stateActivation) must(op string, err error) {
	if err == nil {
		return
	}
	a.failed, _ = errors.AsType[*Error](fail(op, a.id, noSeq, err))
	a.u.p.obs.failed(context.Background(), a.failed)
	panic(a.failed)
}

// again panics with what has been reported before.
func (a *stateActivation) again() {
	a.failed = a.dead
	panic(a.failed)
}
