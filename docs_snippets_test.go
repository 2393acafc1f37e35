package dynactor_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/persistence"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/clustered"
	"github.com/dynactor/dynactor/dynactortest"
)

func checkTables(ctx context.Context, p *dynactor.Provider) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return p.EnsureTables(ctx)
}

func newProvider(ctx context.Context, o dynactor.Options) (*dynactor.Provider, error) {
	idle := 2 * (dynactor.DefaultMaxConcurrentReads + dynactor.DefaultMaxConcurrentWrites)
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = idle, idle
		})),
		config.WithCredentialsCacheOptions(func(c *aws.CredentialsCacheOptions) {
			c.ExpiryWindow, c.ExpiryWindowJitterFrac = 5*time.Minute, 0.5
		}),
	)
	if err != nil {
		return nil, err
	}
	return dynactor.New(dynamodb.NewFromConfig(cfg), o)
}

type wallet struct {
	dynactor.Mixin

	cents int64
}

func (w *wallet) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.SetReceiveTimeout(time.Minute)
	case *actor.ReceiveTimeout: // nobody has asked for a minute
		ctx.Poison(ctx.Self())
	case *persistence.RequestSnapshot:
		w.PersistSnapshot(wrapperspb.UInt64(uint64(w.cents)))
	case *wrapperspb.UInt64Value: // the snapshot, in a recovery
		w.cents = int64(m.GetValue())
	case *wrapperspb.Int64Value: // an event, in a recovery
		w.cents += m.GetValue()
	case []int64: // a command
		events := make([]proto.Message, len(m))
		for i, cents := range m {
			events[i] = wrapperspb.Int64(cents)
		}
		if err := w.PersistAll(events...); err != nil {
			ctx.Respond(err) // refused: nothing was stored, and the wallet is as it was
			return
		}
		for _, cents := range m {
			w.cents += cents
		}
		ctx.Respond(w.cents)
	}
}

func walletProps(provider *dynactor.Provider) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return &wallet{} },
		actor.WithReceiverMiddleware(dynactor.Using(provider, dynactor.UsingOptions{Snapshot: dynactor.EveryEvents(100)})))
}

func addApples(ctx context.Context, s *dynactor.StateStore, n int64) error {
	for {
		apples, revision, err := dynactor.LoadState[*wrapperspb.Int64Value](ctx, s, "apples")
		if err != nil {
			return err
		}
		_, err = s.Save(ctx, "apples", revision, wrapperspb.Int64(apples.GetValue()+n))
		if !errors.Is(err, dynactor.ErrConflict) { // somebody else was faster: load again
			return err
		}
	}
}

type counter struct {
	dynactor.StateMixin

	n int64
}

func (c *counter) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *dynactor.StateLoaded: // before anything else
		if n, ok := m.Message.(*wrapperspb.Int64Value); ok {
			c.n = n.GetValue()
		}
	case *wrapperspb.Int64Value:
		if err := c.SaveState(wrapperspb.Int64(c.n + m.GetValue())); err != nil {
			ctx.Respond(err.Error()) // nothing was sent: too large, for example
			return
		}
		c.n += m.GetValue()
		ctx.Respond(wrapperspb.Int64(c.n))
	}
}

func counterProps(p *dynactor.Provider) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return &counter{} },
		actor.WithReceiverMiddleware(dynactor.UsingState(p, dynactor.UsingStateOptions{})))
}

func topicKind(s *dynactor.StateStore, log *slog.Logger) *cluster.Kind {
	subscribers := clustered.KeyValueStore[*cluster.Subscribers](s, "prototopic/")
	return cluster.NewKind(cluster.TopicActorKind, actor.PropsFromProducer(func() actor.Actor {
		return cluster.NewTopicActor(subscribers, log)
	}))
}

func TestBesideAThrottledTable(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 2, Do: dynactortest.Throttle()})
	p, err := dynactor.New(db.Client, dynactor.Options{EventsTable: db.EventsTable, SnapshotsTable: db.SnapshotsTable})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Journal().Append(t.Context(), "alice", 0, wrapperspb.Int64(21)); err != nil {
		t.Error(err)
	}
}
