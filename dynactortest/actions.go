package dynactortest

import (
	"context"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

// Action is what happens to a request. Get one from the functions that return
// it. Actions keep no state and may be shared by rules.
type Action struct {
	run func(c *call, next sender) (*answer, error)
}

func (a Action) apply(c *call, next sender) (*answer, error) {
	if a.run == nil {
		return next(c.body)
	}
	return a.run(c, next)
}

// Sequence applies several actions to one request. The first is nearest to the
// caller: it acts first on the request and last on the answer.
func Sequence(actions ...Action) Action {
	return Action{run: func(c *call, next sender) (*answer, error) {
		if len(actions) == 0 {
			return next(c.body)
		}
		rest := Sequence(actions[1:]...)
		return actions[0].apply(c, func(body []byte) (*answer, error) {
			inner := *c
			inner.body = body
			return rest.apply(&inner, next)
		})
	}}
}

// DropAnswer lets the request reach the server and then resets the connection:
// the server has acted and the caller does not know.
func DropAnswer() Action {
	return Action{run: func(c *call, next sender) (*answer, error) {
		if _, err := next(c.body); err != nil {
			return nil, err
		}
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	}}
}

// FailAfter lets the request reach the server and then answers with a status of
// 500 or more: the server has acted and the caller does not know.
func FailAfter(status int) Action {
	return Action{run: func(c *call, next sender) (*answer, error) {
		if _, err := next(c.body); err != nil {
			return nil, err
		}
		code := "InternalServerError"
		if status == http.StatusServiceUnavailable {
			code = "ServiceUnavailable"
		}
		return errorAnswer(status, code, "failed after the request was served"), nil
	}}
}

// Delay waits before the request reaches the server, and again before its
// answer reaches the caller. It ends early when the request's context is done.
func Delay(before, after time.Duration) Action {
	return Action{run: func(c *call, next sender) (*answer, error) {
		ctx := c.req.Context()
		if err := pause(ctx, before); err != nil {
			return nil, err
		}
		got, err := next(c.body)
		if err != nil {
			return nil, err
		}
		if err := pause(ctx, after); err != nil {
			return nil, err
		}
		return got, nil
	}}
}

// Hold keeps the request from the server: it sends on reached, unless that is
// nil, and goes on when release is closed or sends. It ends early when the
// request's context is done, and then the server never sees the request.
func Hold(reached chan<- struct{}, release <-chan struct{}) Action {
	return Action{run: func(c *call, next sender) (*answer, error) {
		if err := hold(c.req.Context(), reached, release); err != nil {
			return nil, err
		}
		return next(c.body)
	}}
}

// HoldAnswer is like [Hold] for the answer: the server has acted when it sends
// on reached.
func HoldAnswer(reached chan<- struct{}, release <-chan struct{}) Action {
	return Action{run: func(c *call, next sender) (*answer, error) {
		got, err := next(c.body)
		if err != nil {
			return nil, err
		}
		if err := hold(c.req.Context(), reached, release); err != nil {
			return nil, err
		}
		return got, nil
	}}
}

// Refuse fails as when nothing listens at the address. The request never leaves.
func Refuse() Action {
	return Action{run: func(*call, sender) (*answer, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}}
}

// NoSuchHost fails as when the name does not resolve. The request never leaves.
func NoSuchHost() Action {
	return Action{run: func(c *call, _ sender) (*answer, error) {
		cause := &net.DNSError{Err: "no such host", Name: c.req.URL.Hostname(), IsNotFound: true}
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: cause}
	}}
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // as a transport returns it
	}
}

func hold(ctx context.Context, reached chan<- struct{}, release <-chan struct{}) error {
	if reached != nil {
		select {
		case reached <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // as a transport returns it
		}
	}
	select {
	case <-release:
		return nil
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // as a transport returns it
	}
}
