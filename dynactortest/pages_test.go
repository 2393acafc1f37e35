package dynactortest_test

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
)

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i + 1
	}
	return out
}

func downFrom(n int) []int {
	out := upTo(n)
	slices.Reverse(out)
	return out
}

func TestQueriesHavePagesOfOneMegabyte(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		n, size  int
		min, max int // items of a page that is not the last, 0 for one page
	}{
		{"no more than a page", 10, 100 << 10, 0, 0},
		{"largest items", 4, 400<<10 - 20, 2, 3},
		{"more items than the embedded server is asked for at once", 110, 10 << 10, 102, 103},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := newTable(t)
			fill(t, db, tt.n, tt.size)
			got, err := pages(t.Context(), db, queryInput(db))
			if err != nil {
				t.Fatal(err)
			}
			checkPages(t, got, upTo(tt.n), tt.min, tt.max)
		})
	}
}

func checkPages(t *testing.T, got [][]int, want []int, least, most int) {
	t.Helper()
	if diff := cmp.Diff(want, slices.Concat(got...)); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	if more := len(got) > 1; more != (most > 0) {
		t.Errorf("%d pages", len(got))
	}
	for i, page := range got[:len(got)-1] {
		if len(page) < least || len(page) > most {
			t.Errorf("page %d has %d items, want %d to %d", i, len(page), least, most)
		}
	}
}

func TestEveryKindOfQueryHasPages(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	fill(t, db, 12, 100<<10)
	tests := []struct {
		name   string
		change func(*dynamodb.QueryInput)
		want   []int
	}{
		{"forwards", func(*dynamodb.QueryInput) {}, upTo(12)},
		{"backwards", backwards, downFrom(12)},
		{"a range", from(2), upTo(12)[1:]},
		{"a limit that is not reached", limit(20), upTo(12)},
		{"a projection does not make pages longer", project("seq"), upTo(12)},
		{"a projection without the key", project("#d"), slices.Repeat([]int{-1}, 12)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := queryInput(db)
			tt.change(in)
			got, err := pages(t.Context(), db, in)
			if err != nil {
				t.Fatal(err)
			}
			checkPages(t, got, tt.want, 10, 11)
		})
	}
}

func TestAPathIntoAnAttributeIsLeftToTheServer(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	fill(t, db, 2, 1)
	in := queryInput(db)
	in.ProjectionExpression = aws.String("note.x, seq")
	got, err := pages(t.Context(), db, in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]int{{1, 2}}, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

func backwards(in *dynamodb.QueryInput) { in.ScanIndexForward = aws.Bool(false) }

func project(path string) func(*dynamodb.QueryInput) {
	return func(in *dynamodb.QueryInput) {
		in.ProjectionExpression = &path
		if path == "#d" {
			in.ExpressionAttributeNames = map[string]string{"#d": "data"}
		}
	}
}

func from(seq int) func(*dynamodb.QueryInput) {
	return func(in *dynamodb.QueryInput) {
		in.KeyConditionExpression = aws.String("pid = :p AND seq >= :s")
		in.ExpressionAttributeValues[":s"] = key(seq)["seq"]
	}
}

func TestLimitEndsAPage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		limit int32
		want  [][]int
	}{
		{"smaller than what there is", 3, [][]int{{1, 2, 3}, {4, 5, 6}, {7}}},
		// A full page does not say whether it is the last.
		{"what there is", 7, [][]int{{1, 2, 3, 4, 5, 6, 7}, {}}},
		{"more than there is", 8, [][]int{{1, 2, 3, 4, 5, 6, 7}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := newTable(t)
			fill(t, db, 7, 1)
			in := queryInput(db)
			in.Limit = &tt.limit
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

func TestAQueryGoesOnWhereADeletedItemWas(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*dynamodb.QueryInput){"forwards": nil, "backwards": backwards} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newTable(t)
			fill(t, db, 9, 1)
			_, err := db.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &db.EventsTable, Key: key(5)})
			if err != nil {
				t.Fatal(err)
			}
			in, want := queryInput(db), []int{6, 7, 8, 9}
			in.ExclusiveStartKey = key(5)
			if change != nil {
				change(in)
				want = []int{4, 3, 2, 1}
			}
			in.Limit = aws.Int32(3)
			got, err := pages(t.Context(), db, in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, slices.Concat(got...)); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScansHavePagesOfOneMegabyte(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	fill(t, db, 12, 100<<10)
	in := &dynamodb.ScanInput{TableName: &db.EventsTable}
	var sizes, all []int
	for done := false; !done; {
		out, err := db.Client.Scan(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(out.Items))
		all = append(all, seqs(out.Items)...)
		in.ExclusiveStartKey, done = out.LastEvaluatedKey, out.LastEvaluatedKey == nil
	}
	slices.Sort(all)
	if diff := cmp.Diff(upTo(12), all); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	if len(sizes) != 2 {
		t.Errorf("pages of %v items, want 2 pages", sizes)
	}
}

func TestFiltersAndCounts(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	for seq := 1; seq <= 9; seq++ {
		event := item(seq, 1)
		if seq%3 == 0 {
			event["third"] = &types.AttributeValueMemberBOOL{Value: true}
		}
		if _, err := db.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &db.EventsTable, Item: event}); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name                  string
		change                func(*dynamodb.QueryInput)
		items, count, scanned int
		more                  bool
	}{
		{"all", func(*dynamodb.QueryInput) {}, 9, 9, 9, false},
		{"a count", func(in *dynamodb.QueryInput) { in.Select = types.SelectCount }, 0, 9, 9, false},
		{"a filter", thirds, 3, 3, 9, false},
		{"a filter and a limit", func(in *dynamodb.QueryInput) {
			thirds(in)
			in.Limit = aws.Int32(4)
		}, 1, 1, 4, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := queryInput(db)
			tt.change(in)
			out, err := db.Client.Query(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			got := []any{len(out.Items), int(out.Count), int(out.ScannedCount), out.LastEvaluatedKey != nil}
			if diff := cmp.Diff([]any{tt.items, tt.count, tt.scanned, tt.more}, got); diff != "" {
				t.Errorf("items, count, scanned, more (-want +got):\n%s", diff)
			}
		})
	}
}

// thirds is a filter; filters may not refer to the key.
func thirds(in *dynamodb.QueryInput) { in.FilterExpression = aws.String("attribute_exists(third)") }
