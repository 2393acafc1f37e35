package dynactor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"
)

// TestInterleavings drives two incarnations of one actor, a sweeper and a reader
// against the model, one request at a time, in an order that rapid chooses,
// with answers lost, requests that land late, half visible transactions, partial
// batches and clocks that jump. -rapid.checks sets how many schedules; a failing one is
// shrunk and printed step by step, and -rapid.seed repeats it.
func TestInterleavings(t *testing.T) {
	t.Parallel()
	for _, half := range []string{"first half", "second half"} { // one for each of two cores
		t.Run(half, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				choices := rapid.SliceOfN(rapid.Uint16(), scheduleLength, scheduleLength).Draw(rt, "choices")
				var w *world
				synctest.Test(t, func(*testing.T) { w = runSchedule(choices) })
				if len(w.m.faults) > 0 {
					rt.Fatalf("%s\nschedule:\n%s", strings.Join(w.m.faults, "\n"), strings.Join(w.trace, "\n"))
				}
			})
		})
	}
}

const (
	scheduleLength = 160
	theActor       = "actor"
	// lateBy is how late a put can land, by its own time stamp: the assumption
	// on which the fence rests.
	lateBy = DefaultDeleteDelay / 4
	// endlessSteps is more than any operation needs.
	endlessSteps = 3000
)

// world is one schedule on its way.
type world struct {
	m       *model
	choices []uint16
	trace   []string
	all     []*incarnation
	texts   int             // events made so far
	refuse  bool            // every request is refused from now on
	dire    int             // how much likelier late puts and partial deletions are than usual
	denied  map[string]bool // whose next request is refused: credentials have expired

	mu      sync.Mutex
	pending []*heldRequest
	ahead   time.Duration // all clocks are ahead of the bubble's by this

	limbo   []*heldRequest // gave up by their senders, and may still land
	refused []string       // payloads of which the writer was told that they are not stored
}

// heldRequest is a request that waits for its next step.
type heldRequest struct {
	who      string
	wire     wireRequest
	key      string // orders requests that come at the same time
	executed bool
	status   int
	answer   map[string]any
	reply    chan error // nil error: answer is there
}

// incarnation is one user of the stream: an actor's session, or a bystander.
type incarnation struct {
	w     *world
	name  string
	p     *Provider
	s     *session
	state []string
	alive bool // recovered, and no write has failed

	mu    sync.Mutex
	busy  bool
	after func() // judges what has just ended; for the scheduler to call
}

func runSchedule(choices []uint16) *world {
	w := &world{m: newModel(), choices: choices, denied: map[string]bool{}}
	w.dire = []int{1, 1, 6}[w.choose(3)]
	if w.choose(4) == 0 {
		w.m.keepOld = false
	}
	keep := 1 + w.choose(2)
	for i, name := range []string{"A", "B", "janitor", "reader"} {
		skew := time.Duration(w.choose(3)-1) * time.Hour * time.Duration(min(i, 1))
		w.all = append(w.all, w.newIncarnation(name, skew, keep))
	}
	for len(w.choices) > 0 {
		w.step(true)
	}
	w.drain()
	w.finish()
	return w
}

// drain lets everybody come to an end, without further trouble. Whoever does
// not is at fault, and is ended by refusals.
func (w *world) drain() {
	for n := 0; w.running(); n++ {
		if n == endlessSteps {
			w.m.fault("an operation does not end")
			w.refuse = true
		}
		w.step(false)
	}
}

func (w *world) newIncarnation(name string, skew time.Duration, keep int) *incarnation {
	client := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://" + name + ".invalid"),
		Credentials: aws.AnonymousCredentials{},
		HTTPClient:  &http.Client{Transport: &scheduledTransport{w: w, who: name}},
	})
	p, err := New(client, Options{
		SnapshotInterval: 2, KeepSnapshots: keep, DeleteEventsOnSnapshot: true,
		Logger: slog.New(slog.DiscardHandler),
		Now:    func() time.Time { return w.now().Add(skew) },
	})
	if err != nil {
		panic(err)
	}
	p.tables.ok.Store(true)
	return &incarnation{w: w, name: name, p: p}
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

