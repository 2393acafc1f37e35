package dynactortest

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
)

// MemoryJournal is the journal of a [Memory]. Its methods are those of
// [dynactor.Journal]. It is safe for concurrent use.
type MemoryJournal struct{ m *Memory }

// Journal gives access to the event streams without actors.
func (m *Memory) Journal() *MemoryJournal { return &MemoryJournal{m} }

// Append stores events after the expected head, all or none, and returns the new head.
func (j *MemoryJournal) Append(ctx context.Context, id string, expectedHead int64, events ...proto.Message) (head int64, err error) {
	list := make([]dynactor.Event, len(events))
	for i, e := range events {
		list[i].Message = e
	}
	return j.AppendEvents(ctx, id, expectedHead, list...)
}

// AppendEvents is Append for events with tags and metadata.
func (j *MemoryJournal) AppendEvents(ctx context.Context, id string, expectedHead int64, events ...dynactor.Event) (head int64, err error) {
	head, err = j.append(ctx, id, expectedHead, events)
	return head, failed("append", id, max(expectedHead, -1), err)
}

func (j *MemoryJournal) append(ctx context.Context, id string, expected int64, events []dynactor.Event) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err //nolint:wrapcheck // failed does
	}
	if expected < 0 || expected >= math.MaxInt64-dynactor.MaxEvents || len(events) == 0 {
		return 0, fmt.Errorf("%w: %d events after head %d", dynactor.ErrInvalid, len(events), expected)
	}
	if len(events) > dynactor.MaxEvents {
		return 0, fmt.Errorf("%w: %d events", dynactor.ErrTooLarge, len(events))
	}
	records, size := make([]memoryRecord, len(events)), 0
	for i, e := range events {
		r, err := j.m.newRecord(e.Message)
		if err != nil {
			return 0, err
		}
		r.tags, r.meta = distinct(e.Tags), maps.Clone(e.Meta)
		records[i], size = r, size+len(r.data)
	}
	if size > 10*maxMemoryItem {
		return 0, fmt.Errorf("%w: %d bytes together", dynactor.ErrTooLarge, size)
	}
	unlock, err := j.m.begin(id, WritesFail)
	if err != nil {
		return 0, err
	}
	defer unlock()
	s := j.m.stream(id)
	if s.head != expected {
		return s.head, fmt.Errorf("%w: expected head %d, but it is %d", dynactor.ErrConflict, expected, s.head)
	}
	for _, r := range records {
		s.head++
		s.events[s.head] = r
	}
	j.m.streams[id] = s
	return s.head, j.m.outcome()
}

// Head returns the highest number ever used in a stream, 0 for none.
func (j *MemoryJournal) Head(ctx context.Context, id string) (int64, error) {
	s, err := j.look(ctx, id)
	return s.head, failed("read head", id, -1, err)
}

// look returns a copy of a stream.
func (j *MemoryJournal) look(ctx context.Context, id string) (memoryStream, error) {
	if err := ctx.Err(); err != nil {
		return memoryStream{}, err //nolint:wrapcheck // failed does
	}
	unlock, err := j.m.begin(id, ReadsFail)
	if err != nil {
		return memoryStream{}, err
	}
	defer unlock()
	s := *j.m.stream(id)
	s.events = maps.Clone(s.events)
	return s, nil
}

// Replay yields the events from number from to number to, both inclusive, or to
// the head when to is 0, as they are when it begins. An error is yielded once, at the end.
func (j *MemoryJournal) Replay(ctx context.Context, id string, from, to int64) iter.Seq2[dynactor.Event, error] {
	return func(yield func(dynactor.Event, error) bool) {
		s, err := j.look(ctx, id)
		if err == nil && (from < 0 || to < 0) {
			err = fmt.Errorf("%w: replay from %d to %d", dynactor.ErrInvalid, from, to)
		}
		if err != nil {
			yield(dynactor.Event{}, failed("replay", id, -1, err))
			return
		}
		if to == 0 || to > s.head {
			to = s.head
		}
		for seq := max(from, s.del+1, 1); seq <= to; seq++ {
			e, err := s.event(ctx, id, seq)
			if err != nil {
				yield(dynactor.Event{}, failed("replay", id, seq-1, err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (s memoryStream) event(ctx context.Context, id string, seq int64) (dynactor.Event, error) {
	if err := ctx.Err(); err != nil {
		return dynactor.Event{}, err //nolint:wrapcheck // failed does
	}
	r, ok := s.events[seq]
	if !ok {
		return dynactor.Event{}, fmt.Errorf("%w: number %d is missing", dynactor.ErrGap, seq)
	}
	msg, err := r.decode()
	if err != nil {
		return dynactor.Event{}, err
	}
	return dynactor.Event{Message: msg, Tags: distinct(r.tags), Meta: maps.Clone(r.meta), ID: id, Seq: seq, Type: r.name, Time: r.made}, nil
}

// DeleteTo deletes the events up to a number, inclusive, and at most up to the
// head. The head and the numbers stay used.
func (j *MemoryJournal) DeleteTo(ctx context.Context, id string, seq int64) error {
	return failed("delete events", id, max(seq, 0)-1, j.deleteTo(ctx, id, seq))
}

func (j *MemoryJournal) deleteTo(ctx context.Context, id string, seq int64) error {
	if err := ctx.Err(); err != nil {
		return err //nolint:wrapcheck // failed does
	}
	unlock, err := j.m.begin(id, WritesFail)
	if err != nil {
		return err
	}
	defer unlock()
	s := j.m.stream(id)
	for seq = min(seq, s.head); s.del < seq; {
		s.del++
		delete(s.events, s.del)
	}
	return j.m.outcome()
}
