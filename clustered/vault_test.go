package clustered_test

import (
	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
)

// vault is a virtual actor with a durable state: an Int64Value is added to it, and
// answered with the sum.
type vault struct {
	dynactor.StateMixin

	sum int64
}

func vaultProps(middleware actor.ReceiverMiddleware) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return &vault{} }, actor.WithReceiverMiddleware(middleware))
}

func (v *vault) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *dynactor.StateLoaded:
		v.sum = 0
		if sum, ok := m.Message.(*wrapperspb.Int64Value); ok {
			v.sum = sum.GetValue()
		}
	case *wrapperspb.Int64Value:
		sum := wrapperspb.Int64(v.sum + m.GetValue())
		if err := v.SaveState(sum); err != nil {
			ctx.Respond(wrapperspb.String(err.Error()))
			return
		}
		v.sum = sum.GetValue()
		ctx.Respond(sum)
	case *wrapperspb.StringValue: // passivate
		ctx.Respond(m)
		ctx.Poison(ctx.Self())
	}
}
