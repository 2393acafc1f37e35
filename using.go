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
//     once, also when that happens in a continuation of ReenterAfter, and then the
//     panic goes on to the supervisor.
//   - An actor that failed so, or did not recover, handles no message until it has
//     been restarted, even if its supervisor resumes it.
//   - An incarnation that has ended writes nothing more, so a continuation that
//     comes late panics with [ErrStopped].
//   - A receive timeout set before the end of the recovery runs from there.
//
// The producer must return a new instance each time; one that is used again panics.
func Using(p *Provider, o UsingOptions) actor.ReceiverMiddleware {
	if p == nil {
		refuse("use", "", fmt.Errorf("%w: the provider is nil", ErrInvalid))
	}
	if o.ID == nil {
		o.ID = actorName
	}
	interval := p.o.SnapshotInterval
	if o.Snapshot == nil {
		o.Snapshot = EveryEvents(int64(interval))
	} else if interval <= 0 {
		interval = usualInterval
	}
	if o.Reply == nil {
		o.Reply = replyFailure
	}
	u := &using{p: p, o: o, interval: interval}
	return func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, env *actor.MessageEnvelope) { u.receive(ctx, env, next) }
	}
}

// The defaults of the options.
func actorName(ctx actor.ReceiverContext) string { return ctx.Self().GetId() }
func replyFailure(e *Error) any                  { return NewPersistenceFailure(e) }

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
	a.stage = a.stage.follow(env.Message)
	u.handle(ctx, env, next, a)
}

// start recovers the actor after it has handled Started.
func (u *using) start(ctx actor.ReceiverContext, env *actor.MessageEnvelope, next actor.ReceiverFunc) {
	whole := ctx.(actor.Context) // the framework relies on it, too
	a := &activation{s: newSession(u.p), u: u, ctx: whole}
	ctx.Set(a) // first, since every later message looks for it
	a.s.interval = u.interval
	a.id = u.o.ID(ctx)
	if a.id != ctx.Self().GetId() {
		a.s.chosen = a.id
	}
	if _, ok := ctx.Actor().(persistent); !ok { // the framework would end the process
		a.s.must("start", a.id, noSeq, fmt.Errorf("%w: %T embeds no Mixin", ErrInvalid, ctx.Actor()))
	}
	if m, ok := ctx.Actor().(interface{ attach(a *activation) }); ok {
		m.attach(a)
	}
	next(ctx, env)
	a.holdTimeout()
	nothing := func(actor.ReceiverContext, *actor.MessageEnvelope) {}
	persistence.Using(a)(nothing)(&receiving{Context: whole, a: a}, env)
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
type receiving struct {
	actor.Context

	a *activation
}

func (r *receiving) Receive(env *actor.MessageEnvelope) {
	switch env.Message.(type) {
	case *persistence.RequestSnapshot:
	case *persistence.ReplayComplete:
		r.a.releaseTimeout()
		r.Context.Receive(env)
	default:
		r.Context.Receive(env)
		r.a.holdTimeout()
	}
}

// handle lets the actor handle a message, and then asks for the snapshot that is
// due. It does not recover from a panic, so that the stack stays whole.
func (u *using) handle(ctx actor.ReceiverContext, env *actor.MessageEnvelope, next actor.ReceiverFunc, a *activation) {
	done, sender := false, env.Sender
	a.s.failed, a.handling = nil, true
	defer func() {
		a.handling = false
		if !done {
			a.hurt(sender)
		}
	}()
	if isUsers(env.Message) {
		a.checkAlive()
	}
	next(ctx, env)
	a.checkSwallowed()
	if a.due && a.stage == live && isUsers(env.Message) {
		sender = nil // the actor has had its chance to answer
		a.asked()
		ctx.Receive(&actor.MessageEnvelope{Message: &persistence.RequestSnapshot{}})
	}
	done = true
}

// isUsers tells a user's message from the framework's own, on some of which an
// actor's end depends.
func isUsers(m any) bool {
	_, system := m.(actor.SystemMessage)
	_, auto := m.(actor.AutoReceiveMessage)
	return !system && !auto
}
