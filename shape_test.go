package dynactor_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// shape is one of the two requests that an append can be.
type shape struct {
	name   string
	op     string
	events int
}

var shapes = []shape{{"one event", "PutItem", 1}, {"many events", "TransactWriteItems", 3}}

// on is a rule for the n-th attempt of the append.
func (s shape) on(n int, do dynactortest.Action) dynactortest.Rule {
	return dynactortest.Rule{Op: s.op, Match: func(r dynactortest.Request) bool { return r.Attempt == n }, Do: do}
}

// from is a rule for the n-th attempt of the append and all that follow.
func (s shape) from(n int, do dynactortest.Action) dynactortest.Rule {
	return dynactortest.Rule{Op: s.op, Match: func(r dynactortest.Request) bool { return r.Attempt >= n }, Do: do}
}

// refused answers that the first slot is taken, without the item in it.
func (s shape) refused() dynactortest.Action {
	if s.events == 1 {
		return dynactortest.Answer(http.StatusBadRequest, "ConditionalCheckFailedException", "The conditional request failed")
	}
	return s.canceled("ConditionalCheckFailed")
}

// busy answers that another transaction holds an item.
func (s shape) busy() dynactortest.Action {
	if s.events == 1 {
		return dynactortest.Conflict()
	}
	return s.canceled("TransactionConflict")
}

// canceled answers that the transaction was cancelled because of its first item.
func (s shape) canceled(code string) dynactortest.Action {
	return dynactortest.CancelTransaction(append([]string{code}, slices.Repeat([]string{"None"}, s.events-1)...)...)
}

// impatient is a client that passes the library's options on, but makes at most
// three attempts, without waiting: what happens after the last attempt needs no time.
type impatient struct{ *dynamodb.Client }

func (c impatient) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return c.Client.PutItem(ctx, in, append(slices.Clone(opts), threeAttempts)...)
}

func (c impatient) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return c.Client.TransactWriteItems(ctx, in, append(slices.Clone(opts), threeAttempts)...)
}

func threeAttempts(o *dynamodb.Options) {
	if own, ok := o.Retryer.(aws.RetryerV2); ok {
		o.Retryer = limited{own}
	}
}

// limited is a retryer with three attempts and no waits between them.
type limited struct{ aws.RetryerV2 }

func (limited) MaxAttempts() int                             { return 3 }
func (limited) RetryDelay(int, error) (time.Duration, error) { return 0, nil }

// verdict is what a writer is told: the one question that matters to it.
func verdict(err error) string {
	var told []string
	for _, s := range []struct {
		is   error
		name string
	}{{dynactor.ErrConflict, "conflict"}, {dynactor.ErrOutcomeUnknown, "unknown"}} {
		if errors.Is(err, s.is) {
			told = append(told, s.name)
		}
	}
	switch {
	case err == nil:
		return "success"
	case len(told) == 0:
		return "failure"
	default:
		return strings.Join(told, "+")
	}
}

// outsider is another process: a provider of its own whose requests meet no rules.
func outsider(t *testing.T, db *dynactortest.DB, o dynactor.Options) *dynactor.Provider {
	t.Helper()
	client, _ := db.NewClient()
	return openOn(t, db, client, o)
}

// content is what an outsider reads of a stream.
func content(t *testing.T, db *dynactortest.DB, id string) []string {
	t.Helper()
	got, err := replayed(t.Context(), outsider(t, db, dynactor.Options{}).Journal(), id, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// attempts counts the requests for an operation.
func attempts(db *dynactortest.DB, op string) int { return db.Faults.Count(op) }

// before is a rule that runs f once, when the first request for an operation has
// left the library and has not reached the server, and leaves the request alone.
func before(op string, f func()) dynactortest.Rule {
	var once sync.Once
	return dynactortest.Rule{Op: op, Match: func(dynactortest.Request) bool { once.Do(f); return false }}
}

// codes are those of the SDK's errors anywhere in a chain.
func codes(err error) []string {
	var list []string
	if api, ok := err.(interface{ ErrorCode() string }); ok {
		list = append(list, api.ErrorCode())
	}
	switch e := err.(type) { //nolint:errorlint // this walks the chain itself
	case interface{ Unwrap() error }:
		return append(list, codes(e.Unwrap())...)
	case interface{ Unwrap() []error }:
		for _, e := range e.Unwrap() {
			list = append(list, codes(e)...)
		}
	}
	return list
}
