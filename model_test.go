package dynactor

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// model is a DynamoDB of two tables with one stream each, small enough to be
// driven step by step. It understands the requests that this package makes, and
// it keeps the truth beside the items: which event was the first at each number.
// It is for one goroutine.
type model struct {
	events    map[int64]map[string]any // items of the events table, in wire form
	snapshots map[int64]map[string]any
	hidden    map[int64]bool // events that a Query does not see yet: a transaction half visible

	truth  []string       // payload of the first event at each number, from number 1
	groups map[int64]bool // numbers after which the stream is not in the midst of an append
	faults []string       // what must never happen, and did

	punctual  bool // the request under way is as early as assumed
	pageItems int  // how many items a page holds
	keepOld   bool // a failed condition returns the old item
}

func newModel() *model {
	return &model{
		events: map[int64]map[string]any{}, snapshots: map[int64]map[string]any{}, hidden: map[int64]bool{},
		groups: map[int64]bool{0: true}, pageItems: 2, keepOld: true,
	}
}

// wireRequest is a request as the model sees it.
type wireRequest struct {
	op   string
	body map[string]any
}

func parseWire(req *http.Request) (wireRequest, error) {
	data, err := io.ReadAll(req.Body)
	if err != nil {
		return wireRequest{}, err
	}
	_, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	r := wireRequest{op: op}
	return r, json.Unmarshal(data, &r.body)
}

func (r wireRequest) table() string {
	if t, ok := r.body["TableName"].(string); ok {
		return t
	}
	return ""
}

// puts are the event items that a request would write.
func (r wireRequest) puts() []map[string]any {
	switch r.op {
	case "PutItem":
		return []map[string]any{r.body["Item"].(map[string]any)}
	case "TransactWriteItems":
		var list []map[string]any
		for _, w := range r.body["TransactItems"].([]any) {
			list = append(list, w.(map[string]any)["Put"].(map[string]any)["Item"].(map[string]any))
		}
		return list
	}
	return nil
}

func wireNumber(v any) int64 {
	n, _ := strconv.ParseInt(v.(map[string]any)["N"].(string), 10, 64)
	return n
}

func (m *model) fault(format string, args ...any) {
	m.faults = append(m.faults, fmt.Sprintf(format, args...))
}

func (m *model) del() int64 {
	if it := m.events[0]; it != nil {
		return wireNumber(it["del"])
	}
	return 0
}

// do carries out a request and returns the answer.
func (m *model) do(r wireRequest) (status int, answer map[string]any) {
	table := m.events
	if r.table() == DefaultSnapshotsTable {
		table = m.snapshots
	}
	switch r.op {
	case "GetItem":
		if it := table[wireNumber(r.body["Key"].(map[string]any)["seq"])]; it != nil {
			return 200, map[string]any{"Item": it}
		}
		return 200, map[string]any{}
	case "Query":
		return m.query(r, table)
	case "PutItem", "TransactWriteItems":
		if r.op == "PutItem" && r.table() == DefaultSnapshotsTable {
			it := r.puts()[0]
			m.snapshots[wireNumber(it["seq"])] = it
			return 200, map[string]any{}
		}
		return m.put(r)
	case "UpdateItem":
		return m.raise(r)
	case "BatchWriteItem":
		return m.remove(r, -1)
	}
	return 400, refusal("UnknownOperationException", r.op)
}

func refusal(code, message string) map[string]any {
	return map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#" + code, "message": message}
}