// choose takes the next choice; when all are used up it is always 0.
func (w *world) choose(n int) int {
	if len(w.choices) == 0 {
		return 0
	}
	c := w.choices[0]
	w.choices = w.choices[1:]
	return int(c) % n
}

func (w *world) log(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("  "+format, args...))
}

// scheduledTransport hands each request to the scheduler.
type scheduledTransport struct {
	w   *world
	who string
}

func (t *scheduledTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	wire, err := parseWire(req)
	if err != nil {
		return nil, err
	}
	h := &heldRequest{who: t.who, wire: wire, reply: make(chan error, 1)}
	h.key = fmt.Sprint(h.who, wire.op, wire.table(), wire.body["ScanIndexForward"], wire.body["Key"], wire.body["ExpressionAttributeValues"])
	w := t.w
	w.mu.Lock()
	w.pending = append(w.pending, h)
	w.mu.Unlock()
	select {
	case err := <-h.reply:
		if err != nil {
			return nil, err
		}
		return respond(req, h.status, h.answer)
	case <-req.Context().Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		w.pending = slices.DeleteFunc(w.pending, func(x *heldRequest) bool { return x == h })
		if !h.executed {
			w.limbo = append(w.limbo, h)
		}
		return nil, req.Context().Err()
	}
}

// action is something that can happen next.
type action struct {
	weight int
	what   string
	do     func()
}

// step lets everybody come to rest and then lets one thing happen.
func (w *world) step(more bool) {
	synctest.Wait()
	for _, in := range w.all {
		in.settle()
	}
	var actions []action
	w.mu.Lock()
	slices.SortStableFunc(w.pending, func(a, b *heldRequest) int { return strings.Compare(a.key, b.key) })
	pending := slices.Clone(w.pending)
	w.mu.Unlock()
	for _, h := range pending {
		actions = append(actions, w.requestActions(h, more)...)
	}
	busy := false
	for _, in := range w.all {
		if in.isBusy() {
			busy = true
		} else if more {
			actions = append(actions, in.operations()...)
		}
	}
	if more {
		actions = append(actions, w.weather()...)
	}
	if len(pending) == 0 && busy {
		actions = append(actions, action{8, "a second passes", func() { time.Sleep(time.Second) }})
	}
	total := 0
	for _, a := range actions {
		total += a.weight
	}
	if total == 0 {
		return
	}
	pick := w.choose(total)
	for _, a := range actions {
		if pick -= a.weight; pick < 0 {
			w.log("%s", a.what)
			a.do()
			return
		}
	}
}

// requestActions are the things that can happen to a request.
func (w *world) requestActions(h *heldRequest, more bool) []action {
	name := describe(h)
	if h.executed {
		list := []action{{8, "answered: " + name, func() { w.release(h, nil) }}}
		if more {
			list = append(list, action{2, "answer lost: " + name, func() { w.release(h, errReset) }})
		}
		return list
	}
	list := []action{{16, "done: " + name, func() { w.execute(h); w.release(h, nil) }}}
	if !more {
		return list
	}
	list = append(list,
		action{2, "done, not answered yet: " + name, func() { w.execute(h) }},
		action{1, "lost on the way: " + name, func() { w.release(h, errReset) }},
		action{1, "throttled: " + name, func() {
			h.status, h.answer = 400, refusal("ProvisionedThroughputExceededException", "slow down")
			w.release(h, nil)
		}},
	)
	if h.wire.op == "Query" || h.wire.op == "GetItem" {
		return list
	}
	giveUp := func() {
		w.limbo = append(w.limbo, h)
		w.release(h, errReset)
	}
	list = append(list,
		action{2, "done, answer lost: " + name, func() { w.execute(h); w.release(h, errReset) }},
		action{2, "given up, may land late: " + name, giveUp},
		action{w.dire, "given up for good, may land late: " + name, func() { giveUp(); w.denied[h.who] = true }},
	)
	switch h.wire.op {
	case "BatchWriteItem":
		list = append(list, action{4 * w.dire, "done in part: " + name, func() {
			h.executed = true
			h.status, h.answer = w.m.remove(h.wire, w.choose(1<<min(len(h.wire.keys()), 12)))
			w.release(h, nil)
		}})
	case "TransactWriteItems":
		list = append(list, action{8, "done, half visible: " + name, func() {
			w.execute(h)
			if h.status == 200 {
				puts := h.wire.puts()
				w.m.hidden[wireNumber(puts[w.choose(len(puts))]["seq"])] = true
			}
		}})
	}
	return list
}

