package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// shelf holds one stream in memory and answers queries for it with pages as
// DynamoDB cuts them. It costs next to nothing, so that what remains of a replay
// are the round trips and the client's work.
type shelf struct {
	nowhere

	items []string // the JSON of the items 1, 2, ...
	size  int      // of the largest item, as DynamoDB counts it
}

// pageSize is where DynamoDB ends a page.
const pageSize = 1 << 20

func newShelf(length int, event *wrapperspb.StringValue) (*shelf, error) {
	data, err := proto.Marshal(event)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	last, err := eventItem(int64(length), event)
	if err != nil {
		return nil, err
	}
	s := &shelf{size: size(last)}
	body := base64.StdEncoding.EncodeToString(data)
	for seq := 1; seq <= length; seq++ {
		s.items = append(s.items, fmt.Sprintf(
			`{"pid":{"S":%q},"seq":{"N":"%d"},"type":{"S":"google.protobuf.StringValue"},"data":{"B":%q},"ts":{"N":"1700000000000"},"op":{"S":"AAAAAAAAAAAAAAAAAAAAAA"}}`,
			id, seq, body))
	}
	return s, nil
}

func (s *shelf) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".Query") {
		return s.nowhere.RoundTrip(req)
	}
	var q query
	err := json.NewDecoder(req.Body).Decode(&q)
	_ = req.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	return respond(req, s.page(q)), nil
}

// query is what the shelf understands of a query.
type query struct {
	ExclusiveStartKey         struct{ Seq numeral }
	ExpressionAttributeValues map[string]numeral
	ScanIndexForward          *bool
	Limit                     int
}

// numeral is an attribute value; N is empty in one that is no number.
type numeral struct{ N string }

func (n numeral) or(other int) int {
	if i, err := strconv.Atoi(n.N); err == nil {
		return i
	}
	return other
}

// page is the answer to a query: upwards from the lower bound or from after the
// start key, or the newest item alone.
func (s *shelf) page(q query) string {
	lo, hi := q.ExpressionAttributeValues[":lo"].or(1), min(q.ExpressionAttributeValues[":hi"].or(len(s.items)), len(s.items))
	lo = max(lo, q.ExclusiveStartKey.Seq.or(0)+1, 1)
	if q.ScanIndexForward != nil && !*q.ScanIndexForward {
		lo = hi // everybody who reads backwards here wants one
	}
	end := min(hi, lo+(pageSize+s.size-1)/s.size-1)
	var b strings.Builder
	b.WriteString(`{"Items":[`)
	for seq := lo; seq <= end; seq++ {
		if seq > lo {
			b.WriteByte(',')
		}
		b.WriteString(s.items[seq-1])
	}
	n := max(0, end-lo+1)
	_, _ = fmt.Fprintf(&b, `],"Count":%d,"ScannedCount":%d`, n, n)
	if end < hi {
		_, _ = fmt.Fprintf(&b, `,"LastEvaluatedKey":{"pid":{"S":%q},"seq":{"N":"%d"}}`, id, end)
	}
	b.WriteByte('}')
	return b.String()
}

// respond makes a response of a JSON body.
func respond(req *http.Request, body string) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}
