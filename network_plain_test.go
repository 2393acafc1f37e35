package dynactor_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// plain is a client that is not the SDK's: it knows nothing of option functions.
type plain struct {
	dynactor.Client

	put      func(context.Context, *dynamodb.PutItemInput) error
	transact func(*dynamodb.TransactWriteItemsInput) error
}

func (c plain) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if !strings.HasPrefix(*in.TableName, "events") || c.put == nil {
		return c.Client.PutItem(ctx, in, opts...)
	}
	return &dynamodb.PutItemOutput{}, c.put(ctx, in)
}

func (c plain) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return &dynamodb.TransactWriteItemsOutput{}, c.transact(in)
}

// The attempts of a client that is not the SDK's cannot be seen, so only what is
// in the slot counts.
func TestNetworkPlainClient(t *testing.T) {
	t.Parallel()
	foreign := map[string]types.AttributeValue{"op": &types.AttributeValueMemberS{Value: "other"}}
	for _, tt := range []struct {
		name    string
		store   bool // the put is carried out
		answer  func(in *dynamodb.PutItemInput) error
		verdict string
		is      error
	}{
		{"success", true, func(*dynamodb.PutItemInput) error { return nil }, "success", nil},
		{"an error of its own", true, func(*dynamodb.PutItemInput) error { return io.ErrUnexpectedEOF }, "unknown", io.ErrUnexpectedEOF},
		{
			"throttled, perhaps after an earlier attempt", true,
			func(*dynamodb.PutItemInput) error { return &types.ProvisionedThroughputExceededException{} },
			"unknown", dynactor.ErrThrottled,
		},
		{
			"refused connection, perhaps after an earlier attempt", true,
			func(*dynamodb.PutItemInput) error { return &net.OpError{Op: "dial", Err: io.EOF} },
			"unknown", nil,
		},
		{
			"own item", true,
			func(in *dynamodb.PutItemInput) error { return &types.ConditionalCheckFailedException{Item: in.Item} },
			"success", nil,
		},
		{
			"own item, left out", true,
			func(*dynamodb.PutItemInput) error { return &types.ConditionalCheckFailedException{} },
			"success", nil,
		},
		{
			"foreign item", false,
			func(*dynamodb.PutItemInput) error { return &types.ConditionalCheckFailedException{Item: foreign} },
			"conflict", nil,
		},
		{
			"item without an operation id", false,
			func(in *dynamodb.PutItemInput) error {
				return &types.ConditionalCheckFailedException{Item: map[string]types.AttributeValue{"pid": in.Item["pid"]}}
			},
			"conflict", nil,
		},
		{
			"no item", false,
			func(*dynamodb.PutItemInput) error { return &types.ConditionalCheckFailedException{} },
			"unknown", nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := dynactortest.New(t)
			ready(t, outsider(t, db, dynactor.Options{}), db)
			p := openOn(t, db, plain{Client: db.Client, put: func(_ context.Context, in *dynamodb.PutItemInput) error {
				if tt.store {
					if _, err := db.Client.PutItem(t.Context(), in); err != nil { //nolint:contextcheck // the context of the call goes on
						t.Error(err)
					}
				}
				return tt.answer(in)
			}}, dynactor.Options{})
			_, err := p.Journal().Append(t.Context(), "a", 0, text("1"))
			if got := verdict(err); got != tt.verdict {
				t.Errorf("told %s, want %s: %v", got, tt.verdict, err)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error does not match %q: %v", tt.is, err)
			}
		})
	}
}

// A client's error need not tell that the caller's time was up.
func TestNetworkPlainClientCancelled(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	p := openOn(t, db, plain{Client: db.Client, put: func(inner context.Context, _ *dynamodb.PutItemInput) error {
		cancel()
		<-inner.Done()
		return io.ErrClosedPipe
	}}, dynactor.Options{})
	ready(t, outsider(t, db, dynactor.Options{}), db)
	_, err := p.Journal().Append(ctx, "a", 0, text("1"))
	for _, target := range []error{dynactor.ErrOutcomeUnknown, context.Canceled, io.ErrClosedPipe} {
		if !errors.Is(err, target) {
			t.Errorf("error does not match %q: %v", target, err)
		}
	}
}

