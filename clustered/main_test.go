package clustered_test

import (
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/persistence"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// longest is the time limit for what should take milliseconds.
const longest = time.Minute

// The test binary is also the nodes of TestTwoNodes: the framework's nodes race with
// each other when they share a process.
func TestMain(m *testing.M) {
	if os.Getenv(nodeVariable) == "" {
		goleak.VerifyTestMain(m, append(dynactortest.IgnoreServer(), ignoreFramework()...)...)
	}
	if err := runNode(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// ignoreFramework lists what a cluster leaves behind: a throttle that waits for the
// end of its period, and a ticker of its provider for tests that is stopped, but
// whose reader waits for ever.
func ignoreFramework() []goleak.Option {
	const framework = "github.com/asynkron/protoactor-go/"
	return []goleak.Option{
		goleak.IgnoreAnyFunction(framework + "cluster/clusterproviders/test.(*Provider).startTtlReport.func1"),
		goleak.IgnoreAnyFunction(framework + "cluster.(*Gossiper).StartGossiping.NewThrottle.func3.1"),
	}
}

// What an account understands, besides deposits: an Int64Value, stored and answered
// with the balance.
const (
	balance   = "balance"
	deny      = "deny the next write"
	passivate = "passivate"
	owner     = "which node"
)

// account is a virtual actor.
type account struct {
	dynactor.Mixin

	faults *dynactortest.Faults
	sum    int64
}

func (a *account) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *persistence.RequestSnapshot:
		a.PersistSnapshot(wrapperspb.UInt64(uint64(a.sum)))
	case *wrapperspb.UInt64Value:
		a.sum = int64(m.GetValue())
	case *wrapperspb.Int64Value:
		a.sum += m.GetValue()
		if !a.Recovering() {
			a.PersistReceive(m)
			ctx.Respond(wrapperspb.Int64(a.sum))
		}
	case *wrapperspb.StringValue:
		switch m.GetValue() {
		case balance:
			ctx.Respond(wrapperspb.Int64(a.sum))
		case deny:
			a.faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: dynactortest.Answer(400, "AccessDeniedException", "denied")})
			ctx.Respond(m)
		case passivate:
			ctx.Respond(m)
			ctx.Poison(ctx.Self())
		case owner:
			ctx.Respond(wrapperspb.String(ctx.Self().GetAddress() + " " + a.PersistenceID()))
		}
	}
}

// options are those of the providers of all nodes.
func options(events, snapshots string) dynactor.Options {
	return dynactor.Options{EventsTable: events, SnapshotsTable: snapshots, Logger: slog.New(slog.DiscardHandler), SnapshotInterval: 2}
}

func quietSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
}
