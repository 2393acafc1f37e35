package dynactortest_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor/dynactortest"
)

func writesTo(tables map[string][]int) map[string][]types.WriteRequest {
	out := map[string][]types.WriteRequest{}
	for table, seqs := range tables {
		for _, seq := range seqs {
			out[table] = append(out[table], types.WriteRequest{PutRequest: &types.PutRequest{Item: item(seq, 1)}})
		}
	}
	return out
}

func putSeqs(requests map[string][]types.WriteRequest) map[string][]int {
	out := map[string][]int{}
	for table, writes := range requests {
		for _, w := range writes {
			out[table] = append(out[table], seqs([]map[string]types.AttributeValue{w.PutRequest.Item})...)
		}
	}
	return out
}

func TestUnprocessedLeavesTheRest(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		n          int
		wantStored []int
		wantRest   []int // of the events table; the state table's one write is last
		wantSent   bool
	}{
		{"none gets through", 0, []int{}, []int{1, 2, 3}, false},
		{"less than none", -1, []int{}, []int{1, 2, 3}, false},
		{"some get through", 2, []int{1, 2}, []int{3}, true},
		{"all of one table", 3, []int{1, 2, 3}, nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := newTable(t)
			createTable(t, db, db.StateTable)
			db.Faults.Reset()
			db.Faults.Add(dynactortest.Rule{Op: "BatchWriteItem", Do: dynactortest.Unprocessed(tt.n)})
			out, err := db.Client.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{
				RequestItems: writesTo(map[string][]int{db.EventsTable: {1, 2, 3}, db.StateTable: {9}}),
			})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string][]int{db.StateTable: {9}}
			if tt.wantRest != nil {
				want[db.EventsTable] = tt.wantRest
			}
			if diff := cmp.Diff(want, putSeqs(out.UnprocessedItems)); diff != "" {
				t.Errorf("unprocessed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.wantStored, stored(t, db)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			wantUsage := dynactortest.Usage{}
			if tt.wantSent {
				wantUsage = dynactortest.Usage{Requests: 1, WriteUnits: float64(tt.n)}
			}
			if diff := cmp.Diff(wantUsage, db.Faults.Usage()); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnprocessedWithRoomForAll(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.Faults.Add(dynactortest.Rule{Do: dynactortest.Unprocessed(25)})
	out, err := db.Client.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{
		RequestItems: writesTo(map[string][]int{db.EventsTable: {1, 2}}),
	})
	if err != nil || len(out.UnprocessedItems) != 0 {
		t.Errorf("got %v, %v, want nothing unprocessed", out, err)
	}
	if diff := cmp.Diff([]int{1, 2}, stored(t, db)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

func TestUnprocessedLeavesOtherOperationsAlone(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.Faults.Add(dynactortest.Rule{Do: dynactortest.Unprocessed(0)})
	if err := put(t.Context(), db, 1, 1); err != nil {
		t.Error(err)
	}
}
