package dynactor

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/ctxext"
	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/proto"
)

// stage is how far an incarnation has come.
type stage int

const (
	starting stage = iota
	recovering
	live
	stopping // may still persist, but save no snapshot
	ended    // does nothing more
)

// follow is the stage after the framework has sent a message.
func (s stage) follow(message any) stage {
	switch message.(type) {
	case *actor.Restarting: // what is in memory may not be what is stored
		return ended
	case *actor.Stopping:
		// Not ended yet: until its children have stopped the actor gets messages, and if
		// it failed on one of them, the framework would restart it.
		return max(s, stopping)
	case *actor.Stopped:
		return ended
	}
	return s
}

// answer tells the sender of a message, if there is one, that the message failed.
func answer(ctx actor.Context, sender *actor.PID, e *Error, reply func(*Error) any) {
	if sender == nil {
		return
	}
	if r := reply(e); r != nil {
		ctx.ActorSystem().Root.Send(sender, r)
	}
}

// activation is one incarnation of an actor under Using. The actor's Mixin takes
// it for the provider and for its state; it hands all on to a session under the
// actor's persistence id. It hangs on the actor's context, and is for the actor's
// goroutine alone.
type activation struct {
	s     *session
	u     *using
	ctx   actor.Context
	id    string
	stage stage

	ahead int // events that our Mixin appended, which the framework's index does not count
	due   bool
	since Progress  // what the policy is told
	saved time.Time // when the last snapshot was asked for, or recovery ended

	handling bool          // a message is in the middleware
	spoiled  bool          // a handler failed, so its state may not be what is stored
	cause    *Error        // why, where it was one of ours
	timeout  time.Duration // a receive timeout that waits for the end of the recovery
}

var (
	_ persistence.Provider      = (*activation)(nil)
	_ persistence.ProviderState = (*activation)(nil)
	_ ctxext.ContextExtension   = (*activation)(nil)
)

var activationID = ctxext.NextContextExtensionID()

func (a *activation) ExtensionID() ctxext.ContextExtensionID { return activationID }

// activationOf is what Using has put on an actor's context when it started.
func activationOf(ctx actor.ReceiverContext) *activation {
	a, _ := ctx.Get(activationID).(*activation)
	return a
}

func (a *activation) GetState() persistence.ProviderState { return a }

// Restart is the beginning of a recovery.
func (a *activation) Restart() {
	a.check("restart")
	a.s.Restart()
	a.ahead, a.since, a.due = 0, Progress{}, false
	a.stage = recovering
}

// GetSnapshotInterval lets the framework ask after each event; the policy decides.
func (a *activation) GetSnapshotInterval() int { return 1 }

func (a *activation) GetSnapshot(string) (snapshot any, index int, ok bool) {
	a.check("load snapshot")
	return a.s.GetSnapshot(a.id)
}

// GetEvents is called once, with the events that the snapshot does not cover.
func (a *activation) GetEvents(_ string, start, end int, callback func(any)) {
	a.check("replay")
	a.s.GetEvents(a.id, start, end, func(e any) {
		if m, ok := e.(proto.Message); ok {
			a.since.count(m)
		}
		callback(e)
	})
	a.stage, a.saved = live, a.s.p.o.wall()
	a.since.Head = a.head()
}

func (a *activation) PersistEvent(_ string, index int, event proto.Message) {
	_ = a.answering(func() error {
		a.check("persist event")
		a.s.PersistEvent(a.id, index+a.ahead, event)
		a.persisted(event)
		return nil
	})
}

// persistAll is for our Mixin.
func (a *activation) persistAll(op string, events []Event) error {
	return a.answering(func() error { return a.append(op, events) })
}

func (a *activation) append(op string, events []Event) error {
	a.check(op)
	if a.stage < live {
		return fail(op, a.id, noSeq, fmt.Errorf("%w: is a check of Recovering() missing?", ErrRecovering))
	}
	if err := a.s.append(op, a.id, events); err != nil {
		return err
	}
	a.ahead += len(events)
	for _, e := range events {
		a.persisted(e.Message)
	}
	return nil
}

