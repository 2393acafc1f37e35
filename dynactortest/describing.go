package dynactortest

import (
	"net/http"
	"sync"
)

// describing lets one DescribeTable at a time reach the embedded server, which
// counts a table's items while it answers and must not do so twice at once.
type describing struct {
	base http.RoundTripper
	mu   *sync.Mutex
}

// sharedDescribing is for all clients of the process, as the server's tables are.
var sharedDescribing sync.Mutex

func (d *describing) RoundTrip(req *http.Request) (*http.Response, error) {
	if operation(req) == "DescribeTable" {
		d.mu.Lock()
		defer d.mu.Unlock()
	}
	return d.base.RoundTrip(req) //nolint:wrapcheck // a transport passes errors on
}

func (d *describing) CloseIdleConnections() { closeIdle(d.base) }
