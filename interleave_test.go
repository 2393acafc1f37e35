package dynactor

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestInterleavings drives two incarnations of one actor, a sweeper and a reader
// against the model, one request at a time, in an order that rapid chooses,
// with answers lost, requests that land late, half visible transactions, partial
// batches and clocks that jump. -rapid.checks sets how many schedules; a failing one is
// shrunk and printed step by step, and -rapid.seed repeats it.
func TestInterleavings(t *testing.T) {
	t.Parallel()
	var found atomic.Pointer[string]                             // by which half
	for _, half := range []string{"first half", "second half"} { // one for each of two cores
		t.Run(half, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				choices := rapid.SliceOfN(rapid.Uint16(), scheduleLength, scheduleLength).Draw(rt, "choices")
				if by := found.Load(); by != nil && *by != half {
					return // the other one need not go on
				}
				var w *world
				synctest.Test(t, func(*testing.T) { w = runSchedule(choices) })
				if len(w.m.faults) > 0 {
					found.CompareAndSwap(nil, &half)
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
	asleep  string          // whose requests take long, if anybody's

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
	switch w.choose(8) {
	case 0:
		w.haunted("A", "A recovers")
	case 1:
		w.haunted("reader", "reader replays")
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
	actions := w.actions(more)
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

// actions are what can happen next, once everybody has come to rest.
func (w *world) actions(more bool) []action {
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
	return actions
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
	done := func() { w.execute(h); w.release(h, nil) }
	if more && h.who == w.asleep {
		return []action{{1, "done: " + name, done}}
	}
	list := []action{{16, "done: " + name, done}}
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
	w.m.punctual = true
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
	if err == nil {
		w.saw(h)
	}
	h.reply <- err
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
