package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// sessionTrouble are cases about requests that fail and items that are damaged.
func sessionTrouble() Suite[ProviderEnv] {
	type session = persistence.ProviderState
	faults, tampering := []Feature{Faults}, []Feature{Tampering}
	return Suite[ProviderEnv]{
		begin("F-50 writes that fail", "the framework takes a return for success, so failure must panic", faults, 2, func(ctx context.Context, e ProviderEnv, s session) error {
			if err := e.Trouble(ctx, FailWrites); err != nil {
				return err
			}
			err := persist(s, "a", 2, 2)
			if err := first(want("event while writes fail", err, nil), e.Trouble(ctx, Calm)); err != nil {
				return err
			}
			s, err = resumes(e.Provider, "a", "", 0, 1)
			return first(err, persist(s, "a", 2, 2), finds(e.other(), "a", "", 0, 2))
		}),
		begin("F-51 J-44 a write whose answer is lost", "a provider that takes its own retry for a conflict kills healthy actors", faults, 2, func(ctx context.Context, e ProviderEnv, s session) error {
			return first(e.Trouble(ctx, LoseAnswer), persist(s, "a", 2, 2), e.Trouble(ctx, Calm), persist(s, "a", 3, 3), finds(e.other(), "a", "", 0, 3))
		}),
		begin("F-52 a write of which no answer comes", "unknown is neither success nor failure; the next recovery decides", faults, 2, func(ctx context.Context, e ProviderEnv, s session) error {
			if err := e.Trouble(ctx, LoseAll); err != nil {
				return err
			}
			err := persist(s, "a", 2, 2)
			if err := first(e.Errors.wantUnknown("event of which no answer comes", err), e.Trouble(ctx, Calm)); err != nil {
				return err
			}
			if err := want("an event after an unknown one", persist(s, "a", 2, 2), nil); err != nil {
				return err
			}
			s, err = resumes(e.Provider, "a", "", 0, 2)
			return first(err, persist(s, "a", 3, 3))
		}),
		begin("F-58 an incarnation whose write failed", "its actor may hold what is not stored: it must not go on until it has recovered", faults, 2, func(ctx context.Context, e ProviderEnv, s session) error {
			return dead(ctx, e, s, FailWrites, 1)
		}),
		begin("F-58 an incarnation whose write may be stored", "it knows neither its number nor its state: it must not go on until it has recovered", faults, 2, func(ctx context.Context, e ProviderEnv, s session) error {
			return dead(ctx, e, s, LoseAll, 2)
		}),
		begin("F-53 S-14 reads that fail", "an actor that takes a failure for an empty past begins at 0", faults, 3, func(ctx context.Context, e ProviderEnv, s session) error {
			if err := first(snapshot(s, 2), e.Trouble(ctx, FailReads)); err != nil {
				return err
			}
			_, got, err := recovers(e.Provider, "a")
			if err == nil {
				return fmt.Errorf("reads fail, and recovery gets snapshot %q and events %s and no error", got.snapshot, brief(got.events))
			}
			return first(e.Trouble(ctx, Calm), finds(e.Provider, "a", "s2", 2, 2))
		}),
		begin("F-54 a snapshot that cannot be saved", "the event is stored and acknowledged, so the actor must live on", faults, 3, func(ctx context.Context, e ProviderEnv, s session) error {
			return first(e.Trouble(ctx, FailWrites), snapshot(s, 3), e.Trouble(ctx, Calm), persist(s, "a", 3, 3), finds(e.other(), "a", "", 0, 3))
		}),
		begin("F-55 J-25 an event is missing", "a shorter history is a wrong balance, and the next write would hide it", tampering, 5, func(ctx context.Context, e ProviderEnv, _ session) error {
			return harmed(ctx, e, Lose, e.Errors.Gap)
		}),
		begin("F-56 an event cannot be decoded", "the framework counts callbacks, so one that is passed over makes the next write overwrite", tampering, 5, func(ctx context.Context, e ProviderEnv, _ session) error {
			return harmed(ctx, e, Spoil, e.Errors.Decode)
		}),
		begin("F-57 the newest event is missing under a snapshot", "a snapshot ahead of the events holds a state that nobody can check", []Feature{Tampering}, 3, func(ctx context.Context, e ProviderEnv, s session) error {
			if err := first(snapshot(s, 3), e.Damage(ctx, "a", 2, Lose)); err != nil {
				return err
			}
			s, _, err := recovers(e.Provider, "a")
			if err == nil { // a store that remembers its head may go on there
				err = failure(func() { s.PersistEvent("a", 3, wrapperspb.String("3")) })
				return first(err, finds(e.other(), "a", "s3", 3, 3))
			}
			return want("recovery with a snapshot ahead", err, e.Errors.Ahead)
		}),
	}
}

// harmed harms the event at index 2 of five, and wants a recovery that fails
// without anything out of place.
func harmed(ctx context.Context, e ProviderEnv, harm Harm, kind error) error {
	if err := e.Damage(ctx, "a", 2, harm); err != nil {
		return err
	}
	_, got, err := recovers(e.Provider, "a")
	if err := want("recovery over a damaged event", err, kind); err != nil {
		return err
	}
	if len(got.events) > 2 || !slices.Equal(got.events, indices(0, len(got.events)-1)) {
		return errors.New("recovery delivers " + brief(got.events) + ", of which index 2 is damaged")
	}
	return nil
}

// dead lets the event at index 2 fail, after which "last" is the last index that
// is stored, and wants the incarnation to do nothing more until it recovers.
func dead(ctx context.Context, e ProviderEnv, s persistence.ProviderState, kind Trouble, last int) error {
	if err := e.Trouble(ctx, kind); err != nil {
		return err
	}
	err := persist(s, "a", 2, 2)
	if err := first(want("event in trouble", err, nil), e.Trouble(ctx, Calm)); err != nil {
		return err
	}
	for _, index := range []int{2, 3, 2} { // an actor that was resumed has counted on, or has not
		err := failure(func() { s.PersistEvent("a", index, wrapperspb.String("x")) })
		if err := want(fmt.Sprintf("event at index %d after one that failed", index), err, nil); err != nil {
			return err
		}
	}
	for _, index := range []int{2, 3} { // its state may have an event that is not stored
		_ = failure(func() { s.PersistSnapshot("a", index, wrapperspb.String(fmt.Sprint("s", index))) })
	}
	if err := finds(e.other(), "a", "", 0, last); err != nil {
		return fmt.Errorf("after the end of an incarnation: %w", err)
	}
	var got []string
	if err := failure(func() {
		s.Restart()
		_, index, _ := s.GetSnapshot("a")
		s.GetEvents("a", index, 0, func(m any) { got = append(got, textOf(m)) })
	}); err != nil || !slices.Equal(got, indices(0, last)) {
		return fmt.Errorf("after Restart it recovers %s, %v, want %s", brief(got), err, brief(indices(0, last))) //nolint:errorlint // it may be nil
	}
	return first(persist(s, "a", last+1, last+1), finds(e.other(), "a", "", 0, last+1))
}
