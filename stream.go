package dynactor

import (
	"context"
	"sync"
)

// rangesAhead is how many ranges of a long history are read at once. Each holds
// at most two pages of 1 MB, which bounds the memory of a replay.
const rangesAhead = 4

// page is one answer on its way to the consumer.
type page struct {
	items []item
	err   error
}

// stream reads the events from lo to hi and gives them to take in order. Since
// the numbers are contiguous, a history longer than a page is cut into ranges
// that are read at the same time, ahead of the consumer. No request waits for
// take, and nothing runs on when stream returns.
func (j *Journal) stream(ctx context.Context, id string, lo, hi int64, take func(item) error) error {
	items, next, more, err := j.page(ctx, id, lo, hi)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	ranges := make(chan chan page, rangesAhead-1)
	if more {
		width := max(int64(len(items)), 1)
		running.Go(func() {
			defer close(ranges)
			for from := next; from <= hi && from > 0; from += width {
				pages := make(chan page, 1)
				select {
				case ranges <- pages:
				case <-ctx.Done():
					return
				}
				to := from + min(width-1, hi-from)
				running.Go(func() { j.readRange(ctx, id, from, to, pages) })
			}
		})
	} else {
		close(ranges)
	}

	for _, it := range items {
		if err := take(it); err != nil {
			return err
		}
	}
	for pages := range ranges {
		for p := range pages {
			if p.err != nil {
				return p.err
			}
			for _, it := range p.items {
				if err := take(it); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// readRange reads the pages of one range.
func (j *Journal) readRange(ctx context.Context, id string, lo, hi int64, pages chan<- page) {
	defer close(pages)
	for more := true; more; {
		var p page
		p.items, lo, more, p.err = j.page(ctx, id, lo, hi)
		select {
		case pages <- p:
		case <-ctx.Done():
			return
		}
		if p.err != nil {
			return
		}
	}
}

// together runs functions at the same time and returns the first error in their order.
func together(fs ...func() error) error {
	errs := make([]error, len(fs))
	var running sync.WaitGroup
	for i, f := range fs[1:] {
		running.Go(func() { errs[i+1] = f() })
	}
	errs[0] = fs[0]()
	running.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
