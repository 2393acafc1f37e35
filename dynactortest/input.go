package dynactortest

import (
	"encoding/json"
	"slices"
)

// input is what the layer itself wants to know of a request, decoded once.
type input struct {
	TableName          string
	Item               object
	ConsistentRead     bool
	ClientRequestToken string
	RequestItems       map[string]json.RawMessage
	TransactItems      []map[string]action
}

// action is one of the writes of a transaction, named by what it does.
type action struct {
	TableName string
	Item      object
}

// write is one of the writes of a batch.
type write struct {
	PutRequest struct{ Item object }
}

// decodeInput reads what it can: the server refuses what is malformed.
func decodeInput(body []byte) *input {
	in := &input{}
	if json.Unmarshal(body, in) != nil {
		return &input{}
	}
	return in
}

// tables lists the tables that the request names, sorted.
func (in *input) tables() []string {
	var tables []string
	if in.TableName != "" {
		tables = append(tables, in.TableName)
	}
	for table := range in.RequestItems {
		tables = append(tables, table)
	}
	for _, actions := range in.TransactItems {
		for _, a := range actions {
			tables = append(tables, a.TableName)
		}
	}
	slices.Sort(tables)
	return slices.Compact(tables)
}

// putSizes are the sizes of the items that the request puts.
func (in *input) putSizes() []int {
	var sizes []int
	if in.Item != nil {
		sizes = append(sizes, itemSize(in.Item))
	}
	for _, actions := range in.TransactItems {
		sizes = append(sizes, itemSize(actions["Put"].Item))
	}
	return append(sizes, batchSizes(in.RequestItems)...)
}

// batchSizes are the sizes of the items in the writes of a batch, 0 for
// deletions.
func batchSizes(tables map[string]json.RawMessage) []int {
	var sizes []int
	for _, raw := range tables {
		var writes []write
		if json.Unmarshal(raw, &writes) != nil {
			return nil // a batch of reads
		}
		for _, w := range writes {
			sizes = append(sizes, itemSize(w.PutRequest.Item))
		}
	}
	return sizes
}
