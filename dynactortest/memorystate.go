package dynactortest

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

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
	st, err := s.LoadState(ctx, id)
	return st.Message, st.Revision, err
}

// LoadState is Load with tags, the end and what the store has set.
func (s *MemoryState) LoadState(ctx context.Context, id string) (dynactor.State, error) {
	row, err := s.look(ctx, id)
	if err != nil || row.revision == 0 {
		return dynactor.State{ID: id}, failed("load state", id, -1, err)
	}
	st := dynactor.State{ID: id, Revision: row.revision, Time: row.record.made, Until: row.record.ends}
	if s.m.exists(row) {
		st.Type, st.Tags = row.record.name, distinct(row.record.tags)
		st.Message, err = row.record.decode()
	}
	return st, failed("load state", id, -1, err)
}

// exists tells whether a row has a value, which has not expired.
func (m *Memory) exists(row memoryState) bool {
	return row.revision > 0 && !row.gone && !m.ended(row.record)
}

// IDs yields the rows of all ids in the order of the ids, as they are when it
// begins, those of deleted and expired states too. It begins after an id, or at the
// first for "". An error is yielded once.
func (s *MemoryState) IDs(ctx context.Context, after string) iter.Seq2[dynactor.StateRow, error] {
	return func(yield func(dynactor.StateRow, error) bool) {
		rows, err := s.rows(ctx, after)
		if err != nil {
			yield(dynactor.StateRow{}, failed("list states", "", -1, err))
			return
		}
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

func (s *MemoryState) rows(ctx context.Context, after string) ([]dynactor.StateRow, error) {
	if err := ctx.Err(); err != nil {
		return nil, err //nolint:wrapcheck // failed does
	}
	unlock, err := s.m.lock(ReadsFail)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var rows []dynactor.StateRow
	for _, id := range slices.Sorted(maps.Keys(s.m.states)) {
		if row := s.m.states[id]; id > after {
			rows = append(rows, dynactor.StateRow{ID: id, Revision: row.revision, Exists: s.m.exists(row)})
		}
	}
	return rows, nil
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
	return s.SaveState(ctx, id, expected, dynactor.State{Message: value})
}

// SaveState is Save for a value with tags or an end, which must come after now.
func (s *MemoryState) SaveState(ctx context.Context, id string, expected int64, state dynactor.State) (revision int64, err error) {
	r, err := s.m.newRecord(state.Message)
	if r.tags = distinct(state.Tags); !state.Until.IsZero() {
		r.ends = time.UnixMilli(state.Until.UnixMilli())
	}
	if err == nil && s.m.ended(r) {
		err = fmt.Errorf("%w: the value ends at %s, which is not after now", dynactor.ErrInvalid, state.Until)
	}
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
	row := memoryState{revision: expected + 1, gone: true, record: memoryRecord{made: s.m.now()}}
	if err := s.write(ctx, id, expected, 1, row); err != nil {
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

// Purge forgets a deleted or expired state, and its revision, without a wait. Where there is a
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
	case s.m.exists(row):
		return fmt.Errorf("%w: revision %d has a value", dynactor.ErrInvalid, expected)
	}
	delete(s.m.states, id)
	return s.m.outcome()
}
