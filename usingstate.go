package dynactor

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
)

// UsingStateOptions configures [UsingState]. The zero value works. Its functions
// are called by many actors at a time.
type UsingStateOptions struct {
	// ID resolves the id of an actor's state when it starts. It must be the same at
	// every start, and no other actor's. Nil: the actor's name, which is refused with
	// ErrUnstableID when the framework has generated it.
	ID func(actor.ReceiverContext) string
	// Reply makes the answer to the sender of a message that failed because the state
	// could not be stored. A nil answer is not sent. To reach other nodes it must be a
	// protobuf message. Nil: NewPersistenceFailure.
	Reply func(*Error) any
}

// UsingState is receiver middleware for actors that embed [StateMixin]. When the
// actor has handled Started, its state is loaded and delivered as [*StateLoaded];
// the receive timeout does not run meanwhile. The sender of a message whose state
// could not be stored gets an answer at once, and then the panic goes on to the
// supervisor. An incarnation that has ended writes nothing more. The producer must
// return a new instance each time.
func UsingState(p *Provider, o UsingStateOptions) actor.ReceiverMiddleware {
	if p == nil {
		refuse("use state", "", fmt.Errorf("%w: the provider is nil", ErrInvalid))
	}
	if o.ID == nil {
		o.ID = actorName
	}
	if o.Reply == nil {
		o.Reply = replyFailure
	}
	u := &usingState{p: p, o: o}
	return func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, env *actor.MessageEnvelope) { u.receive(ctx, env, next) }
	}
}

// usingState is shared by all actors with the same props.
type usingState struct {
	p *Provider
	o UsingStateOptions
}

func (u *usingState) receive(ctx actor.ReceiverContext, env *actor.MessageEnvelope, next actor.ReceiverFunc) {
	if _, ok := env.Message.(*actor.Started); ok {
		u.start(ctx, env, next)
		return
	}
	a := stateActivationOf(ctx)
	a.stage = a.stage.follow(env.Message)
	u.handle(ctx, env, next, a)
}

// start loads the state after the actor has handled Started.
func (u *usingState) start(ctx actor.ReceiverContext, env *actor.MessageEnvelope, next actor.ReceiverFunc) {
	whole := ctx.(actor.Context) // the framework relies on it, too
	a := &stateActivation{u: u, ctx: whole}
	ctx.Set(a) // first, since every later message looks for it
	a.id = u.o.ID(ctx)
	m, ok := ctx.Actor().(interface{ attachState(a *stateActivation) })
	if !ok {
		a.must("start", fmt.Errorf("%w: %T embeds no StateMixin", ErrInvalid, ctx.Actor()))
	}
	m.attachState(a)
	next(ctx, env)

	timeout := whole.ReceiveTimeout()
	whole.CancelReceiveTimeout()
	st := a.load(a.id != ctx.Self().GetId())
	if timeout > 0 {
		whole.SetReceiveTimeout(timeout)
	}
	whole.Receive(&actor.MessageEnvelope{Message: &StateLoaded{State: st}})
}

// handle lets the actor handle a message, and answers its sender when a write
// failed. It does not recover from the panic, so that the stack stays whole.
func (u *usingState) handle(ctx actor.ReceiverContext, env *actor.MessageEnvelope, next actor.ReceiverFunc, a *stateActivation) {
	done := false
	a.failed, a.handling = nil, true
	defer func() {
		a.handling = false
		if !done {
			a.hurt(env.Sender)
		}
	}()
	if isUsers(env.Message) {
		a.checkAlive()
	}
	next(ctx, env)
	done = true
}
