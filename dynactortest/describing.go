package dynactortest

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// describing lets one request at a time reach the embedded server that is answered
// with a table's description: the server counts the table's items meanwhile, and
// must not do so twice at once.
type describing struct {
	base http.RoundTripper
	turn chan struct{} // has room for one
}

// sharedDescribing is for all clients of the process, as the server's tables are.
var sharedDescribing = make(chan struct{}, 1)

func (d *describing) RoundTrip(req *http.Request) (*http.Response, error) {
	switch operation(req) {
	case "DescribeTable", "CreateTable", "UpdateTable", "DeleteTable":
	default:
		return d.base.RoundTrip(req) //nolint:wrapcheck // a transport passes errors on
	}
	body, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	if err != nil {
		return nil, err //nolint:wrapcheck // a transport passes errors on
	}
	ctx := req.Context()
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err() //nolint:wrapcheck // a transport passes errors on
	}
	// A caller that gives up does not end the server's work, so the next one's
	// turn comes only when that has ended.
	type answer struct {
		response *http.Response
		err      error
	}
	answered := make(chan answer, 1)
	clone := req.Clone(context.WithoutCancel(ctx))
	clone.Body = io.NopCloser(bytes.NewReader(body))
	go func() {
		response, err := whole(d.base.RoundTrip(clone)) //nolint:bodyclose // whole closes it
		<-d.turn
		answered <- answer{response, err}
	}()
	select {
	case a := <-answered:
		return a.response, a.err
	case <-ctx.Done():
		return nil, ctx.Err() //nolint:wrapcheck // a transport passes errors on
	}
}

// whole reads the body of an answer, so that nothing is left on the connection
// when nobody takes it.
func whole(response *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, err //nolint:wrapcheck // a transport passes errors on
}

func (d *describing) CloseIdleConnections() { closeIdle(d.base) }
