package dynactortest

import (
	"bytes"
	"encoding/json"
	"io"
)

// EditAnswer passes the server's answer through edit, errors included, and
// makes a checksum in its header fit again. edit returns the new body and may
// change the one it gets.
func EditAnswer(edit func(op string, body []byte) []byte) Action {
	return edited(func(c *call, a *answer) *answer { return a.with(edit(c.record.Op, a.body)) })
}

// CutBody ends the answer after n bytes, as a lost connection does. The headers
// stay as they were.
func CutBody(n int) Action {
	return edited(func(_ *call, a *answer) *answer {
		return &answer{
			status: a.status,
			header: a.header,
			body:   a.body[:min(max(n, 0), len(a.body))],
			broken: io.ErrUnexpectedEOF,
		}
	})
}

// FlipByte changes one letter or digit in the middle of the answer, so that it
// is JSON still. The checksum in the header is that of the true answer, and is
// added where the server sent none: it is for the client to see the damage.
func FlipByte() Action {
	return edited(func(_ *call, a *answer) *answer {
		out := &answer{status: a.status, header: a.header.Clone(), body: bytes.Clone(a.body)}
		out.header.Set(crcHeader, checksum(a.body))
		for i := len(out.body) / 2; i < len(out.body); i++ {
			if isWordByte(out.body[i]) && isWordByte(out.body[i]^1) {
				out.body[i] ^= 1
				return out
			}
		}
		out.body = append(out.body, ' ')
		return out
	})
}

// HideItems leaves out of the answers of GetItem, Query and Scan the items for
// which hide returns true, as a reader sees them who looks too early. Items are
// in DynamoDB's JSON: {"pid":{"S":"a"},"seq":{"N":"1"}}. Counts go down by as
// many; where the page ends stays.
func HideItems(hide func(item map[string]any) bool) Action {
	return edited(func(_ *call, a *answer) *answer {
		if !a.ok() {
			return a
		}
		out := decode(a.body)
		var item map[string]any
		if out.get("Item", &item) && hide(item) {
			delete(out, "Item")
		}
		var items []json.RawMessage
		if out.get("Items", &items) {
			hideItems(out, items, hide)
		}
		return a.with(encode(out))
	})
}

func hideItems(out object, items []json.RawMessage, hide func(map[string]any) bool) {
	kept := make([]json.RawMessage, 0, len(items))
	for _, raw := range items {
		var item map[string]any
		if json.Unmarshal(raw, &item) == nil && hide(item) {
			continue
		}
		kept = append(kept, raw)
	}
	out["Items"] = encode(kept)
	for _, name := range []string{"Count", "ScannedCount"} {
		var n int
		if out.get(name, &n) {
			out[name] = encode(n - (len(items) - len(kept)))
		}
	}
}

// StripOldItem removes the old item from the answer to a failed condition, as
// servers do that do not return it.
func StripOldItem() Action {
	return edited(func(_ *call, a *answer) *answer {
		if a.ok() {
			return a
		}
		out := decode(a.body)
		delete(out, "Item")
		var reasons []object
		if out.get("CancellationReasons", &reasons) {
			for _, reason := range reasons {
				delete(reason, "Item")
			}
			out["CancellationReasons"] = encode(reasons)
		}
		return a.with(encode(out))
	})
}

func edited(edit func(*call, *answer) *answer) Action {
	return Action{run: func(c *call, next sender) (*answer, error) {
		got, err := next(c.body)
		if err != nil {
			return nil, err
		}
		return edit(c, got), nil
	}}
}

func isWordByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
