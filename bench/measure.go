package main

import (
	"context"
	"runtime"
	"slices"
	"time"
)

// workload is one path to measure, and a bare SDK loop that does the same.
type workload struct {
	about string
	item  *written
	// nowhere says that no server takes part.
	nowhere bool

	ours, bare func(context.Context) error // one operation
	// swap exchanges the tables that the two work on, so that neither has the
	// better place. Nil: it makes no difference.
	swap func(context.Context) error
	// check tells whether all operations did what they should. Nil: they say so themselves.
	check func(context.Context) error
}

// loop is one of the two loops, and what was measured of it.
type loop struct {
	op     func(context.Context) error
	times  []float64 // of each operation, in ns
	allocs []float64 // of each batch, per operation
}

// budget ends a case that has not made its operations by then.
const budget = 4 * time.Second

// measure runs both loops in turn, in small batches, A B B A and then B A A B,
// so that whatever else the machine does meets both alike. Halfway it swaps their
// places. It makes ops operations of each, fewer when that takes long.
func measure(ctx context.Context, w *workload, ops, batch int) (ours, bare loop, err error) {
	ours.op, bare.op = w.ours, w.bare
	batch = min(batch, ops)
	if err := warmUp(ctx, w, batch); err != nil {
		return ours, bare, err
	}
	rounds := max(2, (ops+2*batch-1)/(2*batch))
	start, swapped := time.Now(), w.swap == nil
	for r := 0; r < rounds && (!swapped || r < 2 || time.Since(start) < budget); r++ {
		if !swapped && (r >= rounds/2 || (r > 0 && time.Since(start) > budget/2)) {
			if err := w.swap(ctx); err != nil {
				return ours, bare, err
			}
			if err := warmUp(ctx, w, batch); err != nil {
				return ours, bare, err
			}
			swapped = true
		}
		first, second := &ours, &bare
		if r%2 == 1 {
			first, second = second, first
		}
		for _, l := range []*loop{first, second, second, first} {
			if err := l.run(ctx, batch); err != nil {
				return ours, bare, err
			}
		}
	}
	return ours, bare, nil
}

func warmUp(ctx context.Context, w *workload, n int) error {
	for _, op := range []func(context.Context) error{w.ours, w.bare} {
		for range n {
			if err := op(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// run measures a batch.
func (l *loop) run(ctx context.Context, n int) error {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		start := time.Now()
		if err := l.op(ctx); err != nil {
			return err
		}
		l.times = append(l.times, float64(time.Since(start).Nanoseconds()))
	}
	runtime.ReadMemStats(&after)
	l.allocs = append(l.allocs, float64(after.Mallocs-before.Mallocs)/float64(n))
	return nil
}

// middle is the mean of the middle half, which leaves out what was interrupted.
func middle(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	quarter := len(values) / 4
	values = values[quarter : len(values)-quarter]
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
