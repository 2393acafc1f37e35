package dynactor

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/proto"
)

// UsingOptions configures [Using]. The zero value works. Its functions are called
// by many actors at a time.
type UsingOptions struct {
	// ID resolves the persistence id of an actor when it starts. It must be the same
	// at every start, and no other actor's. Nil: the actor's name, which is refused
	// with ErrUnstableID when the framework has generated it.
	ID func(actor.ReceiverContext) string
	// Snapshot decides when a snapshot is due. Nil: every Options.SnapshotInterval
	// events.
	Snapshot SnapshotPolicy
	// Reply makes the answer to the sender of a message that failed because its
	// events could not be stored. A nil answer is not sent. To reach other nodes it
	// must be a protobuf message. Nil: NewPersistenceFailure.
	Reply func(*Error) any
}

// Using is receiver middleware for actors that embed persistence.Mixin or [Mixin].
// It is persistence.Using, and besides:
//
//   - The persistence id may be other than the actor's name.
//   - RequestSnapshot comes when the actor has handled the message, so replies are
//     not lost, and the snapshot holds all events, whether the actor applies them
//     before or after it persists them. It never comes when the handler failed, nor
//     while the actor starts, restarts or stops.
//   - The sender of a message whose events could not be stored gets an answer at
//     once, and then the panic goes on to the supervisor.
//   - An incarnation that has ended writes nothing more, so a continuation of
//     ReenterAfter that comes late panics.
//   - The receive timeout does not run while the actor recovers.
//
// The producer must return a new instance each time; one that is used again panics.
func Using(p *Provider, o UsingOptions) actor.ReceiverMiddleware {
	if p == nil {
		refuse("use", "", fmt.Errorf("%w: the provider is nil", ErrInvalid))
	}
	if o.ID == nil {
		o.ID = func(ctx actor.ReceiverContext) string { return ctx.Self().GetId() }
	}
	interval := p.o.SnapshotInterval
	if o.Snapshot == nil {
		o.Snapshot = EveryEvents(int64(interval))
	} else if interval <= 0 {
		interval = usualInterval
	}
	if o.Reply == nil {
		o.Reply = func(e *Error) any { return NewPersistenceFailure(e) }
	}
	u := &using{p: p, o: o, interval: interval}
	return func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, env *actor.MessageEnvelope) { u.receive(ctx, env, next) }
	}
}

// using is shared by all actors with the same props.
type using struct {
	p        *Provider
	o        UsingOptions
	interval int // as a session's
}

// usualInterval is how many of the newest events a recovery looks for beside its
// snapshot, where only the policy knows how many there may be.
const usualInterval = 100

func (u *using) receive(ctx actor.ReceiverContext, env *actor.MessageEnvelope, next actor.ReceiverFunc) {
	if _, ok := env.Message.(*actor.Started); ok {
		u.start(ctx, env, next)
		return
	}
	a := activationOf(ctx)
	switch env.Message.(type) {
	case *actor.Restarting:
		a.stage = ended // what is in memory may not be what is stored
	case *actor.Stopping:
		a.stage = max(a.stage, stopping)
		defer func() { a.stage = ended }()
	case *actor.Stopped:
		a.stage = ended
	}
	u.handle(ctx, env, next, a)
}

// start recovers the actor after it has handled Started.
func (u *using) start(ctx actor.ReceiverContext, env *actor.MessageEnvelope, next actor.ReceiverFunc) {
	id := u.o.ID(ctx)
	a := &activation{s: newSession(u.p), id: id, policy: u.o.Snapshot}
	a.s.interval = u.interval
	if id != ctx.Self().GetId() {
		a.s.chosen = id
	}
	ctx.Set(a)
	if _, ok := ctx.Actor().(persistent); !ok { // the framework would end the process
		refuse("use", id, fmt.Errorf("%w: %T embeds no Mixin", ErrInvalid, ctx.Actor()))
	}
	if m, ok := ctx.Actor().(interface{ attach(a *activation) }); ok {
		m.attach(a)
	}
	next(ctx, env)

	whole := ctx.(actor.Context) // the framework relies on it, too
	timeout := whole.ReceiveTimeout()
	whole.CancelReceiveTimeout()
	nothing := func(actor.ReceiverContext, *actor.MessageEnvelope) {}
	persistence.Using(a)(nothing)(&receiving{whole}, env)
	if whole.ReceiveTimeout() == 0 {
		whole.SetReceiveTimeout(timeout)
	}
}

// persistent is what the framework asks of a persistent actor.
type persistent interface {
	PersistReceive(event proto.Message)
	PersistSnapshot(state proto.Message)
	Recovering() bool
	Name() string
}

// receiving is the context that the Mixin delivers through. Its own requests for
// snapshots go no further.
type receiving struct{ actor.Context }

func (r *receiving) Receive(env *actor.MessageEnvelope) {
	if _, ok := env.Message.(*persistence.RequestSnapshot); !ok {
		r.Context.Receive(env)
	}
}

// handle lets the actor handle a message, and then asks for the snapshot that is
// due. It does not recover from a panic, so that the stack stays whole.
func (u *using) handle(ctx actor.ReceiverContext, env *actor.MessageEnvelope, next actor.ReceiverFunc, a *activation) {
	done := false
	a.s.failed = nil
	defer func() {
		if done {
			return
		}
		a.due = false
		if e := a.s.failed; e != nil && env.Sender != nil {
			u.answer(ctx, env.Sender, e)
		}
	}()
	next(ctx, env)
	if a.due && a.stage == live && isUsers(env.Message) {
		a.asked()
		ctx.Receive(&actor.MessageEnvelope{Message: &persistence.RequestSnapshot{}})
	}
	done = true
}

func (u *using) answer(ctx actor.ReceiverContext, to *actor.PID, e *Error) {
	if reply := u.o.Reply(e); reply != nil {
		ctx.ActorSystem().Root.Send(to, reply)
	}
}

// isUsers tells a user's message from the framework's own.
func isUsers(m any) bool {
	_, system := m.(actor.SystemMessage)
	return !system
}
