package dynactortest

import (
	"cmp"
	"encoding/json"
	"math/big"
	"net/http"
	"sync"
)

// keySchema names the key attributes of a table. sort is empty when there is
// none.
type keySchema struct{ hash, sort string }

// schemas knows the keys of tables, by asking the server once for each.
type schemas struct {
	base http.RoundTripper

	mu    sync.Mutex
	known map[string]keySchema
}

func newSchemas(base http.RoundTripper) *schemas {
	return &schemas{base: base, known: map[string]keySchema{}}
}

// of returns the keys of table, asked in the name of req. A server that does
// not say is taken to have dynactor's own tables.
func (s *schemas) of(req *http.Request, table string) keySchema {
	s.mu.Lock()
	schema, ok := s.known[table]
	s.mu.Unlock()
	if ok {
		return schema
	}
	schema, ok = s.ask(req, table)
	if !ok {
		return keySchema{hash: "pid", sort: "seq"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[table] = schema
	return schema
}

// forget is for a table that is made or deleted.
func (s *schemas) forget(table string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, table)
}

func (s *schemas) ask(req *http.Request, table string) (keySchema, bool) {
	describe := req.Clone(req.Context())
	describe.Header.Set(targetHeader, targetPrefix+"DescribeTable")
	got, err := exchange(s.base, describe, encode(map[string]string{"TableName": table}))
	if err != nil || !got.ok() {
		return keySchema{}, false
	}
	var out struct {
		Table struct {
			KeySchema []struct{ AttributeName, KeyType string }
		}
	}
	if json.Unmarshal(got.body, &out) != nil {
		return keySchema{}, false
	}
	var schema keySchema
	for _, key := range out.Table.KeySchema {
		if key.KeyType == "HASH" {
			schema.hash = key.AttributeName
		} else {
			schema.sort = key.AttributeName
		}
	}
	return schema, schema.hash != ""
}

// keyOf is the part of an item that is its key.
func (k keySchema) keyOf(item object) object {
	key := object{}
	for _, name := range []string{k.hash, k.sort} {
		if value, ok := item[name]; ok {
			key[name] = value
		}
	}
	return key
}

// scalar is a key attribute in DynamoDB's JSON: {"S":"a"}, {"N":"1"}.
type scalar map[string]string

func (k keySchema) sortKey(item object) scalar {
	var s scalar
	item.get(k.sort, &s)
	return s
}

// compare orders two sort keys of one type: numbers by value, all else by
// bytes, which is right for strings.
func (s scalar) compare(t scalar) int {
	if a, ok := new(big.Rat).SetString(s["N"]); ok {
		if b, ok := new(big.Rat).SetString(t["N"]); ok {
			return a.Cmp(b)
		}
	}
	return cmp.Compare(s["S"]+s["B"], t["S"]+t["B"])
}
