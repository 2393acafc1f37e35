package conformance

import (
	"context"
	"fmt"
	"math"
)

// deleted is a case about a range of the five events, of which some are deleted.
func deleted(name string, to, from, until, lo, hi int64) Case[JournalEnv] {
	return Case[JournalEnv]{
		Name: name, Why: "deleted events must be gone, all others there", Needs: []Feature{Deletion},
		Check: func(ctx context.Context, e JournalEnv) error {
			return first(five(ctx, e.Store), e.Store.DeleteTo(ctx, "a", to),
				replays(ctx, e.other(), "a", from, until, lo, hi), headIs(ctx, e.other(), "a", 5))
		},
	}
}

// deleteCases are about the deletion of events.
func deleteCases() Suite[JournalEnv] {
	needs := []Feature{Deletion}
	const reused = "a number that is used twice is an event that was changed"
	return Suite[JournalEnv]{
		deleted("J-58 the first three", 3, 1, 0, 4, 5),
		deleted("J-61 all of them", math.MaxInt64, 1, 0, 1, 0),
		deleted("J-65 a range that begins at the last deleted", 3, 3, 0, 4, 5),
		deleted("J-66 a range within the deleted", 3, 1, 2, 1, 0),
		deleted("J-67 a range that ends with the last deleted", 3, 1, 3, 1, 0),
		deleted("J-68 a range that begins after the deleted", 3, 4, 0, 4, 5),
		deleted("J-69 a range over the deleted", 3, 1, 4, 4, 4),
		{
			Name: "J-59 twice", Why: "a deletion that is repeated after a crash must succeed", Needs: needs,
			Check: func(ctx context.Context, e JournalEnv) error {
				return first(five(ctx, e.Store), e.Store.DeleteTo(ctx, "a", 3), e.other().DeleteTo(ctx, "a", 3), replays(ctx, e.Store, "a", 1, 0, 4, 5))
			},
		},
		{
			Name: "J-60 less than before", Why: "what was deleted must not come back", Needs: needs,
			Check: func(ctx context.Context, e JournalEnv) error {
				return first(five(ctx, e.Store), e.Store.DeleteTo(ctx, "a", 3), e.other().DeleteTo(ctx, "a", 2),
					replays(ctx, e.Store, "a", 1, 0, 4, 5), refuses(ctx, e, 2, text("x")))
			},
		},
		{
			Name: "J-62 beyond the head", Why: "events that come later must not be born deleted", Needs: needs,
			Check: func(ctx context.Context, e JournalEnv) error {
				return first(five(ctx, e.Store), e.Store.DeleteTo(ctx, "a", 100), headIs(ctx, e.Store, "a", 5),
					put(ctx, e.Store, "a", 5, numbered(6, 7)...), replays(ctx, e.other(), "a", 1, 0, 6, 7))
			},
		},
		{
			Name: "J-63 of an unknown id", Why: "it must leave nothing behind", Needs: needs,
			Check: func(ctx context.Context, e JournalEnv) error {
				return first(e.Store.DeleteTo(ctx, "nobody", 3), headIs(ctx, e.Store, "nobody", 0),
					put(ctx, e.Store, "nobody", 0, text("1")), holds(ctx, e.Store, "nobody", 1))
			},
		},
		{
			Name: "J-64 numbers go on after a deletion of all", Why: reused, Needs: needs,
			Check: func(ctx context.Context, e JournalEnv) error {
				if err := first(five(ctx, e.Store), e.Store.DeleteTo(ctx, "a", 5)); err != nil {
					return err
				}
				for expected := range int64(5) {
					if err := refuses(ctx, e, expected, text("x")); err != nil {
						return err
					}
				}
				return first(put(ctx, e.other(), "a", 5, text("6")), replays(ctx, e.Store, "a", 1, 0, 6, 6), headIs(ctx, e.Store, "a", 6))
			},
		},
		{
			Name: "J-35 below the deleted", Why: reused, Needs: needs,
			Check: func(ctx context.Context, e JournalEnv) error {
				if err := first(five(ctx, e.Store), e.Store.DeleteTo(ctx, "a", 3)); err != nil {
					return err
				}
				for expected := range int64(5) {
					if err := refuses(ctx, e, expected, text("x"), text("y")); err != nil {
						return err
					}
				}
				return first(replays(ctx, e.Store, "a", 1, 0, 4, 5), headIs(ctx, e.Store, "a", 5))
			},
		},
		{
			Name: "J-71 many events", Why: "a deletion in batches must do all of them", Needs: needs,
			Check: func(ctx context.Context, e JournalEnv) error {
				return first(fill(ctx, e.Store, 160), e.Store.DeleteTo(ctx, "a", 130),
					replays(ctx, e.other(), "a", 1, 0, 131, 160), headIs(ctx, e.Store, "a", 160))
			},
		},
		{
			Name: "J-72 while events are appended", Why: "an acknowledged event must not vanish with others", Needs: []Feature{Deletion, Processes},
			Check: checkDeleteBeside,
		},
		{
			Name: "J-58 of one stream only", Why: "other actors keep their history", Needs: needs,
			Check: func(ctx context.Context, e JournalEnv) error {
				return first(five(ctx, e.Store), put(ctx, e.Store, "aa", 0, numbered(1, 3)...), e.Store.DeleteTo(ctx, "a", 5), holds(ctx, e.Store, "aa", 3))
			},
		},
	}
}

func checkDeleteBeside(ctx context.Context, e JournalEnv) error {
	other := e.Another()
	done := make(chan error, 1)
	go func() {
		done <- caught(func() (err error) {
			for i := int64(0); i < rounds && err == nil; i++ {
				err = put(ctx, e.Store, "a", i, numbered(i+1, i+1)...)
			}
			return err
		})
	}()
	for upTo := int64(0); ; {
		select {
		case err := <-done:
			return first(err, replays(ctx, other, "a", 1, 0, upTo+1, rounds), headIs(ctx, other, "a", rounds))
		default:
		}
		head, err := other.Head(ctx, "a")
		if err == nil && head/2 > upTo {
			upTo = head / 2
			err = other.DeleteTo(ctx, "a", upTo)
		}
		if err != nil {
			return first(fmt.Errorf("deletion to %d: %w", upTo, err), <-done)
		}
	}
}