func (m *model) query(r wireRequest, table map[int64]map[string]any) (int, map[string]any) {
	values := r.body["ExpressionAttributeValues"].(map[string]any)
	var seqs []int64
	for seq := range table {
		above := values[":lo"] == nil || seq >= wireNumber(values[":lo"])
		below := values[":hi"] == nil || seq <= wireNumber(values[":hi"])
		if above && below && (!m.hidden[seq] || r.table() != DefaultEventsTable) {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	backward := r.body["ScanIndexForward"] == false
	if backward {
		slices.Reverse(seqs)
	}
	if start, ok := r.body["ExclusiveStartKey"].(map[string]any); ok {
		from := wireNumber(start["seq"])
		seqs = slices.DeleteFunc(seqs, func(s int64) bool { return s == from || (s < from) != backward })
	}
	limit := m.pageItems
	if n, ok := r.body["Limit"].(float64); ok {
		limit = min(limit, int(n))
	}
	answer := map[string]any{}
	if len(seqs) > limit {
		seqs = seqs[:limit]
		last := table[seqs[limit-1]]
		answer["LastEvaluatedKey"] = map[string]any{"pid": last["pid"], "seq": last["seq"]}
	}
	items := []any{}
	for _, s := range seqs {
		items = append(items, table[s])
	}
	answer["Items"], answer["Count"] = items, len(items)
	return 200, answer
}

// put writes events, if the conditions hold, and notes the truth.
func (m *model) put(r wireRequest) (int, map[string]any) {
	puts := r.puts()
	reasons := make([]any, len(puts))
	failed := false
	for i, it := range puts {
		reason := map[string]any{"Code": "None"}
		if old := m.events[wireNumber(it["seq"])]; old != nil {
			failed = true
			reason["Code"] = "ConditionalCheckFailed"
			if m.keepOld {
				reason["Item"] = old
			}
		}
		reasons[i] = reason
	}
	if failed && r.op == "PutItem" {
		answer := refusal("ConditionalCheckFailedException", "The conditional request failed")
		if m.keepOld {
			answer["Item"] = reasons[0].(map[string]any)["Item"]
		}
		return 400, answer
	}
	if failed {
		answer := refusal("TransactionCanceledException", "Transaction cancelled")
		answer["CancellationReasons"] = reasons
		return 400, answer
	}
	for _, it := range puts {
		seq := wireNumber(it["seq"])
		m.events[seq] = it
		switch {
		case seq == int64(len(m.truth))+1:
			m.truth = append(m.truth, payloadOf(it))
		case seq > int64(len(m.truth))+1:
			m.fault("a put at %d left a hole, the head is %d", seq, len(m.truth))
		case seq > m.del():
			m.fault("a put overwrote number %d, which is not deleted", seq)
		case m.punctual:
			m.fault("a put in time used number %d once more", seq)
		}
	}
	m.groups[int64(len(m.truth))] = true
	return 200, map[string]any{}
}

// payloadOf is the text in an event's or a snapshot's item.
func payloadOf(it map[string]any) string {
	var v wrapperspb.StringValue
	data, err := base64.StdEncoding.DecodeString(it["data"].(map[string]any)["B"].(string))
	if err != nil || proto.Unmarshal(data, &v) != nil {
		return "?"
	}
	return v.GetValue()
}

// raise raises the mark, on the condition that the request states.
func (m *model) raise(r wireRequest) (int, map[string]any) {
	n := wireNumber(r.body["ExpressionAttributeValues"].(map[string]any)[":n"])
	condition, _ := r.body["ConditionExpression"].(string)
	old := m.events[0]
	if old != nil && strings.Contains(condition, "#del < :n") && wireNumber(old["del"]) >= n {
		return 400, refusal("ConditionalCheckFailedException", "The conditional request failed")
	}
	if m.del() > n {
		m.fault("the mark fell from %d to %d", m.del(), n)
	}
	it := maps.Clone(r.body["Key"].(map[string]any))
	it["del"] = map[string]any{"N": strconv.FormatInt(n, 10)}
	m.events[0] = it
	return 200, map[string]any{}
}

// keys are the numbers that a batch deletes.
func (r wireRequest) keys() []int64 {
	var keys []int64
	for _, writes := range r.body["RequestItems"].(map[string]any) {
		for _, w := range writes.([]any) {
			keys = append(keys, wireNumber(w.(map[string]any)["DeleteRequest"].(map[string]any)["Key"].(map[string]any)["seq"]))
		}
	}
	return keys
}

// remove carries out those deletions of a batch whose bits are set in which; the
// rest is unprocessed.
func (m *model) remove(r wireRequest, which int) (int, map[string]any) {
	answer := map[string]any{}
	for name, writes := range r.body["RequestItems"].(map[string]any) {
		table := m.events
		if name == DefaultSnapshotsTable {
			table = m.snapshots
		}
		var left []any
		for i, seq := range r.keys() {
			if which>>min(i, 62)&1 == 1 {
				delete(table, seq)
			} else {
				left = append(left, writes.([]any)[i])
			}
		}
		if len(left) > 0 {
			answer["UnprocessedItems"] = map[string]any{name: left}
		}
	}
	return 200, answer
}

// respond makes an HTTP answer.
func respond(req *http.Request, status int, answer map[string]any) (*http.Response, error) {
	data, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:          io.NopCloser(bytes.NewReader(data)),
		ContentLength: int64(len(data)), Request: req,
	}, nil
}

var errReset = errors.New("connection reset by peer")