// execute carries a request out. A put whose time is long past is refused, as
// AWS refuses a signature of long ago.
func (w *world) execute(h *heldRequest) {
	h.executed = true
	if denied := w.denied[h.who]; w.refuse || denied {
		w.denied[h.who] = false
		h.status, h.answer = 400, refusal("AccessDeniedException", "not any more")
		return
	}
	if w.late(h) {
		h.status, h.answer = 400, refusal("InvalidSignatureException", "Signature expired")
		return
	}
	h.status, h.answer = w.m.do(h.wire)
}

// late tells whether a put of an event comes later than the assumption allows.
func (w *world) late(h *heldRequest) bool {
	if h.wire.table() == DefaultSnapshotsTable {
		return false
	}
	for _, it := range h.wire.puts() {
		if w.now().Sub(time.UnixMilli(wireNumber(it["ts"]))) > lateBy {
			return true
		}
	}
	return false
}

// release lets a request return to its sender. By then a transaction is visible.
func (w *world) release(h *heldRequest, err error) {
	w.mu.Lock()
	w.pending = slices.DeleteFunc(w.pending, func(x *heldRequest) bool { return x == h })
	w.mu.Unlock()
	if h.executed {
		for _, it := range h.wire.puts() {
			delete(w.m.hidden, wireNumber(it["seq"]))
		}
	}
	h.reply <- err
}

// weather is what happens to all: time goes by, and what was given up lands.
func (w *world) weather() []action {
	var list []action
	for _, d := range []time.Duration{time.Hour, 7 * time.Hour, 13 * time.Hour, 25 * time.Hour} {
		list = append(list, action{1, fmt.Sprintf("%s pass", d), func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.ahead += d
		}})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.limbo {
		list = append(list, action{3 * w.dire, "lands late: " + describe(h), func() { w.land(h) }})
	}
	return list
}

// land lets a request that was given up reach the server, unless the
// assumption forbids it. Below the mark it may come as late as it likes.
func (w *world) land(h *heldRequest) {
	w.mu.Lock()
	w.limbo = slices.DeleteFunc(w.limbo, func(x *heldRequest) bool { return x == h })
	w.mu.Unlock()
	used := true
	for _, it := range h.wire.puts() {
		used = used && wireNumber(it["seq"]) <= w.m.del()
	}
	if !w.late(h) || used {
		w.m.do(h.wire)
	}
}

// running tells whether anybody is busy.
func (w *world) running() bool {
	synctest.Wait()
	return slices.ContainsFunc(w.all, (*incarnation).isBusy)
}

