package clustered_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/test"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/persistence"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/clustered"
	"github.com/dynactor/dynactor/dynactortest"
)

func TestID(t *testing.T) {
	t.Parallel()
	system := quietSystem()
	t.Cleanup(system.Shutdown)
	for _, c := range []struct {
		kind, identity string // none: not a virtual actor
		want           string
	}{
		{"", "", "plain"},
		{"account", "alice", "account/alice"},
		{"a", "b/c", "a/b/c"},
		{"a/b", "c", "a%2Fb/c"},
		{"a%2Fb", "c", "a%252Fb/c"},
		{"account", "alice$1A", "account/alice$1A"},
		{"account", "", "account/"},
	} {
		got := make(chan string, 1)
		props := actor.PropsFromFunc(func(actor.Context) {}, actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(ctx actor.ReceiverContext, env *actor.MessageEnvelope) {
				if _, ok := env.Message.(*actor.Started); ok {
					got <- clustered.ID(ctx)
				}
				next(ctx, env)
			}
		}))
		if c.kind != "" {
			props = cluster.WithClusterIdentity(props, cluster.NewClusterIdentity(c.identity, c.kind))
		}
		pid, err := system.Root.SpawnNamed(props, "plain")
		if err != nil {
			t.Fatal(err)
		}
		if id := <-got; id != c.want {
			t.Errorf("%q %q: the id is %q, want %q", c.kind, c.identity, id, c.want)
		}
		if err := system.Root.StopFuture(pid).Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// Outside of a cluster an actor has its name.
func TestUsing_OutsideOfACluster(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	p := newProvider(t, db)
	system := quietSystem()
	t.Cleanup(system.Shutdown)
	pid, err := system.Root.SpawnNamed(accountProps(db, clustered.Using(p, dynactor.UsingOptions{})), "alice")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := system.Root.RequestFuture(pid, wrapperspb.Int64(5), longest).Result(); err != nil || !proto.Equal(got.(proto.Message), wrapperspb.Int64(5)) {
		t.Errorf("answered %v, %v", got, err)
	}
	if head, err := p.Journal().Head(t.Context(), "alice"); err != nil || head != 1 {
		t.Errorf("the head is %d, %v", head, err)
	}
}

