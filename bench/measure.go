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
	sizes *itemize

	ours, bare func(context.Context) error // one operation
	// swap exchanges the tables that the two work on, so that neither has the
	// better place. Nil: it makes no difference.
	swap func(context.Context) error
	// check tells whether all operations did what they should. Nil: they say so themselves.
	check func(context.Context) error
}

// sample is one batch of operations of each kind, per operation.
type sample struct{ ns, allocs float64 }

// measure runs both loops in turn, in small batches, so that whatever else the
// machine does meets both alike. A round is A B B A, the next one B A A B.
func measure(ctx context.Context, w *workload, ops, batch int) (ns, ratio float64, heap allocs, err error) {
	batch = min(batch, ops)
	rounds := max(2, (ops+2*batch-1)/(2*batch))
	var times, ratios, ourAllocs, bareAllocs []float64
	for r := range rounds {
		if r == 0 || (w.swap != nil && r == rounds/2) {
			if err := warmUp(ctx, w, r > 0, batch); err != nil {
				return 0, 0, heap, err
			}
		}
		first, second := w.ours, w.bare
		if r%2 == 1 {
			first, second = second, first
		}
		var got [4]sample
		for i, op := range []func(context.Context) error{first, second, second, first} {
			if got[i], err = timed(ctx, op, batch); err != nil {
				return 0, 0, heap, err
			}
		}
		ours, bare := mean(got[0], got[3]), mean(got[1], got[2])
		if r%2 == 1 {
			ours, bare = bare, ours
		}
		times, ratios = append(times, ours.ns), append(ratios, ours.ns/bare.ns)
		ourAllocs, bareAllocs = append(ourAllocs, ours.allocs), append(bareAllocs, bare.allocs)
	}
	heap = allocs{PerOp: middle(ourAllocs), Bare: middle(bareAllocs)}
	heap.Ratio = heap.PerOp / heap.Bare
	return middle(times), middle(ratios), heap, nil
}

// warmUp runs a batch of each, after a swap where one is due.
func warmUp(ctx context.Context, w *workload, swap bool, batch int) error {
	if swap {
		if err := w.swap(ctx); err != nil {
			return err
		}
	}
	for _, op := range []func(context.Context) error{w.ours, w.bare} {
		if _, err := timed(ctx, op, batch); err != nil {
			return err
		}
	}
	return nil
}

func timed(ctx context.Context, op func(context.Context) error, n int) (sample, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	for range n {
		if err := op(ctx); err != nil {
			return sample{}, err
		}
	}
	spent := time.Since(start)
	runtime.ReadMemStats(&after)
	return sample{
		ns:     float64(spent.Nanoseconds()) / float64(n),
		allocs: float64(after.Mallocs-before.Mallocs) / float64(n),
	}, nil
}

func mean(a, b sample) sample {
	return sample{ns: (a.ns + b.ns) / 2, allocs: (a.allocs + b.allocs) / 2}
}

// middle is the mean of the middle half.
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