// persisted asks the policy about an event that has just been stored.
func (a *activation) persisted(event proto.Message) {
	a.since.count(event)
	a.since.Head++
	a.since.Age = a.s.p.o.wall().Sub(a.saved)
	a.due = (a.u.o.Snapshot(a.since) || a.due) && !a.spoiled
}

func (a *activation) PersistSnapshot(_ string, index int, snapshot proto.Message) {
	if covers := int64(index + a.ahead); covers > 0 {
		_ = a.saveSnapshot(covers, snapshot)
	}
}

// saveSnapshot never panics. Its error is logged and counted.
func (a *activation) saveSnapshot(covers int64, snapshot proto.Message) error {
	a.asked()
	if a.stage >= stopping {
		return a.s.refused("save snapshot", a.id, covers+1, errEnded)
	}
	return a.s.saveSnapshot(a.id, covers, snapshot)
}

// asked begins the count anew, whatever becomes of the snapshot: one that fails
// again and again must not be asked for after each event.
func (a *activation) asked() {
	a.due = false
	a.since.Events, a.since.Bytes, a.saved = 0, 0, a.s.p.o.wall()
}

// DeleteSnapshots and DeleteEvents are part of the framework's contract; nothing
// in it calls them.
func (a *activation) DeleteSnapshots(_ string, index int) {
	a.check("delete snapshots")
	a.s.DeleteSnapshots(a.id, index+a.ahead)
}

func (a *activation) DeleteEvents(_ string, index int) {
	a.check("delete events")
	a.s.DeleteEvents(a.id, index+a.ahead)
}

func (a *activation) head() int64 {
	if st := a.s.streams[a.id]; st != nil {
		return st.at.head
	}
	return 0
}

var errEnded = fmt.Errorf("%w; or its producer has returned the same instance again", ErrStopped)

// check panics when the incarnation has ended: an instance that the producer
// returns again, or a continuation that comes late.
func (a *activation) check(op string) {
	if a.stage == ended {
		a.s.must(op, a.id, noSeq, errEnded)
	}
}

// hurt is called when a handler has failed. From then on no snapshot is asked for:
// what the actor holds may be ahead of the journal, or behind it.
func (a *activation) hurt(sender *actor.PID) {
	a.spoiled, a.due = true, false
	if a.s.failed == nil {
		return // a panic that is not ours
	}
	a.cause = a.s.failed
	answer(a.ctx, sender, a.cause, a.u.o.Reply)
}

// checkSwallowed is called when a handler has returned. It may have recovered from
// a failure itself.
func (a *activation) checkSwallowed() {
	if a.s.failed != nil {
		a.spoiled, a.due = true, false
	}
	if st := a.s.streams[a.id]; st != nil && st.dead != nil {
		a.cause = st.dead
	}
}

// checkAlive panics when the actor has failed before, or has not recovered, and yet
// its supervisor lets it go on.
func (a *activation) checkAlive() {
	if a.cause != nil {
		a.s.again(a.cause)
	}
	if a.stage < live {
		a.s.must("handle message", a.id, noSeq, fmt.Errorf("%w: the recovery failed", ErrRecovering))
	}
}

// answering runs what may panic. The continuations of ReenterAfter do not pass
// through the middleware, but have the sender of the message that they continue.
func (a *activation) answering(write func() error) error {
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

// holdTimeout takes a receive timeout away until the end of the recovery, in the
// midst of which it would go off.
func (a *activation) holdTimeout() {
	if d := a.ctx.ReceiveTimeout(); d > 0 {
		a.timeout = d
		a.ctx.CancelReceiveTimeout()
	}
}

func (a *activation) releaseTimeout() {
	if a.timeout > 0 {
		a.ctx.SetReceiveTimeout(a.timeout)
	}
}