// TestOneNode runs virtual actors on one node. Its cases share it, because nodes in one
// process race with each other.
func TestOneNode(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	p := newProvider(t, db)
	system := quietSystem()
	failures := make(chan *actor.SupervisorEvent, 10_000)
	system.EventStream.Subscribe(func(e any) {
		if e, ok := e.(*actor.SupervisorEvent); ok {
			failures <- e
		}
	})
	own := clustered.Using(p, dynactor.UsingOptions{
		ID:    func(ctx actor.ReceiverContext) string { return "own/" + clustered.ID(ctx) },
		Reply: func(e *dynactor.Error) any { return dynactor.NewPersistenceFailure(e) },
	})
	states, stateDB := stateProvider(t)
	ownState := clustered.UsingState(states, dynactor.UsingStateOptions{
		ID:    func(ctx actor.ReceiverContext) string { return "own/" + clustered.ID(ctx) },
		Reply: func(e *dynactor.Error) any { return dynactor.NewPersistenceFailure(e) },
	})
	c := cluster.New(system, cluster.Configure("one", test.NewTestProvider(test.NewInMemAgent()), disthash.New(), remote.Configure("127.0.0.1", 0),
		cluster.WithKinds(
			cluster.NewKind("account", accountProps(db, clustered.Using(p, dynactor.UsingOptions{}))),
			cluster.NewKind("savings", accountProps(db, clustered.Using(p, dynactor.UsingOptions{}))),
			cluster.NewKind("own", accountProps(db, own)),
			cluster.NewKind("stock", accountProps(db, persistence.Using(p))),
			cluster.NewKind("plain", accountProps(db, dynactor.Using(p, dynactor.UsingOptions{}))),
			cluster.NewKind("vault", vaultProps(clustered.UsingState(states, dynactor.UsingStateOptions{}))),
			cluster.NewKind("own vault", vaultProps(ownState)),
			cluster.NewKind("grain", actor.PropsFromProducer(newGrain, actor.WithReceiverMiddleware(clustered.Using(p, dynactor.UsingOptions{})))),
		), cluster.WithRequestTimeout(longest)))
	c.StartMember()
	t.Cleanup(func() { c.Shutdown(true) })
	ask := func(t *testing.T, kind, identity string, m proto.Message) proto.Message {
		t.Helper()
		got, err := c.Request(identity, kind, m, cluster.WithRetryCount(1))
		if err != nil {
			t.Fatalf("%s/%s, %v: %v", kind, identity, m, err)
		}
		return got.(proto.Message)
	}
	expect := func(t *testing.T, kind, identity string, m, want proto.Message) {
		t.Helper()
		if got := ask(t, kind, identity, m); !proto.Equal(got, want) {
			t.Fatalf("%s/%s answered %v with %v, want %v", kind, identity, m, got, want)
		}
	}
	// leave has an actor passivated, and waits for its end.
	leave := func(t *testing.T, kind, identity string) {
		t.Helper()
		pid := c.Get(identity, kind)
		expect(t, kind, identity, wrapperspb.String(passivate), wrapperspb.String(passivate))
		for deadline := time.Now().Add(longest); ; time.Sleep(time.Millisecond) {
			if now := c.Get(identity, kind); now != nil && now.GetId() != pid.GetId() {
				return
			}
			if time.Now().After(deadline) {
				t.Fatal("the actor does not end")
			}
		}
	}

	t.Run("B01 B02 B04 state outlives passivation, under kind and identity, and each call is answered", func(t *testing.T) { //nolint:paralleltest // the node belongs to the test
		for k := range 7 {
			expect(t, "account", "alice", wrapperspb.Int64(10), wrapperspb.Int64(int64(10*(k+1))))
			expect(t, "savings", "alice", wrapperspb.Int64(1), wrapperspb.Int64(int64(k+1)))
			leave(t, "account", "alice")
			leave(t, "savings", "alice")
		}
		for id, want := range map[string]int64{"account/alice": 7, "savings/alice": 7} {
			if head, err := p.Journal().Head(t.Context(), id); err != nil || head != want {
				t.Errorf("the head of %s is %d, %v, want %d", id, head, err, want)
			}
		}
		if saved, err := p.Snapshots().List(t.Context(), "account/alice"); err != nil || len(saved) == 0 {
			t.Errorf("snapshots %v, %v", saved, err)
		}
	})

	t.Run("a failed write is answered with a grain error, at once", func(t *testing.T) { //nolint:paralleltest // the node belongs to the test
		expect(t, "account", "bob", wrapperspb.Int64(1), wrapperspb.Int64(1))
		ask(t, "account", "bob", wrapperspb.String(deny))
		began := time.Now()
		got := ask(t, "account", "bob", wrapperspb.Int64(2))
		if e, ok := got.(*cluster.GrainErrorResponse); !ok || e.GetReason() != "failed" || e.GetMessage() == "" {
			t.Errorf("answered %v", got)
		}
		if took := time.Since(began); took > longest/4 {
			t.Errorf("answered after %s", took)
		}
		expect(t, "account", "bob", wrapperspb.Int64(2), wrapperspb.Int64(3))
	})

	t.Run("the options' own id and answer win", func(t *testing.T) { //nolint:paralleltest // the node belongs to the test
		expect(t, "own", "carol", wrapperspb.Int64(1), wrapperspb.Int64(1))
		ask(t, "own", "carol", wrapperspb.String(deny))
		if f, ok := ask(t, "own", "carol", wrapperspb.Int64(1)).(*dynactor.PersistenceFailure); !ok || f.GetId() != "own/own/carol" {
			t.Errorf("answered %v", f)
		}
	})

	for _, kind := range []string{"stock", "plain"} { //nolint:paralleltest // the node belongs to the test
		t.Run("B13 "+kind+" Using is refused, and the error names what to take", func(t *testing.T) {
			if pid := c.Get("dave-"+kind, kind); pid == nil {
				t.Fatal("no activation")
			}
			e := <-failures
			for !strings.Contains(e.Child.GetId(), "dave-"+kind) { // of the cases before
				e = <-failures
			}
			err, _ := e.Reason.(error)
			if !errors.Is(err, dynactor.ErrUnstableID) || !contains(err, "clustered.Using") {
				t.Errorf("failed with %v", e.Reason)
			}
		})
	}

	t.Run("a durable state outlives passivation, and its failures are answered", func(t *testing.T) { //nolint:paralleltest // the node belongs to the test
		for k := range 3 {
			expect(t, "vault", "alice", wrapperspb.Int64(10), wrapperspb.Int64(int64(10*(k+1))))
			leave(t, "vault", "alice")
		}
		st, err := states.State().Load(t.Context(), "vault/alice")
		if err != nil || st.Revision != 3 || !proto.Equal(st.Message, wrapperspb.Int64(30)) {
			t.Errorf("stored is %v, %v", st, err)
		}
		deny := dynactortest.Rule{Op: "PutItem", Times: 1, Do: dynactortest.Answer(400, "AccessDeniedException", "denied")}
		stateDB.Faults.Add(deny)
		if e, ok := ask(t, "vault", "alice", wrapperspb.Int64(1)).(*cluster.GrainErrorResponse); !ok || e.GetReason() != "failed" {
			t.Errorf("answered %v", e)
		}
		expect(t, "vault", "alice", wrapperspb.Int64(1), wrapperspb.Int64(31))
		expect(t, "own vault", "alice", wrapperspb.Int64(1), wrapperspb.Int64(1))
		stateDB.Faults.Add(deny)
		if f, ok := ask(t, "own vault", "alice", wrapperspb.Int64(1)).(*dynactor.PersistenceFailure); !ok || f.GetId() != "own/own vault/alice" {
			t.Errorf("answered %v", f)
		}
	})

	t.Run("generated grains keep their state, and are answered by the context that they keep", func(t *testing.T) { //nolint:paralleltest // the node belongs to the test
		for k := range 5 {
			got := ask(t, "grain", "erin", &cluster.GrainRequest{MethodIndex: 0, MessageData: marshal(t, wrapperspb.Int64(10))})
			if !proto.Equal(got, wrapperspb.Int64(int64(10*(k+1)))) {
				t.Fatalf("answered %v", got)
			}
			if k%2 == 1 {
				leave(t, "grain", "erin")
			}
		}
		if saved, err := p.Snapshots().List(t.Context(), "grain/erin"); err != nil || len(saved) == 0 {
			t.Errorf("snapshots %v, %v", saved, err)
		}
	})
}

func newProvider(t *testing.T, db *dynactortest.DB) *dynactor.Provider {
	t.Helper()
	p, err := dynactor.New(db.Client, options(db.EventsTable, db.SnapshotsTable))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), longest)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return p
}

func accountProps(db *dynactortest.DB, using actor.ReceiverMiddleware) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return &account{faults: db.Faults} }, actor.WithReceiverMiddleware(using))
}
