package main

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// wire is a request as the server sees it.
type wire struct {
	op   string
	body map[string]any
}

func parseWire(req *http.Request, body []byte) wire {
	_, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	w := wire{op: op}
	_ = json.Unmarshal(body, &w.body) // what is not JSON is the server's to refuse
	return w
}

func (w wire) writes() bool {
	switch w.op {
	case "PutItem", "TransactWriteItems", "UpdateItem", "DeleteItem", "BatchWriteItem":
		return true
	}
	return false
}

// put is an event on its way into the table.
type put struct {
	id        string
	seq, last int64
	ts        int64
	op, text  string
}

// puts are the events that a request would store.
func (w wire) puts() []put {
	var items []any
	switch w.op {
	case "PutItem":
		items = []any{w.body}
	case "TransactWriteItems":
		list, _ := w.body["TransactItems"].([]any)
		for _, it := range list {
			items = append(items, field(it, "Put"))
		}
	}
	var list []put
	for _, in := range items {
		if table, _ := field(in, "TableName").(string); !strings.HasSuffix(table, eventsSuffix) {
			continue
		}
		it := field(in, "Item")
		p := put{id: textOf(field(it, "pid"), "S"), seq: numberOf(field(it, "seq")), ts: numberOf(field(it, "ts"))}
		p.op = textOf(field(it, "op"), "S")
		p.last = max(p.seq, numberOf(field(it, "last")))
		p.text = payload(textOf(field(it, "data"), "B"))
		list = append(list, p)
	}
	return list
}

// mark is the number to which a request would delete a stream.
func (w wire) mark() (id string, del int64, ok bool) {
	if w.op != "UpdateItem" {
		return "", 0, false
	}
	n := field(field(w.body, "ExpressionAttributeValues"), ":n")
	return textOf(field(field(w.body, "Key"), "pid"), "S"), numberOf(n), n != nil
}

func field(v any, name string) any {
	m, _ := v.(map[string]any)
	return m[name]
}

func textOf(v any, kind string) string {
	s, _ := field(v, kind).(string)
	return s
}

func numberOf(v any) int64 {
	n, _ := strconv.ParseInt(textOf(v, "N"), 10, 64)
	return n
}

// payload is the text of an event from its stored bytes.
func payload(encoded string) string {
	data, err := base64.StdEncoding.DecodeString(encoded)
	var m wrapperspb.StringValue
	if err != nil || proto.Unmarshal(data, &m) != nil {
		return "?" + encoded
	}
	return m.GetValue()
}
