package dynactor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// call is one request with all its attempts. It is the context that the SDK
// works with, so that the steps below find it. The SDK reports only the last
// error of a request; call remembers what matters of the earlier ones.
type call struct {
	limited

	caller *caller
	gate   gate
	limit  time.Duration
	// before is asked before each attempt, outside of the gate; its error ends
	// the call and the attempt is not sent. Nil: nothing is asked.
	before func(context.Context) error

	attempt atomic.Pointer[limited] // under way, nil for none
	killed  atomic.Bool
	started time.Time // wall clock
	ended   error     // why the context had ended when the request returned, nil if it had not

	placed    bool      // a place in the gate waits for the next attempt
	staged    bool      // the SDK's stack ran, so the fields below are its attempts
	onWire    bool      // the current attempt was handed to the transport
	attempts  int       // that may have reached the server
	firstSent time.Time // wall clock when the first attempt was sent
	unsettled bool      // an attempt may have been carried out, and no answer said whether
	last      error     // of the last attempt that was sent and failed
}

type callKey struct{}

// Value finds the call itself, for the steps.
func (k *call) Value(key any) any {
	if key == (callKey{}) {
		return k
	}
	return k.Context.Value(key)
}

// begin registers the call, unless the provider is closed.
func (k *call) begin(ctx context.Context) error {
	c := k.caller
	k.limited = limit(ctx, k.limit)
	k.started = c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		k.cancel(nil)
		return ErrClosed
	}
	c.calls[k] = struct{}{}
	c.watch()
	return nil
}

func (k *call) end() {
	c := k.caller
	k.ended = k.Err()
	k.cancel(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, k)
	if c.closed && len(c.calls) == 0 {
		close(c.idle)
	}
}

// addAttemptSteps puts the steps into the SDK's stack: one around each attempt,
// after the retry step, and one that notes what is sent.
func addAttemptSteps(stack *middleware.Stack) error {
	return errors.Join(
		stack.Finalize.Insert(attemptStep{}, "Retry", middleware.After),
		stack.Deserialize.Add(wireStep{}, middleware.After),
	)
}

// addStagedStep is for a client that may or may not run the steps.
func addStagedStep(stack *middleware.Stack) error {
	return stack.Initialize.Add(stagedStep{}, middleware.Before) //nolint:wrapcheck // the SDK's own error
}

// stagedStep notes that the SDK's stack runs.
type stagedStep struct{}

func (stagedStep) ID() string { return "dynactor.Staged" }

func (stagedStep) HandleInitialize(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	if k, ok := ctx.Value(callKey{}).(*call); ok {
		k.staged = true
	}
	return next.HandleInitialize(ctx, in) //nolint:wrapcheck // a step passes errors on
}

// wireStep notes that an attempt is about to leave: signing and all before it
// went well. It also has the answer compared with its checksum.
type wireStep struct{}

func (wireStep) ID() string { return "dynactor.Wire" }

func (wireStep) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (out middleware.DeserializeOutput, md middleware.Metadata, err error) {
	k, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return next.HandleDeserialize(ctx, in) //nolint:wrapcheck // a step passes errors on
	}
	// Waiting for a place and for credentials may have taken all the time.
	if err := ctx.Err(); err != nil {
		return out, md, &stopped{fmt.Errorf("not sent: %w", err)}
	}
	if err := k.late(); err != nil {
		return out, md, err
	}
	k.onWire = true
	out, md, err = next.HandleDeserialize(ctx, in)
	if response, ok := out.RawResponse.(*smithyhttp.Response); ok && err == nil {
		err = checkBody(response)
	}
	return out, md, err
}

// attemptStep surrounds each attempt.
type attemptStep struct{}

func (attemptStep) ID() string { return "dynactor.Attempt" }

func (attemptStep) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (out middleware.FinalizeOutput, md middleware.Metadata, err error) {
	k, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return next.HandleFinalize(ctx, in) //nolint:wrapcheck // a step passes errors on
	}
	if err := k.admit(ctx); err != nil {
		return out, md, err
	}
	attempt := limit(ctx, k.limit/2)
	k.attempt.Store(&attempt)
	k.onWire = false
	sent := k.caller.now()
	func(ctx context.Context) {
		defer func() { // also when something of the user's panics
			k.attempt.Store(nil)
			<-k.gate
		}()
		out, md, err = next.HandleFinalize(ctx, in)
	}(&attempt) //nolint:contextcheck // made from ctx
	if err != nil && attempt.Err() != nil && ctx.Err() == nil {
		// The SDK would take the end of the attempt for the caller's wish.
		err = &attemptTimeout{after: k.limit / 2, text: err.Error()}
	}
	attempt.cancel(nil)
	if k.onWire && (err == nil || !neverLeft(err)) {
		k.attempts++
		if k.attempts == 1 {
			k.firstSent = sent
		}
		if !settled(err) {
			k.unsettled = true
		}
	}
	if err != nil && k.onWire {
		k.last = err
	}
	return out, md, err
}

