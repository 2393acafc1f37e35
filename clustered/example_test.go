package clustered_test

import (
	"context"
	"log"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/remote"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/clustered"
)

// A node of a cluster whose accounts survive, wherever they are activated. The
// account "alice" has the persistence id "account/alice".
func ExampleUsing() {
	provider, err := dynactor.Open(context.Background(), dynactor.Options{SnapshotInterval: 100})
	if err != nil {
		log.Fatal(err)
	}
	accounts := cluster.NewKind("account", actor.PropsFromProducer(func() actor.Actor { return &account{} },
		actor.WithReceiverMiddleware(clustered.Using(provider, dynactor.UsingOptions{}))))
	node := cluster.New(actor.NewActorSystem(), cluster.Configure("bank", automanaged.New(), disthash.New(),
		remote.Configure("127.0.0.1", 0), cluster.WithKinds(accounts)))
	node.StartMember()
	defer node.Shutdown(true)
}
