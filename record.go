package dynactor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/protobuf/proto"
)

// Event is one event of a stream.
type Event struct {
	// Message is what happened.
	Message proto.Message
	// Tags are for readers that look for events across streams; order and
	// repetition mean nothing. At most MaxTags, none empty.
	Tags []string
	// Meta is kept beside the message, unread. No key may be empty.
	Meta map[string]string

	// What follows is set by the store, and ignored when an event is appended.

	ID        string    // persistence id
	Seq       int64     // sequence number, from 1; the framework's index plus 1
	Type      string    // full name of the message as it was stored
	Time      time.Time // when it was written, by the writer's clock, in ms
	Operation string    // id of the append that wrote it
}

// MaxTags is how many tags an event can have.
const MaxTags = 64

// item is a DynamoDB item.
type item = map[string]types.AttributeValue

// record is an event as it is stored.
type record struct {
	seq  int64
	last int64 // last number of the append that wrote it; seq itself for an append of one
	name string
	data []byte
	op   string
	ts   int64
	tags []string
	meta map[string]string
}

// eventItem is the stored form of an event. Its values are allocated at once:
// this is the hot path.
func (l *layout) eventItem(id string, r record) item {
	v := &struct {
		id, name, op types.AttributeValueMemberS
		seq, ts      types.AttributeValueMemberN
		data         types.AttributeValueMemberB
	}{}
	v.id.Value, v.name.Value, v.op.Value = id, r.name, r.op
	v.seq.Value, v.ts.Value = strconv.FormatInt(r.seq, 10), strconv.FormatInt(r.ts, 10)
	v.data.Value = r.data
	it := make(item, 8)
	it[l.attr.ID] = &v.id
	it[l.attr.Seq] = &v.seq
	it[l.attr.Type] = &v.name
	it[l.attr.Data] = &v.data
	it[l.attr.Timestamp] = &v.ts
	it[l.attr.Operation] = &v.op
	if r.last > r.seq {
		it[l.attr.Last] = number(r.last)
	}
	if len(r.tags) > 0 {
		tags := slices.Clone(r.tags)
		slices.Sort(tags)
		it[l.attr.Tags] = &types.AttributeValueMemberSS{Value: slices.Compact(tags)}
	}
	if len(r.meta) > 0 {
		m := make(item, len(r.meta))
		for k, v := range r.meta {
			m[k] = &types.AttributeValueMemberS{Value: v}
		}
		it[l.attr.Meta] = &types.AttributeValueMemberM{Value: m}
	}
	return it
}

// seq reads only the number of an item.
func (l *layout) seq(it item) (int64, error) {
	f := fields{l: l, it: it}
	return f.number(l.attr.Seq), f.err
}

// record reads an event's item. Attributes that it does not know are ignored.
func (l *layout) record(it item) (record, error) {
	f := fields{l: l, it: it}
	r := record{
		seq: f.number(l.attr.Seq), name: f.text(l.attr.Type), ts: f.number(l.attr.Timestamp),
		op: f.text(l.attr.Operation),
	}
	r.data = f.payload()
	r.last = r.seq
	if _, ok := it[l.attr.Last]; ok {
		r.last = f.number(l.attr.Last)
		if f.err == nil && (r.last < r.seq || r.last-r.seq >= MaxEvents) {
			f.fail(l.attr.Last, fmt.Sprintf("is %d, which no append that holds number %d can end with", r.last, r.seq))
		}
	}
	r.tags = f.set(l.attr.Tags)
	if v, ok := it[l.attr.Meta]; ok {
		r.meta = f.texts(l.attr.Meta, v)
	}
	return r, f.err
}

// mark is what the stream's own item says. The zero value is that of a stream
// of which nothing was ever deleted.
type mark struct {
	del   int64 // events up to here are deleted
	reset int64 // the number at which the state is empty; 0 for none
}

// readMark reads the stream's own item; none is the zero mark.
func (l *layout) readMark(it item) (mark, error) {
	if len(it) == 0 {
		return mark{}, nil
	}
	f := fields{l: l, it: it}
	m := mark{del: f.number(l.attr.Deleted)}
	if _, ok := it[l.attr.Reset]; ok {
		m.reset = f.number(l.attr.Reset)
		if f.err == nil && m.reset > m.del {
			f.fail(l.attr.Reset, fmt.Sprintf("is %d, beyond the mark %d", m.reset, m.del))
		}
	}
	return m, f.err
}

// covers tells whether recovery can start at s: nothing after the first s events
// is deleted, and s does not stand for a past that DeleteAll has ended.
func (m mark) covers(s int64) bool {
	if m.reset > 0 && s <= m.reset {
		return s == 0 && m.del == m.reset
	}
	return s >= m.del
}

// start is the number of events that the state to start from stands for, where
// recovery starts from a snapshot at s, 0 for none. It differs from s only after DeleteAll.
func (m mark) start(s int64) int64 {
	if s == 0 && m.reset > 0 {
		return m.reset
	}
	return s
}

// fields reads the attributes of one item, and keeps the first thing wrong.
type fields struct {
	l   *layout
	it  item
	err error
}

func (f *fields) fail(name, what string) {
	if f.err == nil {
		f.err = fmt.Errorf("%w: attribute %q %s", ErrDecode, name, what)
	}
}

func (f *fields) number(name string) int64 {
	v, ok := f.it[name].(*types.AttributeValueMemberN)
	if !ok {
		f.fail(name, "is missing or no number")
		return 0
	}
	n, err := strconv.ParseInt(v.Value, 10, 64)
	if err != nil || n < 0 {
		f.fail(name, fmt.Sprintf("is %q, no whole number from 0", v.Value))
	}
	return n
}

func (f *fields) text(name string) string {
	v, ok := f.it[name].(*types.AttributeValueMemberS)
	if !ok {
		f.fail(name, "is missing or no string")
		return ""
	}
	return v.Value
}

// payload reads the bytes of a message. An encoding is named in the item; this
// version knows none, so bytes with one are not taken for plain ones.
func (f *fields) payload() []byte {
	name := f.l.attr.Data
	if enc, ok := f.it[f.l.attr.Encoding]; ok {
		f.fail(f.l.attr.Encoding, fmt.Sprintf("names an encoding that is not configured: %v", attributeText(enc)))
		return nil
	}
	v, ok := f.it[name].(*types.AttributeValueMemberB)
	if !ok {
		f.fail(name, "is missing or no bytes")
		return nil
	}
	return v.Value
}

// set reads a set of strings; nil where there is none.
func (f *fields) set(name string) []string {
	v, ok := f.it[name]
	if !ok {
		return nil
	}
	set, ok := v.(*types.AttributeValueMemberSS)
	if !ok {
		f.fail(name, "is no set of strings")
		return nil
	}
	return set.Value
}

func (f *fields) texts(name string, v types.AttributeValue) map[string]string {
	m, ok := v.(*types.AttributeValueMemberM)
	if !ok {
		f.fail(name, "is no map")
		return nil
	}
	texts := make(map[string]string, len(m.Value))
	for _, k := range slices.Sorted(maps.Keys(m.Value)) {
		s, ok := m.Value[k].(*types.AttributeValueMemberS)
		if !ok {
			f.fail(name, fmt.Sprintf("has no string at %q", k))
			return nil
		}
		texts[k] = s.Value
	}
	return texts
}

// attributeText shows a string attribute, or only the type of another.
func attributeText(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return strconv.Quote(s.Value)
	}
	return fmt.Sprintf("%T", v)
}
