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

func TestRefusalsAreTheSDKsErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		do    dynactortest.Action
		code  string
		typed func(error) bool
	}{
		{
			"Throttle", dynactortest.Throttle(), "ProvisionedThroughputExceededException",
			as[*types.ProvisionedThroughputExceededException],
		},
		{"Conflict", dynactortest.Conflict(), "TransactionConflictException", as[*types.TransactionConflictException]},
		{"InProgress", dynactortest.InProgress(), "TransactionInProgressException", as[*types.TransactionInProgressException]},
		{
			"CancelTransaction", dynactortest.CancelTransaction("None"), "TransactionCanceledException",
			as[*types.TransactionCanceledException],
		},
		{
			"Answer", dynactortest.Answer(400, "ResourceNotFoundException", "no table"), "ResourceNotFoundException",
			as[*types.ResourceNotFoundException],
		},
		{
			"Answer without a type", dynactortest.Answer(400, "ValidationException", "no"), "ValidationException",
			as[*smithy.GenericAPIError],
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := newTable(t)
			db.Faults.Add(dynactortest.Rule{Do: tt.do})
			_, err := db.Client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
				TransactItems: []types.TransactWriteItem{{Put: &types.Put{TableName: &db.EventsTable, Item: item(1, 1)}}},
			}, once)
			var api smithy.APIError
			if !tt.typed(err) || !errors.As(err, &api) || api.ErrorCode() != tt.code || api.ErrorMessage() == "" {
				t.Errorf("got %v, want %s", err, tt.code)
			}
			if got := db.Faults.Requests()[0]; got.Err != tt.code || got.Sent || got.Usage != (dynactortest.Usage{}) {
				t.Errorf("recorded %v, sent %v, usage %v", got, got.Sent, got.Usage)
			}
			if diff := cmp.Diff([]int{}, stored(t, db)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCancelTransactionGivesAReasonForEachItem(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.Faults.Add(dynactortest.Rule{Do: dynactortest.CancelTransaction("None", "TransactionConflict")})
	_, err := db.Client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: &db.EventsTable, Item: item(1, 1)}},
			{Put: &types.Put{TableName: &db.EventsTable, Item: item(2, 1)}},
		},
	}, once)
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		t.Fatalf("got %v", err)
	}
	var got []string
	for _, reason := range cancelled.CancellationReasons {
		got = append(got, *reason.Code)
	}
	if diff := cmp.Diff([]string{"None", "TransactionConflict"}, got); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

func as[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}
