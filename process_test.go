package dynactor_test

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/persistence"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// process runs the actors of one process and notes what happens to them.
type process struct {
	t        *testing.T
	system   *actor.ActorSystem
	failures chan *actor.SupervisorEvent

	eager      bool   // ledgers delete events at each snapshot, too many at first
	forgetful  bool   // ledgers persist during a replay
	onComplete string // what ledgers persist when their replay is complete

	mu  sync.Mutex
	got []string // what ledgers received
}

func newProcess(t *testing.T) *process {
	t.Helper()
	w := &process{t: t, failures: make(chan *actor.SupervisorEvent, 10_000)}
	w.system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	w.system.EventStream.Subscribe(func(e any) {
		if e, ok := e.(*actor.SupervisorEvent); ok {
			w.failures <- e
		}
	})
	t.Cleanup(w.system.Shutdown)
	return w
}

func (w *process) props(p persistence.Provider) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return &ledger{world: w, provider: p} }, actor.WithReceiverMiddleware(persistence.Using(p)))
}

func (w *process) spawn(p persistence.Provider, id string) {
	w.t.Helper()
	w.spawnProps(id, w.props(p))
}

func (w *process) spawnProps(id string, props *actor.Props) {
	w.t.Helper()
	if _, err := w.system.Root.SpawnNamed(props, id); err != nil {
		w.t.Fatal(err)
	}
}

func (w *process) pid(id string) *actor.PID { return w.system.NewLocalPID(id) }

func (w *process) send(id string, message any) { w.system.Root.Send(w.pid(id), message) }

// stop lets an actor handle what it has and waits for its end.
func (w *process) stop(id string) {
	w.t.Helper()
	if err := w.system.Root.PoisonFuture(w.pid(id)).Wait(); err != nil {
		w.t.Fatal(err)
	}
}

// longest is the time limit for what should take milliseconds.
const longest = time.Minute

// expect asks an actor and checks the answer: its state.
func (w *process) expect(id string, message any, want []string) {
	w.t.Helper()
	got, err := w.system.Root.RequestFuture(w.pid(id), message, longest).Result()
	if err != nil {
		w.t.Fatalf("%v: %v", message, err)
	}
	if diff := cmp.Diff(want, got.([]string)); diff != "" {
		w.t.Fatalf("state after %v (-want +got):\n%s", message, diff)
	}
}

// request asks an actor without waiting.
func (w *process) request(id string, message any) *atomic.Pointer[[]string] {
	answer := &atomic.Pointer[[]string]{}
	w.send(id, asking{message, func(state []string) { answer.Store(&state) }})
	return answer
}

// answered waits for an answer and checks it.
func (w *process) answered(answer *atomic.Pointer[[]string], want []string) {
	w.t.Helper()
	eventually(w.t, "an answer", func() bool { return answer.Load() != nil })
	if diff := cmp.Diff(want, *answer.Load()); diff != "" {
		w.t.Errorf("answer (-want +got):\n%s", diff)
	}
}

// failed waits until an actor has failed and been restarted, for the given cause
// or any of the library's.
func (w *process) failed(cause error) {
	w.t.Helper()
	select {
	case e := <-w.failures:
		w.check(e, actor.RestartDirective, cause)
	case <-time.After(longest):
		w.t.Fatal("no actor failed")
	}
}

// stopped waits until an actor has failed eleven times and is stopped.
func (w *process) stopped(id string, cause error) {
	w.t.Helper()
	for range 10 {
		w.failed(cause)
	}
	select {
	case e := <-w.failures:
		w.check(e, actor.StopDirective, cause)
	case <-time.After(longest):
		w.t.Fatal("the actor goes on")
	}
	eventually(w.t, "the actor's end", func() bool {
		_, alive := w.system.ProcessRegistry.GetLocal(id)
		return !alive
	})
}

func (w *process) check(e *actor.SupervisorEvent, directive actor.Directive, cause error) {
	w.t.Helper()
	err, _ := e.Reason.(error)
	var typed *dynactor.Error
	if !errors.As(err, &typed) || (cause != nil && !errors.Is(err, cause)) || e.Directive != directive {
		w.t.Fatalf("failed with %v, then %v, want %v for %v", e.Reason, e.Directive, directive, cause)
	}
}

