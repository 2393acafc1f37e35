package dynactortest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Request is the record of one attempt: one HTTP request of the SDK.
type Request struct {
	// Op is the operation, like "PutItem".
	Op string
	// Table is the table, for transactions and batches the first by name.
	Table string
	// Body is the input in DynamoDB's JSON, as the SDK sent it.
	Body json.RawMessage
	// Attempt counts the attempts of one call, from 1. It is 0 when the SDK
	// does not say.
	Attempt int
	// InvocationID is the same for all attempts of one call.
	InvocationID string
	// Start is when the request came, End when its answer left. End is zero
	// while the request is under way.
	Start, End time.Time
	// Sent says that the request was passed on to the server.
	Sent bool
	// Status is the HTTP status that the caller saw, 0 for none.
	Status int
	// Usage is what the request consumed, whatever the caller saw.
	Usage Usage
	// Err is the error code that the caller saw, like
	// "ConditionalCheckFailedException", or the text of the transport's error.
	Err string
}

// Input is Body decoded.
func (r Request) Input() map[string]any {
	var in map[string]any
	if json.Unmarshal(r.Body, &in) != nil {
		return nil
	}
	return in
}

// ConsistentRead says whether the request asks for a strongly consistent read.
func (r Request) ConsistentRead() bool {
	return decodeInput(r.Body).ConsistentRead
}

// Token is the ClientRequestToken of a transaction, empty when there is none.
func (r Request) Token() string {
	return decodeInput(r.Body).ClientRequestToken
}

// String says in a line what was asked and answered.
func (r Request) String() string {
	words := []string{r.Op}
	if r.Table != "" {
		words = append(words, r.Table)
	}
	words = append(words, fmt.Sprintf("attempt %d: %d", r.Attempt, r.Status))
	if r.Err != "" {
		words = append(words, r.Err)
	}
	return strings.Join(words, " ")
}

// Requests returns the records since the last Reset, in the order of arrival.
// Their bodies stay in memory until then.
func (f *Faults) Requests() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]Request, len(f.requests))
	for i, r := range f.requests {
		out[i] = *r
	}
	return out
}

// Count returns how many requests of an operation came since the last Reset, of
// all operations when op is empty.
func (f *Faults) Count(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.requests {
		if op == "" || r.Op == op {
			n++
		}
	}
	return n
}

// Usage returns what all requests since the last Reset consumed.
func (f *Faults) Usage() Usage {
	f.mu.Lock()
	defer f.mu.Unlock()
	var sum Usage
	for _, r := range f.requests {
		sum = sum.plus(r.Usage)
	}
	return sum
}

// Reset forgets the records. Rules stay.
func (f *Faults) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = nil
}

// leave completes the record of a call.
func (f *Faults) leave(c *call, got *answer, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.record.End = time.Now()
	if err != nil {
		c.record.Err = err.Error()
		return
	}
	c.record.Status = got.status
	c.record.Err = errorCode(got)
}

func newRequest(req *http.Request, body []byte, in *input) *Request {
	r := &Request{
		Op:           operation(req),
		Body:         body,
		Attempt:      attempt(req.Header.Get("Amz-Sdk-Request")),
		InvocationID: req.Header.Get("Amz-Sdk-Invocation-Id"),
		Start:        time.Now(),
	}
	if tables := in.tables(); len(tables) > 0 {
		r.Table = tables[0]
	}
	return r
}

// attempt reads a header like "attempt=2; max=3".
func attempt(header string) int {
	for field := range strings.SplitSeq(header, ";") {
		if n, ok := strings.CutPrefix(strings.TrimSpace(field), "attempt="); ok {
			if count, err := strconv.Atoi(n); err == nil {
				return count
			}
		}
	}
	return 0
}

// errorCode is the code of an error answer, without its namespace.
func errorCode(a *answer) string {
	if a.ok() {
		return ""
	}
	code := decode(a.body).text("__type")
	if i := strings.LastIndex(code, "#"); i >= 0 {
		code = code[i+1:]
	}
	return code
}
