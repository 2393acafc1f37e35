package conformance_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/conformance"
)

// highMutants are wrong about high numbers.
func highMutants() []mutant {
	const high = "J-21 high numbers"
	return []mutant{
		badJournal("counts in floating point", high, func(s store, b *brokenJournal) {
			b.replay = edits(s, func(_ string, events []event, err error) ([]event, error) {
				for i := range events {
					events[i].Seq = int64(float64(events[i].Seq))
				}
				return events, err
			})
		}),
		badJournal("counts with 32 bits", high, func(s store, b *brokenJournal) {
			b.head = func(ctx context.Context, id string) (int64, error) {
				head, err := s.Head(ctx, id)
				return int64(int32(head)), err //nolint:gosec // this is what is wrong with it
			}
		}),
		badJournal("sorts high numbers as text", high, func(s store, b *brokenJournal) {
			b.replay = edits(s, func(_ string, events []event, err error) ([]event, error) {
				slices.SortFunc(events, func(a, b event) int {
					return strings.Compare(strconv.FormatInt(a.Seq, 10), strconv.FormatInt(b.Seq, 10))
				})
				return events, err
			})
		}),
	}
}

// batchMutants do not look at what becomes of a batch.
func batchMutants() []mutant {
	// bad makes a mutant whose deletions fare otherwise in trouble of a kind.
	bad := func(name, by string, kind conformance.Trouble, deleteTo func(ctx context.Context, s store, id string, seq int64) error) mutant {
		return on(conformance.Journal(), memoryJournal, name, by, func(e *conformance.JournalEnv) {
			now, s := conformance.Calm, e.Store
			e.Trouble = func(_ context.Context, k conformance.Trouble) error {
				now = k
				return nil
			}
			b := &brokenJournal{store: s}
			b.deleteTo = func(ctx context.Context, id string, seq int64) error {
				if now == kind {
					return deleteTo(ctx, s, id, seq)
				}
				return s.DeleteTo(ctx, id, seq)
			}
			e.Store, e.Another = b, func() store { return b }
		})
	}
	const part, stuck = "J-53 a deletion of which a batch is done in part", "J-53 a deletion of which no batch is done"
	return []mutant{
		bad("deletes half of a batch", part, conformance.HalfBatch, func(ctx context.Context, s store, id string, seq int64) error {
			return s.DeleteTo(ctx, id, seq/2)
		}),
		bad("reports half of a batch as a failure", part, conformance.HalfBatch, func(ctx context.Context, s store, id string, seq int64) error {
			return errors.Join(dynactor.ErrThrottled, s.DeleteTo(ctx, id, seq/2))
		}),
		bad("acknowledges a batch that was not done", stuck, conformance.StuckBatch, func(context.Context, store, string, int64) error { return nil }),
		bad("deletes beyond a batch that was not done", stuck, conformance.StuckBatch, func(ctx context.Context, s store, id string, seq int64) error {
			return errors.Join(dynactor.ErrThrottled, s.DeleteTo(ctx, id, seq+1))
		}),
	}
}
