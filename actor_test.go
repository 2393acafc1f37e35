package dynactor_test

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
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

// TestActor runs actors with the framework's own persistence.Using and Mixin.
func TestActor(t *testing.T) {
	t.Parallel()

	for _, interval := range []int{0, 1, 3} {
		t.Run("B01 B02 no event is lost or doubled, interval "+strconv.Itoa(interval), func(t *testing.T) {
			t.Parallel()
			p, _ := open(t, dynactor.Options{SnapshotInterval: interval})
			w := newProcess(t)
			w.spawn(p, "a")
			for k := range 13 {
				w.expect("a", add(strconv.Itoa(k+1)), texts(1, k+1))
				w.send("a", fail{})
				w.expect("a", get{}, texts(1, k+1))
				w.stop("a")
				w.spawn(p, "a")
				w.expect("a", get{}, texts(1, k+1))
			}
			got, err := replayed(t.Context(), p.Journal(), "a", 0, 0)
			if diff := cmp.Diff(texts(1, 13), got); diff != "" || err != nil {
				t.Errorf("the journal, %v (-want +got):\n%s", err, diff)
			}
		})
	}

	for interval, want := range map[int]struct {
		asked int
		saved []int64
	}{
		0: {1, nil}, -1: {1, nil}, math.MaxInt: {1, nil}, // the framework always asks at index 0
		1: {10, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9}},
		3: {4, []int64{3, 6, 9}},
	} {
		t.Run("B03 snapshots are asked for at the interval "+strconv.Itoa(interval), func(t *testing.T) {
			t.Parallel()
			p, _ := open(t, dynactor.Options{SnapshotInterval: interval, KeepSnapshots: -1})
			w := newProcess(t)
			w.spawn(p, "a")
			for i := range 10 {
				w.expect("a", add(strconv.Itoa(i+1)), texts(1, i+1))
			}
			saved, err := p.Snapshots().List(t.Context(), "a")
			if asked := w.count("RequestSnapshot"); err != nil || asked != want.asked || !cmp.Equal(saved, want.saved) {
				t.Errorf("asked %d times, saved %v, %v, want %d and %v", asked, saved, err, want.asked, want.saved)
			}
			if n := w.count(""); n != 1+1+10+want.asked { // Started, ReplayComplete, commands
				t.Errorf("%d messages, want %d", n, 12+want.asked)
			}
			w.noFailures()
		})
	}

	t.Run("B04 the sender that was taken before persisting gets its reply", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{SnapshotInterval: 1}) // due with every event
		w := newProcess(t)
		w.spawn(p, "a")
		for i := range 5 {
			w.expect("a", add(strconv.Itoa(i+1)), texts(1, i+1))
		}
	})

	t.Run("B06 an instance that is used again recovers from the table", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		w := newProcess(t)
		same := &ledger{world: w}
		w.spawnProps("a", actor.PropsFromProducer(func() actor.Actor { return same }, actor.WithReceiverMiddleware(persistence.Using(p))))
		w.expect("a", add("1"), texts(1, 1))
		if _, err := p.Journal().Append(t.Context(), "a", 1, numbered(2, 3)...); err != nil {
			t.Fatal(err)
		}
		w.send("a", fail{})
		w.expect("a", get{}, texts(1, 3))
		w.expect("a", add("4"), texts(1, 4))
	})

	t.Run("a persist that another writer was faster than fails and heals", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{SnapshotInterval: 3})
		w := newProcess(t)
		w.spawn(p, "a")
		w.expect("a", add("1"), texts(1, 1))
		if _, err := p.Journal().Append(t.Context(), "a", 1, numbered(2, 5)...); err != nil {
			t.Fatal(err)
		}
		w.send("a", add("lost"))
		w.failed(dynactor.ErrConflict)
		w.expect("a", add("6"), texts(1, 6))
	})

	t.Run("B07 an event that cannot be decoded ends the recovery before it", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		fill(t, p.Journal(), "a", 5)
		garble(t, db, db.EventsTable, "a", 2)
		before := itemTexts(t, db, "a")
		db.Faults.Reset()
		w := newProcess(t)
		w.spawn(p, "a")
		w.stopped("a", dynactor.ErrDecode)
		if got := w.received(); slices.Contains(got, "event 3") || slices.Contains(got, "ReplayComplete") {
			t.Errorf("the actor got more than the first event: %v", got)
		}
		noWrites(t, db)
		if diff := cmp.Diff(before, itemTexts(t, db, "a")); diff != "" {
			t.Errorf("the items changed (-want +got):\n%s", diff)
		}
	})

	t.Run("B08 a page that cannot be read ends the recovery, and no command runs on half a state", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		big := strings.Repeat("x", 300<<10)
		var want []string
		for i := range 10 {
			want = append(want, strconv.Itoa(i)+big)
			if _, err := p.Journal().Append(t.Context(), "a", int64(i), text(want[i])); err != nil {
				t.Fatal(err)
			}
		}
		db.Faults.Reset()
		db.Faults.Add(dynactortest.Rule{Op: "Query", Match: func(r dynactortest.Request) bool { return bound(r, ":lo") > 4 }, Times: 1, Do: denied})
		w := newProcess(t)
		w.spawn(p, "a")
		w.expect("a", get{}, want)
		w.failed(nil)
		w.noFailures()
		noWrites(t, db)
	})

	t.Run("B09 a snapshot that cannot be read is not taken for none", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 3, DeleteEventsOnSnapshot: true, KeepSnapshots: 1, ReadTimeout: time.Second, RecoveryTimeout: time.Second})
		w := newProcess(t)
		w.spawn(p, "a")
		for i := range 8 {
			w.expect("a", add(strconv.Itoa(i+1)), texts(1, i+1))
		}
		w.stop("a")
		db.Faults.Reset()
		db.Faults.Add(dynactortest.Rule{Table: db.SnapshotsTable, Do: dynactortest.Throttle()})
		w.spawn(p, "a")
		w.send("a", get{})
		w.failed(dynactor.ErrThrottled)
		if n := w.count("get"); n != 0 {
			t.Errorf("%d commands ran, want none", n)
		}
		noWrites(t, db)
		db.Faults.Clear()
		w.expect("a", add("9"), texts(1, 9))
	})

	for name, do := range map[string]dynactortest.Action{
		"denied":    denied,
		"invalid":   dynactortest.Answer(400, "ValidationException", "invalid"),
		"throttled": dynactortest.Throttle(),
	} {
		t.Run("B10 a write that is "+name+" fails the actor", func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{SnapshotInterval: 3, WriteTimeout: time.Second})
			w := newProcess(t)
			w.spawn(p, "a")
			w.expect("a", add("1"), texts(1, 1))
			db.Faults.Add(dynactortest.Rule{Op: "PutItem", Match: func(r dynactortest.Request) bool { return strings.Contains(string(r.Body), `"seq":{"N":"2"}`) }, Do: do})
			reply := w.request("a", add("2"))
			behind := w.request("a", get{}) // in the queue already
			w.failed(nil)
			db.Faults.Clear()
			w.answered(behind, texts(1, 1))
			if got := reply.Load(); got != nil {
				t.Errorf("the failed write was answered: %v", *got)
			}
			w.expect("a", add("two"), []string{"1", "two"}) // at the same index
			events(t, p.GetState(), "a", 0, 0, "1", "two")
		})
	}

	for name, c := range map[string]struct {
		first dynactortest.Action
		after []string
	}{
		"and was carried out":     {dynactortest.DropAnswer(), texts(1, 2)},
		"and was not carried out": {dynactortest.Hold(nil, nil), texts(1, 1)},
	} {
		t.Run("A21 a write whose outcome is unknown "+name+" leaves the actor with what the journal says", func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{WriteTimeout: time.Second})
			w := newProcess(t)
			w.spawn(p, "a")
			w.expect("a", add("1"), texts(1, 1))
			db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: c.first})
			db.Faults.Add(dynactortest.Rule{Op: "PutItem", Do: dynactortest.Throttle()})
			w.send("a", add("2"))
			w.failed(dynactor.ErrOutcomeUnknown)
			db.Faults.Clear()
			w.expect("a", get{}, c.after)
			w.expect("a", add("3"), append(slices.Clone(c.after), "3"))
		})
	}

	t.Run("the eleventh failure stops the actor", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		w := newProcess(t)
		w.spawn(p, "a")
		w.expect("a", add("1"), texts(1, 1))
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Do: denied})
		for range 11 {
			w.send("a", add("2"))
		}
		w.stopped("a", nil)
		if n := w.count("Started"); n != 11 {
			t.Errorf("%d incarnations, want 11", n)
		}
		events(t, p.GetState(), "a", 0, 0, "1")
	})

	t.Run("a recovery that fails for a passing cause waits in the session", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 3})
		w := newProcess(t)
		w.spawn(p, "a")
		for i := range 5 {
			w.expect("a", add(strconv.Itoa(i+1)), texts(1, i+1))
		}
		w.stop("a")
		// More often than an actor may fail, with what the SDK does not repeat.
		db.Faults.Add(dynactortest.Rule{Op: "Query", Times: 15, Do: dynactortest.Answer(400, "ResourceNotFoundException", "no such table")})
		before := w.count("Started")
		w.spawn(p, "a")
		w.expect("a", add("6"), texts(1, 6))
		if n := w.count("Started") - before; n != 1 {
			t.Errorf("%d incarnations, want 1", n)
		}
		w.noFailures()
	})

	t.Run("a failure that lasts stops the actor at once", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		fill(t, p.Journal(), "a", 3)
		dropItem(t, db, db.EventsTable, "a", 1)
		if err := p.Journal().DeleteTo(t.Context(), "a", 2); err != nil {
			t.Fatal(err)
		}
		w := newProcess(t)
		w.spawn(p, "a")
		w.stopped("a", dynactor.ErrNoSnapshot)
	})

	t.Run("B13 an actor without a name of its own is refused", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		for range 2 { // two processes, which generate the same names
			w := newProcess(t)
			pid := w.system.Root.Spawn(w.props(p))
			w.stopped(pid.Id, dynactor.ErrUnstableID)
		}
		if n := db.Faults.Count(""); n != 0 {
			t.Errorf("%d requests, want none", n)
		}
	})

	t.Run("B13 an option allows what looks generated", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{StableID: func(id string) bool { return id == "price$1" }})
		w := newProcess(t)
		w.spawn(p, "price$1")
		w.expect("price$1", add("1"), texts(1, 1))
	})

	t.Run("B14 deletions at every snapshot leave the state exact", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 3, KeepSnapshots: 1, DeleteEventsOnSnapshot: true})
		w := newProcess(t)
		w.eager = true
		w.spawn(p, "a")
		for k := range 13 {
			w.expect("a", add(strconv.Itoa(k+1)), texts(1, k+1))
			w.stop("a")
			w.spawn(p, "a")
			w.expect("a", get{}, texts(1, k+1))
		}
		w.noFailures()
		var want []int64
		for n := range int64(13) { // the items stay for DeleteDelay
			want = append(want, n+1)
		}
		if diff := cmp.Diff(want, stored(t, db, "a")); diff != "" {
			t.Errorf("numbers used (-want +got):\n%s", diff)
		}
		isError(t, caught(func() { p.GetState().GetEvents("a", 11, 0, func(any) {}) }), dynactor.ErrNoSnapshot)
	})

	t.Run("a handler that forgets to check Recovering doubles nothing", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		fill(t, p.Journal(), "a", 3)
		w := newProcess(t)
		w.forgetful = true
		w.spawn(p, "a")
		w.stopped("a", dynactor.ErrRecovering)
		events(t, p.GetState(), "a", 0, 0, texts(1, 3)...)
	})

	t.Run("an actor may persist when its replay is complete", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{SnapshotInterval: 2})
		w := newProcess(t)
		w.onComplete = "woken"
		for k := range 5 {
			w.spawn(p, "a")
			w.expect("a", get{}, slices.Repeat([]string{"woken"}, k+1))
			w.stop("a")
		}
		w.noFailures()
	})

	t.Run("a snapshot that cannot be saved harms nothing", func(t *testing.T) {
		t.Parallel()
		p, db, seen := observe(t, dynactor.Options{SnapshotInterval: 3})
		w := newProcess(t)
		w.spawn(p, "a")
		w.expect("a", get{}, nil)
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Table: db.SnapshotsTable, Do: denied})
		for i := range 8 {
			w.expect("a", add(strconv.Itoa(i+1)), texts(1, i+1))
		}
		w.noFailures()
		if diff := cmp.Diff(map[string]int64{"save snapshot": 2}, seen.failures(t)); diff != "" {
			t.Errorf("failures (-want +got):\n%s", diff)
		}
		w.send("a", fail{})
		w.expect("a", get{}, texts(1, 8))
	})
}

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
