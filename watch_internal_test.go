package dynactor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func newWatch(tick time.Duration) *caller {
	return &caller{tick: tick, now: time.Now, calls: map[*call]struct{}{}}
}

func TestWatch(t *testing.T) {
	t.Parallel()

	t.Run("ends each call and each attempt in its own time", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := newWatch(10 * time.Millisecond)
			start := time.Now()
			short, long := &call{caller: c, limit: time.Second}, &call{caller: c, limit: 2 * time.Second}
			for _, k := range []*call{short, long} {
				if err := k.begin(t.Context()); err != nil {
					t.Fatal(err)
				}
				defer k.end()
			}
			attempt := limit(long, time.Second/2)
			long.attempt.Store(&attempt)
			for _, tc := range []struct {
				ctx  context.Context
				want time.Duration
			}{{&attempt, time.Second / 2}, {short, time.Second}, {long, 2 * time.Second}} {
				<-tc.ctx.Done()
				if err := tc.ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v, want the end of time", err)
				}
				if got := time.Since(start); got < tc.want || got > tc.want+c.tick {
					t.Errorf("ended after %s, want %s", got, tc.want)
				}
			}
		})
	})

	t.Run("stops when nothing is in flight, and starts again", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := newWatch(10 * time.Millisecond)
			for range 2 {
				k := &call{caller: c, limit: time.Second}
				if err := k.begin(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second / 2)
				k.end()
				time.Sleep(time.Second)
				if c.watcher.Stop() {
					t.Error("the watcher still runs")
				}
				k = &call{caller: c, limit: time.Second / 10}
				if err := k.begin(t.Context()); err != nil {
					t.Fatal(err)
				}
				<-k.Done()
				k.end()
			}
		})
	})

	t.Run("a caller's own wish and deadline stay what they are", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			canceled, cancel := context.WithCancel(t.Context())
			cancel()
			l := limit(canceled, time.Second)
			defer l.cancel(nil)
			if err := l.Err(); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want %v", err, context.Canceled)
			}
			sooner, cancel := context.WithTimeout(t.Context(), time.Second/2)
			defer cancel()
			l = limit(sooner, time.Second)
			defer l.cancel(nil)
			if d, _ := l.Deadline(); time.Until(d) != time.Second/2 {
				t.Errorf("the deadline is in %s, want the caller's", time.Until(d))
			}
			<-l.Done()
			if err := l.Err(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
			}
		})
	})
}
