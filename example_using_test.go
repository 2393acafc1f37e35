package dynactor_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// basket is an actor that counts what was put into it.
type basket struct {
	dynactor.Mixin

	items int64
}

// fillWith is a command: so many things, one event for each.
type fillWith struct{ counts []int64 }

func (b *basket) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case fillWith:
		var events []proto.Message
		for _, n := range m.counts {
			events = append(events, wrapperspb.Int64(n))
		}
		if err := b.PersistAll(events...); err != nil { // all or none, in one request
			ctx.Respond("refused")
			return
		}
		for _, n := range m.counts {
			b.items += n
		}
		ctx.Respond(fmt.Sprintf("%d items after %d events of %s", b.items, b.Head(), b.PersistenceID()))
	case *wrapperspb.Int64Value: // an event of the past
		b.items += m.GetValue()
	case *persistence.RequestSnapshot: // after the handler of fillWith has returned
		b.PersistSnapshot(wrapperspb.UInt64(uint64(b.items)))
	case *wrapperspb.UInt64Value: // the snapshot
		b.items = int64(m.GetValue())
	}
}

// An actor with an id of its own, which persists several events at once.
func ExampleUsing() {
	server := dynactortest.NewEmbedded()
	defer server.Close()
	provider, err := dynactor.Open(context.Background(), dynactor.Options{Endpoint: server.URL, Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	props := actor.PropsFromProducer(func() actor.Actor { return &basket{} },
		actor.WithReceiverMiddleware(dynactor.Using(provider, dynactor.UsingOptions{
			ID:       func(ctx actor.ReceiverContext) string { return "basket/" + ctx.Self().GetId() },
			Snapshot: dynactor.AnyOf(dynactor.EveryEvents(3), dynactor.Every(time.Hour)),
		})),
		actor.WithGuardian(actor.NewOneForOneStrategy(10, time.Minute, dynactor.Decider)))
	system := actor.NewActorSystem()
	alice, _ := system.Root.SpawnNamed(props, "alice")
	for _, counts := range [][]int64{{1, 2}, {}, {3, 4}} {
		answer, _ := system.Root.RequestFuture(alice, fillWith{counts}, time.Minute).Result()
		fmt.Println(answer)
	}
	_ = system.Root.PoisonFuture(alice).Wait() // what is in the queue is handled first
	snapshots, _ := provider.Snapshots().List(context.Background(), "basket/alice")
	fmt.Println("a snapshot after these events:", snapshots)
	// Output:
	// 3 items after 2 events of basket/alice
	// refused
	// 10 items after 4 events of basket/alice
	// a snapshot after these events: [4]
}
