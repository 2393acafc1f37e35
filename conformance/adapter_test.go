package conformance_test

import (
	"context"
	"iter"
	"math"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/conformance"
)

// ours are the library's errors.
var ours = conformance.Errors{
	Conflict: dynactor.ErrConflict, Unknown: dynactor.ErrOutcomeUnknown, Gap: dynactor.ErrGap, Decode: dynactor.ErrDecode,
	TooLarge: dynactor.ErrTooLarge, Invalid: dynactor.ErrInvalid, Lost: dynactor.ErrNoSnapshot, Ahead: dynactor.ErrAhead,
}

// limits are the library's limits.
var limits = conformance.Limit{Events: dynactor.MaxEvents, Bytes: 400 << 10, Together: dynactor.MaxEvents * (42 << 10), ID: 1024, Seq: math.MaxInt64 - dynactor.MaxEvents}

// journal fits the library's journal, and that in memory, to the suite.
type journal struct {
	j interface {
		AppendEvents(ctx context.Context, id string, expectedHead int64, events ...dynactor.Event) (int64, error)
		Replay(ctx context.Context, id string, from, to int64) iter.Seq2[dynactor.Event, error]
		Head(ctx context.Context, id string) (int64, error)
		DeleteTo(ctx context.Context, id string, seq int64) error
	}
}

func (a journal) Append(ctx context.Context, id string, expected int64, events ...conformance.Event) (int64, error) {
	list := make([]dynactor.Event, len(events))
	for i, e := range events {
		list[i] = dynactor.Event{Message: e.Message, Tags: e.Tags, Meta: e.Meta}
	}
	return a.j.AppendEvents(ctx, id, expected, list...)
}

func (a journal) Replay(ctx context.Context, id string, from, to int64) iter.Seq2[conformance.Event, error] {
	return func(yield func(conformance.Event, error) bool) {
		for e, err := range a.j.Replay(ctx, id, from, to) {
			if !yield(conformance.Event{Message: e.Message, Tags: e.Tags, Meta: e.Meta, ID: e.ID, Seq: e.Seq}, err) {
				return
			}
		}
	}
}

func (a journal) Head(ctx context.Context, id string) (int64, error) { return a.j.Head(ctx, id) }

func (a journal) DeleteTo(ctx context.Context, id string, seq int64) error {
	return a.j.DeleteTo(ctx, id, seq)
}

// snapshots fits a store of snapshots of the library to the suite.
type snapshots struct{ dynactor.SnapshotStore }

func (a snapshots) AtOrBefore(ctx context.Context, id string, seq int64) (proto.Message, int64, bool, error) {
	s, found, err := a.SnapshotStore.AtOrBefore(ctx, id, seq)
	return s.Message, s.Seq, found, err
}

// state fits the library's durable state to the suite.
type state struct{ *dynactor.StateStore }

func (a state) Load(ctx context.Context, id string) (proto.Message, int64, error) {
	s, err := a.StateStore.Load(ctx, id)
	return s.Message, s.Revision, err
}

// sundial is a clock that a suite can put forward.
type sundial struct{ ahead atomic.Int64 }

func (c *sundial) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *sundial) pass(_ context.Context, d time.Duration) error {
	c.ahead.Add(int64(d))
	return nil
}

// saveValue fits the saving of values that have tags or end.
func saveValue(s interface {
	SaveState(ctx context.Context, id string, expected int64, st dynactor.State) (int64, error)
}, now func() time.Time,
) func(context.Context, string, int64, conformance.Value) (int64, error) {
	return func(ctx context.Context, id string, expected int64, v conformance.Value) (int64, error) {
		st := dynactor.State{Message: v.Message, Tags: v.Tags}
		if v.Lives > 0 {
			st.Until = now().Add(v.Lives)
		}
		return s.SaveState(ctx, id, expected, st)
	}
}

// tags are those of a state.
func tags(load func(context.Context, string) (dynactor.State, error)) func(context.Context, string) ([]string, error) {
	return func(ctx context.Context, id string) ([]string, error) {
		st, err := load(ctx, id)
		return st.Tags, err
	}
}

// ids fits the list of all ids.
func ids(s interface {
	IDs(ctx context.Context, after string) iter.Seq2[dynactor.StateRow, error]
},
) func(context.Context, string) iter.Seq2[string, error] {
	return func(ctx context.Context, after string) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for row, err := range s.IDs(ctx, after) {
				if !yield(row.ID, err) {
					return
				}
			}
		}
	}
}
