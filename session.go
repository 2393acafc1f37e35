package dynactor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/proto"
)

// session is what the framework sees of one actor incarnation. The framework
// passes neither a context nor takes an error, so this file alone makes contexts,
// with the time limits of the options, and turns failures into panics with
// an *Error. It is for one goroutine at a time, as an actor is.
type session struct {
	p        *Provider
	interval int                // events between two snapshots, about; 0 or less where there are none
	streams  map[string]*stream // by persistence id
	chosen   string             // an id that somebody chose on purpose, so it is not one that the framework generated
	failed   *Error             // the last panic
}

var _ persistence.ProviderState = (*session)(nil)

// stream is what a session knows about one stream.
type stream struct {
	id        string
	at        position
	known     bool      // at is known
	replaying bool      // history is on its way to the actor
	found     *recovery // by GetSnapshot, for the GetEvents that follows
	dead      *Error    // the write that failed

	kept     []int64   // snapshots, in ascending order
	listed   bool      // kept is complete
	del      int64     // the mark as far as known
	came     int64     // events appended since the last prune
	pruneDue time.Time // when a prune can find anything
}

func newSession(p *Provider) *session {
	return &session{p: p, interval: p.o.SnapshotInterval, streams: map[string]*stream{}}
}

// Restart forgets all: the next recovery reads the journal, which decides.
func (s *session) Restart() { clear(s.streams) }

// GetSnapshotInterval is never 0, by which the framework would divide. Without
// snapshots it is so high that only the framework's first question, at index 0,
// is left; a snapshot there covers nothing and is not stored.
func (s *session) GetSnapshotInterval() int {
	if s.interval <= 0 {
		return math.MaxInt
	}
	return s.interval
}

// GetSnapshot finds what to recover from. It begins a recovery, which GetEvents
// ends, unless the session already knows its place in the stream.
func (s *session) GetSnapshot(name string) (snapshot any, index int, ok bool) {
	const op = "load snapshot"
	st, err := s.enter(name)
	s.must(op, name, noSeq, err)
	ctx := context.Background()
	wait := s.p.newPatience(name)
	for {
		r, err := s.p.recover(ctx, name, s.interval)
		if err == nil {
			if !st.known {
				st.found, st.replaying = r, r.message != nil
			}
			return r.message, int(r.start), r.message != nil
		}
		s.must(op, name, noSeq, wait.again(ctx, err))
	}
}

// GetEvents delivers the events from index start to index end, exclusive, or to
// the head when end is 0; then the session knows its place in the stream.
func (s *session) GetEvents(name string, start, end int, callback func(any)) {
	const op = "replay"
	st, err := s.enter(name)
	if err == nil && (start < 0 || end < 0) {
		err = fmt.Errorf("%w: events from index %d to %d", ErrInvalid, start, end)
	}
	s.must(op, name, noSeq, err)
	if end > 0 && start >= end {
		return
	}
	before := st.replaying
	st.replaying = true
	s.must(op, name, noSeq, s.replay(context.Background(), st, int64(start), int64(end), callback))
	st.replaying = before && end > 0
}

func (s *session) replay(ctx context.Context, st *stream, start, end int64, callback func(any)) error {
	wait := s.p.newPatience(st.id)
	h, err := s.history(ctx, st, start, end, wait)
	if err != nil {
		return err
	}
	deliver := func(e Event) error {
		wait.progress()
		callback(e.Message)
		wait.progress() // the actor's own time does not count
		return nil
	}
	for {
		err := h.run(ctx, deliver)
		switch {
		case errors.Is(err, errMoved): // the start has been fixed
			return fmt.Errorf("%w: %w", ErrConflict, err)
		case err != nil:
			if err := wait.again(ctx, err); err != nil {
				return err
			}
			h.reread = true
			continue
		}
		if end == 0 {
			st.at, st.known, st.del = position{head: h.head, proven: h.proven}, true, max(st.del, h.mark.del)
		}
		return nil
	}
}

