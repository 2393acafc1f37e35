package dynactor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Client is what this package needs of DynamoDB: exactly the calls that it
// makes. *dynamodb.Client is one. A wrapper must pass the option functions on,
// or the attempts of a write cannot be judged one by one; whatever then fails
// counts as unknown, unless the item in the slot tells. It must be safe for
// concurrent use.
type Client interface {
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	BatchWriteItem(context.Context, *dynamodb.BatchWriteItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
}

var _ Client = (*dynamodb.Client)(nil)

// maxAttempts bounds the attempts of one request; the time limit usually ends
// them first.
const maxAttempts = 40

// Full-jitter back-off: the n-th wait is random between 0 and firstBackoff*2^n,
// at most maxBackoff.
// https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
const (
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = time.Second
)

// backoff is the random wait after the n-th failed attempt, counted from 1.
func backoff(n int) time.Duration {
	return rand.N(min(maxBackoff, firstBackoff<<min(n-1, 10))) //nolint:gosec // jitter is no secret
}

// newRetryer is the one place that decides what is sent again. There is no
// token bucket: it would be shared by all actors of a client and fail those that
// have no trouble.
func newRetryer() aws.RetryerV2 {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = maxAttempts
		o.RateLimiter = ratelimit.None
		o.Backoff = retry.BackoffDelayerFunc(func(n int, _ error) (time.Duration, error) { return backoff(n), nil })
		own := []retry.IsErrorRetryable{retry.IsErrorRetryableFunc(retryableHere)}
		o.Retryables = append(own, o.Retryables...)
	})
}

// retryableHere knows what the SDK's list lacks.
func retryableHere(err error) aws.Ternary {
	if errors.As(err, new(*stopped)) {
		return aws.FalseTernary
	}
	if errors.As(err, new(*attemptTimeout)) || errors.As(err, new(*types.TransactionConflictException)) ||
		errors.As(err, new(*types.ReplicatedWriteConflictException)) ||
		errors.As(err, new(*smithy.DeserializationError)) { // a cut or garbled answer
		return aws.TrueTernary
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok && expired(api.ErrorCode()) {
		return aws.TrueTernary
	}
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) {
		return aws.BoolTernary(onlyPassing(canceled.CancellationReasons))
	}
	return aws.UnknownTernary
}

// expired tells whether an error's code says that the signature, or what it was
// made with, is too old. Each attempt is signed anew.
func expired(code string) bool {
	switch code {
	case "ExpiredToken", "ExpiredTokenException", "RequestExpired", "RequestTimeTooSkewed":
		return true
	}
	return false
}

// onlyPassing tells whether a transaction was cancelled for reasons that pass.
func onlyPassing(reasons []types.CancellationReason) bool {
	passing := false
	for _, r := range reasons {
		switch aws.ToString(r.Code) {
		case "", "None":
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
			passing = true
		default:
			return false
		}
	}
	return passing
}

// caller makes the requests: it applies the limits of time and number, and
// judges each attempt. It is safe for concurrent use.
type caller struct {
	client       Client
	now          func() time.Time
	readTimeout  time.Duration
	writeTimeout time.Duration
	reads        map[string]gate // by table, so that a throttled one starves no other
	writes       map[string]gate
	perCall      []func(*dynamodb.Options)

	mu     sync.Mutex
	closed bool
	calls  map[*call]struct{} // in flight
	idle   chan struct{}      // closed when closed and nothing is in flight

	closing chan struct{} // closed when no new call is admitted

	tick     time.Duration // of the watch
	watcher  *time.Timer
	watching bool // the watcher is running

	staged bool // the client is known to run the steps
}

// gate admits as many attempts at a time as it has room for.
type gate chan struct{}

func newCaller(client Client, o Options) *caller {
	retryer := newRetryer()
	ours := func(d *dynamodb.Options) {
		d.Retryer = retryer
		d.APIOptions = append(d.APIOptions, addAttemptSteps)
		d.DisableValidateResponseChecksum = true // a step does, and does not only log
	}
	c := &caller{
		client: client, perCall: []func(*dynamodb.Options){ours, func(d *dynamodb.Options) {
			d.APIOptions = append(d.APIOptions, addStagedStep)
		}},
		tick: watchTick(min(o.ReadTimeout, o.WriteTimeout)),
		now:  o.wall, readTimeout: o.ReadTimeout, writeTimeout: o.WriteTimeout,
		reads: map[string]gate{}, writes: map[string]gate{},
		calls: map[*call]struct{}{}, idle: make(chan struct{}), closing: make(chan struct{}),
	}
	if sdk, ok := client.(*dynamodb.Client); ok {
		// A copy that has the settings for good, which costs less than setting them
		// with every call. It shares the connections of yours.
		c.perCall, c.staged = nil, true
		c.client = dynamodb.New(sdk.Options(), ours, func(d *dynamodb.Options) { d.RetryMaxAttempts = 0 })
	}
	for _, table := range o.tableNames() {
		c.reads[table.name] = make(gate, o.MaxConcurrentReads)
		c.writes[table.name] = make(gate, o.MaxConcurrentWrites)
	}
	return c
}

// operation is a method of Client.
type operation[In, Out any] func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error)

// read makes one read request. Its error matches the sentinel for its cause. Its
// time starts when it has a place: when very many actors recover at once, they
// wait for each other, and nothing is wrong.
func read[In, Out any](ctx context.Context, c *caller, table string, do operation[In, Out], in *In) (*Out, error) {
	k := &call{caller: c, gate: c.reads[table], limit: c.readTimeout}
	if err := k.queue(ctx); err != nil {
		return nil, err
	}
	defer k.leave()
	out, err := send(ctx, k, do, in)
	if err != nil {
		return nil, k.explain(ctx, err)
	}
	return out, nil
}

// write makes one write request that may be repeated without harm. When nobody
// knows whether it was carried out, its error matches ErrOutcomeUnknown.
func write[In, Out any](ctx context.Context, c *caller, table string, do operation[In, Out], in *In) (*Out, error) {
	k := &call{caller: c, gate: c.writes[table], limit: c.writeTimeout}
	out, err := send(ctx, k, do, in)
	if err == nil {
		return out, nil
	}
	err = k.explain(ctx, err)
	if k.unsettled {
		err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return nil, err
}

// send makes one request through k, which afterwards knows about its attempts.
func send[In, Out any](ctx context.Context, k *call, do operation[In, Out], in *In) (*Out, error) {
	if err := k.begin(ctx); err != nil {
		return nil, err
	}
	defer k.end()
	if k.before != nil { // here too, for a client that does not run the steps
		if err := k.before(ctx); err != nil {
			return nil, &stopped{err}
		}
	}
	k.staged = k.caller.staged
	out, err := do(k, in, k.caller.perCall...) //nolint:contextcheck // k is the context, made from ctx
	if !k.staged {
		k.judgeWhole(err)
	}
	return out, err
}

// close refuses new calls, waits for those in flight, and cancels them when ctx ends.
func (c *caller) close(ctx context.Context) error {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.closing)
		if len(c.calls) == 0 {
			close(c.idle)
		}
	}
	c.mu.Unlock()
	select {
	case <-c.idle:
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	for k := range c.calls {
		k.killed.Store(true)
		k.cancel(nil)
	}
	n := len(c.calls)
	c.mu.Unlock()
	<-c.idle
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d requests were cancelled: %w", n, ctx.Err())
}

// pause waits, and ends early when ctx ends or the provider closes.
func (c *caller) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-c.closing:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // the caller tells what it waited for
	}
}
