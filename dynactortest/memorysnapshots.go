package dynactortest

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
)

// memorySnapshots are the snapshots of a [Memory].
type memorySnapshots struct{ m *Memory }

// Snapshots gives access to the snapshots without actors.
func (m *Memory) Snapshots() dynactor.SnapshotStore { return memorySnapshots{m} }

func (s memorySnapshots) Save(ctx context.Context, id string, seq int64, state proto.Message) error {
	return failed("save snapshot", id, seq, s.save(ctx, id, seq, state, s.m.SnapshotTTL))
}

func (s memorySnapshots) save(ctx context.Context, id string, seq int64, state proto.Message, ttl time.Duration) error {
	if seq < 1 {
		return fmt.Errorf("%w: a snapshot of %d events covers nothing", dynactor.ErrInvalid, seq)
	}
	r, err := s.m.newRecord(state)
	if err != nil {
		return err
	}
	if ttl > 0 {
		r.ends = r.made.Add(ttl)
	}
	return s.write(ctx, id, func(kept map[int64]memoryRecord) { kept[seq] = r })
}

// write changes the snapshots of an id.
func (s memorySnapshots) write(ctx context.Context, id string, change func(map[int64]memoryRecord)) error {
	if err := ctx.Err(); err != nil {
		return err //nolint:wrapcheck // failed does
	}
	unlock, err := s.m.begin(id, WritesFail)
	if err != nil {
		return err
	}
	defer unlock()
	if s.m.snapshots[id] == nil {
		s.m.snapshots[id] = map[int64]memoryRecord{}
	}
	change(s.m.snapshots[id])
	return s.m.outcome()
}

func (s memorySnapshots) Latest(ctx context.Context, id string) (dynactor.Snapshot, bool, error) {
	return s.AtOrBefore(ctx, id, math.MaxInt64)
}

func (s memorySnapshots) AtOrBefore(ctx context.Context, id string, seq int64) (dynactor.Snapshot, bool, error) {
	kept, err := s.look(ctx, id)
	if err != nil {
		return dynactor.Snapshot{}, false, failed("load snapshot", id, -1, err)
	}
	newest := int64(0)
	for n := range kept {
		if n <= seq {
			newest = max(newest, n)
		}
	}
	if newest == 0 {
		return dynactor.Snapshot{}, false, nil
	}
	r := kept[newest]
	msg, err := r.decode()
	return dynactor.Snapshot{ID: id, Seq: newest, Message: msg, Type: r.name, Time: r.made}, true, failed("load snapshot", id, newest, err)
}

// look returns a copy of the snapshots of an id that have not expired.
func (s memorySnapshots) look(ctx context.Context, id string) (map[int64]memoryRecord, error) {
	if err := ctx.Err(); err != nil {
		return nil, err //nolint:wrapcheck // failed does
	}
	unlock, err := s.m.begin(id, ReadsFail)
	if err != nil {
		return nil, err
	}
	defer unlock()
	kept := maps.Clone(s.m.snapshots[id])
	maps.DeleteFunc(kept, func(_ int64, r memoryRecord) bool { return s.m.ended(r) })
	return kept, nil
}

func (s memorySnapshots) List(ctx context.Context, id string) ([]int64, error) {
	kept, err := s.look(ctx, id)
	return slices.Sorted(maps.Keys(kept)), failed("list snapshots", id, -1, err)
}

func (s memorySnapshots) Delete(ctx context.Context, id string, seqs ...int64) error {
	return failed("delete snapshots", id, -1, s.write(ctx, id, func(kept map[int64]memoryRecord) {
		for _, n := range seqs {
			delete(kept, n)
		}
	}))
}

func (s memorySnapshots) DeleteTo(ctx context.Context, id string, seq int64) error {
	return failed("delete snapshots", id, -1, s.write(ctx, id, func(kept map[int64]memoryRecord) {
		maps.DeleteFunc(kept, func(n int64, _ memoryRecord) bool { return n <= seq })
	}))
}
