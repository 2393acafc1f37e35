package conformance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"
)

// valueCases are about what goes with a value: tags, and an end.
func valueCases() Suite[StateEnv] {
	return Suite[StateEnv]{
		{
			Name: "D-22 tags are replaced with the value", Why: "who looks for an old tag must not find the new value", Needs: []Feature{Metadata},
			Check: func(ctx context.Context, e StateEnv) error {
				for rev, tags := range [][]string{{"blue", "a b", "дом"}, {"blue#green"}, nil, {"blue"}} {
					v := Value{Message: wrapperspb.String("x"), Tags: tags}
					if err := first(setValue(ctx, e, int64(rev), v), tagged(ctx, e, tags...)); err != nil {
						return err
					}
				}
				return first(set(ctx, e.Store, "a", 4, "y"), tagged(ctx, e), is(ctx, e.other(), "a", "y", 5))
			},
		},
		{
			Name: "D-23 a value that ends", Why: "a value that is still stored must not count when its time is over, and its revision must", Needs: []Feature{Expiry},
			Check: func(ctx context.Context, e StateEnv) error {
				if err := first(ending(ctx, e), is(ctx, e.other(), "a", "", 1), e.stale(ctx, 0, 2)); err != nil {
					return err
				}
				return first(set(ctx, e.Store, "a", 1, "2"), is(ctx, e.other(), "a", "2", 2), e.Pass(ctx, time.Hour), is(ctx, e.Store, "a", "2", 2))
			},
		},
		{
			Name: "D-23 a value that ends and is deleted", Why: "revisions only rise, whatever ends a value", Needs: []Feature{Expiry, Deletion},
			Check: func(ctx context.Context, e StateEnv) error {
				return first(ending(ctx, e), drop(ctx, e.Store), is(ctx, e.other(), "a", "", 2), e.stale(ctx, 0, 1),
					set(ctx, e.Store, "a", 2, "3"), is(ctx, e.other(), "a", "3", 3))
			},
		},
	}
}

// ending saves "a" for an hour, looks at it before that, and lets it end.
func ending(ctx context.Context, e StateEnv) error {
	v := Value{Message: wrapperspb.String("1"), Lives: time.Hour}
	return first(setValue(ctx, e, 0, v), e.Pass(ctx, 50*time.Minute), is(ctx, e.other(), "a", "1", 1), e.Pass(ctx, 11*time.Minute))
}

// setValue saves a value of "a".
func setValue(ctx context.Context, e StateEnv, expected int64, v Value) error {
	rev, err := e.SaveValue(ctx, "a", expected, v)
	return moved("save", "a", expected, rev, err)
}

// tagged checks the tags of "a".
func tagged(ctx context.Context, e StateEnv, want ...string) error {
	got, err := e.Tags(ctx, "a")
	if err != nil {
		return fmt.Errorf("tags: %w", err)
	}
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		return fmt.Errorf("the tags are %q, want %q", got, want)
	}
	return nil
}
