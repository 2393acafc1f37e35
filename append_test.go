package dynactor_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// fixture is a stream of 5 events, and a provider whose requests are counted from now on.
func fixture(t *testing.T) (*dynactor.Provider, *dynactortest.DB) {
	t.Helper()
	p, db := open(t, dynactor.Options{})
	fill(t, p.Journal(), "a", 5)
	db.Faults.Reset()
	return p, db
}

func TestAppend(t *testing.T) {
	t.Parallel()
	t.Run("J-26 read back", func(t *testing.T) {
		t.Parallel()
		for _, s := range shapes {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				p, _ := open(t, dynactor.Options{})
				events := make([]dynactor.Event, s.events)
				want := make([]dynactor.Event, s.events)
				for i, m := range numbered(1, s.events) {
					events[i] = dynactor.Event{Message: m, Tags: []string{"red", "blue"}, Meta: map[string]string{"by": "me"}}
					want[i] = dynactor.Event{
						Message: m, Tags: []string{"blue", "red"}, Meta: map[string]string{"by": "me"},
						ID: "a", Seq: int64(i + 1), Type: "google.protobuf.StringValue",
					}
				}
				start := time.Now().Truncate(time.Millisecond)
				head, err := p.Journal().AppendEvents(t.Context(), "a", 0, events...)
				if head != int64(s.events) || err != nil {
					t.Fatalf("head %d, %v", head, err)
				}
				var got []dynactor.Event
				ops := map[string]bool{}
				for e, err := range p.Journal().Replay(t.Context(), "a", 1, 0) {
					if err != nil {
						t.Fatal(err)
					}
					if e.Time.Before(start) || e.Time.After(time.Now()) || len(e.Operation) != 22 {
						t.Errorf("event %d is of %s, by operation %q", e.Seq, e.Time, e.Operation)
					}
					ops[e.Operation] = true
					e.Time, e.Operation = time.Time{}, ""
					got = append(got, e)
				}
				if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				if len(ops) != 1 {
					t.Errorf("%d operation ids, want one for an append", len(ops))
				}
			})
		}
	})

	t.Run("J-28 J-46 neighbours and order", func(t *testing.T) {
		t.Parallel()
		p, db := fixture(t)
		j := p.Journal()
		var heads []int64
		for i := range 20 {
			head, err := j.Append(t.Context(), "a", int64(5+i), text(strconv.Itoa(6+i)))
			if err != nil {
				t.Fatal(err)
			}
			heads = append(heads, head)
			if _, err := j.Append(t.Context(), "a", head, text("x"), nil); !errors.Is(err, dynactor.ErrInvalid) {
				t.Errorf("nil message: %v", err)
			}
		}
		want := make([]int64, 20)
		for i := range want {
			want[i] = int64(6 + i)
		}
		if diff := cmp.Diff(want, heads); diff != "" {
			t.Errorf("heads in the order of the calls (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(texts(1, 25), content(t, db, "a")); diff != "" {
			t.Errorf("stream (-want +got):\n%s", diff)
		}
	})

	t.Run("J-29 what cannot be stored is refused before anything is sent", func(t *testing.T) {
		t.Parallel()
		p, db := fixture(t)
		big := text(strings.Repeat("x", 400<<10))
		tags := func(tags ...string) []dynactor.Event { return []dynactor.Event{{Message: text("x"), Tags: tags}} }
		for _, tt := range []struct {
			name   string
			events []dynactor.Event
			want   error
		}{
			{"no events", nil, dynactor.ErrInvalid},
			{"nil", []dynactor.Event{{}}, dynactor.ErrInvalid},
			{"typed nil", []dynactor.Event{{Message: (*wrapperspb.StringValue)(nil)}}, dynactor.ErrInvalid},
			{"nil inside", []dynactor.Event{{Message: struct{ proto.Message }{}}}, dynactor.ErrInvalid},
			{"no UTF-8", []dynactor.Event{{Message: text("\xff")}}, dynactor.ErrInvalid},
			{"second of two", []dynactor.Event{{Message: text("x")}, {Message: text("\xff")}}, dynactor.ErrInvalid},
			{"too large", []dynactor.Event{{Message: big}}, dynactor.ErrTooLarge},
			{"J-50 empty tag", tags("a", ""), dynactor.ErrInvalid},
			{"J-50 too many tags", tags(slices.Repeat([]string{"x"}, dynactor.MaxTags+1)...), dynactor.ErrInvalid},
		} {
			if _, err := p.Journal().AppendEvents(t.Context(), "a", 5, tt.events...); !errors.Is(err, tt.want) {
				t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
			}
		}
		if got := db.Faults.Requests(); len(got) > 0 {
			t.Errorf("sent %v", got)
		}
		if _, err := p.Journal().Append(t.Context(), "a", 5, text("6")); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(texts(1, 6), content(t, db, "a")); diff != "" {
			t.Errorf("stream (-want +got):\n%s", diff)
		}
	})

	t.Run("J-29 a session goes on after it", func(t *testing.T) {
		t.Parallel()
		p, db := fixture(t)
		s := p.GetState()
		recovered(s, "a")
		for _, m := range []proto.Message{nil, text("\xff"), text(strings.Repeat("x", 400<<10))} {
			if err := caught(func() { s.PersistEvent("a", 5, m) }); err == nil {
				t.Errorf("%T was taken", m)
			}
		}
		s.PersistEvent("a", 5, text("6"))
		if diff := cmp.Diff(texts(1, 6), content(t, db, "a")); diff != "" {
			t.Errorf("stream (-want +got):\n%s", diff)
		}
	})

	t.Run("J-34 A04 A18 another head than expected", func(t *testing.T) {
		t.Parallel()
		p, db := fixture(t)
		for _, s := range shapes {
			for _, tt := range []struct {
				id       string
				expected int64
			}{{"a", 9}, {"a", 6}, {"a", 4}, {"a", 0}, {"empty", 3}, {"empty", 1}} {
				head, err := p.Journal().Append(t.Context(), tt.id, tt.expected, numbered(1, s.events)...)
				var e *dynactor.Error
				if verdict(err) != "conflict" || !errors.As(err, &e) || e.ID != tt.id || e.Index != tt.expected || e.Op != "append" {
					t.Errorf("%s of %q after %d: %v", s.name, tt.id, tt.expected, err)
				}
				if want := map[string]int64{"a": 5}[tt.id]; head != want {
					t.Errorf("told head %d, want %d", head, want)
				}
			}
			if n := attempts(db, s.op); n != 0 {
				t.Errorf("%d writes were sent", n)
			}
		}
		for id, want := range map[string][]string{"a": texts(1, 5), "empty": nil} {
			if diff := cmp.Diff(want, content(t, db, id)); diff != "" {
				t.Errorf("stream %q (-want +got):\n%s", id, diff)
			}
		}
	})

	t.Run("J-34 A04 a session's index that is not the next", func(t *testing.T) {
		t.Parallel()
		p, db := fixture(t)
		for _, index := range []int{4, 6, 9, 0} {
			s := p.GetState()
			recovered(s, "a")
			db.Faults.Reset()
			err := caught(func() { s.PersistEvent("a", index, text("x")) })
			if err == nil || verdict(err) != "conflict" || err.Index != int64(index) || err.ID != "a" {
				t.Errorf("index %d: %v", index, err)
			}
			if got := db.Faults.Requests(); len(got) > 0 {
				t.Errorf("sent %v", got)
			}
		}
	})

	t.Run("J-35 below the mark, where no item is", func(t *testing.T) {
		t.Parallel()
		now := &clock{}
		p, db := open(t, dynactor.Options{Now: now.Now})
		j := p.Journal()
		fill(t, j, "a", 5)
		if err := j.DeleteTo(t.Context(), "a", 5); err != nil {
			t.Fatal(err)
		}
		now.Advance(25 * time.Hour)
		if n, err := j.Sweep(t.Context(), "a"); n != 4 || err != nil {
			t.Fatalf("swept %d items, %v", n, err)
		}
		for _, s := range shapes {
			for expected := range int64(5) {
				if _, err := j.Append(t.Context(), "a", expected, numbered(1, s.events)...); verdict(err) != "conflict" {
					t.Errorf("%s after %d: %v", s.name, expected, err)
				}
			}
		}
		if _, err := j.Append(t.Context(), "a", 5, text("6")); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"6"}, content(t, db, "a")); diff != "" {
			t.Errorf("stream (-want +got):\n%s", diff)
		}
	})

	t.Run("J-36 A18 index 0", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		s := p.GetState()
		recovered(s, "a")
		s.PersistEvent("a", 0, text("1"))
		if _, err := p.Journal().Append(t.Context(), "a", 0, text("x")); verdict(err) != "conflict" {
			t.Errorf("expected an empty stream, with one event there: %v", err)
		}
		// The mark is number 0 of the stream, the first event number 1.
		if err := p.Journal().DeleteTo(t.Context(), "a", 1); err != nil {
			t.Fatal(err)
		}
		s.PersistEvent("a", 1, text("2"))
		if diff := cmp.Diff([]string{"2"}, content(t, db, "a")); diff != "" {
			t.Errorf("stream (-want +got):\n%s", diff)
		}
		if head, err := p.Journal().Head(t.Context(), "a"); head != 2 || err != nil {
			t.Errorf("head %d, %v", head, err)
		}
	})

	t.Run("J-45 a token is never used for other content", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		j := p.Journal()
		db.Faults.Add(dynactortest.Rule{Op: "TransactWriteItems", Match: func(r dynactortest.Request) bool { return r.Attempt == 1 }, Do: dynactortest.FailAfter(500)})
		for i := range int64(20) {
			for _, id := range []string{"a", "b"} {
				if _, err := j.Append(t.Context(), id, 2*i, numbered(1, 2)...); err != nil {
					t.Fatal(err)
				}
			}
		}
		content := map[string]string{}
		for _, r := range db.Faults.Requests() {
			if r.Op != "TransactWriteItems" {
				continue
			}
			if op := fmt.Sprintf(`"op":{"S":%q}`, r.Token()); strings.Count(string(r.Body), op) != 2 {
				t.Errorf("token %q is not the operation id of both items: %s", r.Token(), r.Body)
			}
			if before, seen := content[r.Token()]; seen && before != string(r.Body) {
				t.Errorf("token %s was sent with\n%s\nand with\n%s", r.Token(), before, r.Body)
			}
			content[r.Token()] = string(r.Body)
		}
		if len(content) != 40 {
			t.Errorf("%d tokens for 40 appends", len(content))
		}
	})

	t.Run("J-47 streams do not wait for each other", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		reached, release := make(chan struct{}), make(chan struct{})
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: dynactortest.Hold(reached, release)})
		slow := make(chan error, 1)
		go func() {
			_, err := p.Journal().Append(t.Context(), "slow", 0, text("1"))
			slow <- err
		}()
		<-reached
		for i := range 20 {
			if _, err := p.Journal().Append(t.Context(), strconv.Itoa(i), 0, text("1")); err != nil {
				t.Error(err)
			}
		}
		close(release)
		if err := <-slow; err != nil {
			t.Error(err)
		}
	})

	t.Run("J-50 empty values", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		events := []dynactor.Event{
			{Message: text("")},
			{Message: &wrapperspb.BytesValue{}, Tags: []string{}, Meta: map[string]string{}},
			{Message: text("x"), Tags: []string{"b", "a", "b"}, Meta: map[string]string{"empty": ""}},
		}
		want := slices.Clone(events)
		want[1].Tags, want[1].Meta = nil, nil
		want[2].Tags = []string{"a", "b"}
		if _, err := p.Journal().AppendEvents(t.Context(), "a", 0, events...); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"b", "a", "b"}, events[2].Tags); diff != "" {
			t.Errorf("the caller's tags were changed (-want +got):\n%s", diff)
		}
		var got []dynactor.Event
		for e, err := range p.Journal().Replay(t.Context(), "a", 1, 0) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, dynactor.Event{Message: e.Message, Tags: e.Tags, Meta: e.Meta})
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}
