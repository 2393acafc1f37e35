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
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// incarnation is one user of the stream: an actor's session, or a bystander.
type incarnation struct {
	w     *world
	name  string
	p     *Provider
	s     *session
	state []string
	alive bool  // recovered, and no write has failed
	mark  int64 // the highest mark that was shown to its recovery

	mu    sync.Mutex
	busy  bool
	after func() // judges what has just ended; for the scheduler to call
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

func (in *incarnation) isBusy() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.busy
}

// saw notes the mark that an answer shows.
func (w *world) saw(h *heldRequest) {
	items, _ := h.answer["Items"].([]any)
	if it := h.answer["Item"]; it != nil {
		items = append(items, it)
	}
	for _, in := range w.all {
		for _, it := range items {
			it, _ := it.(map[string]any)
			if del, ok := it["del"]; ok && in.name == h.who {
				in.mark = max(in.mark, wireNumber(del))
			}
		}
	}
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
	in.alive, in.mark = false, 0
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
			case int64(start) < in.mark:
				in.w.m.fault("%s got events from index %d, though it saw that those up to number %d are deleted", in.name, start, in.mark)
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
