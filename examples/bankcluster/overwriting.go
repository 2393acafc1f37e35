package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// overwriting takes the condition out of every put, as stores do that put blindly.
// It is there to show that the audit finds what then goes wrong.
type overwriting struct{ http.RoundTripper }

func (o overwriting) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".PutItem") {
		return o.RoundTripper.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	if err != nil {
		return nil, err
	}
	var put map[string]json.RawMessage
	if err := json.Unmarshal(body, &put); err != nil {
		return nil, err
	}
	for _, part := range []string{"ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"} {
		delete(put, part)
	}
	if body, err = json.Marshal(put); err != nil {
		return nil, err
	}
	clone := req.Clone(req.Context())
	clone.Body, clone.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return o.RoundTripper.RoundTrip(clone)
}
