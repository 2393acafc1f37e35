package dynactortest_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor/dynactortest"
)

func TestRulesChooseRequests(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		rules func(db *dynactortest.DB) []dynactortest.Rule
		want  []string // errors of: put, put, get, put of the other table
	}{
		{
			name:  "no rule",
			rules: func(*dynactortest.DB) []dynactortest.Rule { return nil },
			want:  []string{"", "", "", ""},
		},
		{
			name: "the zero action does nothing",
			rules: func(*dynactortest.DB) []dynactortest.Rule {
				return []dynactortest.Rule{{}, {Do: fail("Never")}}
			},
			want: []string{"", "", "", ""},
		},
		{
			name: "any request, for ever",
			rules: func(*dynactortest.DB) []dynactortest.Rule {
				return []dynactortest.Rule{{Do: fail("A")}}
			},
			want: []string{"A", "A", "A", "A"},
		},
		{
			name: "by operation",
			rules: func(*dynactortest.DB) []dynactortest.Rule {
				return []dynactortest.Rule{{Op: "GetItem", Do: fail("A")}}
			},
			want: []string{"", "", "A", ""},
		},
		{
			name: "by table",
			rules: func(db *dynactortest.DB) []dynactortest.Rule {
				return []dynactortest.Rule{{Table: db.StateTable, Do: fail("A")}}
			},
			want: []string{"", "", "", "A"},
		},
		{
			name: "by a look at it, which may use the layer",
			rules: func(db *dynactortest.DB) []dynactortest.Rule {
				second := func(r dynactortest.Request) bool { return r.Op == "PutItem" && db.Faults.Count("PutItem") == 2 }
				return []dynactortest.Rule{{Match: second, Do: fail("A")}}
			},
			want: []string{"", "A", "", ""},
		},
		{
			name: "skip one, then two times",
			rules: func(*dynactortest.DB) []dynactortest.Rule {
				return []dynactortest.Rule{{Skip: 1, Times: 2, Do: fail("A")}}
			},
			want: []string{"", "A", "A", ""},
		},
		{
			name: "the first with budget left acts",
			rules: func(*dynactortest.DB) []dynactortest.Rule {
				return []dynactortest.Rule{
					{Op: "PutItem", Times: 1, Do: fail("A")},
					{Times: 2, Do: fail("B")},
					{Op: "GetItem", Do: fail("Never")},
				}
			},
			want: []string{"A", "B", "B", ""},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := newTable(t)
			createTable(t, db, db.StateTable)
			db.Faults.Reset()
			for _, rule := range tt.rules(db) {
				db.Faults.Add(rule)
			}
			_ = put(t.Context(), db, 1, 1)
			_ = put(t.Context(), db, 2, 1)
			_, _ = db.Client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &db.EventsTable, Key: key(1)}, once)
			_, _ = db.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &db.StateTable, Item: item(1, 1)}, once)
			var got []string
			for _, r := range db.Faults.Requests() {
				got = append(got, r.Err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func fail(code string) dynactortest.Action { return dynactortest.Answer(400, code, "by rule") }

func TestRuleFindsEveryTableOfABatch(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	createTable(t, db, db.StateTable)
	db.Faults.Reset()
	for _, table := range []string{db.EventsTable, db.StateTable} {
		db.Faults.Add(dynactortest.Rule{Op: "BatchWriteItem", Table: table, Times: 1, Do: fail("A")})
	}
	for range 3 {
		_, _ = db.Client.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{
			RequestItems: writesTo(map[string][]int{db.EventsTable: {1}, db.StateTable: {1}}),
		}, once)
	}
	var got []string
	for _, r := range db.Faults.Requests() {
		got = append(got, r.Err)
	}
	if diff := cmp.Diff([]string{"A", "A", ""}, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}