// finish lets what was given up land or be forgotten, and compares everything
// with the truth.
func (w *world) finish() {
	w.trace = append(w.trace, "  -- the end --")
	clear(w.denied)
	for _, in := range w.all {
		in.settle()
	}
	for _, h := range slices.Clone(w.limbo) {
		w.land(h)
	}
	for _, p := range w.refused {
		if slices.Contains(w.m.truth, p) {
			w.m.fault("%s is in the stream, but its writer was told that it is not", p)
		}
	}
	for seq, it := range w.m.snapshots {
		if seq < w.m.del() {
			continue
		}
		if seq > int64(len(w.m.truth)) || payloadOf(it) != strings.Join(w.m.truth[:seq], ",") {
			w.m.fault("the snapshot at %d holds %s, the stream %v", seq, payloadOf(it), w.m.truth)
		}
	}
	for _, in := range []*incarnation{w.all[0], w.all[3]} {
		for _, a := range in.operations()[:1] {
			a.do()
		}
		w.drain()
		in.settle()
	}
	if !w.all[0].alive || !slices.Equal(w.all[0].state, w.m.truth) {
		w.m.fault("at the end the actor recovers %v, the stream is %v", w.all[0].state, w.m.truth)
	}
}

// describe shows a request in a schedule.
func describe(h *heldRequest) string {
	s := h.who + " " + h.wire.op
	if h.wire.table() == DefaultSnapshotsTable {
		s += " snapshots"
	}
	for _, it := range h.wire.puts() {
		s += fmt.Sprintf(" %d", wireNumber(it["seq"]))
	}
	if v, ok := h.wire.body["ExpressionAttributeValues"].(map[string]any); ok {
		for _, name := range []string{":lo", ":hi", ":n"} {
			if n, ok := v[name]; ok && wireNumber(n) < 1<<40 {
				s += fmt.Sprintf(" %s=%d", name[1:], wireNumber(n))
			}
		}
	}
	if h.wire.op == "BatchWriteItem" {
		s += fmt.Sprint(" ", h.wire.keys())
	}
	return s
}

func (in *incarnation) isBusy() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.busy
}

// settle judges an operation that has ended.
func (in *incarnation) settle() {
	in.mu.Lock()
	after := in.after
	in.after = nil
	in.mu.Unlock()
	if after != nil {
		after()
	}
}

// start runs an operation; it returns what is to be judged when it has ended.
func (in *incarnation) start(op func() func()) {
	in.busy = true
	go func() {
		after := op()
		in.mu.Lock()
		defer in.mu.Unlock()
		in.busy, in.after = false, after
	}()
}

// operations are what an incarnation can do next; the first one reads everything.
func (in *incarnation) operations() []action {
	switch {
	case in.name == "janitor":
		return []action{{3, "janitor sweeps", func() {
			in.start(func() func() { _, _ = in.p.journal.Sweep(context.Background(), theActor); return nil })
		}}}
	case in.name == "reader":
		return []action{{2, "reader replays", in.read}}
	case !in.alive:
		return []action{{12, in.name + " recovers", in.recover}}
	}
	return []action{
		{4, in.name + " recovers anew", in.recover},
		{8, in.name + " appends one", func() { in.append(1) }},
		{6, in.name + " appends two", func() { in.append(2) }},
		{2, in.name + " appends three", func() { in.append(3) }},
		{8, fmt.Sprintf("%s saves at %d", in.name, len(in.state)), in.save},
	}
}

// sure is how many events every reader must see from now on.
func (w *world) sure() int64 {
	n := int64(len(w.m.truth))
	for seq := range w.m.hidden {
		n = min(n, seq-1)
	}
	for !w.m.groups[n] {
		n--
	}
	return n
}

// neverRight are the errors that no interleaving can excuse.
var neverRight = []error{ErrGap, ErrAhead, ErrNoSnapshot, ErrDecode, ErrInvalid, ErrRecovering, ErrSchema}

func (w *world) judgeError(what string, err error) {
	for _, never := range neverRight {
		if errors.Is(err, never) {
			w.m.fault("%s: %v", what, err)
		}
	}
}

