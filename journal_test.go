package dynactor_test

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// five appends the events "1" to "5", of which 4 and 5 are one append.
func five(t *testing.T, j *dynactor.Journal, id string) {
	t.Helper()
	for head, list := range [][]proto.Message{numbered(1, 1), numbered(2, 2), numbered(3, 3), numbered(4, 5)} {
		if _, err := j.Append(t.Context(), id, int64(head), list...); err != nil {
			t.Fatal(err)
		}
	}
}

// checkReplay compares a replay from a number to another with the texts "lo" to "hi".
func checkReplay(t *testing.T, j *dynactor.Journal, id string, from, to int64, lo, hi int) {
	t.Helper()
	got, err := replayed(t.Context(), j, id, from, to)
	if err != nil {
		t.Error(err)
	}
	for i := range got {
		got[i] = strings.TrimSpace(got[i])
	}
	if diff := cmp.Diff(texts(lo, hi), got); diff != "" {
		t.Errorf("replay of %q from %d to %d (-want +got):\n%s", id, from, to, diff)
	}
}

// checkHead compares the head of a stream.
func checkHead(t *testing.T, j *dynactor.Journal, id string, want int64) {
	t.Helper()
	if head, err := j.Head(t.Context(), id); err != nil || head != want {
		t.Errorf("head of %q: got %d, %v; want %d", id, head, err, want)
	}
}

