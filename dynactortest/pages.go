package dynactortest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// page is one page of a Query or Scan in the making. The embedded server
// answers with all that it has, so it is asked for a few items at a time.
type page struct {
	op      string
	in      object
	schema  keySchema
	forward bool
	limit   int             // of the request, 0 for none
	project []string        // attributes to return, nil for all
	start   json.RawMessage // where the next chunk starts, nil for the beginning
	behind  scalar          // the sort key that items must lie behind, nil for all

	items   []byte // a JSON list without its brackets
	count   int
	chunks  int
	mean    int // size of an item, guessed at first
	size    int // of items, by DynamoDB's rules
	scanned int
	last    json.RawMessage // the page's LastEvaluatedKey, nil for none
}

// newPage also says whether it can make the page: paths into attributes cannot
// be projected here.
func newPage(op string, in object, schema keySchema, mean int) (*page, bool) {
	names, ok := projection(in)
	p := &page{
		op: op, in: in.clone(), schema: schema, forward: true,
		project: names, start: in["ExclusiveStartKey"], mean: mean,
	}
	in.get("ScanIndexForward", &p.forward)
	in.get("Limit", &p.limit)
	// Sizes and keys are those of whole items.
	delete(p.in, "ProjectionExpression")
	if op == "Query" && in.text("IndexName") == "" && p.start != nil {
		p.behind = schema.sortKey(decode(p.start))
	}
	return p, ok
}

// request is the input for the next chunk: about as many items as the page has
// room for. Where a filter lets few pass, chunks grow.
func (p *page) request() []byte {
	chunk := (maxPageSize-p.size)/p.mean*5/4 + 2
	if p.count == 0 {
		chunk <<= p.chunks
	}
	p.chunks++
	if p.limit > 0 {
		chunk = min(chunk, p.limit-p.scanned)
	}
	in := p.in.clone()
	in["Limit"] = encode(chunk)
	delete(in, "ExclusiveStartKey")
	if p.start != nil {
		in["ExclusiveStartKey"] = p.start
	}
	return encode(in)
}

// take adds a chunk to the page and says whether the page is finished.
func (p *page) take(body []byte) bool {
	var chunk struct {
		Items            []object
		ScannedCount     int
		LastEvaluatedKey json.RawMessage
	}
	if json.Unmarshal(body, &chunk) != nil {
		return true
	}
	filtered := chunk.ScannedCount - len(chunk.Items)
	for _, item := range chunk.Items {
		if !p.pass(item) {
			continue
		}
		p.add(item)
		if p.size >= maxPageSize {
			return true
		}
	}
	p.scanned += filtered
	p.start = chunk.LastEvaluatedKey
	full := p.limit > 0 && p.scanned >= p.limit
	switch {
	case p.start != nil:
		p.last = p.start
	case !full || filtered > 0:
		p.last = nil
	default:
		// The last item's key stays: DynamoDB does not look whether anything
		// follows a full page.
	}
	return full || p.start == nil
}

// pass says whether item lies behind the start key. The embedded server starts
// anew when the item at that key is gone; DynamoDB goes on where it was.
func (p *page) pass(item object) bool {
	if p.behind == nil {
		return true
	}
	at := p.schema.sortKey(item)
	if order := at.compare(p.behind); order == 0 || (order > 0) != p.forward {
		return false
	}
	p.behind = at
	return true
}

func (p *page) add(item object) {
	p.scanned++
	p.size += itemSize(item)
	p.mean = p.size/(p.count+1) + 1
	p.last = encode(p.schema.keyOf(item))
	if p.project != nil {
		maps.DeleteFunc(item, func(name string, _ json.RawMessage) bool { return !slices.Contains(p.project, name) })
	}
	if p.count > 0 {
		p.items = append(p.items, ',')
	}
	p.items = item.appendTo(p.items)
	p.count++
}

// body is the finished page.
func (p *page) body() []byte {
	out := object{"Count": encode(p.count), "ScannedCount": encode(p.scanned)}
	if p.in.text("Select") != "COUNT" {
		out["Items"] = slices.Concat([]byte("["), p.items, []byte("]"))
	}
	if p.last != nil {
		out["LastEvaluatedKey"] = p.last
	}
	if report := p.in.text("ReturnConsumedCapacity"); report != "" && report != "NONE" {
		var strong bool
		p.in.get("ConsistentRead", &strong)
		out["ConsumedCapacity"] = encode(map[string]any{
			"TableName": p.in.text("TableName"), "CapacityUnits": readUnits(p.size, strong),
		})
	}
	return out.appendTo(nil)
}

// projection lists the attributes that an input asks for, nil for all, and says
// whether they are whole attributes.
func projection(in object) (names []string, whole bool) {
	expression := in.text("ProjectionExpression")
	if expression == "" {
		return nil, true
	}
	var placeholders map[string]string
	in.get("ExpressionAttributeNames", &placeholders)
	for path := range strings.SplitSeq(expression, ",") {
		path = strings.TrimSpace(path)
		if strings.ContainsAny(path, ".[") {
			return nil, false
		}
		if name, ok := placeholders[path]; ok {
			path = name
		}
		names = append(names, path)
	}
	return names, true
}
