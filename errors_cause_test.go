package dynactor_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// J-43, L-06: the SDK's own error stays within reach.
func TestErrors_TheCauseIsKept(t *testing.T) {
	t.Parallel()
	one := func(ctx context.Context, p *dynactor.Provider) error {
		_, err := p.Journal().Append(ctx, "a", 0, text("x"))
		return err
	}
	two := func(ctx context.Context, p *dynactor.Provider) error {
		_, err := p.Journal().Append(ctx, "a", 0, text("x"), text("y"))
		return err
	}
	read := func(ctx context.Context, p *dynactor.Provider) error {
		_, err := p.Journal().Head(ctx, "a")
		return err
	}
	for name, tc := range map[string]struct {
		op   string
		do   dynactortest.Action
		call func(context.Context, *dynactor.Provider) error
		as   any
		want []string
		text string
	}{
		"J-43 throttled write": {
			"PutItem", dynactortest.Throttle(), one, new(*types.ProvisionedThroughputExceededException), []string{"ErrThrottled"}, " attempts)",
		},
		"L-06 throttled read": {
			"Query", dynactortest.Throttle(), read, new(*types.ProvisionedThroughputExceededException), []string{"ErrThrottled"}, " attempts)",
		},
		"throttled by the account": {
			"PutItem", dynactortest.Answer(http.StatusBadRequest, "RequestLimitExceeded", "slow down"), one,
			new(*types.RequestLimitExceeded),
			[]string{"ErrThrottled"},
			"slow down",
		},
		"throttled transaction": {
			"TransactWriteItems", dynactortest.CancelTransaction("None", "ThrottlingError"), two,
			new(*types.TransactionCanceledException),
			[]string{"ErrThrottled"},
			"ThrottlingError",
		},
		"transaction in the way": {
			"PutItem", dynactortest.Conflict(), one, new(*types.TransactionConflictException), []string{"ErrThrottled"}, " attempts)",
		},
		"a replica in the way": {
			"PutItem", dynactortest.Answer(http.StatusBadRequest, "ReplicatedWriteConflictException", "being modified in another Region"), one,
			new(*types.ReplicatedWriteConflictException),
			[]string{"ErrThrottled"},
			" attempts)",
		},
		"a slot taken": {
			"PutItem", dynactortest.Answer(http.StatusBadRequest, "ConditionalCheckFailedException", "not empty"), one,
			new(*types.ConditionalCheckFailedException),
			[]string{"ErrConflict"},
			"not empty",
		},
		"refused": {
			"PutItem", denied, one, new(smithy.APIError), nil, "AccessDeniedException",
		},
		"refused transaction": {
			"TransactWriteItems", dynactortest.CancelTransaction("None", "ValidationError"), two,
			new(*types.TransactionCanceledException), nil, "ValidationError",
		},
		"lost table": {
			"PutItem", dynactortest.Answer(http.StatusBadRequest, "ResourceNotFoundException", "no such table"), one,
			new(*types.ResourceNotFoundException),
			[]string{"ErrSchema"},
			"no such table",
		},
		"with the server's request id": {
			"PutItem", denied, one, new(*awshttp.ResponseError), nil, "",
		},
		"with the operation": {
			"Query", denied, read, new(*smithy.OperationError), nil, "operation error DynamoDB: Query",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{WriteTimeout: time.Second, ReadTimeout: 5 * time.Second})
			ready(t, p, db)
			db.Faults.Add(dynactortest.Rule{Op: tc.op, Do: tc.do})
			err := tc.call(t.Context(), p)
			if err == nil || !errors.As(err, tc.as) {
				t.Errorf("got %v, want a %T", err, tc.as)
			}
			if diff := cmp.Diff(tc.want, matches(err)); diff != "" {
				t.Errorf("%v matches (-want +got):\n%s", err, diff)
			}
			if !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%v does not say %q", err, tc.text)
			}
			if n := own(err); n != 1 {
				t.Errorf("%v is wrapped %d times", err, n)
			}
		})
	}
}
