package main

import (
	"context"
	"fmt"

	"github.com/asynkron/protoactor-go/persistence"

	"github.com/dynactor/dynactor"
)

// persisting is one event by a session, as an actor persists it, after length
// events.
func persisting(length int64) func(context.Context, *lab) (*workload, error) {
	return func(ctx context.Context, l *lab) (*workload, error) {
		p := &persists{l: l}
		for i := range p.streams {
			s, err := l.store(ctx, dynactor.Options{})
			if err != nil {
				return nil, err
			}
			if err := l.fill(ctx, s.events, length, deposit); err != nil {
				return nil, err
			}
			p.streams[i] = &stream{store: s, head: length}
		}
		it, err := eventItem(length+1, deposit)
		if err != nil {
			return nil, err
		}
		w := &workload{
			about: fmt.Sprintf("one event by a session after %s; id %q, a %s, item of %d bytes; yardstick: PutItem of the same item",
				grouped(int(length)), id, deposit.ProtoReflect().Descriptor().FullName(), size(it)),
			item: &written{ID: id, Type: string(deposit.ProtoReflect().Descriptor().FullName()), Bytes: size(it)},
			ours: p.ours, bare: p.bare, swap: p.swap,
		}
		return w, p.enter(ctx)
	}
}

// persistingNowhere is the client's share of it: each request is answered at
// once, without a network.
func persistingNowhere(ctx context.Context, l *lab) (*workload, error) {
	w, err := persisting(0)(ctx, l)
	if err != nil {
		return nil, err
	}
	w.about += "; no server, the transport answers at once"
	w.nowhere, w.swap = true, nil // a new session would find an empty stream
	return w, nil
}

// stream is a stream of events in a store of its own.
type stream struct {
	store

	head int64
}

// persists persists to two streams: the library to the first, the yardstick to
// the second.
type persists struct {
	l       *lab
	streams [2]*stream
	session persistence.ProviderState
}

// enter makes a session and lets it find its place with a first event.
func (p *persists) enter(ctx context.Context) error {
	p.session = p.streams[0].GetState()
	return p.ours(ctx)
}

func (p *persists) swap(ctx context.Context) error {
	p.streams[0], p.streams[1] = p.streams[1], p.streams[0]
	return p.enter(ctx)
}

func (p *persists) ours(context.Context) error {
	s := p.streams[0]
	if err := persist(p.session, s.head); err != nil {
		return err
	}
	s.head++
	return nil
}

func (p *persists) bare(ctx context.Context) error {
	s := p.streams[1]
	it, err := eventItem(s.head+1, deposit)
	if err != nil {
		return err
	}
	if _, err := p.l.client.PutItem(ctx, putEvent(s.events, it)); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	s.head++
	return nil
}

// persist makes an error of the session's panic.
func persist(session persistence.ProviderState, index int64) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("persist event: %v", cause)
		}
	}()
	session.PersistEvent(id, int(index), deposit)
	return nil
}
