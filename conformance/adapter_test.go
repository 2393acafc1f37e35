package conformance_test

import (
	"context"
	"iter"

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
var limits = conformance.Limit{Events: dynactor.MaxEvents, Bytes: 400 << 10, Together: dynactor.MaxEvents * (42 << 10), ID: 1024}

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
