package clustered_test

import (
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
)

// grain joins the mixin and a generated actor, which knows nothing of it.
type grain struct {
	dynactor.Mixin
	*generated
}

func newGrain() actor.Actor {
	g := &grain{}
	g.generated = &generated{make: func() service { return &ledger{mixin: &g.Mixin} }}
	return g
}

// Receive resolves that the mixin and the generated actor have nothing else in common.
func (g *grain) Receive(ctx actor.Context) { g.generated.Receive(ctx) }

// service is what the framework's generator makes of a protobuf service.
type service interface {
	Init(ctx cluster.GrainContext)
	Add(m *wrapperspb.Int64Value, ctx cluster.GrainContext) (*wrapperspb.Int64Value, error)
	ReceiveDefault(ctx cluster.GrainContext)
}

// generated has the shape of a generated actor: it keeps the context of its
// initialisation and uses that for everything.
type generated struct {
	ctx   cluster.GrainContext
	make  func() service
	inner service
}

func (g *generated) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *cluster.ClusterInit:
		g.ctx = cluster.NewGrainContext(ctx, m.Identity, m.Cluster)
		g.inner = g.make()
		g.inner.Init(g.ctx)
	case actor.AutoReceiveMessage, actor.SystemMessage:
	case *cluster.GrainRequest:
		request := &wrapperspb.Int64Value{}
		if err := proto.Unmarshal(m.GetMessageData(), request); err != nil {
			ctx.Respond(cluster.FromError(err))
			return
		}
		answer, err := g.inner.Add(request, g.ctx)
		if err != nil {
			ctx.Respond(cluster.FromError(err))
			return
		}
		g.ctx.Respond(answer)
	default:
		g.inner.ReceiveDefault(g.ctx)
	}
}

// ledger is the user's part of the grain. It persists before it applies.
type ledger struct {
	mixin *dynactor.Mixin
	sum   int64
}

func (l *ledger) Init(cluster.GrainContext) {}

func (l *ledger) Add(m *wrapperspb.Int64Value, _ cluster.GrainContext) (*wrapperspb.Int64Value, error) {
	if err := l.mixin.PersistAll(m); err != nil {
		return nil, err
	}
	l.sum += m.GetValue()
	return wrapperspb.Int64(l.sum), nil
}

func (l *ledger) ReceiveDefault(ctx cluster.GrainContext) {
	switch m := ctx.Message().(type) {
	case *wrapperspb.Int64Value:
		l.sum += m.GetValue()
	case *wrapperspb.UInt64Value:
		l.sum = int64(m.GetValue())
	case *persistence.RequestSnapshot:
		l.mixin.PersistSnapshot(wrapperspb.UInt64(uint64(l.sum)))
	default:
		if passing, ok := m.(*wrapperspb.StringValue); ok && passing.GetValue() == passivate {
			ctx.Respond(passing)
			ctx.Poison(ctx.Self())
		}
	}
}

func marshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }
