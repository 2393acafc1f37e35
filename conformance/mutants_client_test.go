package conformance_test

import (
	"context"
	"errors"
	"testing"

	"github.com/asynkron/protoactor-go/persistence"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/conformance"
)

// brokenClient is a client of DynamoDB that does something else than it is asked:
// the library on it is a library that asks for that.
type brokenClient struct {
	dynactor.Client

	put   func(in *dynamodb.PutItemInput, call func() (*dynamodb.PutItemOutput, error)) (*dynamodb.PutItemOutput, error)
	query func(in *dynamodb.QueryInput, call func() (*dynamodb.QueryOutput, error)) (*dynamodb.QueryOutput, error)
	batch func(call func() (*dynamodb.BatchWriteItemOutput, error)) (*dynamodb.BatchWriteItemOutput, error)
}

func (c brokenClient) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	call := func() (*dynamodb.PutItemOutput, error) { return c.Client.PutItem(ctx, in, o...) }
	if c.put == nil {
		return call()
	}
	return c.put(in, call)
}

func (c brokenClient) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	call := func() (*dynamodb.QueryOutput, error) { return c.Client.Query(ctx, in, o...) }
	if c.query == nil {
		return call()
	}
	return c.query(in, call)
}

func (c brokenClient) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	call := func() (*dynamodb.BatchWriteItemOutput, error) { return c.Client.BatchWriteItem(ctx, in, o...) }
	if c.batch == nil {
		return call()
	}
	return c.batch(call)
}

// opened makes environments of the library on a broken client, in both processes.
func opened[E any](broken brokenClient, env func(*process) E, same func(*process, *E)) func(testing.TB) E {
	return func(tb testing.TB) E {
		tb.Helper()
		p := newProcess(tb, func(c dynactor.Client) dynactor.Client {
			broken.Client = c
			return broken
		})
		e := env(p)
		same(p, &e)
		return e
	}
}

// clientMutants are what the library would be without one of its rules for DynamoDB.
func clientMutants() []mutant {
	inSnapshots := func(name, by string, c brokenClient) mutant {
		return on(conformance.Snapshots(), opened(c, (*process).snapshots, func(p *process, e *conformance.SnapshotEnv) {
			e.Another = func() conformance.SnapshotStore { return snapshots{p.p.Snapshots()} }
		}), "DynamoDB: "+name, by, func(*conformance.SnapshotEnv) {})
	}
	inProvider := func(name, by string, c brokenClient) mutant {
		return on(conformance.Provider(), opened(c, (*process).provider, func(p *process, e *conformance.ProviderEnv) {
			e.Another = func() persistence.Provider { return p.p }
		}), "DynamoDB: "+name, by, func(*conformance.ProviderEnv) {})
	}
	type (
		putting  = func() (*dynamodb.PutItemOutput, error)
		querying = func() (*dynamodb.QueryOutput, error)
	)
	// failed changes the old item of a put whose condition failed.
	failed := func(change func(in *dynamodb.PutItemInput, e *types.ConditionalCheckFailedException)) func(*dynamodb.PutItemInput, putting) (*dynamodb.PutItemOutput, error) {
		return func(in *dynamodb.PutItemInput, call putting) (*dynamodb.PutItemOutput, error) {
			out, err := call()
			if e, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
				change(in, e)
			}
			return out, err
		}
	}
	blind := func(in *dynamodb.PutItemInput, call putting) (*dynamodb.PutItemOutput, error) {
		in.ConditionExpression, in.ReturnValuesOnConditionCheckFailure = nil, ""
		in.ExpressionAttributeNames = nil
		return call()
	}
	forgets := func(call func() (*dynamodb.BatchWriteItemOutput, error)) (*dynamodb.BatchWriteItemOutput, error) {
		out, err := call()
		if err == nil {
			out.UnprocessedItems = nil
		}
		return out, err
	}
	return []mutant{
		inProvider("puts without a condition", "F-40 an index that another incarnation took", brokenClient{put: blind}),
		inProvider("takes a conflict for its own retry", "F-42 the same event by two incarnations", brokenClient{
			put: failed(func(in *dynamodb.PutItemInput, e *types.ConditionalCheckFailedException) { e.Item = in.Item }),
		}),
		inProvider("takes its own retry for a conflict", "F-51 J-44 a write whose answer is lost", brokenClient{
			put: failed(func(in *dynamodb.PutItemInput, e *types.ConditionalCheckFailedException) {
				e.Item = map[string]types.AttributeValue{"op": &types.AttributeValueMemberS{Value: "somebody else's"}}
				for _, name := range []string{"pid", "seq", "type", "data", "ts"} {
					e.Item[name] = in.Item[name]
				}
			}),
		}),
		inSnapshots("drops the last page", "S-17 many", brokenClient{
			query: func(_ *dynamodb.QueryInput, call querying) (*dynamodb.QueryOutput, error) {
				out, err := call()
				if err == nil {
					out.LastEvaluatedKey = nil
				}
				return out, err
			},
		}),
		inSnapshots("takes a failed query for an empty one", "S-14 reads that fail", brokenClient{
			query: func(_ *dynamodb.QueryInput, call querying) (*dynamodb.QueryOutput, error) {
				out, err := call()
				if err != nil {
					return &dynamodb.QueryOutput{}, nil //nolint:nilerr // this is what is wrong with it
				}
				return out, err
			},
		}),
		inSnapshots("asks for the oldest snapshot", "S-04 the newest", brokenClient{
			query: func(in *dynamodb.QueryInput, call querying) (*dynamodb.QueryOutput, error) {
				in.ScanIndexForward = aws.Bool(true)
				return call()
			},
		}),
		inSnapshots("forgets unprocessed items", "S-18 J-53 a batch that is done in part", brokenClient{batch: forgets}),
		inSnapshots("forgets items of which none is processed", "S-18 J-53 batches of which nothing is done", brokenClient{batch: forgets}),
	}
}
