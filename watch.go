package dynactor

import (
	"context"
	"errors"
	"time"
)

// limited is a context with a limit of time that the caller's watch keeps. A timer
// for each request would cost more than all else that is done here: starting the
// earliest one wakes a thread.
type limited struct {
	context.Context

	cancel context.CancelCauseFunc
	ends   time.Time
}

func limit(ctx context.Context, d time.Duration) limited {
	ctx, cancel := context.WithCancelCause(ctx)
	return limited{Context: ctx, cancel: cancel, ends: time.Now().Add(d)}
}

// Err tells the end of time from the wish of the caller.
func (l *limited) Err() error {
	err := l.Context.Err()
	if err != nil && errors.Is(context.Cause(l.Context), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err //nolint:wrapcheck // the context's own error
}

// Deadline is the earlier one of its own and the parent's.
func (l *limited) Deadline() (time.Time, bool) {
	if d, ok := l.Context.Deadline(); ok && d.Before(l.ends) {
		return d, true
	}
	return l.ends, true
}

// expire ends the context when its time is over.
func (l *limited) expire(now time.Time) {
	if !now.Before(l.ends) {
		l.cancel(context.DeadlineExceeded)
	}
}

// watchTick is how often the watch looks, so by how much a limit can be exceeded.
func watchTick(limit time.Duration) time.Duration {
	return min(max(limit/100, time.Millisecond), 100*time.Millisecond)
}

// watch makes sure that the limits are kept while calls are in flight. The watcher
// stops by itself, at most a tick after the last one. The caller's lock is held.
func (c *caller) watch() {
	if c.watching {
		return
	}
	c.watching = true
	if c.watcher == nil {
		c.watcher = time.AfterFunc(c.tick, c.look)
		return
	}
	c.watcher.Reset(c.tick)
}

func (c *caller) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) == 0 {
		c.watching = false
		return
	}
	now := time.Now()
	for k := range c.calls {
		k.expire(now)
		if a := k.attempt.Load(); a != nil {
			a.expire(now)
		}
	}
	c.watcher.Reset(c.tick)
}
