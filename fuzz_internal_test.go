package dynactor

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
)

// source takes values from the bytes of a fuzzing engine; when they are used up
// all values are zero.
type source struct{ data []byte }

func (s *source) byte() byte {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return b
}

func (s *source) text() string {
	n := min(int(s.byte()), len(s.data))
	t := string(s.data[:n])
	s.data = s.data[n:]
	return t
}

// number is one that DynamoDB can hold, likely or not.
func (s *source) number() string {
	switch s.byte() % 8 {
	case 0:
		return fmt.Sprint(int64(s.byte()))
	case 1:
		return fmt.Sprint(-int64(s.byte()))
	case 2:
		return fmt.Sprint(uint64(math.MaxInt64) + uint64(s.byte()))
	case 3:
		return fmt.Sprint(int64(math.MinInt64) + int64(s.byte()))
	case 4:
		return fmt.Sprintf("%d.5", s.byte())
	case 5:
		return fmt.Sprintf("1E%d", s.byte()%126)
	case 6:
		return s.text()
	default:
		return fmt.Sprint(1_700_000_000_000 + int64(s.byte()))
	}
}

func (s *source) value(depth int) types.AttributeValue {
	switch kind := s.byte() % 11; kind {
	case 0, 1:
		return &types.AttributeValueMemberN{Value: s.number()}
	case 2:
		return &types.AttributeValueMemberS{Value: s.text()}
	case 3:
		return &types.AttributeValueMemberB{Value: []byte(s.text())}
	case 4:
		return &types.AttributeValueMemberSS{Value: []string{s.text(), s.text()}}
	case 5:
		return &types.AttributeValueMemberNS{Value: []string{s.number()}}
	case 6:
		return &types.AttributeValueMemberBOOL{Value: s.byte() > 0}
	case 7:
		return &types.AttributeValueMemberNULL{Value: true}
	case 8, 9:
		if depth == 0 {
			return nil
		}
		if v := s.value(depth - 1); kind == 8 {
			return &types.AttributeValueMemberL{Value: []types.AttributeValue{v}}
		} else {
			return &types.AttributeValueMemberM{Value: item{s.text(): v}}
		}
	default:
		return &types.UnknownUnionMember{Tag: s.text()}
	}
}

// spoiled is a good item of which some attributes are replaced or missing.
func (s *source) spoiled(good item) item {
	names := make([]string, 0, len(good))
	for name := range good {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch s.byte() % 4 {
		case 0:
			good[name] = s.value(2)
		case 1:
			delete(good, name)
		}
	}
	good[s.text()] = s.value(2)
	return good
}

// Whatever an item holds, it is read or is ErrDecode, and what was read of an
// event is written and read again as the same.
func FuzzStoredItems(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{2, 2, 2, 2, 2, 2, 2, 2, 2})
	f.Add([]byte{2, 2, 0, 0, 0, 7, 2, 0, 0, 2, 9})
	f.Add([]byte(strings.Repeat("\x00\x00\x02\x05", 12)))
	f.Add([]byte(strings.Repeat("\x00\x09\x04\x03abc\x01x", 12)))
	o := Options{}.withDefaults()
	l, c := newLayout("e", "s", o.Attributes), newCodec(o)
	snapshots := &dynamoSnapshots{o: o, layout: l, codec: c}
	states := &StateStore{o: o, layout: l, codec: c}
	f.Fuzz(func(t *testing.T, data []byte) {
		event := func() item {
			return l.eventItem("a", record{
				seq: 3, last: 5, name: "google.protobuf.StringValue", data: []byte("\n\x01x"), op: "o", ts: 1,
				tags: []string{"t"}, meta: map[string]string{"k": "v"},
			})
		}
		stored := (&source{data}).spoiled(event())
		r, err := l.record(stored)
		decoded(t, err)
		if err == nil {
			again, err := l.record(l.eventItem("a", r))
			// Of a set, order and repetition mean nothing.
			slices.Sort(r.tags)
			r.tags = slices.Compact(r.tags)
			if diff := cmp.Diff(r, again, cmp.AllowUnexported(record{}), equalEmpty); diff != "" || err != nil {
				t.Errorf("read again (-first +again):\n%s\n%v", diff, err)
			}
		}
		_, err = l.seq(stored)
		decoded(t, err)
		m, err := l.readMark((&source{data}).spoiled(item{l.attr.ID: &types.AttributeValueMemberS{}, l.attr.Deleted: number(4), l.attr.Reset: number(4)}))
		decoded(t, err)
		if err == nil && (m.del < 0 || m.reset < 0 || m.reset > m.del) {
			t.Errorf("a mark of %+v", m)
		}
		_, _, err = snapshots.decode("a", (&source{data}).spoiled(l.snapshotItem(Snapshot{ID: "a", Seq: 3, Type: "google.protobuf.Empty"}, nil, time.Hour)))
		decoded(t, err)
		row := event()
		row[l.attr.Revision], row[l.attr.Until], row[l.attr.Gone] = number(3), number(1<<50), &types.AttributeValueMemberBOOL{Value: true}
		st, err := states.state("a", (&source{data}).spoiled(row))
		decoded(t, err)
		if err == nil && st.Revision < 1 {
			t.Errorf("a row of revision %d", st.Revision)
		}
	})
}

