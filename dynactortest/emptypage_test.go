package dynactortest_test

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor/dynactortest"
)

func TestEmptyPageLosesNothing(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		rule   dynactortest.Rule
		change func(*dynamodb.QueryInput)
		want   [][]int
	}{
		{"first", dynactortest.Rule{Times: 1}, limit(2), [][]int{{}, {1, 2}, {3, 4}, {5}}},
		{"second", dynactortest.Rule{Skip: 1, Times: 1}, limit(2), [][]int{{1, 2}, {}, {3, 4}, {5}}},
		{"several", dynactortest.Rule{Times: 3}, limit(3), [][]int{{}, {}, {}, {1, 2, 3}, {4, 5}}},
		{"the only one", dynactortest.Rule{Times: 1}, nil, [][]int{{}, {1, 2, 3, 4, 5}}},
		{"backwards", dynactortest.Rule{Times: 2}, backwards, [][]int{{}, {}, {5, 4, 3, 2, 1}}},
		{"a range", dynactortest.Rule{Times: 1}, from(2), [][]int{{}, {2, 3, 4, 5}}},
		{"a projection", dynactortest.Rule{Times: 1}, project("seq"), [][]int{{}, {1, 2, 3, 4, 5}}},
		{"a query that finds nothing", dynactortest.Rule{Times: 1}, from(6), [][]int{{}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := newTable(t)
			fill(t, db, 5, 1)
			tt.rule.Do = dynactortest.EmptyPage()
			db.Faults.Add(tt.rule)
			in := queryInput(db)
			if tt.change != nil {
				tt.change(in)
			}
			got, err := pages(t.Context(), db, in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("pages (-want +got):\n%s", diff)
			}
		})
	}
}

func limit(n int32) func(*dynamodb.QueryInput) {
	return func(in *dynamodb.QueryInput) { in.Limit = &n }
}

func TestEmptyPageHasAKeyOfTheTable(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*dynamodb.QueryInput)
		want   int
	}{
		"forwards":  {from(2), 1},
		"backwards": {backwards, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newTable(t)
			fill(t, db, 5, 1)
			db.Faults.Add(dynactortest.Rule{Do: dynactortest.EmptyPage()})
			in := queryInput(db)
			tt.change(in)
			page, err := db.Client.Query(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			got := page.LastEvaluatedKey
			if diff := cmp.Diff([]int{tt.want}, seqs([]map[string]types.AttributeValue{got})); diff != "" || len(got) != 2 {
				t.Errorf("key %v (-want +got):\n%s", got, diff)
			}
		})
	}
}

func TestEmptyPageOfAScan(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	fill(t, db, 5, 1)
	db.Faults.Add(dynactortest.Rule{Op: "Scan", Times: 1, Do: dynactortest.EmptyPage()})
	in := &dynamodb.ScanInput{TableName: &db.EventsTable, Limit: aws.Int32(10)}
	first, err := db.Client.Scan(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	in.ExclusiveStartKey = first.LastEvaluatedKey
	second, err := db.Client.Scan(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	got := seqs(second.Items)
	slices.Sort(got)
	if diff := cmp.Diff(upTo(5), got); diff != "" || len(first.Items) != 0 || first.LastEvaluatedKey == nil {
		t.Errorf("first page %v, then (-want +got):\n%s", first, diff)
	}
}

func TestEmptyPageOfATableWithStringKeys(t *testing.T) {
	t.Parallel()
	for _, forward := range []bool{true, false} {
		db := dynactortest.New(t)
		_, err := db.Client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName:   &db.EventsTable,
			BillingMode: types.BillingModePayPerRequest,
			KeySchema: []types.KeySchemaElement{
				{AttributeName: aws.String("p"), KeyType: types.KeyTypeHash},
				{AttributeName: aws.String("s"), KeyType: types.KeyTypeRange},
			},
			AttributeDefinitions: []types.AttributeDefinition{
				{AttributeName: aws.String("p"), AttributeType: types.ScalarAttributeTypeS},
				{AttributeName: aws.String("s"), AttributeType: types.ScalarAttributeTypeS},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		event := map[string]types.AttributeValue{
			"p": &types.AttributeValueMemberS{Value: "a"}, "s": &types.AttributeValueMemberS{Value: "b"},
		}
		if _, err := db.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &db.EventsTable, Item: event}); err != nil {
			t.Fatal(err)
		}
		db.Faults.Add(dynactortest.Rule{Times: 1, Do: dynactortest.EmptyPage()})
		in := queryInput(db)
		in.KeyConditionExpression = aws.String("p = :p")
		in.ScanIndexForward = &forward
		paginator := dynamodb.NewQueryPaginator(db.Client, in)
		var counts []int
		for paginator.HasMorePages() {
			page, err := paginator.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			counts = append(counts, len(page.Items))
		}
		if diff := cmp.Diff([]int{0, 1}, counts); diff != "" {
			t.Errorf("forward %v: items of the pages (-want +got):\n%s", forward, diff)
		}
	}
}
