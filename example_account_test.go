package dynactor_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// account is an actor whose balance survives.
type account struct {
	persistence.Mixin

	balance int64
}

func (a *account) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *wrapperspb.Int64Value: // a deposit: a new one, or one that happened before
		if !a.Recovering() {
			a.PersistReceive(m) // returns when it is stored, panics when it is not
		}
		a.balance += m.GetValue()
	case string:
		ctx.Respond(a.balance)
	}
}

func Example() {
	server := dynactortest.NewEmbedded() // a DynamoDB in this process
	defer server.Close()

	// On AWS, leave Endpoint out.
	provider, err := dynactor.Open(context.Background(), dynactor.Options{Endpoint: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	props := actor.PropsFromProducer(func() actor.Actor { return &account{} },
		actor.WithReceiverMiddleware(persistence.Using(provider)))

	for range 2 { // the second alice recovers what the first one stored
		system := actor.NewActorSystem()
		alice, _ := system.Root.SpawnNamed(props, "alice")
		system.Root.Send(alice, wrapperspb.Int64(21))
		balance, _ := system.Root.RequestFuture(alice, "balance?", time.Minute).Result()
		fmt.Println("balance:", balance)
		_ = system.Root.StopFuture(alice).Wait()
	}
	// Output:
	// balance: 21
	// balance: 42
}
