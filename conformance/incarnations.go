package conformance

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// incarnationCases are about two incarnations of one actor, as a split brain makes them.
func incarnationCases() Suite[ProviderEnv] {
	needs := []Feature{Processes, Conflicts}
	type session = persistence.ProviderState
	return Suite[ProviderEnv]{
		begin("F-40 an index that another incarnation took", "in a split brain the second must fail, and then see what the first did", needs, 2, func(_ context.Context, e ProviderEnv, s session) error {
			other, err := resumes(e.other(), "a", "", 0, 1)
			if err := first(err, persist(other, "a", 2, 2)); err != nil {
				return err
			}
			err = failure(func() { s.PersistEvent("a", 2, wrapperspb.String("x")) })
			if err := e.Errors.wantConflict("event at the other's index", err); err != nil {
				return err
			}
			s, err = resumes(e.Provider, "a", "", 0, 2)
			return first(err, persist(s, "a", 3, 3), finds(e.other(), "a", "", 0, 3))
		}),
		begin("F-41 an incarnation that lost goes on to fail", "what it knows is not what is stored", needs, 1, func(_ context.Context, e ProviderEnv, s session) error {
			other, err := resumes(e.other(), "a", "", 0, 0)
			if err := first(err, persist(other, "a", 1, 1)); err != nil {
				return err
			}
			for index := 1; index <= 2; index++ {
				err := failure(func() { s.PersistEvent("a", index, wrapperspb.String("x")) })
				if err := want(fmt.Sprintf("event at index %d after a lost race", index), err, nil); err != nil {
					return err
				}
			}
			_ = failure(func() { s.PersistSnapshot("a", 2, wrapperspb.String("s2")) })
			return finds(e.other(), "a", "", 0, 1)
		}),
		begin("F-42 the same event by two incarnations", "equal bytes prove nothing: two deposits of 10 are 20", needs, 1, func(_ context.Context, e ProviderEnv, s session) error {
			other, err := resumes(e.other(), "a", "", 0, 0)
			if err := first(err, persist(other, "a", 1, 1)); err != nil {
				return err
			}
			return first(e.Errors.wantConflict("the same event once more", persist(s, "a", 1, 1)), finds(e.other(), "a", "", 0, 1))
		}),
		{
			Name: "F-43 two incarnations race", Why: "in a split brain exactly one may win", Needs: needs,
			Check: checkIncarnationRace,
		},
		begin("F-44 an incarnation that recovers while another writes", "it must see a beginning of the history, and nothing else", []Feature{Processes}, 1, func(_ context.Context, e ProviderEnv, s session) error {
			other := e.other()
			done := make(chan error, 1)
			go func() { done <- persist(s, "a", 1, rounds) }()
			for {
				select {
				case err := <-done:
					return first(err, finds(other, "a", "", 0, rounds))
				default:
				}
				_, got, err := recovers(other, "a")
				for i, text := range got.events {
					if text != strconv.Itoa(i) && err == nil {
						err = fmt.Errorf("event %q is at index %d", text, i)
					}
				}
				if err != nil {
					return first(err, <-done)
				}
			}
		}),
	}
}

func checkIncarnationRace(_ context.Context, e ProviderEnv) error {
	other := e.Another()
	for i := range rounds / 2 {
		var sessions []persistence.ProviderState
		for _, p := range []persistence.Provider{e.Provider, other} {
			s, err := resumes(p, "a", "", 0, i-1)
			if err != nil {
				return err
			}
			sessions = append(sessions, s)
		}
		errs := make([]error, len(sessions))
		var wg sync.WaitGroup
		for w, s := range sessions {
			wg.Go(func() { errs[w] = persist(s, "a", i, i) })
		}
		wg.Wait()
		loser := 0
		if errs[0] == nil {
			loser = 1
		}
		if errs[1-loser] != nil {
			return fmt.Errorf("both incarnations lose: %w; %w", errs[0], errs[1])
		}
		if err := e.Errors.wantConflict("the second of two incarnations", errs[loser]); err != nil {
			return err
		}
	}
	return finds(other, "a", "", 0, rounds/2-1)
}