// noFailures checks that no actor failed so far.
func (w *process) noFailures() {
	w.t.Helper()
	select {
	case e := <-w.failures:
		w.t.Errorf("an actor failed: %v", e.Reason)
	default:
	}
}

func (w *process) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got = append(w.got, what)
}

// received lists what ledgers got.
func (w *process) received() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.got)
}

// count counts the messages of a kind, all for none.
func (w *process) count(kind string) int {
	n := 0
	for _, k := range w.received() {
		if kind == "" || k == kind {
			n++
		}
	}
	return n
}

type (
	add    string   // persist this and answer with the state
	get    struct{} // answer with the state
	fail   struct{} // panic
	asking struct { // one of these, with an answer by function
		message any
		answer  func([]string)
	}
)

// ledger is an actor whose state is the list of its events, so that each one
// missing, doubled or out of order shows. It persists before it applies, and takes
// the sender before it persists.
type ledger struct {
	persistence.Mixin

	world    *process
	provider persistence.Provider
	state    []string
}

func (l *ledger) Receive(ctx actor.Context) {
	sender := ctx.Sender()
	answer := func(state []string) {
		if sender != nil {
			ctx.Send(sender, state)
		}
	}
	message := ctx.Message()
	if m, ok := message.(asking); ok {
		message, answer = m.message, m.answer
	}
	switch m := message.(type) {
	case *actor.Started:
		l.world.note("Started")
		l.state = nil // of an instance that is used again
	case *persistence.RequestSnapshot:
		l.world.note("RequestSnapshot")
		l.snapshot()
	case *persistence.ReplayComplete:
		l.world.note("ReplayComplete")
		if l.world.onComplete != "" {
			l.persist(l.world.onComplete)
		}
	case *structpb.ListValue:
		l.world.note("snapshot")
		for _, v := range m.GetValues() {
			l.state = append(l.state, v.GetStringValue())
		}
	case *wrapperspb.StringValue:
		l.world.note("event " + m.GetValue())
		if l.world.forgetful {
			l.persist(m.GetValue())
		} else {
			l.state = append(l.state, m.GetValue())
		}
	case add:
		l.world.note("add")
		l.persist(string(m))
		answer(slices.Clone(l.state))
	case get:
		l.world.note("get")
		answer(slices.Clone(l.state))
	case fail:
		panic("as asked")
	}
}

func (l *ledger) persist(s string) {
	l.PersistReceive(text(s))
	l.state = append(l.state, s)
}

func (l *ledger) snapshot() {
	list := &structpb.ListValue{}
	for _, s := range l.state {
		list.Values = append(list.Values, structpb.NewStringValue(s))
	}
	l.PersistSnapshot(list)
	if l.world.eager && len(l.state) > 0 {
		s := l.provider.GetState()
		isError(l.world.t, caught(func() { s.DeleteEvents(l.Name(), len(l.state)) }), dynactor.ErrNoSnapshot)
		s.DeleteEvents(l.Name(), len(l.state)-1)
	}
}

// noWrites checks that nothing was written since the last reset.
func noWrites(t *testing.T, db *dynactortest.DB) {
	t.Helper()
	for _, r := range db.Faults.Requests() {
		if r.Op != "Query" && r.Op != "GetItem" {
			t.Errorf("unexpected request: %v", r)
		}
	}
}

// itemTexts are the items of a stream as they are stored.
func itemTexts(t *testing.T, db *dynactortest.DB, id string) []string {
	t.Helper()
	var raw []string
	for _, seq := range stored(t, db, id) {
		out, err := db.Client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &db.EventsTable, Key: itemKey(id, int(seq)), ConsistentRead: aws.Bool(true)})
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, attributesText(out.Item))
	}
	return raw
}

// attributesText shows an item, attributes in order.
func attributesText(it map[string]types.AttributeValue) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(it)) {
		fmt.Fprintf(&b, "%s=%v ", name, reflect.ValueOf(it[name]).Elem().FieldByName("Value"))
	}
	return b.String()
}
