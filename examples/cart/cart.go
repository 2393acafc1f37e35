package main

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/examples/cart/cartpb"
)

// lifetime is how long a cart lasts after its last change.
const lifetime = 30 * time.Minute

// cart is a shopping cart as an actor with durable state. It stores what is in it,
// not how that came about.
type cart struct {
	dynactor.StateMixin

	now     func() time.Time
	content *cartpb.Cart
}

// cartProps makes carts that the provider stores.
func cartProps(p *dynactor.Provider, now func() time.Time) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return &cart{now: now} },
		actor.WithReceiverMiddleware(dynactor.UsingState(p, dynactor.UsingStateOptions{})),
		actor.WithGuardian(actor.NewOneForOneStrategy(10, 10*time.Second, dynactor.Decider)))
}

// Receive handles commands, and before all of them the state.
func (c *cart) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *dynactor.StateLoaded:
		c.content = &cartpb.Cart{}
		if stored, ok := m.Message.(*cartpb.Cart); ok {
			c.content = stored
		}
	case *cartpb.Put:
		c.put(ctx, m)
	case *cartpb.Show:
		ctx.Respond(proto.CloneOf(c.content))
	case *cartpb.Order:
		if err := c.DeleteState(); err != nil {
			ctx.Respond(refusal(err))
			return
		}
		ctx.Respond(c.content)
		c.content = &cartpb.Cart{}
	}
}

// put stores the changed cart first, and changes it in memory when that is done: a
// failure panics, and the actor that restarts loads what is stored.
func (c *cart) put(ctx actor.Context, m *cartpb.Put) {
	changed := proto.CloneOf(c.content)
	if changed.Pieces == nil {
		changed.Pieces = map[string]int64{}
	}
	changed.Pieces[m.GetArticle()] = m.GetPieces()
	if m.GetPieces() == 0 {
		delete(changed.Pieces, m.GetArticle())
	}
	if err := c.PutState(dynactor.State{Message: changed, Until: c.now().Add(lifetime)}); err != nil {
		ctx.Respond(refusal(err))
		return
	}
	c.content = changed
	ctx.Respond(proto.CloneOf(changed))
}

// refusal answers what was refused before anything was sent: a cart that is too
// large, for example. It is as it was.
func refusal(err error) *dynactor.PersistenceFailure {
	return &dynactor.PersistenceFailure{Code: "refused", Message: err.Error()}
}
