package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// overwriting takes the condition off every PutItem. It shows what the condition
// is good for: without it the audit fails.
type overwriting struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (o overwriting) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".PutItem") {
		return o.base.RoundTrip(req)
	}
	defer func() { _ = req.Body.Close() }()
	put := map[string]json.RawMessage{}
	if err := json.NewDecoder(req.Body).Decode(&put); err != nil {
		return nil, fmt.Errorf("read a PutItem: %w", err)
	}
	for _, field := range []string{
		"ConditionExpression", "ReturnValuesOnConditionCheckFailure", "ExpressionAttributeNames", "ExpressionAttributeValues",
	} {
		delete(put, field)
	}
	body, err := json.Marshal(put)
	if err != nil {
		return nil, fmt.Errorf("write a PutItem: %w", err)
	}
	changed := req.Clone(req.Context())
	changed.Body, changed.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return o.base.RoundTrip(changed)
}