func (in *incarnation) recover() {
	sure, mark := in.w.sure(), in.w.m.del()
	in.alive = false
	s := newSession(in.p)
	in.start(func() func() {
		var state []string
		var start int
		err := func() (err error) {
			defer func() {
				if r := recover(); r != nil {
					err = r.(error)
				}
			}()
			snap, index, ok := s.GetSnapshot(theActor)
			start = index
			if ok {
				state = strings.Split(snap.(*wrapperspb.StringValue).GetValue(), ",")
			}
			s.GetEvents(theActor, index, 0, func(e any) { state = append(state, e.(*wrapperspb.StringValue).GetValue()) })
			return nil
		}()
		return func() {
			in.w.log("%s has recovered %v, error %v", in.name, state, err)
			if err != nil {
				in.w.judgeError(in.name+" recovers", err)
				return
			}
			n := int64(len(state))
			switch {
			case int64(start) < mark:
				in.w.m.fault("%s got events from index %d, those up to number %d were deleted before", in.name, start, mark)
			case n > int64(len(in.w.m.truth)) || !slices.Equal(state, in.w.m.truth[:n]):
				in.w.m.fault("%s recovered %v, the stream is %v", in.name, state, in.w.m.truth)
			case n < sure:
				in.w.m.fault("%s recovered %d events, %d were there before", in.name, n, sure)
			case !in.w.m.groups[n]:
				in.w.m.fault("%s recovered half of an append: %v of %v", in.name, state, in.w.m.truth)
			}
			in.s, in.state, in.alive = s, state, true
		}
	})
}

func (in *incarnation) append(n int) {
	var events []Event
	var payloads []string
	for range n {
		in.w.texts++
		p := fmt.Sprintf("%s%d", in.name, in.w.texts)
		payloads = append(payloads, p)
		events = append(events, Event{Message: wrapperspb.String(p)})
	}
	at := int64(len(in.state))
	in.start(func() func() {
		st, err := in.s.enter(theActor)
		if err == nil {
			err = in.s.persist(context.Background(), "append", st, at, events)
		}
		return func() {
			in.w.log("%s has appended %v at %d, error %v", in.name, payloads, at, err)
			truth := in.w.m.truth
			switch {
			case err == nil:
				if end := at + int64(n); end > int64(len(truth)) || !slices.Equal(truth[at:end], payloads) {
					in.w.m.fault("%s was told that %v is stored at %d, the stream is %v", in.name, payloads, at, truth)
				}
				in.state = append(in.state, payloads...)
				return
			case !errors.Is(err, ErrOutcomeUnknown):
				in.w.refused = append(in.w.refused, payloads...)
				in.w.judgeError(in.name+" appends", err)
			}
			in.alive = false
		}
	})
}

func (in *incarnation) save() {
	state := strings.Join(in.state, ",")
	in.start(func() func() {
		in.s.PersistSnapshot(theActor, len(in.state), wrapperspb.String(state))
		return nil
	})
}

func (in *incarnation) read() {
	sure, mark := in.w.sure(), in.w.m.del()
	in.start(func() func() {
		var first int64
		var got []string
		var err error
		for e, failed := range in.p.journal.Replay(context.Background(), theActor, 1, 0) {
			if failed != nil {
				err = failed
				break
			}
			if first == 0 {
				first = e.Seq
			}
			got = append(got, e.Message.(*wrapperspb.StringValue).GetValue())
		}
		return func() {
			in.w.log("reader got %v from %d, error %v", got, first, err)
			if err != nil {
				in.w.judgeError("reader", err)
				return
			}
			if first == 0 {
				first = in.w.m.del() + 1 // nothing was left
			}
			end := first - 1 + int64(len(got))
			truth := in.w.m.truth
			switch {
			case first <= mark || first > in.w.m.del()+1:
				in.w.m.fault("reader starts at %d, the mark was %d and is %d", first, mark, in.w.m.del())
			case end > int64(len(truth)) || !slices.Equal(got, truth[first-1:end]):
				in.w.m.fault("reader got %v from %d, the stream is %v", got, first, truth)
			case end < sure:
				in.w.m.fault("reader got events to %d, %d were there before", end, sure)
			case !in.w.m.groups[end]:
				in.w.m.fault("reader got half of an append: %v from %d of %v", got, first, truth)
			}
		}
	})
}
