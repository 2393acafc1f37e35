package clustered

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/dynactor/dynactor"
)

// UsingState is [dynactor.UsingState] for virtual actors. The id of the state is
// [ID] and the answer to a message that failed [Failure], unless the options say
// otherwise.
func UsingState(p *dynactor.Provider, o dynactor.UsingStateOptions) actor.ReceiverMiddleware {
	if o.ID == nil {
		o.ID = ID
	}
	if o.Reply == nil {
		o.Reply = func(e *dynactor.Error) any { return Failure(e) }
	}
	return dynactor.UsingState(p, o)
}
