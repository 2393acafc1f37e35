package conformance

import (
	"context"
	"errors"
	"fmt"
)

// calm ends trouble, and returns the error that came before, if any.
func calm(ctx context.Context, f func(context.Context, Trouble) error, before error) error {
	return first(before, f(ctx, Calm))
}

// journalTrouble are cases about requests that fail.
func journalTrouble() Suite[JournalEnv] {
	needs := []Feature{Faults}
	return Suite[JournalEnv]{
		{
			Name: "J-44 J-32 a write whose answer is lost", Why: "a store that takes its own retry for a conflict kills healthy actors", Needs: needs,
			Check: func(ctx context.Context, e JournalEnv) error {
				if err := first(put(ctx, e.Store, "a", 0, text("1")), trouble(ctx, e.Trouble, LoseAnswer)); err != nil {
					return err
				}
				err := put(ctx, e.Store, "a", 1, text("2"))
				if err := calm(ctx, e.Trouble, err); err != nil {
					return err
				}
				if err := trouble(ctx, e.Trouble, LoseAnswer); err != nil {
					return err
				}
				err = put(ctx, e.Store, "a", 2, numbered(3, 5)...)
				return first(calm(ctx, e.Trouble, err), holds(ctx, e.other(), "a", 5))
			},
		},
		{
			Name: "J-30 a write of which no answer comes", Why: "unknown is neither success nor failure: a caller who takes it for one of them pays twice or not at all", Needs: needs,
			Check: func(ctx context.Context, e JournalEnv) error { return checkUnknown(ctx, e, 1) },
		},
		{
			Name: "J-30 an append of many of which no answer comes", Why: "unknown is unknown as a whole", Needs: needs,
			Check: func(ctx context.Context, e JournalEnv) error { return checkUnknown(ctx, e, 3) },
		},
		{
			Name: "J-30 writes that fail", Why: "what is acknowledged must be stored, and what is not stored must not be acknowledged", Needs: needs,
			Check: func(ctx context.Context, e JournalEnv) error {
				if err := first(put(ctx, e.Store, "a", 0, text("1")), trouble(ctx, e.Trouble, FailWrites)); err != nil {
					return err
				}
				_, err := e.Store.Append(ctx, "a", 1, text("x"))
				if err == nil || e.Errors.Conflict != nil && errors.Is(err, e.Errors.Conflict) {
					return fmt.Errorf("append while writes fail: %v, want a failure that is no conflict", err) //nolint:errorlint // it may be nil
				}
				return first(e.Trouble(ctx, Calm), holds(ctx, e.other(), "a", 1), put(ctx, e.other(), "a", 1, text("2")), holds(ctx, e.Store, "a", 2))
			},
		},
		{
			Name: "J-30 reads that fail", Why: "what cannot be read is not absent", Needs: needs,
			Check: func(ctx context.Context, e JournalEnv) error {
				if err := first(five(ctx, e.Store), trouble(ctx, e.Trouble, FailReads)); err != nil {
					return err
				}
				_, err := collect(ctx, e.Store, "a", 1, 0, -1)
				if err := want("replay while reads fail", err, nil); err != nil {
					return err
				}
				_, err = e.Store.Head(ctx, "a")
				return first(want("head while reads fail", err, nil), e.Trouble(ctx, Calm), holds(ctx, e.Store, "a", 5))
			},
		},
		{
			Name: "J-41 J-43 writes that are throttled for a while", Why: "a short lack of capacity must not stop an actor", Needs: needs,
			Check: func(ctx context.Context, e JournalEnv) error {
				if err := trouble(ctx, e.Trouble, Throttle); err != nil {
					return err
				}
				return first(put(ctx, e.Store, "a", 0, text("1")), e.Trouble(ctx, Throttle),
					put(ctx, e.Store, "a", 1, numbered(2, 3)...), e.Trouble(ctx, Calm), holds(ctx, e.Store, "a", 3))
			},
		},
		{
			Name: "J-70 a deletion that fails", Why: "who asks for a deletion must hear that it did not happen", Needs: []Feature{Faults, Deletion},
			Check: func(ctx context.Context, e JournalEnv) error {
				if err := first(five(ctx, e.Store), trouble(ctx, e.Trouble, FailWrites)); err != nil {
					return err
				}
				err := e.Store.DeleteTo(ctx, "a", 3)
				return first(want("deletion while writes fail", err, nil), e.Trouble(ctx, Calm), holds(ctx, e.other(), "a", 5))
			},
		},
	}
}

// checkUnknown loses every answer to an append.
func checkUnknown(ctx context.Context, e JournalEnv, n int64) error {
	if err := first(put(ctx, e.Store, "a", 0, text("1")), trouble(ctx, e.Trouble, LoseAll)); err != nil {
		return err
	}
	_, err := e.Store.Append(ctx, "a", 1, numbered(2, n+1)...)
	if err := e.Errors.wantUnknown("append of which no answer comes", err); err != nil {
		return err
	}
	return first(e.Trouble(ctx, Calm), holds(ctx, e.other(), "a", n+1), holds(ctx, e.Store, "a", n+1))
}
