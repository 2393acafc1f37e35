package dynactortest

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
)

// MemoryState is the durable state of a [Memory]: the latest value of each id,
// changed by compare-and-set. It is safe for concurrent use.
type MemoryState struct{ m *Memory }

// memoryState is a row: a value at a revision, or none since a revision.
type memoryState struct {
	revision int64
	record   memoryRecord
	gone     bool
}

// State gives access to durable state.
func (m *Memory) State() *MemoryState { return &MemoryState{m} }

// Load returns the value of an id and its revision. Where there is none, the value
// is nil, and the revision is what the next Save expects.
func (s *MemoryState) Load(ctx context.Context, id string) (value proto.Message, revision int64, err error) {
	row, err := s.look(ctx, id)
	if err == nil && row.revision > 0 && !row.gone {
		value, err = row.record.decode()
	}
	return value, row.revision, failed("load state", id, -1, err)
}

func (s *MemoryState) look(ctx context.Context, id string) (memoryState, error) {
	if err := ctx.Err(); err != nil {
		return memoryState{}, err //nolint:wrapcheck // failed does
	}
	unlock, err := s.m.begin(id, ReadsFail)
	if err != nil {
		return memoryState{}, err
	}
	defer unlock()
	return s.m.states[id], nil
}

// Save stores a value in the place of what is at the expected revision, 0 for
// nothing, and returns the new one, which is the next number.
func (s *MemoryState) Save(ctx context.Context, id string, expected int64, value proto.Message) (revision int64, err error) {
	r, err := newRecord(value)
	if err == nil {
		err = s.write(ctx, id, expected, 0, memoryState{revision: expected + 1, record: r})
	}
	if err != nil {
		return 0, failed("save state", id, -1, err)
	}
	return expected + 1, nil
}

// Delete removes the value at the expected revision, 1 or more, and returns the new
// revision, which stays.
func (s *MemoryState) Delete(ctx context.Context, id string, expected int64) (revision int64, err error) {
	if err := s.write(ctx, id, expected, 1, memoryState{revision: expected + 1, gone: true}); err != nil {
		return 0, failed("delete state", id, -1, err)
	}
	return expected + 1, nil
}

// write replaces a row.
func (s *MemoryState) write(ctx context.Context, id string, expected, least int64, row memoryState) error {
	if err := ctx.Err(); err != nil {
		return err //nolint:wrapcheck // failed does
	}
	if expected < least {
		return fmt.Errorf("%w: expected revision %d", dynactor.ErrInvalid, expected)
	}
	unlock, err := s.m.begin(id, WritesFail)
	if err != nil {
		return err
	}
	defer unlock()
	if now := s.m.states[id].revision; now != expected {
		return fmt.Errorf("%w: expected revision %d, but it is %d", dynactor.ErrConflict, expected, now)
	}
	s.m.states[id] = row
	return s.m.outcome()
}

// Purge forgets a deleted state, and its revision, without a wait. Where there is a
// value it is ErrInvalid; another revision than the expected one is ErrConflict; no row is no error.
func (s *MemoryState) Purge(ctx context.Context, id string, expected int64) error {
	return failed("purge state", id, -1, s.purge(ctx, id, expected))
}

func (s *MemoryState) purge(ctx context.Context, id string, expected int64) error {
	if err := ctx.Err(); err != nil {
		return err //nolint:wrapcheck // failed does
	}
	unlock, err := s.m.begin(id, WritesFail)
	if err != nil {
		return err
	}
	defer unlock()
	row, ok := s.m.states[id]
	switch {
	case !ok:
		return nil
	case row.revision != expected:
		return fmt.Errorf("%w: expected revision %d, but it is %d", dynactor.ErrConflict, expected, row.revision)
	case !row.gone:
		return fmt.Errorf("%w: revision %d has a value", dynactor.ErrInvalid, expected)
	}
	delete(s.m.states, id)
	return s.m.outcome()
}