// history is what GetSnapshot has found, or a look of its own.
func (s *session) history(ctx context.Context, st *stream, start, end int64, wait *patience) (*history, error) {
	if r := st.found; r != nil && end == 0 && r.start == start {
		st.found = nil
		r.h.delivered = r.message != nil
		return r.h, nil
	}
	for {
		h, err := s.look(ctx, st.id)
		if err != nil {
			if err := wait.again(ctx, err); err != nil {
				return nil, err
			}
			continue
		}
		switch {
		case !h.mark.covers(start) && start < h.mark.del:
			return nil, fmt.Errorf("%w: events up to number %d are deleted", ErrNoSnapshot, h.mark.del)
		case start > h.head && end == 0:
			return nil, fmt.Errorf("%w: start at index %d, the head is %d", ErrAhead, start, h.head)
		}
		h.from(h.mark.start(start) + 1)
		if end > 0 {
			h.until(end)
		}
		return h, nil
	}
}

func (s *session) look(ctx context.Context, id string) (*history, error) {
	if err := s.p.tables.ready(ctx); err != nil {
		return nil, err
	}
	return s.p.journal.open(ctx, id, 1)
}

// PersistEvent stores one event at an index that must be the session's next.
func (s *session) PersistEvent(name string, index int, event proto.Message) {
	const op = "persist event"
	st, err := s.enter(name)
	if err == nil {
		err = s.persist(context.Background(), op, st, int64(index), []Event{{Message: event}})
	}
	s.must(op, name, int64(index)+1, err)
}

// persist stores events from an index on, all or none. What is refused before
// anything is sent leaves the session alive; after any other failure it is dead.
func (s *session) persist(ctx context.Context, op string, st *stream, index int64, events []Event) error {
	if st.dead != nil {
		return st.dead
	}
	if err := s.writable(ctx, st); err != nil {
		return err
	}
	a, err := s.p.journal.newAppend(st.id, position{head: index, proven: st.at.proven}, events)
	if err != nil {
		return err
	}
	at := st.at
	if index != at.head {
		err = fmt.Errorf("%w: index %d is not the next, which is %d", ErrConflict, index, at.head)
	} else {
		at, err = a.write(ctx)
	}
	if err != nil {
		st.dead, _ = errors.AsType[*Error](fail(op, st.id, index+1, err))
		return st.dead
	}
	st.at = at
	st.came += int64(len(events))
	return nil
}

// writable refuses to write in the midst of a replay, and makes sure that the
// session knows its place: one that is used without a recovery looks once.
func (s *session) writable(ctx context.Context, st *stream) error {
	if st.replaying {
		return fmt.Errorf("%w: is a check of Recovering() missing?", ErrRecovering)
	}
	if st.known {
		return nil
	}
	h, err := s.look(ctx, st.id)
	if err != nil {
		return err
	}
	st.at, st.known, st.del = position{head: h.head, proven: h.proven}, true, h.mark.del
	st.found = nil // older than what may now be written
	return nil
}

// append stores events after the head, all or none. It returns what was refused
// before anything was sent, and panics with all else.
func (s *session) append(op, name string, events []Event) error {
	st, err := s.enter(name)
	s.must(op, name, noSeq, err)
	next := st.at.head + 1
	if err = s.persist(context.Background(), op, st, st.at.head, events); st.dead != nil {
		s.must(op, name, next, err)
	}
	return fail(op, name, next, err)
}

// PersistSnapshot saves a snapshot that covers index events, and then prunes. It
// never panics: the events are safe, so a failure is logged and counted.
func (s *session) PersistSnapshot(name string, index int, snapshot proto.Message) {
	if index == 0 {
		return // covers nothing
	}
	_ = s.saveSnapshot(name, int64(index), snapshot)
}

// saveSnapshot is PersistSnapshot that also returns the error, which is logged
// and counted already. A prune that fails is only that.
func (s *session) saveSnapshot(name string, covers int64, snapshot proto.Message) error {
	ctx := context.Background()
	st, err := s.enter(name)
	if err == nil {
		err = s.save(ctx, st, covers, snapshot)
	}
	if err != nil {
		return s.report(ctx, "save snapshot", name, covers+1, err)
	}
	if err := s.afterSave(ctx, st, covers); err != nil {
		_ = s.report(ctx, "prune", name, covers+1, err)
	}
	return nil
}