// hiding is a wrapper around the SDK's client that does not pass the library's
// options on, so that the SDK makes its own attempts and reports the last.
type hiding struct{ dynactor.Client }

func (c hiding) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return c.Client.PutItem(ctx, in)
}

func (c hiding) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return c.Client.TransactWriteItems(ctx, in)
}

func TestNetworkHiddenAttempts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		later   dynactortest.Action // what the second attempt and all later ones meet
		verdict string
	}{
		{"then throttled", dynactortest.Throttle(), "unknown"},
		{"then connections refused", dynactortest.Refuse(), "unknown"},
		{"then access denied", dynactortest.Answer(400, "AccessDeniedException", "by a test"), "unknown"},
		{"then nothing", dynactortest.Action{}, "success"},
	} {
		for _, s := range shapes {
			t.Run("first answer lost, "+tt.name+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				db := dynactortest.New(t)
				ready(t, outsider(t, db, dynactor.Options{}), db)
				p := openOn(t, db, hiding{db.Client}, dynactor.Options{})
				db.Faults.Add(s.on(1, dynactortest.DropAnswer()))
				db.Faults.Add(s.from(2, tt.later))
				_, err := p.Journal().Append(t.Context(), "a", 0, numbered(1, s.events)...)
				if got := verdict(err); got != tt.verdict {
					t.Errorf("told %s, want %s: %v", got, tt.verdict, err)
				}
				if diff := cmp.Diff(texts(1, s.events), content(t, db, "a")); diff != "" {
					t.Errorf("stream (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// G14: the reasons why a transaction was cancelled may be incomplete.
func TestNetwork_G14_IncompleteReasons(t *testing.T) {
	t.Parallel()
	foreign := map[string]types.AttributeValue{"op": &types.AttributeValueMemberS{Value: "other"}}
	code := func(code string, item map[string]types.AttributeValue) types.CancellationReason {
		return types.CancellationReason{Code: &code, Item: item}
	}
	for _, tt := range []struct {
		name    string
		reasons []types.CancellationReason
		verdict string
		says    string
	}{
		{"none", nil, "unknown", "cancelled by a test"},
		{"empty", []types.CancellationReason{}, "unknown", "cancelled by a test"},
		{"one of three", []types.CancellationReason{code("ConditionalCheckFailed", foreign)}, "conflict", "other"},
		{"five of three", []types.CancellationReason{{}, {}, {}, {}, code("ConditionalCheckFailed", foreign)}, "unknown", "cancelled by a test"},
		{"no codes", []types.CancellationReason{{}, {}, {}}, "unknown", "cancelled by a test"},
		{"no code with an item", []types.CancellationReason{{Item: foreign}}, "unknown", "cancelled by a test"},
		{"second with an item", []types.CancellationReason{code("ConditionalCheckFailed", nil), code("ConditionalCheckFailed", foreign)}, "conflict", "other"},
		{
			"a message",
			[]types.CancellationReason{{}, {Code: aws.String("ValidationError"), Message: aws.String("odd key")}},
			"unknown", "item 2 of 2: ValidationError: odd key",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := dynactortest.New(t)
			p := openOn(t, db, plain{Client: db.Client, transact: func(*dynamodb.TransactWriteItemsInput) error {
				return &types.TransactionCanceledException{Message: aws.String("cancelled by a test"), CancellationReasons: tt.reasons}
			}}, dynactor.Options{})
			ready(t, p, db)
			_, err := p.Journal().Append(t.Context(), "a", 0, numbered(1, 3)...)
			if got := verdict(err); got != tt.verdict {
				t.Errorf("told %s, want %s: %v", got, tt.verdict, err)
			}
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error does not tell %q: %v", tt.says, err)
			}
		})
	}
}