// admit decides whether an attempt may be sent, and takes a place in the gate.
func (k *call) admit(ctx context.Context) error {
	if err := k.late(); err != nil {
		return err
	}
	if k.before != nil {
		if err := k.before(&k.limited); err != nil { //nolint:contextcheck // the look makes a request of its own, outside of this one
			return &stopped{err}
		}
	}
	if k.placed {
		k.placed = false
		return nil
	}
	select {
	case k.gate <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &stopped{fmt.Errorf("waiting for one of %d places: %w", cap(k.gate), ctx.Err())}
	}
}

// queue takes a place in the gate for the first attempt, before the call begins.
func (k *call) queue(ctx context.Context) error {
	select {
	case k.gate <- struct{}{}:
		k.placed = true
		return nil
	case <-k.caller.closing:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("waiting for one of %d places: %w", cap(k.gate), ctx.Err())
	}
}

// leave gives the place back that no attempt has used.
func (k *call) leave() {
	if k.placed {
		<-k.gate
	}
}

// late stops an attempt when the limit has passed on the wall clock: the
// context's clock stands still while the machine is suspended.
func (k *call) late() error {
	if spent := k.caller.now().Sub(k.started); spent > k.limit {
		return &stopped{fmt.Errorf("%w: %s have passed on the wall clock", context.DeadlineExceeded, spent)}
	}
	return nil
}

// stopped ends a call before its next attempt: it is not sent and not retried.
type stopped struct{ err error }

func (s *stopped) Error() string { return s.err.Error() }
func (s *stopped) Unwrap() error { return s.err }

// attemptTimeout is the end of an attempt that took too long. It hides the
// context's error on purpose, since the SDK does not retry that.
type attemptTimeout struct {
	after time.Duration
	text  string
}

func (e *attemptTimeout) Error() string {
	return fmt.Sprintf("no answer within %s: %s", e.after, e.text)
}

// neverLeft tells whether an attempt failed before anything was sent.
func neverLeft(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	return errors.As(err, new(*net.DNSError))
}

// settled tells whether an attempt's outcome says what happened to it: it
// succeeded, or the server refused it. A server's own failure, a lost or garbled
// answer say nothing.
func settled(err error) bool {
	if err == nil {
		return true
	}
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() == "UnknownError" || errors.As(err, new(*types.TransactionInProgressException)) ||
		errors.As(err, new(*types.IdempotentParameterMismatchException)) {
		return false
	}
	var response *awshttp.ResponseError
	if !errors.As(err, &response) {
		return api.ErrorFault() == smithy.FaultClient // a client that is not the SDK's
	}
	status := response.HTTPStatusCode()
	return status >= 400 && status < 500 && status != http.StatusRequestTimeout
}

// judgeWhole judges a request of a client that did not run the steps. It may have
// made several attempts and reports only the last, so a failure says nothing
// about the earlier ones.
func (k *call) judgeWhole(err error) {
	k.attempts, k.firstSent, k.last = 1, k.started, err
	k.unsettled = err != nil
}

// explain makes the error of a request match the sentinel for its cause, says
// how many attempts there were, and does not let the end of time hide what used it up.
func (k *call) explain(ctx context.Context, err error) error {
	if k.last != nil && !errors.Is(err, k.last) {
		err = fmt.Errorf("%w; last answer: %w", err, k.last)
	}
	switch {
	case k.killed.Load():
		err = fmt.Errorf("%w: %w", ErrClosed, err)
	case errors.As(err, new(*types.ResourceNotFoundException)):
		err = fmt.Errorf("%w: %w", ErrSchema, err)
	case isThrottle(err):
		err = fmt.Errorf("%w: %w", ErrThrottled, err)
	}
	for _, ended := range []error{k.ended, ctx.Err()} {
		if ended != nil && !k.killed.Load() && !errors.Is(err, ended) {
			err = fmt.Errorf("%w: %w", ended, err)
		}
	}
	if k.attempts > 1 {
		err = fmt.Errorf("%w (%d attempts)", err, k.attempts)
	}
	return err
}

// isThrottle tells whether an error is DynamoDB's want of capacity.
func isThrottle(err error) bool {
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) {
		return onlyPassing(canceled.CancellationReasons)
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode() {
	case "ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", "Throttling",
		"TransactionConflictException", "TransactionInProgressException", "ReplicatedWriteConflictException":
		return true
	}
	return false
}
