package dynactortest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
)

// Unprocessed lets only the first n writes of a BatchWriteItem reach the
// server, in the order of the tables' names and of the requests to each. The
// rest comes back as UnprocessedItems. With n = 0 nothing reaches the server. With
// a BatchGetItem it is the same for its reads and UnprocessedKeys.
func Unprocessed(n int) Action {
	return Action{run: func(c *call, next sender) (*answer, error) {
		in := decode(c.body)
		if c.record.Op == "BatchGetItem" {
			return unprocessedReads(c, in, max(n, 0), next)
		}
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

// unprocessedReads is Unprocessed for a BatchGetItem.
func unprocessedReads(c *call, in object, n int, next sender) (*answer, error) {
	var asked, sent, rest map[string]object
	if !in.get("RequestItems", &asked) {
		return next(c.body)
	}
	keys := map[string][]json.RawMessage{}
	for table, reads := range asked {
		var list []json.RawMessage
		reads.get("Keys", &list)
		keys[table] = list
	}
	head, tail := split(keys, n)
	part := func(keys map[string][]json.RawMessage) map[string]object {
		reads := map[string]object{}
		for table, list := range keys {
			reads[table] = asked[table].clone()
			reads[table]["Keys"] = encode(list)
		}
		return reads
	}
	sent, rest = part(head), part(tail)
	if len(sent) == 0 {
		return jsonAnswer(http.StatusOK, map[string]any{"Responses": map[string]any{}, "UnprocessedKeys": rest}), nil
	}
	in["RequestItems"] = encode(sent)
	got, err := next(encode(in))
	if err != nil || !got.ok() {
		return got, err
	}
	out := decode(got.body)
	out["UnprocessedKeys"] = encode(rest)
	return got.with(encode(out)), nil
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