func TestJournal_ReplayBounds(t *testing.T) {
	t.Parallel()
	p, _ := open(t, dynactor.Options{})
	five(t, p.Journal(), "a")
	const all = 100
	for _, tt := range []struct {
		name     string
		from, to int64
		limit    int // how many the consumer takes
		want     []string
	}{
		{"J-01 all", 1, math.MaxInt64, all, texts(1, 5)},
		{"J-01 to the head", 1, 0, all, texts(1, 5)},
		{"J-01 from before the first", 0, 0, all, texts(1, 5)},
		{"J-02 from 3", 3, math.MaxInt64, all, texts(3, 5)},
		{"J-03 to 3", 1, 3, all, texts(1, 3)},
		{"J-04 take 3", 1, math.MaxInt64, 3, texts(1, 3)},
		{"J-05 a bound cuts an append of two", 2, 4, all, texts(2, 4)},
		{"J-06 bounds and take 2", 2, 5, 2, texts(2, 3)},
		{"J-07 from = to", 3, 3, all, texts(3, 3)},
		{"J-07 from = to within an append of two", 4, 4, all, texts(4, 4)},
		{"J-07 from = to at the head", 5, 5, all, texts(5, 5)},
		{"J-08 take 1", 1, 0, 1, texts(1, 1)},
		{"J-10 from > to", 4, 3, all, nil},
		{"J-10 from beyond the head", 6, 0, all, nil},
		{"J-57 to beyond the head", 4, 6, all, texts(4, 5)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for e, err := range p.Journal().Replay(t.Context(), "a", tt.from, tt.to) {
				if err != nil {
					t.Fatal(err)
				}
				if got = append(got, textOf(e.Message)); len(got) == tt.limit {
					break
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkHead(t, p.Journal(), "a", 5)
		})
	}
	t.Run("J-09 nothing is read before the first step", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		p.Journal().Replay(t.Context(), "a", 1, 0)
		if n := db.Faults.Count(""); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
	t.Run("J-11 J-56 unknown id", func(t *testing.T) {
		t.Parallel()
		checkReplay(t, p.Journal(), "unknown", 1, 0, 1, 0)
		checkHead(t, p.Journal(), "unknown", 0)
	})
}

func TestJournal_Events(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_700_000_000_123)
	p, _ := open(t, dynactor.Options{Now: func() time.Time { return at }})
	value, err := structpb.NewStruct(map[string]any{"a": "", "b": 1e300, "c": map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	in := []dynactor.Event{
		{Message: text("one"), Tags: []string{"b", "a", "b"}, Meta: map[string]string{"k": "", "\x00\"\n#.": "é"}},
		{Message: durationpb.New(time.Second)},
		{Message: value, Tags: []string{}, Meta: map[string]string{}},
		{Message: wrapperspb.Int64(1<<53 + 1), ID: "ignored", Seq: 77, Type: "ignored", Operation: "ignored"},
	}
	if _, err := p.Journal().AppendEvents(t.Context(), "a", 0, in...); err != nil {
		t.Fatal(err)
	}
	var got []dynactor.Event
	for e, err := range p.Journal().Replay(t.Context(), "a", 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(e.Tags)
		got = append(got, e)
	}
	op := got[0].Operation
	if len(op) != 22 {
		t.Errorf("operation id %q has not 22 characters", op)
	}
	want := []dynactor.Event{
		{Message: in[0].Message, Tags: []string{"a", "b"}, Meta: in[0].Meta, Type: "google.protobuf.StringValue"},
		{Message: in[1].Message, Type: "google.protobuf.Duration"},
		{Message: in[2].Message, Type: "google.protobuf.Struct"},
		{Message: in[3].Message, Type: "google.protobuf.Int64Value"},
	}
	for i := range want {
		want[i].ID, want[i].Seq, want[i].Time, want[i].Operation = "a", int64(i)+1, at, op
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("J-12 J-13 J-14 L04 (-want +got):\n%s", diff)
	}
}

func TestJournal_ReadsItsWrites(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{})
	ready(t, p, db)
	const tries = 30
	for i := 1; i <= tries; i++ {
		if _, err := p.Journal().Append(t.Context(), "a", int64(i)-1, numbered(i, i)...); err != nil {
			t.Fatal(err)
		}
		checkHead(t, p.Journal(), "a", int64(i))
		checkReplay(t, p.Journal(), "a", int64(max(i-2, 1)), 0, max(i-2, 1), i)
	}
	for _, r := range db.Faults.Requests() {
		if r.Op != "PutItem" && !r.ConsistentRead() {
			t.Errorf("J-18: not a strong read: %s", r)
		}
	}
}

// Of a head it is known what was acknowledged before it was asked for; what is
// under way is not waited for.
func TestJournal_HeadWhileAppending(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{})
	five(t, p.Journal(), "a")
	reached, release := make(chan struct{}), make(chan struct{})
	db.Faults.Add(dynactortest.Rule{Op: "PutItem", Do: dynactortest.Hold(reached, release)})
	done := make(chan error)
	go func() {
		_, err := p.Journal().Append(t.Context(), "a", 5, text("6"))
		done <- err
	}()
	<-reached
	checkHead(t, p.Journal(), "a", 5)
	checkReplay(t, p.Journal(), "a", 1, 0, 1, 5)
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	checkHead(t, p.Journal(), "a", 6) // J-48
	checkReplay(t, p.Journal(), "a", 1, 0, 1, 6)
}

func TestJournal_OneByOne(t *testing.T) {
	t.Parallel()
	const total = 400
	p, db := open(t, dynactor.Options{})
	a := start(t, p, 0)
	db.Faults.Reset()
	a.run(total) // J-54
	if n := db.Faults.Count(""); n != total {
		t.Errorf("%d requests", n)
	}
	start(t, p, total)
}

func TestJournal_IDs(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{})
	ready(t, p, db)
	long := strings.Repeat("é", 511)
	ids := []string{
		"a", "ab", "a/b", "a/", "/a", "a#1", "a#", "a|b", "a b", "A", "á", "日本", "a\x00", "a\"", "a'", "a:id", "%61", "a.b", "#pid", ":id",
		"$1/$2", "kind/identity", "a@b:1", long + "é", long + "ab",
	}
	for _, id := range ids {
		if _, err := p.Journal().Append(t.Context(), id, 0, text("of "+id), text("2")); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range ids {
		got, err := replayed(t.Context(), p.Journal(), id, 1, 0)
		if diff := cmp.Diff([]string{"of " + id, "2"}, got); diff != "" || err != nil {
			t.Errorf("J-19 E14: %q: %v (-want +got):\n%s", id, err, diff)
		}
	}
	if err := p.Journal().DeleteAll(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	checkReplay(t, p.Journal(), "a", 1, 0, 1, 0)
	if got, err := replayed(t.Context(), p.Journal(), "a/", 1, 0); err != nil || len(got) != 2 {
		t.Errorf("J-19: %q has lost events: %v, %v", "a/", got, err)
	}
}

func TestJournal_RefusesEvents(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{})
	many := make([]string, dynactor.MaxTags+1)
	for i := range many {
		many[i] = strconv.Itoa(i)
	}
	for name, e := range map[string]dynactor.Event{
		"too many tags":          {Tags: many},
		"empty tag":              {Tags: []string{"a", ""}},
		"tag not UTF-8":          {Tags: []string{"\xff"}},
		"empty metadata key":     {Meta: map[string]string{"": "v"}},
		"metadata key not UTF-8": {Meta: map[string]string{"\xff": "v"}},
		"metadata not UTF-8":     {Meta: map[string]string{"k": "\xff"}},
		"metadata key too long":  {Meta: map[string]string{strings.Repeat("k", 1<<16): "v"}},
	} {
		e.Message = text("1")
		_, err := p.Journal().AppendEvents(t.Context(), "a", 0, dynactor.Event{Message: text("0")}, e)
		if !errors.Is(err, dynactor.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := p.Journal().Append(t.Context(), "a", 0); !errors.Is(err, dynactor.ErrInvalid) {
		t.Errorf("no events: %v", err)
	}
	if _, err := p.Journal().Append(t.Context(), "a", -1, text("1")); !errors.Is(err, dynactor.ErrInvalid) {
		t.Errorf("negative head: %v", err)
	}
	for _, bounds := range [][2]int64{{-1, 0}, {1, -1}} {
		if _, err := replayed(t.Context(), p.Journal(), "a", bounds[0], bounds[1]); !errors.Is(err, dynactor.ErrInvalid) {
			t.Errorf("replay of %v: %v", bounds, err)
		}
	}
	if n := db.Faults.Count(""); n != 0 {
		t.Errorf("%d requests", n)
	}
	checkHead(t, p.Journal(), "a", 0)
	long := dynactor.Event{Message: text("1"), Tags: many[:dynactor.MaxTags], Meta: map[string]string{strings.Repeat("k", 1<<16-1): "v"}}
	if _, err := p.Journal().AppendEvents(t.Context(), "a", 0, long); err != nil {
		t.Errorf("at the limits: %v", err)
	}
}

func TestJournal_Numbers(t *testing.T) {
	t.Parallel()
	t.Run("J-22 J-55 order over powers of ten", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		fill(t, p.Journal(), "a", 1001)
		checkReplay(t, p.Journal(), "a", 1, 0, 1, 1001)
		checkReplay(t, p.Journal(), "a", 9, 10, 9, 10)
		checkReplay(t, p.Journal(), "a", 99, 101, 99, 101)
		checkReplay(t, p.Journal(), "a", 999, 1000, 999, 1000)
		checkHead(t, p.Journal(), "a", 1001)
	})
	for _, base := range []int64{1 << 53, 1e18, 1556893286484340854, math.MaxInt64 - 5} {
		t.Run("J-21 E05 after "+strconv.FormatInt(base, 10), func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			if db.Ring == "embedded" {
				t.Skip("the embedded server compares numbers as floating point")
			}
			ready(t, p, db)
			mark := keyOf("a", 0)
			mark["del"] = &types.AttributeValueMemberN{Value: strconv.FormatInt(base, 10)}
			put(t, db, db.EventsTable, mark)
			checkHead(t, p.Journal(), "a", base)
			for i := range int64(3) {
				put(t, db, db.EventsTable, eventOf(t, "a", base+1+i, text(strconv.FormatInt(i+1, 10))))
			}
			checkReplay(t, p.Journal(), "a", 1, 0, 1, 3)
			checkReplay(t, p.Journal(), "a", base+2, base+2, 2, 2)
			if err := p.Journal().DeleteTo(t.Context(), "a", base+1); err != nil {
				t.Error(err)
			}
			checkReplay(t, p.Journal(), "a", 1, 0, 2, 3)
			checkHead(t, p.Journal(), "a", base+3)
			if err := p.Snapshots().Save(t.Context(), "a", base+2, text("state")); err != nil {
				t.Error(err)
			}
			if snap, _, err := p.Snapshots().AtOrBefore(t.Context(), "a", base+2); err != nil || snap.Seq != base+2 {
				t.Errorf("snapshot at %d, %v; want %d", snap.Seq, err, base+2)
			}
			if _, found, err := p.Snapshots().AtOrBefore(t.Context(), "a", base+1); err != nil || found {
				t.Errorf("found a snapshot at or before %d: %v, %v", base+1, found, err)
			}
		})
	}
	t.Run("J-21 beyond the last number", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		_, err := p.Journal().Append(t.Context(), "a", math.MaxInt64-dynactor.MaxEvents, text("1"))
		if !errors.Is(err, dynactor.ErrInvalid) || db.Faults.Count("") != 0 {
			t.Errorf("got %v and %d requests", err, db.Faults.Count(""))
		}
	})
}
