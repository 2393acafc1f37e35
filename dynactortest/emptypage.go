package dynactortest

import (
	"encoding/json"
	"math/big"
	"net/http"
)

// EmptyPage answers a Query or Scan with a page that has no items and is not
// the last, as DynamoDB does at times. Going on from its LastEvaluatedKey loses
// nothing: it is the start key of the request, or a key before the first item.
// Going on must use the same client. A query that finds nothing stays as it is.
// Give the rule a number of Times: without one, the pages never end.
func EmptyPage() Action {
	return Action{run: func(c *call, next sender) (*answer, error) {
		in := decode(c.body)
		start, ok := in["ExclusiveStartKey"]
		if !ok {
			first, got, err := firstItem(in, next)
			if err != nil {
				return nil, err
			}
			if !got.ok() {
				return got, nil
			}
			if first == nil {
				return next(c.body)
			}
			start = encode(c.keyBefore(in, first))
			c.faults.rememberStart(c.record.Op, in, start)
		}
		return jsonAnswer(http.StatusOK, map[string]any{
			"Items": []any{}, "Count": 0, "ScannedCount": 0, "LastEvaluatedKey": start,
		}), nil
	}}
}

// firstItem asks the server for the first item that the input finds, whole.
func firstItem(in object, next sender) (object, *answer, error) {
	probe := in.clone()
	for _, name := range []string{"ProjectionExpression", "FilterExpression", "Select"} {
		delete(probe, name)
	}
	probe["Limit"] = encode(1)
	got, err := next(encode(probe))
	if err != nil {
		return nil, nil, err
	}
	var items []object
	if got.ok() && decode(got.body).get("Items", &items) && len(items) > 0 {
		return items[0], got, nil
	}
	return nil, got, nil
}

// keyBefore makes up a key that comes before first in the order of the query.
func (c *call) keyBefore(in, first object) object {
	schema := c.faults.tables.of(c.req, in.text("TableName"))
	key := schema.keyOf(first)
	forward := true
	in.get("ScanIndexForward", &forward)
	sort := schema.sortKey(first)
	if n, ok := new(big.Int).SetString(sort["N"], 10); ok {
		step := big.NewInt(-1)
		if !forward {
			step = big.NewInt(1)
		}
		key[schema.sort] = encode(scalar{"N": n.Add(n, step).String()})
	} else if s, ok := sort["S"]; ok {
		before := " "
		if !forward {
			before = s + "~"
		}
		key[schema.sort] = encode(scalar{"S": before})
	}
	return key
}

// rememberStart keeps a made-up start key, since servers refuse or misread a
// key that lies outside the query.
func (f *Faults) rememberStart(op string, in object, start json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.starts[queryID(op, in, start)] = true
}

// withoutMadeUpStart removes a start key that EmptyPage made up, so that the
// server starts at the beginning. The caller holds the lock.
func (f *Faults) withoutMadeUpStart(op string, body []byte) []byte {
	if len(f.starts) == 0 || op != "Query" && op != "Scan" {
		return body
	}
	in := decode(body)
	start, ok := in["ExclusiveStartKey"]
	if !ok || !f.starts[queryID(op, in, start)] {
		return body
	}
	delete(in, "ExclusiveStartKey")
	return encode(in)
}

// queryID is equal for two pages of one query with the same start key.
func queryID(op string, in object, start json.RawMessage) string {
	id := []any{op}
	for _, name := range []string{
		"TableName", "IndexName", "KeyConditionExpression", "ExpressionAttributeNames",
		"ExpressionAttributeValues", "FilterExpression", "ScanIndexForward", "Segment",
	} {
		id = append(id, sorted(in[name]))
	}
	return string(encode(append(id, sorted(start))))
}

// sorted decodes, so that encoding gives the members in order.
func sorted(raw json.RawMessage) any {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return nil
	}
	return value
}
