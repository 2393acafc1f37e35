package dynactortest_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor/dynactortest"
)

func TestItemsOver400KBAreRefused(t *testing.T) {
	t.Parallel()
	const limit = 400 << 10
	overhead := len("pid") + len("a") + len("seq") + 2 + len("data")
	for name, write := range map[string]func(*testing.T, *dynactortest.DB, int) error{
		"PutItem": func(t *testing.T, db *dynactortest.DB, size int) error {
			t.Helper()
			return put(t.Context(), db, 1, size)
		},
		"TransactWriteItems": func(t *testing.T, db *dynactortest.DB, size int) error {
			t.Helper()
			_, err := db.Client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
				TransactItems: []types.TransactWriteItem{{Put: &types.Put{TableName: &db.EventsTable, Item: item(1, size)}}},
			})
			return err
		},
		"BatchWriteItem": func(t *testing.T, db *dynactortest.DB, size int) error {
			t.Helper()
			_, err := db.Client.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{
				RequestItems: map[string][]types.WriteRequest{
					db.EventsTable: {{PutRequest: &types.PutRequest{Item: item(1, size)}}},
				},
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newTable(t)
			err := write(t, db, limit-overhead+1)
			if !isValidation(err) {
				t.Errorf("one byte too many: got %v, want a ValidationException", err)
			}
			if diff := cmp.Diff([]int{}, stored(t, db)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			if err := write(t, db, limit-overhead); err != nil {
				t.Errorf("400 KB: %v", err)
			}
		})
	}
}

func TestTransactionsOver4MBAreRefused(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	in := &dynamodb.TransactWriteItemsInput{}
	for seq := range 11 {
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{
			Put: &types.Put{TableName: &db.EventsTable, Item: item(seq, 390<<10)},
		})
	}
	if _, err := db.Client.TransactWriteItems(t.Context(), in); !isValidation(err) {
		t.Errorf("4.2 MB: got %v, want a ValidationException", err)
	}
	if diff := cmp.Diff([]int{}, stored(t, db)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	in.TransactItems = in.TransactItems[:10]
	if _, err := db.Client.TransactWriteItems(t.Context(), in); err != nil {
		t.Errorf("3.8 MB: %v", err)
	}
}

func isValidation(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "ValidationException"
}
