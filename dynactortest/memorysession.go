package dynactortest

import (
	"context"
	"fmt"
	"math"

	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
)

var _ persistence.Provider = (*Memory)(nil)

// memorySession is what the framework sees of one actor incarnation. It panics
// with a *dynactor.Error, as the library's sessions do. It is for one goroutine at a time.
type memorySession struct {
	m       *Memory
	streams map[string]*memoryPlace
}

// memoryPlace is where a session stands in a stream.
type memoryPlace struct {
	next      int64 // the index of the next event
	known     bool
	replaying bool
	dead      error // the write that failed
}

// GetState gives one actor incarnation its session. The framework calls it.
func (m *Memory) GetState() persistence.ProviderState {
	return &memorySession{m: m, streams: map[string]*memoryPlace{}}
}

func (s *memorySession) Restart() { clear(s.streams) }

func (s *memorySession) GetSnapshotInterval() int {
	if s.m.SnapshotInterval <= 0 {
		return math.MaxInt
	}
	return s.m.SnapshotInterval
}

func (s *memorySession) place(name string) *memoryPlace {
	p := s.streams[name]
	if p == nil {
		p = &memoryPlace{}
		s.streams[name] = p
	}
	return p
}

// must panics with an error, the way the framework hears of it.
func must(op, name string, index int64, err error) {
	if err != nil {
		panic(failed(op, name, index, err))
	}
}

func (s *memorySession) GetSnapshot(name string) (snapshot any, index int, ok bool) {
	const op = "load snapshot"
	ctx := context.Background()
	snap, found, err := s.m.Snapshots().Latest(ctx, name)
	must(op, name, snap.Seq, err)
	st, err := s.m.Journal().look(ctx, name)
	must(op, name, -1, err)
	switch {
	case snap.Seq < st.del:
		must(op, name, snap.Seq, fmt.Errorf("%w: events up to number %d are deleted", dynactor.ErrNoSnapshot, st.del))
	case snap.Seq > st.head:
		must(op, name, snap.Seq, fmt.Errorf("%w: the head is %d", dynactor.ErrAhead, st.head))
	}
	if found {
		s.place(name).replaying = true
	}
	return snap.Message, int(snap.Seq), found
}

func (s *memorySession) GetEvents(name string, start, end int, callback func(any)) {
	const op = "replay"
	if start < 0 || end < 0 {
		must(op, name, -1, fmt.Errorf("%w: events from index %d to %d", dynactor.ErrInvalid, start, end))
	}
	if end > 0 && start >= end {
		return
	}
	p := s.place(name)
	ctx := context.Background()
	st, err := s.m.Journal().look(ctx, name)
	must(op, name, -1, err)
	switch {
	case int64(start) < st.del:
		must(op, name, int64(start), fmt.Errorf("%w: events up to number %d are deleted", dynactor.ErrNoSnapshot, st.del))
	case end == 0 && int64(start) > st.head:
		must(op, name, int64(start), fmt.Errorf("%w: the head is %d", dynactor.ErrAhead, st.head))
	}
	last := st.head
	if end > 0 {
		last = min(last, int64(end))
	}
	before := p.replaying
	p.replaying = true
	for seq := int64(start) + 1; seq <= last; seq++ {
		e, err := st.event(ctx, name, seq)
		must(op, name, seq-1, err)
		callback(e.Message)
	}
	p.replaying = before && end > 0
	if end == 0 {
		p.next, p.known = st.head, true
	}
}

func (s *memorySession) PersistEvent(name string, index int, event proto.Message) {
	p := s.place(name)
	err := s.persist(p, name, int64(index), event)
	must("persist event", name, int64(index), err)
}

func (s *memorySession) persist(p *memoryPlace, name string, index int64, event proto.Message) error {
	if p.dead != nil {
		return p.dead
	}
	if p.replaying {
		return fmt.Errorf("%w: is a check of Recovering() missing?", dynactor.ErrRecovering)
	}
	ctx := context.Background()
	if _, err := s.m.newRecord(event); err != nil {
		return err // the session lives on
	}
	if !p.known {
		head, err := s.m.Journal().Head(ctx, name)
		if err != nil {
			return err
		}
		p.next, p.known = head, true
	}
	if index != p.next {
		p.dead = fmt.Errorf("%w: index %d is not the next, which is %d", dynactor.ErrConflict, index, p.next)
		return p.dead
	}
	if _, p.dead = s.m.Journal().Append(ctx, name, index, event); p.dead != nil {
		return p.dead
	}
	p.next++
	s.m.share("event", name, p.next, event)
	return nil
}

// PersistSnapshot saves a snapshot, unless that fails, which harms nothing.
func (s *memorySession) PersistSnapshot(name string, index int, snapshot proto.Message) {
	p := s.place(name)
	ctx := context.Background()
	if index <= 0 || p.dead != nil || p.replaying {
		return
	}
	st, err := s.m.Journal().look(ctx, name)
	if err != nil || int64(index) > st.head {
		return
	}
	ttl := s.m.SnapshotTTL
	if st.del > 0 {
		ttl = 0 // what stands in for deleted events must stay
	}
	if (memorySnapshots{s.m}).save(ctx, name, int64(index), snapshot, ttl) != nil {
		return
	}
	s.m.share("snapshot", name, int64(index), snapshot)
	kept, err := s.m.Snapshots().List(ctx, name)
	if keep := s.m.KeepSnapshots; err == nil && keep > 0 && len(kept) > keep {
		_ = s.m.Snapshots().Delete(ctx, name, kept[:len(kept)-keep]...)
	}
}

// DeleteSnapshots deletes the snapshots that cover at most index events.
func (s *memorySession) DeleteSnapshots(name string, index int) {
	const op = "delete snapshots"
	ctx := context.Background()
	st, err := s.m.Journal().look(ctx, name)
	must(op, name, -1, err)
	kept, err := s.m.Snapshots().List(ctx, name)
	must(op, name, -1, err)
	if st.del > 0 && len(kept) > 0 && kept[len(kept)-1] <= int64(index) {
		must(op, name, -1, fmt.Errorf("%w: it would be the last one", dynactor.ErrNoSnapshot))
	}
	must(op, name, -1, s.m.Snapshots().DeleteTo(ctx, name, int64(index)))
}

// DeleteEvents deletes the events up to an index, inclusive, which the oldest kept
// snapshot must cover, and none of which may expire.
func (s *memorySession) DeleteEvents(name string, index int) {
	const op = "delete events"
	ctx := context.Background()
	upTo := min(int64(index), math.MaxInt64-1) + 1
	if s.m.SnapshotTTL > 0 {
		must(op, name, upTo-1, fmt.Errorf("%w: snapshots expire, and a deleted history needs one that stays", dynactor.ErrInvalid))
	}
	kept, err := s.m.Snapshots().List(ctx, name)
	must(op, name, upTo-1, err)
	if len(kept) == 0 || kept[0] < upTo {
		must(op, name, upTo-1, fmt.Errorf("%w: snapshots at %v do not cover number %d", dynactor.ErrNoSnapshot, kept, upTo))
	}
	must(op, name, upTo-1, s.m.Journal().DeleteTo(ctx, name, upTo))
}
