package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// calm ends trouble, and returns the error that came before, if any.
func calm(ctx context.Context, f func(context.Context, Trouble) error, before error) error {
	return first(before, f(ctx, Calm))
}

// impatient does what cannot be done, and gives it little time.
func impatient(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	return f(ctx)
}

// journalTrouble are cases about requests that fail.
func journalTrouble() Suite[JournalEnv] {
	needs := []Feature{Faults}
	return Suite[JournalEnv]{
		{
			Name: "J-44 J-32 a write whose answer is lost", Why: "a store that takes its own retry for a conflict kills healthy actors", Needs: needs,
			Check: func(ctx context.Context, e JournalEnv) error {
				if err := first(put(ctx, e.Store, "a", 0, text("1")), e.Trouble(ctx, LoseAnswer)); err != nil {
					return err
				}
				err := put(ctx, e.Store, "a", 1, text("2"))
				if err := calm(ctx, e.Trouble, err); err != nil {
					return err
				}
				if err := e.Trouble(ctx, LoseAnswer); err != nil {
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
				if err := first(put(ctx, e.Store, "a", 0, text("1")), e.Trouble(ctx, FailWrites)); err != nil {
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
				if err := first(five(ctx, e.Store), e.Trouble(ctx, FailReads)); err != nil {
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
				if err := e.Trouble(ctx, Throttle); err != nil {
					return err
				}
				return first(put(ctx, e.Store, "a", 0, text("1")), e.Trouble(ctx, Throttle),
					put(ctx, e.Store, "a", 1, numbered(2, 3)...), e.Trouble(ctx, Calm), holds(ctx, e.Store, "a", 3))
			},
		},
		{
			Name: "J-42 writes of many that seem to be under way", Why: "a write that meets its own ghost must wait for it, not fail", Needs: needs,
			Check: func(ctx context.Context, e JournalEnv) error {
				if err := first(put(ctx, e.Store, "a", 0, text("1")), e.Trouble(ctx, InProgress)); err != nil {
					return err
				}
				err := put(ctx, e.Store, "a", 1, numbered(2, 4)...)
				return first(calm(ctx, e.Trouble, err), holds(ctx, e.other(), "a", 4), put(ctx, e.Store, "a", 4, text("5")), holds(ctx, e.Store, "a", 5))
			},
		},
		{
			Name: "J-53 a deletion of which a batch is done in part", Why: "what a batch hands back must be sent again", Needs: []Feature{Faults, Deletion},
			Check: func(ctx context.Context, e JournalEnv) error {
				if err := first(fill(ctx, e.Store, 60), e.Trouble(ctx, HalfBatch)); err != nil {
					return err
				}
				err := e.Store.DeleteTo(ctx, "a", 55)
				return first(calm(ctx, e.Trouble, err), replays(ctx, e.other(), "a", 1, 0, 56, 60), headIs(ctx, e.other(), "a", 60))
			},
		},
		{
			Name: "J-53 a deletion of which no batch is done", Why: "who asks for a deletion must hear that it did not happen, and can ask again", Needs: []Feature{Faults, Deletion},
			Check: func(ctx context.Context, e JournalEnv) error {
				if err := first(fill(ctx, e.Store, 60), e.Trouble(ctx, StuckBatch)); err != nil {
					return err
				}
				err := impatient(ctx, func(ctx context.Context) error { return e.Store.DeleteTo(ctx, "a", 55) })
				if err := e.Trouble(ctx, Calm); err != nil {
					return err
				}
				if err != nil {
					if err := e.Store.DeleteTo(ctx, "a", 55); err != nil {
						return fmt.Errorf("deletion once more: %w", err)
					}
				}
				return first(replays(ctx, e.other(), "a", 1, 0, 56, 60), headIs(ctx, e.other(), "a", 60),
					put(ctx, e.other(), "a", 60, text("61")), replays(ctx, e.Store, "a", 1, 0, 56, 61))
			},
		},
		{
			Name: "J-70 a deletion that fails", Why: "who asks for a deletion must hear that it did not happen", Needs: []Feature{Faults, Deletion},
			Check: func(ctx context.Context, e JournalEnv) error {
				if err := first(five(ctx, e.Store), e.Trouble(ctx, FailWrites)); err != nil {
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
	if err := first(put(ctx, e.Store, "a", 0, text("1")), e.Trouble(ctx, LoseAll)); err != nil {
		return err
	}
	_, err := e.Store.Append(ctx, "a", 1, numbered(2, n+1)...)
	if err := e.Errors.wantUnknown("append of which no answer comes", err); err != nil {
		return err
	}
	return first(e.Trouble(ctx, Calm), holds(ctx, e.other(), "a", n+1), holds(ctx, e.Store, "a", n+1))
}
