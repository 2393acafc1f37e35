package conformance

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Event is an event as a journal takes and returns it.
type Event struct {
	Message proto.Message
	Tags    []string
	Meta    map[string]string

	ID  string // persistence id, set by the journal
	Seq int64  // sequence number from 1, set by the journal
}

// JournalStore is what a journal must be able to do. Sequence numbers count from
// 1, and the head is the highest number ever used.
type JournalStore interface {
	// Append stores events after the expected head, all or none, and returns the
	// new head. Another head is a conflict.
	Append(ctx context.Context, id string, expected int64, events ...Event) (head int64, err error)
	// Replay yields the events from number from to number to, both inclusive, in
	// order; to 0 stands for the head. It leaves out deleted ones at the beginning.
	// An error is yielded once, at the end.
	Replay(ctx context.Context, id string, from, to int64) iter.Seq2[Event, error]
	// Head returns the highest number ever used, 0 for none.
	Head(ctx context.Context, id string) (int64, error)
	// DeleteTo deletes the events up to a number, inclusive, and at most up to the head.
	DeleteTo(ctx context.Context, id string, seq int64) error
}

// JournalEnv is a journal without events, and what goes with it.
type JournalEnv struct {
	Store JournalStore
	// Another returns the same journal as another process has it, with nothing in
	// memory. For [Processes].
	Another func() JournalStore
	Errors  Errors
	Limit   Limit
	// Trouble changes what happens to the requests of Store, and perhaps those of
	// Another, from now on. For [Faults].
	Trouble func(ctx context.Context, kind Trouble) error
	// Damage harms the stored event with a number. For [Tampering].
	Damage func(ctx context.Context, id string, seq int64, harm Harm) error
	// StartAt makes a stream without events whose head is a number, as if so many
	// events had been appended and deleted. For [StartsHigh].
	StartAt func(ctx context.Context, id string, seq int64) error
}

func (e JournalEnv) hooks() hooks {
	return hooks{
		Processes:  {e.Another != nil, "Another"},
		Faults:     {e.Trouble != nil, "Trouble"},
		Tampering:  {e.Damage != nil, "Damage"},
		StartsHigh: {e.StartAt != nil, "StartAt"},
		Limits:     {e.Limit.Events > 0 && e.Limit.Bytes > 0, "Limit with Events and Bytes"},
	}
}

// Journal is the suite for journals.
func Journal() Suite[JournalEnv] {
	return guarded(replayCases(), appendCases(), raceCases(), deleteCases(), journalTrouble())
}

// text is an event with a text.
func text(s string) Event { return Event{Message: wrapperspb.String(s)} }

// numbered are events with the texts "lo" to "hi".
func numbered(lo, hi int64) []Event {
	var list []Event
	for i := lo; i <= hi; i++ {
		list = append(list, text(strconv.FormatInt(i, 10)))
	}
	return list
}

// texts are the texts "lo" to "hi".
func texts(lo, hi int64) []string {
	var list []string
	for i := lo; i <= hi; i++ {
		list = append(list, strconv.FormatInt(i, 10))
	}
	return list
}

// textOf is the text in a message, or its type where it has none.
func textOf(m any) string {
	if s, ok := m.(*wrapperspb.StringValue); ok {
		return s.GetValue()
	}
	return fmt.Sprintf("%T", m)
}

// put appends events and checks the head that comes back.
func put(ctx context.Context, s JournalStore, id string, expected int64, events ...Event) error {
	head, err := s.Append(ctx, id, expected, events...)
	if err != nil {
		return fmt.Errorf("append of %d events to %.20q after %d: %w", len(events), id, expected, err)
	}
	if want := expected + int64(len(events)); head != want {
		return fmt.Errorf("append of %d events to %.20q after %d returns head %d, want %d", len(events), id, expected, head, want)
	}
	return nil
}

// fill appends the events "1" to "n" to stream "a", at most 50 at a time.
func fill(ctx context.Context, s JournalStore, n int64) error {
	for head := int64(0); head < n; {
		next := min(head+50, n)
		if err := put(ctx, s, "a", head, numbered(head+1, next)...); err != nil {
			return err
		}
		head = next
	}
	return nil
}

// five is the fixture of many cases: events 1 to 5, of which 4 and 5 were appended at once.
func five(ctx context.Context, s JournalStore) error {
	for i := range int64(3) {
		if err := put(ctx, s, "a", i, numbered(i+1, i+1)...); err != nil {
			return err
		}
	}
	return put(ctx, s, "a", 3, numbered(4, 5)...)
}

// collect reads the events of a replay, at most limit of them when that is not negative.
func collect(ctx context.Context, s JournalStore, id string, from, to int64, limit int) (got []Event, err error) {
	for e, err := range s.Replay(ctx, id, from, to) {
		if err != nil {
			return got, err
		}
		got = append(got, e)
		if len(got) == limit {
			break
		}
	}
	return got, nil
}

// replays checks what a replay yields: which texts, under which numbers.
func replays(ctx context.Context, s JournalStore, id string, from, to int64, lo, hi int64) error {
	got, err := collect(ctx, s, id, from, to, -1)
	if err != nil {
		return fmt.Errorf("replay of %.20q from %d to %d: %w", id, from, to, err)
	}
	return same(fmt.Sprintf("replay of %.20q from %d to %d", id, from, to), got, id, lo, hi)
}

// same checks that events are those with the texts and numbers lo to hi.
func same(what string, got []Event, id string, lo, hi int64) error {
	var list []string
	for i, e := range got {
		list = append(list, textOf(e.Message))
		if e.Seq != lo+int64(i) || e.ID != id {
			return fmt.Errorf("%s: event %d of it is number %d of %.20q, want number %d of %.20q", what, i+1, e.Seq, e.ID, lo+int64(i), id)
		}
	}
	if want := texts(lo, hi); !slices.Equal(list, want) {
		return fmt.Errorf("%s yields %s, want %s", what, brief(list), brief(want))
	}
	return nil
}

// brief shows a list, and only the length and the ends of a long one.
func brief(list []string) string {
	if len(list) <= 12 {
		return fmt.Sprintf("%q", list)
	}
	return fmt.Sprintf("%d of them, %q to %q", len(list), list[0], list[len(list)-1])
}

// headIs checks a head.
func headIs(ctx context.Context, s JournalStore, id string, want int64) error {
	head, err := s.Head(ctx, id)
	if err != nil {
		return fmt.Errorf("head of %.20q: %w", id, err)
	}
	if head != want {
		return fmt.Errorf("the head of %.20q is %d, want %d", id, head, want)
	}
	return nil
}

// holds checks that a stream has exactly the events 1 to hi, its head.
func holds(ctx context.Context, s JournalStore, id string, hi int64) error {
	if err := replays(ctx, s, id, 1, 0, 1, hi); err != nil {
		return err
	}
	return headIs(ctx, s, id, hi)
}

// other is the journal of a second process, where there is one.
func (e JournalEnv) other() JournalStore {
	if e.Another == nil {
		return e.Store
	}
	return e.Another()
}
