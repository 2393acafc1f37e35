package dynactortest_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"

	"github.com/dynactor/dynactor/dynactortest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, dynactortest.IgnoreServer()...) }

// newTable gives t a DynamoDB whose events table exists, and nothing recorded.
func newTable(t *testing.T) *dynactortest.DB {
	t.Helper()
	db := dynactortest.New(t)
	createTable(t, db, db.EventsTable)
	db.Faults.Reset()
	return db
}

func createTable(t *testing.T, db *dynactortest.DB, name string) {
	t.Helper()
	_, err := db.Client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:   &name,
		BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("pid"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("seq"), KeyType: types.KeyTypeRange},
		},
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pid"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("seq"), AttributeType: types.ScalarAttributeTypeN},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func key(seq int) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pid": &types.AttributeValueMemberS{Value: "a"},
		"seq": &types.AttributeValueMemberN{Value: strconv.Itoa(seq)},
	}
}

// item is an event whose size is that of data and a little more.
func item(seq, size int) map[string]types.AttributeValue {
	out := key(seq)
	out["data"] = &types.AttributeValueMemberB{Value: make([]byte, size)}
	return out
}

// put writes one event, once: it does not retry and does not overwrite.
func put(ctx context.Context, db *dynactortest.DB, seq, size int) error {
	_, err := db.Client.PutItem(ctx, putInput(db, seq, size), once)
	if err != nil {
		return fmt.Errorf("put %d: %w", seq, err)
	}
	return nil
}

func putInput(db *dynactortest.DB, seq, size int) *dynamodb.PutItemInput {
	return &dynamodb.PutItemInput{
		TableName:                           &db.EventsTable,
		Item:                                item(seq, size),
		ConditionExpression:                 aws.String("attribute_not_exists(pid)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

func once(o *dynamodb.Options) { o.RetryMaxAttempts = 1 }

// fill writes events 1 to n.
func fill(t *testing.T, db *dynactortest.DB, n, size int) {
	t.Helper()
	for seq := 1; seq <= n; seq++ {
		if err := put(t.Context(), db, seq, size); err != nil {
			t.Fatal(err)
		}
	}
	db.Faults.Reset()
}

func queryInput(db *dynactortest.DB) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName:              &db.EventsTable,
		KeyConditionExpression: aws.String("pid = :p"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":p": &types.AttributeValueMemberS{Value: "a"},
		},
		ConsistentRead: aws.Bool(true),
	}
}

// pages reads a query to its end and returns the sequence numbers of each page.
func pages(ctx context.Context, db *dynactortest.DB, in *dynamodb.QueryInput) ([][]int, error) {
	var out [][]int
	for range 1000 {
		page, err := db.Client.Query(ctx, in, once)
		if err != nil {
			return nil, fmt.Errorf("page %d: %w", len(out), err)
		}
		if int(page.Count) != len(page.Items) {
			return nil, fmt.Errorf("page %d counts %d items and has %d", len(out), page.Count, len(page.Items))
		}
		out = append(out, seqs(page.Items))
		if page.LastEvaluatedKey == nil {
			return out, nil
		}
		in.ExclusiveStartKey = page.LastEvaluatedKey
	}
	return nil, fmt.Errorf("no end after %d pages", len(out))
}

func seqs(items []map[string]types.AttributeValue) []int {
	out := make([]int, 0, len(items))
	for _, it := range items {
		seq := -1
		if n, ok := it["seq"].(*types.AttributeValueMemberN); ok {
			seq, _ = strconv.Atoi(n.Value)
		}
		out = append(out, seq)
	}
	return out
}

// stored returns the sequence numbers in the table, read past the fault layer.
func stored(t *testing.T, db *dynactortest.DB) []int {
	t.Helper()
	client, _ := db.NewClient()
	out, err := client.Query(t.Context(), queryInput(db))
	if err != nil {
		t.Fatal(err)
	}
	return seqs(out.Items)
}
