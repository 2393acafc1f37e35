package main

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// workers do numbered pieces of work, so many at a time, and tell how far they are.
type workers struct {
	atATime int
	out     io.Writer
	every   time.Duration // how often they tell
}

// do calls piece for 0 to n-1, until one fails or ctx ends. It returns the first
// error, and when it returns, no piece is under way any more.
func (w workers) do(ctx context.Context, what string, n int, piece func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var next, done atomic.Int64
	var working, telling sync.WaitGroup
	telling.Go(func() { w.tell(ctx, what, n, &done) })
	for range min(n, w.atATime) {
		working.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := piece(ctx, i); err != nil {
					cancel(err)
					return
				}
				done.Add(1)
			}
		})
	}
	working.Wait()
	err := context.Cause(ctx)
	cancel(nil)
	telling.Wait()
	return err
}

func (w workers) tell(ctx context.Context, what string, n int, done *atomic.Int64) {
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for last := int64(0); ; {
		select {
		case <-tick.C:
			if now := done.Load(); now != last {
				say(w.out, "%s: %d of %d\n", what, now, n)
				last = now
			}
		case <-ctx.Done():
			return
		}
	}
}