func (s *session) save(ctx context.Context, st *stream, covers int64, snapshot proto.Message) error {
	if st.dead != nil {
		return st.dead
	}
	ctx, cancel := context.WithTimeout(ctx, s.p.o.WriteTimeout/2)
	defer cancel()
	if err := s.writable(ctx, st); err != nil {
		return err
	}
	if covers > st.at.head {
		return fmt.Errorf("%w: it covers %d events, the head is %d", ErrAhead, covers, st.at.head)
	}
	ttl := s.p.o.SnapshotTTL
	if st.del > 0 {
		ttl = 0 // what stands in for deleted events must stay
	}
	return s.p.snapshots.saveFor(ctx, st.id, covers, snapshot, ttl)
}

// DeleteSnapshots deletes the snapshots that cover at most index events. While
// events are deleted, or will be by themselves, the last usable snapshot cannot be.
func (s *session) DeleteSnapshots(name string, index int) {
	const op = "delete snapshots"
	st, err := s.enter(name)
	if err == nil {
		err = s.deleteSnapshots(context.Background(), st, int64(index))
	}
	s.must(op, name, noSeq, err)
}

// DeleteEvents deletes the events up to an index, inclusive. The oldest kept
// snapshot must cover them.
func (s *session) DeleteEvents(name string, index int) {
	const op = "delete events"
	upTo := min(int64(index), math.MaxInt64-1) + 1
	s.must(op, name, upTo, s.deleteTo(name, upTo))
}

// deleteTo deletes the events up to a number, inclusive.
func (s *session) deleteTo(name string, upTo int64) error {
	st, err := s.enter(name)
	if err != nil {
		return err
	}
	return s.deleteEvents(context.Background(), st, upTo)
}

// enter finds what the session knows about a stream, and refuses ids that
// cannot be one.
func (s *session) enter(name string) (*stream, error) {
	if st := s.streams[name]; st != nil {
		return st, nil
	}
	if err := checkStable(name, name == s.chosen, s.p.o); err != nil {
		return nil, err
	}
	st := &stream{id: name}
	s.streams[name] = st
	return st, nil
}

// checkStable refuses what cannot be the id of an actor. An id that somebody chose
// on purpose is not one that the framework generated.
func checkStable(id string, chosen bool, o Options) error {
	if err := checkID(id); err != nil {
		return err
	}
	if !chosen && !o.StableID(id) {
		return fmt.Errorf("%w: the framework generates such names anew at every start; spawn the actor with "+
			"a name of its own, with SpawnNamed; for virtual actors take clustered.Using in the place of persistence.Using", ErrUnstableID)
	}
	return nil
}

// must panics with an *Error when there is an error, after logging it: the
// framework itself logs the reason of a failure at a low level only.
func (s *session) must(op, name string, seq int64, err error) {
	if err != nil {
		s.failed = s.report(context.Background(), op, name, seq, err)
		panic(s.failed)
	}
}

// again panics with what has been reported before.
func (s *session) again(err *Error) {
	s.failed = err
	panic(err)
}

// refused logs and counts what a caller is told, or not even told.
func (s *session) refused(op, name string, seq int64, err error) error {
	return s.report(context.Background(), op, name, seq, err)
}

// refuse panics because of a mistake in the program.
func refuse(op, id string, err error) {
	panic(fail(op, id, noSeq, err))
}

func (s *session) report(ctx context.Context, op, name string, seq int64, err error) *Error {
	e, _ := errors.AsType[*Error](fail(op, name, max(seq, noSeq), err))
	s.p.obs.failed(ctx, e)
	return e
}

// sorted inserts a number into an ascending list that does not hold it yet.
func sorted(list []int64, n int64) []int64 {
	i, found := slices.BinarySearch(list, n)
	if found {
		return list
	}
	return slices.Insert(list, i, n)
}
