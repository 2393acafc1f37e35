package dynactortest_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor/dynactortest"
)

// A table with events 1 and 2 of a little over 2 KB is there before each.
var usageTests = []struct {
	name     string
	do       func(context.Context, *dynactortest.DB) error
	want     dynactortest.Usage
	reported bool // whether every server that reports must agree
}{
	{
		"a put", func(ctx context.Context, db *dynactortest.DB) error {
			return put(ctx, db, 3, 1)
		}, wrote(1), true,
	},
	{
		"a put of exactly 1 KB", func(ctx context.Context, db *dynactortest.DB) error {
			return put(ctx, db, 3, 1024-13)
		}, wrote(1), true,
	},
	{
		"a put of one byte more", func(ctx context.Context, db *dynactortest.DB) error {
			return put(ctx, db, 3, 1024-12)
		}, wrote(2), true,
	},
	{
		"a failed condition", func(ctx context.Context, db *dynactortest.DB) error {
			_ = put(ctx, db, 1, 2048)
			return nil
		}, wrote(3), false,
	},
	{
		"a strong read", func(ctx context.Context, db *dynactortest.DB) error {
			_, err := db.Client.GetItem(ctx, getInput(db, 1, true))
			return err
		}, read(1), true,
	},
	{
		"an eventually consistent read", func(ctx context.Context, db *dynactortest.DB) error {
			_, err := db.Client.GetItem(ctx, getInput(db, 1, false))
			return err
		}, read(0.5), true,
	},
	{
		"a read of nothing", func(ctx context.Context, db *dynactortest.DB) error {
			_, err := db.Client.GetItem(ctx, getInput(db, 9, true))
			return err
		}, read(1), true,
	},
	{
		"a query adds up sizes, not units", func(ctx context.Context, db *dynactortest.DB) error {
			_, err := db.Client.Query(ctx, queryInput(db))
			return err
		}, read(2), true,
	},
	{
		"a scan", func(ctx context.Context, db *dynactortest.DB) error {
			_, err := db.Client.Scan(ctx, &dynamodb.ScanInput{TableName: &db.EventsTable})
			return err
		}, read(1), true,
	},
	{
		"a batch of reads rounds up each", func(ctx context.Context, db *dynactortest.DB) error {
			_, err := db.Client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
				RequestItems: map[string]types.KeysAndAttributes{db.EventsTable: {
					Keys:           []map[string]types.AttributeValue{key(1), key(2), key(9)},
					ConsistentRead: aws.Bool(true),
				}},
			})
			return err
		}, read(3), true,
	},
	{
		"a transaction of reads", func(ctx context.Context, db *dynactortest.DB) error {
			_, err := db.Client.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{
				TransactItems: []types.TransactGetItem{{Get: &types.Get{TableName: &db.EventsTable, Key: key(1)}}},
			})
			return err
		}, read(2), true,
	},
	{
		"a transaction of writes", func(ctx context.Context, db *dynactortest.DB) error {
			_, err := db.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
				TransactItems: []types.TransactWriteItem{
					{Put: &types.Put{TableName: &db.EventsTable, Item: item(3, 1)}},
					{Put: &types.Put{TableName: &db.EventsTable, Item: item(4, 1024)}},
				},
			})
			return err
		}, wrote(6), true,
	},
	{
		"a batch of writes", func(ctx context.Context, db *dynactortest.DB) error {
			writes := writesTo(map[string][]int{db.EventsTable: {3, 4}})
			writes[db.EventsTable] = append(writes[db.EventsTable],
				types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key(9)}})
			_, err := db.Client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: writes})
			return err
		}, wrote(3), true,
	},
	{
		"a delete that returns the item", func(ctx context.Context, db *dynactortest.DB) error {
			_, err := db.Client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
				TableName: &db.EventsTable, Key: key(1), ReturnValues: types.ReturnValueAllOld,
			})
			return err
		}, wrote(3), true,
	},
	{
		"a delete of nothing", func(ctx context.Context, db *dynactortest.DB) error {
			_, err := db.Client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &db.EventsTable, Key: key(9)})
			return err
		}, wrote(1), true,
	},
	{
		"an update that returns the item", func(ctx context.Context, db *dynactortest.DB) error {
			_, err := db.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName: &db.EventsTable, Key: key(1), ReturnValues: types.ReturnValueAllNew,
				UpdateExpression:          aws.String("SET mark = :m"),
				ExpressionAttributeValues: map[string]types.AttributeValue{":m": &types.AttributeValueMemberN{Value: "1"}},
			})
			return err
		}, wrote(3), true,
	},
	{
		"a look at the table", func(ctx context.Context, db *dynactortest.DB) error {
			_, err := db.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &db.EventsTable})
			return err
		}, dynactortest.Usage{Requests: 1}, true,
	},
	{
		"a refusal", func(ctx context.Context, db *dynactortest.DB) error {
			_, _ = db.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("no-such-table"), Item: item(1, 1)})
			return nil
		}, dynactortest.Usage{Requests: 1}, true,
	},
}

func wrote(units float64) dynactortest.Usage {
	return dynactortest.Usage{Requests: 1, WriteUnits: units}
}

func read(units float64) dynactortest.Usage {
	return dynactortest.Usage{Requests: 1, ReadUnits: units}
}

func getInput(db *dynactortest.DB, seq int, strong bool) *dynamodb.GetItemInput {
	return &dynamodb.GetItemInput{TableName: &db.EventsTable, Key: key(seq), ConsistentRead: &strong}
}

func TestUsageIsComputed(t *testing.T) {
	t.Parallel()
	testUsage(t, false)
}

// Where the server reports what requests consume, it agrees with what is
// computed.
func TestUsageIsReported(t *testing.T) {
	t.Parallel()
	testUsage(t, true)
}

func testUsage(t *testing.T, report bool) {
	t.Helper()
	for _, tt := range usageTests {
		if report && !tt.reported {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := newTable(t)
			fill(t, db, 2, 2048)
			db.Faults.ReportCapacity(report)
			if err := tt.do(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, db.Faults.Usage()); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReportCapacityCountsWhatAProjectionHides(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	fill(t, db, 4, 4096)
	db.Faults.ReportCapacity(true)
	in := queryInput(db)
	in.ProjectionExpression = aws.String("seq")
	out, err := db.Client.Query(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if out.ConsumedCapacity == nil || *out.ConsumedCapacity.CapacityUnits != 5 {
		t.Errorf("the caller sees %v, want 5 units", out.ConsumedCapacity)
	}
	if diff := cmp.Diff(read(5), db.Faults.Usage()); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	db.Faults.ReportCapacity(false)
	out, err = db.Client.Query(t.Context(), in)
	if err != nil || out.ConsumedCapacity != nil {
		t.Errorf("after ReportCapacity(false): %v, %v", out.ConsumedCapacity, err)
	}
}
