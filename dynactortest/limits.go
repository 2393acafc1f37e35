package dynactortest

import (
	"net/http"
	"sync"
)

const (
	maxItemSize        = 400 << 10
	maxTransactionSize = 4 << 20
	maxPageSize        = 1 << 20
)

// limits gives the embedded server the limits that it lacks: items of at most
// 400 KB, transactions of at most 4 MB, and pages of at most 1 MB.
type limits struct {
	base   http.RoundTripper
	tables *schemas
	means  sync.Map // table name to the size of an item on its last page
}

func newLimits(base http.RoundTripper) *limits {
	return &limits{base: base, tables: newSchemas(base)}
}

func (l *limits) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	got, err := l.serve(req, body)
	if err != nil {
		return nil, err
	}
	return got.response(req), nil
}

func (l *limits) CloseIdleConnections() { closeIdle(l.base) }

func (l *limits) serve(req *http.Request, body []byte) (*answer, error) {
	switch op := operation(req); op {
	case "PutItem", "TransactWriteItems", "BatchWriteItem":
		if why := refusal(op, body); why != "" {
			return errorAnswer(http.StatusBadRequest, "ValidationException", why), nil
		}
	case "Query", "Scan":
		return l.page(req, body)
	case "CreateTable", "DeleteTable":
		l.tables.forget(decode(body).text("TableName"))
	}
	return exchange(l.base, req, body)
}

// refusal is why DynamoDB refuses the sizes of a write, empty when it does not.
func refusal(op string, body []byte) string {
	if len(body) <= maxItemSize {
		return "" // JSON is never shorter than what it holds counts for
	}
	total := 0
	for _, size := range decodeInput(body).putSizes() {
		if size > maxItemSize {
			return "Item size has exceeded the maximum allowed size"
		}
		total += size
	}
	if op == "TransactWriteItems" && total > maxTransactionSize {
		return "Collection size of items exceeded: the items of a transaction exceed 4 MB"
	}
	return ""
}

// page answers a Query or Scan as DynamoDB does: up to the limit of the request
// or the end of the item that passes 1 MB, counted before any projection.
func (l *limits) page(req *http.Request, body []byte) (*answer, error) {
	in := decode(body)
	table := in.text("TableName")
	mean := 16 << 10
	if known, ok := l.means.Load(table); ok {
		mean, _ = known.(int)
	}
	p, ok := newPage(operation(req), in, l.tables.of(req, table), mean)
	if !ok {
		return exchange(l.base, req, body)
	}
	for done := false; !done; {
		got, err := exchange(l.base, req, p.request())
		if err != nil || !got.ok() {
			return got, err
		}
		done = p.take(got.body)
	}
	l.means.Store(table, p.mean)
	return &answer{status: http.StatusOK, header: jsonHeader(), body: p.body()}, nil
}
