package main

import (
	"context"
	"fmt"

	"github.com/dynactor/dynactor"
)

// What a recovery finds: a snapshot and fewer events after it than come between
// two snapshots.
const (
	interval = 100
	covered  = 200
	tail     = 50
)

// recovering is the recovery of an actor.
func recovering(ctx context.Context, l *lab) (*workload, error) {
	s, err := l.store(ctx, dynactor.Options{SnapshotInterval: interval})
	if err != nil {
		return nil, err
	}
	if err := l.fill(ctx, s.events, covered+tail, deposit); err != nil {
		return nil, err
	}
	if err := s.Snapshots().Save(ctx, id, covered, deposit); err != nil {
		return nil, fmt.Errorf("save snapshot: %w", err)
	}
	r := &recoveries{l: l, store: s}
	return &workload{
		about: fmt.Sprintf("a recovery from a snapshot and %d events after it; yardstick: Query of the newest snapshot, then Query of the events after it", tail),
		ours:  r.ours, bare: r.bare,
	}, nil
}

type recoveries struct {
	l     *lab
	store store
}

// ours does what the framework does when an actor starts.
func (r *recoveries) ours(context.Context) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("recover: %v", cause)
		}
	}()
	session := r.store.GetState()
	_, index, found := session.GetSnapshot(id)
	events := 0
	session.GetEvents(id, index, 0, func(any) { events++ })
	return r.expect(found, int64(index), events)
}

func (r *recoveries) bare(ctx context.Context) error {
	out, err := r.l.client.Query(ctx, newest(r.store.snapshots))
	if err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	for _, it := range out.Items {
		if err := decode(it); err != nil {
			return err
		}
	}
	events := 0
	tailOut, err := r.l.client.Query(ctx, since(r.store.events, covered+1))
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	for _, it := range tailOut.Items {
		if err := decode(it); err != nil {
			return err
		}
		events++
	}
	return r.expect(len(out.Items) == 1, covered, events)
}

func (r *recoveries) expect(found bool, index int64, events int) error {
	if !found || index != covered || events != tail {
		return fmt.Errorf("recovered from a snapshot: %t, at index %d, with %d events", found, index, events)
	}
	return nil
}
