package dynactortest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
)

// Unprocessed lets only the first n writes of a BatchWriteItem reach the
// server, in the order of the tables' names and of the requests to each. The
// rest comes back as UnprocessedItems. With n = 0 nothing reaches the server.
func Unprocessed(n int) Action {
	return Action{run: func(c *call, next sender) (*answer, error) {
		in := decode(c.body)
		var asked map[string][]json.RawMessage
		if !in.get("RequestItems", &asked) {
			return next(c.body)
		}
		sent, rest := split(asked, max(n, 0))
		if len(sent) == 0 {
			return jsonAnswer(http.StatusOK, map[string]any{"UnprocessedItems": rest}), nil
		}
		in["RequestItems"] = encode(sent)
		got, err := next(encode(in))
		if err != nil || !got.ok() {
			return got, err
		}
		out := decode(got.body)
		var left map[string][]json.RawMessage
		out.get("UnprocessedItems", &left)
		for table, requests := range left {
			rest[table] = append(requests, rest[table]...)
		}
		out["UnprocessedItems"] = encode(rest)
		return got.with(encode(out)), nil
	}}
}

// split parts a batch after n requests.
func split(batch map[string][]json.RawMessage, n int) (head, tail map[string][]json.RawMessage) {
	head, tail = map[string][]json.RawMessage{}, map[string][]json.RawMessage{}
	for _, table := range slices.Sorted(maps.Keys(batch)) {
		requests := batch[table]
		cut := min(n, len(requests))
		if cut > 0 {
			head[table] = requests[:cut]
		}
		if cut < len(requests) {
			tail[table] = requests[cut:]
		}
		n -= cut
	}
	return head, tail
}
