package dynactor_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
)

// listed are the revisions of the ids that exist, after an id.
func listed(t *testing.T, s *dynactor.StateStore, after string) map[string]int64 {
	t.Helper()
	got := map[string]int64{}
	for row, err := range s.IDs(t.Context(), after) {
		if err != nil {
			t.Error(err)
			return got
		}
		if _, twice := got[row.ID]; twice {
			t.Errorf("%q came twice", row.ID)
		}
		if row.Exists {
			got[row.ID] = row.Revision
		}
	}
	return got
}

// ownPut is a write of one's own for a transaction.
func ownPut(table, id, condition string) types.TransactWriteItem {
	p := &types.Put{TableName: &table, Item: map[string]types.AttributeValue{
		"pid": &types.AttributeValueMemberS{Value: id}, "seq": &types.AttributeValueMemberN{Value: "1"},
		"mine": &types.AttributeValueMemberBOOL{Value: true},
	}}
	if condition != "" {
		p.ConditionExpression = &condition
	}
	return types.TransactWriteItem{Put: p}
}

// Of several writers at one revision exactly one wins.
func TestState_Races(t *testing.T) {
	t.Parallel()

	t.Run("D-11 D-12 a race for each revision", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		stores := []*dynactor.StateStore{p.State(), openOn(t, db, db.Client, dynactor.Options{}).State()}
		for rev := range int64(200) {
			errs := make([]error, len(stores))
			var wg sync.WaitGroup
			for i, s := range stores {
				wg.Go(func() { _, errs[i] = s.Save(t.Context(), "a", rev, text(fmt.Sprint(rev, i))) })
			}
			wg.Wait()
			winner := 0
			if errs[0] != nil {
				winner = 1
			}
			if errs[winner] != nil {
				t.Fatal(errs)
			}
			checkStale(t, errs[1-winner], rev, rev+1)
			checkState(t, stores[1-winner], "a", fmt.Sprint(rev, winner), rev+1) // D-18
		}
	})

	t.Run("K02 increments of two processes are not lost", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		const each = 100
		var wg sync.WaitGroup
		for _, s := range []*dynactor.StateStore{p.State(), openOn(t, db, db.Client, dynactor.Options{}).State()} {
			wg.Go(func() {
				for done := 0; done < each; {
					m, rev, err := dynactor.LoadState[*wrapperspb.Int64Value](t.Context(), s, "a")
					if err == nil {
						_, err = s.Save(t.Context(), "a", rev, wrapperspb.Int64(m.GetValue()+1))
					}
					switch {
					case err == nil:
						done++
					case !errors.Is(err, dynactor.ErrConflict):
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		m, rev, err := dynactor.LoadState[*wrapperspb.Int64Value](t.Context(), p.State(), "a")
		if m.GetValue() != 2*each || rev != 2*each || err != nil {
			t.Errorf("%v at %d, %v", m, rev, err)
		}
	})
}
