package dynactortest

import (
	"encoding/json"
	"net/http"
)

// Usage is what requests consumed, in DynamoDB's capacity units.
//
// Where the server reports it, that is the figure. Elsewhere it is computed by
// DynamoDB's rules from what passes by, which is exact for puts and for reads
// of whole items. It cannot see what a projection or filter left out, the size
// of an item that an update or delete does not return, and what indexes cost.
type Usage struct {
	// Requests counts those that reached the server.
	Requests int
	// WriteUnits and ReadUnits are capacity units. A transaction counts double,
	// an eventually consistent read half.
	WriteUnits, ReadUnits float64
}

func (u Usage) plus(v Usage) Usage {
	return Usage{
		Requests:   u.Requests + v.Requests,
		WriteUnits: u.WriteUnits + v.WriteUnits,
		ReadUnits:  u.ReadUnits + v.ReadUnits,
	}
}

// usageOf is what a request and its answer from the server consumed.
func usageOf(op string, in *input, got *answer) Usage {
	used := Usage{Requests: 1}
	if !reportsCapacity(op) || !consumes(got) {
		return used
	}
	var out output
	if json.Unmarshal(got.body, &out) != nil {
		return used
	}
	units, reported := out.reportedUnits()
	if !reported {
		units = computedUnits(op, in, &out)
	}
	if writes(op) {
		used.WriteUnits = units
	} else {
		used.ReadUnits = units
	}
	return used
}

// consumes says whether an answer costs: a failed condition costs like a write.
func consumes(a *answer) bool {
	if a.status == http.StatusBadRequest {
		code := errorCode(a)
		return code == "ConditionalCheckFailedException" || code == "TransactionCanceledException"
	}
	return a.ok()
}

func writes(op string) bool {
	switch op {
	case "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems":
		return true
	default:
		return false
	}
}

// reportsCapacity says whether an operation takes ReturnConsumedCapacity.
func reportsCapacity(op string) bool {
	switch op {
	case "GetItem", "BatchGetItem", "TransactGetItems", "Query", "Scan":
		return true
	default:
		return writes(op)
	}
}

// output is what an answer shows of the cost of a request.
type output struct {
	ConsumedCapacity json.RawMessage
	Item             object   // read, or in the way of a condition
	Attributes       object   // the old or the new item
	Items            []object // of a Query or Scan
	Responses        json.RawMessage
	UnprocessedItems map[string]json.RawMessage
	UnprocessedKeys  map[string]readsOfTable
}

// readsOfTable is a batch of reads from one table.
type readsOfTable struct {
	Keys           []json.RawMessage
	ConsistentRead bool
}

// reportedUnits reads ConsumedCapacity: one object, or one for each table.
func (out *output) reportedUnits() (float64, bool) {
	type capacity struct{ CapacityUnits float64 }
	if out.ConsumedCapacity == nil {
		return 0, false
	}
	var many []capacity
	if json.Unmarshal(out.ConsumedCapacity, &many) != nil {
		var one capacity
		err := json.Unmarshal(out.ConsumedCapacity, &one)
		return one.CapacityUnits, err == nil
	}
	sum := 0.0
	for _, c := range many {
		sum += c.CapacityUnits
	}
	return sum, len(many) > 0
}

func computedUnits(op string, in *input, out *output) float64 {
	switch op {
	case "PutItem", "UpdateItem", "DeleteItem":
		return writeUnits(max(itemSize(in.Item), itemSize(out.Attributes), itemSize(out.Item)))
	case "TransactWriteItems":
		return 2 * sum(in.putSizes(), writeUnits)
	case "BatchWriteItem":
		return sum(in.putSizes(), writeUnits) - sum(batchSizes(out.UnprocessedItems), writeUnits)
	case "GetItem":
		return readUnits(itemSize(out.Item), in.ConsistentRead)
	case "Query", "Scan":
		size := 0
		for _, item := range out.Items {
			size += itemSize(item)
		}
		return readUnits(size, in.ConsistentRead)
	case "TransactGetItems":
		var responses []struct{ Item object }
		if json.Unmarshal(out.Responses, &responses) != nil {
			return 0
		}
		units := 0.0
		for _, r := range responses {
			units += 2 * readUnits(itemSize(r.Item), true)
		}
		return units
	case "BatchGetItem":
		return batchReadUnits(in, out)
	default:
		return 0
	}
}

// batchReadUnits rounds up for each item; a missing item costs like a small one.
func batchReadUnits(in *input, out *output) float64 {
	var found map[string][]object
	if json.Unmarshal(out.Responses, &found) != nil {
		return 0
	}
	units := 0.0
	for table, raw := range in.RequestItems {
		var asked readsOfTable
		if json.Unmarshal(raw, &asked) != nil {
			continue
		}
		missing := len(asked.Keys) - len(out.UnprocessedKeys[table].Keys) - len(found[table])
		units += float64(max(missing, 0)) * readUnits(0, asked.ConsistentRead)
		for _, item := range found[table] {
			units += readUnits(itemSize(item), asked.ConsistentRead)
		}
	}
	return units
}

func sum(sizes []int, units func(int) float64) float64 {
	total := 0.0
	for _, size := range sizes {
		total += units(size)
	}
	return total
}

// writeUnits is one unit for each started KB, at least one.
func writeUnits(size int) float64 { return float64(max(1, (size+1023)/1024)) }

// readUnits is one unit for each started 4 KB, at least one, and half of that
// for an eventually consistent read.
func readUnits(size int, strong bool) float64 {
	units := float64(max(1, (size+4095)/4096))
	if strong {
		return units
	}
	return units / 2
}
