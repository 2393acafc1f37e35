package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/types/known/wrapperspb"
)

// listed is how many ids a list must cope with; with their values they are more than one page.
const listed = 60

// listingCases are about the list of all ids.
func listingCases() Suite[StateEnv] {
	const each = "who repairs or moves all states must meet each of them"
	return Suite[StateEnv]{
		{
			Name: "D-25 all ids", Why: each, Needs: []Feature{Listing},
			Check: func(ctx context.Context, e StateEnv) error {
				if got, err := e.ids(ctx, "", nil); err != nil || len(got) > 0 {
					return fmt.Errorf("the list of nothing is %q, %v", got, err) //nolint:errorlint // it may be nil
				}
				order, err := e.fillIDs(ctx)
				if err != nil {
					return err
				}
				for _, at := range []int{0, 1, listed / 2, listed - 2, listed - 1} {
					if err := e.goesOn(ctx, order, at, nil); err != nil {
						return err
					}
				}
				for id, err := range e.IDs(ctx, "") { // a reader who has enough
					if err != nil || id != order[0] {
						return fmt.Errorf("the second list begins with %q, %v, the first with %q", id, err, order[0]) //nolint:errorlint // it may be nil
					}
					break
				}
				return nil
			},
		},
		{
			Name: "D-25 all ids while others write", Why: each, Needs: []Feature{Listing},
			Check: func(ctx context.Context, e StateEnv) error {
				order, err := e.fillIDs(ctx)
				if err != nil {
					return err
				}
				n := 0
				meanwhile := func(id string) error { // one that was listed changes, others come before and behind it
					if n++; n%7 != 0 {
						return nil
					}
					_, rev, err := e.other().Load(ctx, id)
					if err != nil {
						return err //nolint:wrapcheck // goesOn tells where
					}
					return first(set(ctx, e.other(), id, rev, "again"), set(ctx, e.other(), fmt.Sprint("a", n), 0, "new"), set(ctx, e.other(), fmt.Sprint("z", n), 0, "new"))
				}
				return first(e.goesOn(ctx, order, -1, meanwhile), e.goesOn(ctx, order, listed/2, meanwhile))
			},
		},
		{
			Name: "D-25 a list that fails", Why: "what cannot be read is not absent", Needs: []Feature{Listing, Faults},
			Check: func(ctx context.Context, e StateEnv) error {
				if err := first(set(ctx, e.Store, "a", 0, "1"), e.Trouble(ctx, FailReads)); err != nil {
					return err
				}
				_, err := e.ids(ctx, "", nil)
				return first(want("list while reads fail", err, nil), e.Trouble(ctx, Calm))
			},
		},
	}
}

// fillIDs saves many values, and returns their ids in the order of the list.
func (e StateEnv) fillIDs(ctx context.Context) ([]string, error) {
	var ids []string
	for i := range listed {
		ids = append(ids, "k"+strconv.Itoa(i))
		if err := setMessage(ctx, e.Store, ids[i], 0, wrapperspb.Bytes(make([]byte, 40<<10))); err != nil {
			return nil, err
		}
	}
	order, err := e.ids(ctx, "", nil)
	if err != nil {
		return nil, err
	}
	slices.Sort(ids)
	if got := slices.Sorted(slices.Values(order)); !slices.Equal(got, ids) {
		return nil, fmt.Errorf("the list has %s, want %s", brief(got), brief(ids))
	}
	return order, nil
}

// goesOn checks that a list after a place in the order, -1 for the beginning, has
// the rest of it. meanwhile is called for each id.
func (e StateEnv) goesOn(ctx context.Context, order []string, at int, meanwhile func(id string) error) error {
	after := ""
	if at >= 0 {
		after = order[at]
	}
	got, err := e.ids(ctx, after, meanwhile)
	if err != nil {
		return fmt.Errorf("list after %q: %w", after, err)
	}
	got = slices.DeleteFunc(got, func(id string) bool { return !slices.Contains(order, id) })
	if rest := order[at+1:]; !slices.Equal(got, rest) {
		return fmt.Errorf("the list after %q has %s, want %s", after, brief(got), brief(rest))
	}
	return nil
}

// ids lists ids.
func (e StateEnv) ids(ctx context.Context, after string, meanwhile func(id string) error) (got []string, err error) {
	for id, err := range e.IDs(ctx, after) {
		if err == nil && meanwhile != nil {
			err = meanwhile(id)
		}
		if err != nil {
			return got, err
		}
		if got = append(got, id); len(got) > 10*listed {
			return got, errors.New("it does not end")
		}
	}
	return got, nil
}
