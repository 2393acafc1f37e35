package conformance

import (
	"context"

	"google.golang.org/protobuf/types/known/wrapperspb"
)

// stateTrouble are cases about requests that fail.
func stateTrouble() Suite[StateEnv] {
	needs := []Feature{Faults}
	return Suite[StateEnv]{
		{
			Name: "D-19 a save whose answer is lost", Why: "a store that takes its own retry for a conflict refuses what it has done", Needs: needs,
			Check: func(ctx context.Context, e StateEnv) error {
				return first(set(ctx, e.Store, "a", 0, "1"), e.Trouble(ctx, LoseAnswer), set(ctx, e.Store, "a", 1, "2"),
					e.Trouble(ctx, Calm), is(ctx, e.other(), "a", "2", 2))
			},
		},
		{
			Name: "D-19 a deletion whose answer is lost", Why: "a store that takes its own retry for a conflict refuses what it has done", Needs: []Feature{Faults, Deletion},
			Check: func(ctx context.Context, e StateEnv) error {
				return first(set(ctx, e.Store, "a", 0, "1"), e.Trouble(ctx, LoseAnswer), drop(ctx, e.Store),
					e.Trouble(ctx, Calm), is(ctx, e.other(), "a", "", 2))
			},
		},
		{
			Name: "D-19 a save of which no answer comes", Why: "unknown is neither success nor failure", Needs: needs,
			Check: func(ctx context.Context, e StateEnv) error {
				if err := first(set(ctx, e.Store, "a", 0, "1"), e.Trouble(ctx, LoseAll)); err != nil {
					return err
				}
				_, err := e.Store.Save(ctx, "a", 1, wrapperspb.String("2"))
				return first(e.Errors.wantUnknown("save of which no answer comes", err), e.Trouble(ctx, Calm), is(ctx, e.other(), "a", "2", 2))
			},
		},
		{
			Name: "D-08 writes that fail", Why: "what is acknowledged must be stored", Needs: needs,
			Check: func(ctx context.Context, e StateEnv) error {
				if err := first(set(ctx, e.Store, "a", 0, "1"), e.Trouble(ctx, FailWrites)); err != nil {
					return err
				}
				_, saved := e.Store.Save(ctx, "a", 1, wrapperspb.String("x"))
				_, deleted := e.Store.Delete(ctx, "a", 1)
				return first(want("save while writes fail", saved, nil), want("deletion while writes fail", deleted, nil),
					e.Trouble(ctx, Calm), is(ctx, e.other(), "a", "1", 1))
			},
		},
		{
			Name: "D-18 reads that fail", Why: "what cannot be read is not absent", Needs: needs,
			Check: func(ctx context.Context, e StateEnv) error {
				if err := first(set(ctx, e.Store, "a", 0, "1"), e.Trouble(ctx, FailReads)); err != nil {
					return err
				}
				_, _, err := e.Store.Load(ctx, "a")
				return first(want("load while reads fail", err, nil), e.Trouble(ctx, Calm), is(ctx, e.Store, "a", "1", 1))
			},
		},
	}
}