func decoded(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, ErrDecode) {
		t.Errorf("got %v, want ErrDecode", err)
	}
}

// equalEmpty takes an empty slice or map for none.
var equalEmpty = cmp.FilterValues(func(a, b any) bool { return empty(a) && empty(b) }, cmp.Comparer(func(any, any) bool { return true }))

func empty(v any) bool {
	switch v := v.(type) {
	case []byte:
		return len(v) == 0
	case []string:
		return len(v) == 0
	case map[string]string:
		return len(v) == 0
	}
	return false
}

// A key holds the id and the number, as they are, and nothing else.
func FuzzKeys(f *testing.F) {
	f.Add("a", int64(1))
	f.Add("kind/identité", int64(math.MaxInt64))
	f.Add(strings.Repeat("x", maxID), int64(0))
	l := newLayout("e", "s", AttributeNames{}.withDefaults())
	f.Fuzz(func(t *testing.T, id string, seq int64) {
		if checkID(id) != nil || seq < 0 {
			return
		}
		want := item{"pid": &types.AttributeValueMemberS{Value: id}, "seq": &types.AttributeValueMemberN{Value: fmt.Sprint(seq)}}
		key := l.key(id, seq)
		stored := l.eventItem(id, record{seq: seq, last: seq})
		for name, v := range want {
			if diff := cmp.Diff(v, key[name], sameValue); diff != "" || len(key) != len(want) {
				t.Errorf("key (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(v, stored[name], sameValue); diff != "" {
				t.Errorf("item (-want +got):\n%s", diff)
			}
		}
		if got, err := l.seq(key); got != seq || err != nil {
			t.Errorf("read back as %d, %v", got, err)
		}
	})
}

// Options are accepted or refused with ErrInvalid, and what is accepted keeps
// the rules on which the fences rest.
func FuzzOptions(f *testing.F) {
	f.Add("", "", int64(0), int64(0), int64(0), int64(0), int64(0), 0, 0, false)
	f.Add("events", "events", int64(time.Hour), int64(time.Second), int64(1), int64(-1), int64(time.Second), 3, -1, true)
	f.Add("a", "b\x00", int64(math.MinInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(1), math.MinInt, math.MaxInt, false)
	f.Add("e.1", "s_2", int64(math.MaxInt64), int64(math.MaxInt64/8), int64(0), int64(time.Hour), int64(0), 1, 1, true)
	client := dynamodb.New(dynamodb.Options{})
	f.Fuzz(func(t *testing.T, events, snapshots string, deleteDelay, write, read, retention, ttl int64, keep, concurrent int, deletes bool) {
		o := Options{
			EventsTable: events, SnapshotsTable: snapshots,
			DeleteDelay: time.Duration(deleteDelay), WriteTimeout: time.Duration(write), ReadTimeout: time.Duration(read),
			StateRetention: time.Duration(retention), SnapshotTTL: time.Duration(ttl),
			KeepSnapshots: keep, MaxConcurrentWrites: concurrent, DeleteEventsOnSnapshot: deletes,
		}
		p, err := New(client, o)
		if err != nil {
			if p != nil || !errors.Is(err, ErrInvalid) {
				t.Errorf("got %v, %v, want ErrInvalid alone", p, err)
			}
			return
		}
		o = p.o
		switch {
		case o.EventsTable == o.SnapshotsTable || !tableName.MatchString(o.EventsTable) || !tableName.MatchString(o.SnapshotsTable):
			t.Errorf("accepted the tables %q and %q", o.EventsTable, o.SnapshotsTable)
		case o.DeleteDelay < MinDeleteDelay || o.DeleteDelay/8 < o.WriteTimeout:
			t.Errorf("accepted a DeleteDelay of %s beside a WriteTimeout of %s", o.DeleteDelay, o.WriteTimeout)
		case o.StateRetention < MinStateRetention:
			t.Errorf("accepted a StateRetention of %s", o.StateRetention)
		case o.WriteTimeout <= 0 || o.ReadTimeout <= 0 || o.MaxConcurrentWrites <= 0:
			t.Errorf("accepted limits of %s, %s, %d", o.WriteTimeout, o.ReadTimeout, o.MaxConcurrentWrites)
		case o.SnapshotTTL < 0 || (o.SnapshotTTL > 0 && o.DeleteEventsOnSnapshot):
			t.Errorf("accepted a SnapshotTTL of %s, with deletion %t", o.SnapshotTTL, o.DeleteEventsOnSnapshot)
		}
	})
}

// sameValue compares the SDK's values by what they hold.
var sameValue = cmp.Comparer(func(a, b types.AttributeValue) bool { return fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b) })
