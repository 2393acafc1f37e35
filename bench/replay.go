package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynactor/dynactor"
)

// replaying is a whole history from its first event.
func replaying(length int) func(context.Context, *lab) (*workload, error) {
	return func(ctx context.Context, l *lab) (*workload, error) {
		r, err := newReplays(ctx, l, length)
		if err != nil {
			return nil, err
		}
		if err := l.fill(ctx, r.store.events, int64(length), hundreds); err != nil {
			return nil, err
		}
		return r.workload()
	}
}

// replayingShelf is a long one from memory.
func replayingShelf(length int) func(context.Context, *lab) (*workload, error) {
	return func(ctx context.Context, l *lab) (*workload, error) {
		r, err := newReplays(ctx, l, length)
		if err != nil {
			return nil, err
		}
		w, err := r.workload()
		if err != nil {
			return nil, err
		}
		w.about += "; no server, the pages come from memory after the time in the name"
		w.nowhere = true
		return w, nil
	}
}

// replays reads the same history again and again.
type replays struct {
	l      *lab
	store  store
	length int
}

func newReplays(ctx context.Context, l *lab, length int) (*replays, error) {
	s, err := l.store(ctx, dynactor.Options{})
	return &replays{l: l, store: s, length: length}, err
}

func (r *replays) workload() (*workload, error) {
	it, err := eventItem(int64(r.length), hundreds)
	if err != nil {
		return nil, err
	}
	return &workload{
		about: fmt.Sprintf("a history of %s events, items of %d bytes; yardstick: the SDK's paginator", grouped(r.length), size(it)),
		ours:  r.ours, bare: r.bare,
	}, nil
}

func (r *replays) ours(ctx context.Context) error {
	events := 0
	for _, err := range r.store.Journal().Replay(ctx, id, 1, 0) {
		if err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		events++
	}
	return r.expect(events)
}

func (r *replays) bare(ctx context.Context) error {
	events := 0
	pages := dynamodb.NewQueryPaginator(r.l.client, since(r.store.events, 1))
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("read page: %w", err)
		}
		for _, it := range page.Items {
			if err := decode(it); err != nil {
				return err
			}
			events++
		}
	}
	return r.expect(events)
}

func (r *replays) expect(events int) error {
	if events != r.length {
		return fmt.Errorf("%d events came, want %d", events, r.length)
	}
	return nil
}
