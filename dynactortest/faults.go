package dynactortest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Faults is an [http.RoundTripper] that sits between the SDK and a server. It
// records requests and applies rules to them. It is safe for concurrent use and
// starts no goroutines.
type Faults struct {
	base   http.RoundTripper
	tables *schemas

	mu       sync.Mutex
	rules    []*activeRule
	requests []*Request
	capacity bool
	starts   map[string]bool // start keys made up by EmptyPage
}

// NewFaults puts a fault layer in front of base. A nil base is
// [http.DefaultTransport]. [New] does this for you.
func NewFaults(base http.RoundTripper) *Faults {
	if base == nil {
		base = http.DefaultTransport
	}
	return &Faults{base: base, tables: newSchemas(base), starts: map[string]bool{}}
}

// ReportCapacity makes the layer ask the server what requests consume when the
// caller did not, so that [Faults.Usage] is the server's word where the server
// knows. The caller sees the figures in the answers, too.
func (f *Faults) ReportCapacity(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.capacity = on
}

// RoundTrip implements [http.RoundTripper].
func (f *Faults) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	in := decodeInput(body)
	c := &call{faults: f, req: req, body: body, in: in, record: newRequest(req, body, in)}
	f.arrive(c)
	got, err := f.choose(*c.record)(c, c.send)
	f.leave(c, got, err)
	if err != nil {
		return nil, err
	}
	return got.response(req), nil
}

// CloseIdleConnections closes those of the base, for
// [http.Client.CloseIdleConnections].
func (f *Faults) CloseIdleConnections() { closeIdle(f.base) }

func closeIdle(base http.RoundTripper) {
	if c, ok := base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer func() { _ = req.Body.Close() }()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller's own error
	}
	return body, nil
}

// operation is the name of the DynamoDB call that req makes.
func operation(req *http.Request) string {
	return strings.TrimPrefix(req.Header.Get(targetHeader), targetPrefix)
}

// call is one request on its way through the layer.
type call struct {
	faults *Faults
	req    *http.Request
	body   []byte // as it goes to the server
	in     *input
	record *Request
}

// sender passes a body on towards the server.
type sender func(body []byte) (*answer, error)

// send is the last sender: it reaches the server.
func (c *call) send(body []byte) (*answer, error) {
	f := c.faults
	f.mu.Lock()
	c.record.Sent = true
	f.mu.Unlock()
	got, err := exchange(f.base, c.req, body)
	if err != nil {
		return nil, err
	}
	in := c.in
	if !bytes.Equal(body, c.record.Body) {
		in = decodeInput(body)
	}
	used := usageOf(c.record.Op, in, got)
	f.mu.Lock()
	c.record.Usage = c.record.Usage.plus(used)
	f.mu.Unlock()
	return got, nil
}

// arrive records the call and prepares its body for the server.
func (f *Faults) arrive(c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, c.record)
	c.body = f.withoutMadeUpStart(c.record.Op, c.body)
	if f.capacity && reportsCapacity(c.record.Op) {
		in := decode(c.body)
		if _, asked := in["ReturnConsumedCapacity"]; !asked {
			in["ReturnConsumedCapacity"] = json.RawMessage(`"TOTAL"`)
			c.body = encode(in)
		}
	}
}

// choose returns what happens to the request.
func (f *Faults) choose(r Request) func(*call, sender) (*answer, error) {
	if action, found := f.actionFor(r); found {
		return action.apply
	}
	return Action{}.apply
}
