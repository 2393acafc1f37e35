package dynactor

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// afterSave removes what the saved snapshot has made needless: snapshots beyond
// the newest KeepSnapshots, and, when DeleteEventsOnSnapshot is set, the events
// that the oldest kept one covers. Each step leaves a stream that recovers.
func (s *session) afterSave(ctx context.Context, st *stream, saved int64) error {
	keep := s.p.o.KeepSnapshots
	if keep < 0 && !s.p.o.DeleteEventsOnSnapshot {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.p.o.WriteTimeout/2)
	defer cancel()
	if err := s.listKept(ctx, st); err != nil {
		return err
	}
	st.kept = sorted(st.kept, saved)
	if n := len(st.kept) - keep; keep > 0 && n > 0 {
		if err := s.p.snapshots.Delete(ctx, st.id, st.kept[:n]...); err != nil {
			return err
		}
		st.kept = slices.Clone(st.kept[n:])
	}
	oldest := st.kept[0]
	if !s.p.o.DeleteEventsOnSnapshot || oldest > st.at.head {
		return nil
	}
	return s.raise(ctx, st, oldest)
}

// listKept makes the list of kept snapshots complete. An incarnation lists them
// once; from then on it knows them by the saves that were acknowledged.
func (s *session) listKept(ctx context.Context, st *stream) error {
	if st.listed {
		return nil
	}
	seqs, err := s.p.snapshots.List(ctx, st.id)
	if err != nil {
		return err
	}
	st.kept, st.listed = seqs, true
	return nil
}

// raise deletes the events up to seq, which the session knows not to be beyond
// the head, and removes some of the items that are old enough.
func (s *session) raise(ctx context.Context, st *stream, seq int64) error {
	if seq > st.del {
		if err := s.p.journal.raise(ctx, st.id, seq); err != nil {
			return err
		}
		st.del = seq
	}
	if st.del < 2 || s.p.o.wall().Before(st.pruneDue) {
		return nil
	}
	due, err := s.p.journal.prune(ctx, st.id, st.del, st.came)
	if err != nil {
		return err
	}
	st.pruneDue, st.came = due, 0
	return nil
}

func (s *session) deleteSnapshots(ctx context.Context, st *stream, upTo int64) error {
	if upTo < 1 {
		return nil
	}
	m, seqs, lasting, err := s.usable(ctx, st)
	if err != nil {
		return err
	}
	drop, found := slices.BinarySearch(seqs, upTo)
	if found {
		drop++
	}
	left := slices.ContainsFunc(lasting, func(seq int64) bool { return seq > upTo && seq <= st.at.head && m.covers(seq) })
	lost := slices.ContainsFunc(lasting, func(seq int64) bool { return seq <= upTo && m.covers(seq) })
	switch {
	case drop == 0 || left:
	case !m.covers(0):
		return fmt.Errorf("%w: events up to number %d are deleted, and no snapshot would be left", ErrNoSnapshot, m.del)
	case s.p.o.DeleteEventsOnSnapshot && lost:
		// Another incarnation may be about to delete the events that it covers.
		return fmt.Errorf("%w: DeleteEventsOnSnapshot is set, and no snapshot would be left", ErrNoSnapshot)
	}
	if err := s.p.snapshots.Delete(ctx, st.id, seqs[:drop]...); err != nil {
		return err
	}
	st.kept, st.listed = slices.Clone(seqs[drop:]), true
	return nil
}

func (s *session) deleteEvents(ctx context.Context, st *stream, upTo int64) error {
	if upTo < 1 {
		return nil
	}
	if s.p.o.SnapshotTTL > 0 {
		return fmt.Errorf("%w: snapshots expire, and a deleted history needs one that stays", ErrInvalid)
	}
	m, _, seqs, err := s.usable(ctx, st)
	if err != nil {
		return err
	}
	oldest := int64(math.MaxInt64)
	for _, seq := range seqs {
		if m.covers(seq) && seq <= st.at.head {
			oldest = min(oldest, seq)
		}
	}
	if oldest == math.MaxInt64 || upTo > oldest {
		return fmt.Errorf("%w: events up to index %d are not covered by the oldest kept snapshot", ErrNoSnapshot, upTo-1)
	}
	st.del = max(st.del, m.del)
	return s.raise(ctx, st, upTo)
}

// usable reads the mark and then the list of snapshots, all of them and those that
// do not expire, for a deletion at the actor's own wish.
func (s *session) usable(ctx context.Context, st *stream) (m mark, all, lasting []int64, err error) {
	if st.dead != nil {
		return mark{}, nil, nil, st.dead
	}
	if err := s.writable(ctx, st); err != nil {
		return mark{}, nil, nil, err
	}
	if m, err = s.p.journal.mark(ctx, st.id); err != nil {
		return mark{}, nil, nil, err
	}
	list, err := s.p.snapshots.list(ctx, st.id, math.MaxInt64)
	if err != nil {
		return mark{}, nil, nil, err
	}
	for _, l := range s.p.snapshots.unexpired(list) {
		all = append(all, l.seq)
		if l.exp == 0 {
			lasting = append(lasting, l.seq)
		}
	}
	return m, all, lasting, nil
}
