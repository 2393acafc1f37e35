package conformance

import (
	"context"
	"fmt"
	"strconv"
	"sync"
)

// rounds is how often two writers race.
const rounds = 40

// raceCases are about several writers at a time.
func raceCases() Suite[JournalEnv] {
	return Suite[JournalEnv]{
		{
			Name: "J-33 two writers race for a number", Why: "in a split brain exactly one may win", Needs: []Feature{Processes},
			Check: func(ctx context.Context, e JournalEnv) error { return race(ctx, e, 1) },
		},
		{
			Name: "J-33 two writers race with appends of many", Why: "of two transfers one may win, whole", Needs: []Feature{Processes},
			Check: func(ctx context.Context, e JournalEnv) error { return race(ctx, e, 3) },
		},
		{
			Name: "J-27 readers never see half of an append", Why: "half a transfer is money made or lost", Needs: []Feature{Processes},
			Check: checkWhole,
		},
		{
			Name: "J-47 many ids at a time", Why: "actors are independent",
			Check: func(ctx context.Context, e JournalEnv) error {
				const ids, n = 8, 10
				errs := make([]error, ids)
				var wg sync.WaitGroup
				for k := range ids {
					wg.Go(func() {
						errs[k] = caught(func() error {
							id := "a" + strconv.Itoa(k)
							for i := range int64(n) {
								if err := put(ctx, e.Store, id, i, numbered(i+1, i+1)...); err != nil {
									return err
								}
							}
							return holds(ctx, e.Store, id, n)
						})
					})
				}
				wg.Wait()
				return first(errs...)
			},
		},
	}
}

// race lets two processes append size events at the same place, again and again.
func race(ctx context.Context, e JournalEnv, size int64) error {
	writers := []JournalStore{e.Store, e.Another()}
	for head := int64(0); head < rounds*size; head += size {
		errs := make([]error, len(writers))
		var wg sync.WaitGroup
		for w, s := range writers {
			wg.Go(func() {
				errs[w] = caught(func() error { return put(ctx, s, "a", head, repeated(strconv.Itoa(w), size)...) })
			})
		}
		wg.Wait()
		winner := 0
		if errs[0] != nil {
			winner = 1
		}
		if errs[winner] != nil {
			return fmt.Errorf("both writers lose: %w; %w", errs[0], errs[1])
		}
		if err := e.Errors.wantConflict("the second of two writers", errs[1-winner]); err != nil {
			return err
		}
		got, err := collect(ctx, e.Store, "a", head+1, 0, -1)
		if err != nil {
			return err
		}
		if int64(len(got)) != size {
			return fmt.Errorf("there are %d events of the winner, want %d", len(got), size)
		}
		for _, g := range got {
			if textOf(g.Message) != strconv.Itoa(winner) {
				return fmt.Errorf("writer %d won, and number %d is by the other", winner, g.Seq)
			}
		}
	}
	return headIs(ctx, e.Store, "a", rounds*size)
}

// repeated are n events with a text.
func repeated(s string, n int64) []Event {
	list := make([]Event, n)
	for i := range list {
		list[i] = text(s)
	}
	return list
}

// checkWhole reads while pairs are appended.
func checkWhole(ctx context.Context, e JournalEnv) error {
	other := e.Another()
	done := make(chan error, 1)
	go func() {
		done <- caught(func() (err error) {
			for head := int64(0); head < 2*rounds && err == nil; head += 2 {
				err = put(ctx, e.Store, "a", head, numbered(head+1, head+2)...)
			}
			return err
		})
	}()
	for {
		select {
		case err := <-done:
			return first(err, holds(ctx, other, "a", 2*rounds))
		default:
		}
		got, err := collect(ctx, other, "a", 1, 0, -1)
		if err != nil {
			return first(err, <-done)
		}
		if len(got)%2 != 0 {
			return first(fmt.Errorf("a reader sees %d events while they are appended two at a time", len(got)), <-done)
		}
	}
}
