package dynactor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
)

// saved saves a text and returns the new revision.
func saved(t *testing.T, s *dynactor.StateStore, id string, expected int64, value string) int64 {
	t.Helper()
	rev, err := s.Save(t.Context(), id, expected, text(value))
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

// checkState compares the text, "" for none, and the revision of an id.
func checkState(t *testing.T, s *dynactor.StateStore, id, value string, revision int64) {
	t.Helper()
	st, err := s.Load(t.Context(), id)
	if err != nil {
		t.Error(err)
		return
	}
	got := ""
	if st.Exists() {
		got = textOf(st.Message)
	}
	if got != value || st.Revision != revision || st.ID != id || st.Exists() != (value != "") {
		t.Errorf("%q holds %q at revision %d, want %q at %d", id, got, st.Revision, value, revision)
	}
}

// checkStale wants a conflict that tells the current revision, and nothing stored.
func checkStale(t *testing.T, err error, expected, current int64) {
	t.Helper()
	c, ok := errors.AsType[*dynactor.RevisionConflict](err)
	if !errors.Is(err, dynactor.ErrConflict) || errors.Is(err, dynactor.ErrOutcomeUnknown) || !ok {
		t.Errorf("got %v, want a conflict", err)
		return
	}
	if diff := cmp.Diff(dynactor.RevisionConflict{Expected: expected, Current: current}, *c); diff != "" {
		t.Errorf("conflict (-want +got):\n%s", diff)
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	store := func(t *testing.T, o dynactor.Options) *dynactor.StateStore {
		t.Helper()
		p, _ := open(t, o)
		return p.State()
	}

	t.Run("D-01 an unknown id is absent, at revision 0", func(t *testing.T) {
		t.Parallel()
		checkState(t, store(t, dynactor.Options{}), "a", "", 0)
	})
	t.Run("D-02 D-03 D-20 a saved value is there at its revision", func(t *testing.T) {
		t.Parallel()
		s := store(t, dynactor.Options{})
		for i := range int64(3) {
			value := fmt.Sprint("v", i+1)
			if rev := saved(t, s, "a", i, value); rev != i+1 {
				t.Errorf("revision %d, want %d", rev, i+1)
			}
			checkState(t, s, "a", value, i+1)
		}
		rev, err := s.SaveState(t.Context(), "a", 3, dynactor.State{Message: text("v4"), Tags: []string{"x"}})
		if err != nil || rev != 4 {
			t.Errorf("%d, %v", rev, err)
		}
		if rev, err = s.SaveWith(t.Context(), "a", 4, dynactor.State{Message: text("v5")}, ownPut("z", "1", "")); err == nil {
			t.Errorf("a table that is not there took it, revision %d", rev)
		}
		checkState(t, s, "a", "v4", 4)
	})
	t.Run("D-05 ids are independent", func(t *testing.T) {
		t.Parallel()
		s := store(t, dynactor.Options{})
		saved(t, s, "a", 0, "1")
		saved(t, s, "a", 1, "2")
		saved(t, s, "b", 0, "3")
		if _, err := s.Delete(t.Context(), "a", 2); err != nil {
			t.Error(err)
		}
		checkState(t, s, "b", "3", 1)
		checkState(t, s, "a", "", 3)
		checkState(t, s, "a/b", "", 0)
	})
	t.Run("D-06 D-14 D-16 A22 after a deletion revisions go on", func(t *testing.T) {
		t.Parallel()
		s := store(t, dynactor.Options{})
		saved(t, s, "a", 0, "1")
		rev, err := s.Delete(t.Context(), "a", 1)
		if err != nil || rev != 2 {
			t.Fatalf("%d, %v", rev, err)
		}
		checkState(t, s, "a", "", 2)
		for _, stale := range []int64{0, 1, 3} {
			_, err := s.Save(t.Context(), "a", stale, text("x"))
			checkStale(t, err, stale, 2)
		}
		if rev := saved(t, s, "a", 2, "3"); rev != 3 {
			t.Errorf("revision %d", rev)
		}
		checkState(t, s, "a", "3", 3)
	})
	t.Run("D-07 A22 a deletion at another revision is refused", func(t *testing.T) {
		t.Parallel()
		s := store(t, dynactor.Options{})
		saved(t, s, "a", 0, "1")
		saved(t, s, "a", 1, "2")
		for _, stale := range []int64{1, 3} {
			_, err := s.Delete(t.Context(), "a", stale)
			checkStale(t, err, stale, 2)
		}
		checkState(t, s, "a", "2", 2)
	})
	t.Run("a deleted state can be deleted again", func(t *testing.T) {
		t.Parallel()
		s := store(t, dynactor.Options{})
		saved(t, s, "a", 0, "1")
		for rev := range int64(2) {
			if got, err := s.Delete(t.Context(), "a", rev+1); err != nil || got != rev+2 {
				t.Errorf("%d, %v", got, err)
			}
		}
		checkState(t, s, "a", "", 3)
	})
	t.Run("D-08 D-13 A18 K03 a save at another revision is refused", func(t *testing.T) {
		t.Parallel()
		s := store(t, dynactor.Options{})
		_, err := s.Save(t.Context(), "a", 5, text("x"))
		checkStale(t, err, 5, 0)
		checkState(t, s, "a", "", 0)
		saved(t, s, "a", 0, "1")
		_, err = s.Save(t.Context(), "a", 0, text("x"))
		checkStale(t, err, 0, 1)
		saved(t, s, "a", 1, "2")
		for _, stale := range []int64{0, 1, 3} {
			_, err := s.Save(t.Context(), "a", stale, text("x"))
			checkStale(t, err, stale, 2)
		}
		checkState(t, s, "a", "2", 2)
	})
	t.Run("D-17 a deletion of an unknown id is a conflict", func(t *testing.T) {
		t.Parallel()
		s := store(t, dynactor.Options{})
		_, err := s.Delete(t.Context(), "a", 1)
		checkStale(t, err, 1, 0)
		checkState(t, s, "a", "", 0)
	})
	t.Run("D-09 L03 values come back as they were, with what is unknown in them", func(t *testing.T) {
		t.Parallel()
		s := store(t, dynactor.Options{})
		packed, err := anypb.New(text("x"))
		if err != nil {
			t.Fatal(err)
		}
		list, err := structpb.NewList([]any{"a", 1.5, nil, true, map[string]any{"k": "v"}})
		if err != nil {
			t.Fatal(err)
		}
		strange := wrapperspb.String("known")
		strange.ProtoReflect().SetUnknown([]byte{0xfa, 0x01, 0x01, 0x41})
		for i, m := range []proto.Message{packed, list, wrapperspb.Bytes(nil), text(""), strange} {
			id := fmt.Sprint(i)
			if _, err := s.Save(t.Context(), id, 0, m); err != nil {
				t.Fatal(err)
			}
			st, err := s.Load(t.Context(), id)
			if err != nil || !proto.Equal(m, st.Message) || st.Type != string(m.ProtoReflect().Descriptor().FullName()) {
				t.Errorf("got %v (%s), %v, want %v", st.Message, st.Type, err, m)
			}
		}
	})
	t.Run("D-22 tags are replaced with the value", func(t *testing.T) {
		t.Parallel()
		s := store(t, dynactor.Options{})
		for i, tags := range [][]string{{"b", "a", "b"}, {"c"}, nil} {
			if _, err := s.SaveState(t.Context(), "a", int64(i), dynactor.State{Message: text("x"), Tags: tags}); err != nil {
				t.Fatal(err)
			}
			st, err := s.Load(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			want := map[int][]string{0: {"a", "b"}, 1: {"c"}}[i]
			if diff := cmp.Diff(want, st.Tags); diff != "" {
				t.Errorf("tags (-want +got):\n%s", diff)
			}
		}
	})
	t.Run("K07 a thousand saves under a clock that stands still", func(t *testing.T) {
		t.Parallel()
		now := time.Now()
		s := store(t, dynactor.Options{Now: func() time.Time { return now }})
		for rev := range int64(1000) {
			saved(t, s, "a", rev, "x")
		}
		checkState(t, s, "a", "x", 1000)
	})
	t.Run("a value of one type", func(t *testing.T) {
		t.Parallel()
		s := store(t, dynactor.Options{})
		load := func() (*wrapperspb.StringValue, int64, error) {
			return dynactor.LoadState[*wrapperspb.StringValue](t.Context(), s, "a")
		}
		if m, rev, err := load(); m != nil || rev != 0 || err != nil {
			t.Errorf("%v, %d, %v", m, rev, err)
		}
		saved(t, s, "a", 0, "x")
		if m, rev, err := load(); m.GetValue() != "x" || rev != 1 || err != nil {
			t.Errorf("%v, %d, %v", m, rev, err)
		}
		if _, err := s.Save(t.Context(), "a", 1, wrapperspb.Int64(2)); err != nil {
			t.Fatal(err)
		}
		if m, rev, err := load(); m != nil || rev != 2 || !errors.Is(err, dynactor.ErrDecode) {
			t.Errorf("%v, %d, %v", m, rev, err)
		}
	})
	t.Run("D-21 what is too large is refused, and the old value stays", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		s := p.State()
		saved(t, s, "a", 0, "1")
		db.Faults.Reset()
		_, err := s.Save(t.Context(), "a", 1, text(strings.Repeat("x", 400<<10)))
		isError(t, asError(t, err), dynactor.ErrTooLarge)
		many := make([]types.TransactWriteItem, 100)
		_, err = s.SaveWith(t.Context(), "a", 1, dynactor.State{Message: text("x")}, many...)
		isError(t, asError(t, err), dynactor.ErrTooLarge)
		if n := db.Faults.Count(""); n != 0 {
			t.Errorf("%d requests", n)
		}
		checkState(t, s, "a", "1", 1)
		fits := strings.Repeat("x", 400<<10-len("a")-len("google.protobuf.StringValue")-100)
		saved(t, s, "a", 1, fits)
		checkState(t, s, "a", fits, 2)
	})
	t.Run("bad input is refused before anything is sent", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		s, ctx := p.State(), t.Context()
		past := dynactor.State{Message: text("x"), Until: time.Now().Add(-time.Hour)}
		for name, f := range map[string]func() error{
			"no id":             func() error { _, err := s.Save(ctx, "", 0, text("x")); return err },
			"a reserved id":     func() error { _, err := s.Load(ctx, "__dynactor__"); return err },
			"a reserved id too": func() error { _, err := s.Save(ctx, "__dynactor__", 0, text("x")); return err },
			"a negative number": func() error { _, err := s.Save(ctx, "a", -1, text("x")); return err },
			"no value":          func() error { _, err := s.Save(ctx, "a", 0, nil); return err },
			"a nil value":       func() error { _, err := s.Save(ctx, "a", 0, (*wrapperspb.StringValue)(nil)); return err },
			"an empty tag": func() error {
				_, err := s.SaveState(ctx, "a", 0, dynactor.State{Message: text("x"), Tags: []string{""}})
				return err
			},
			"an end in the past": func() error { _, err := s.SaveState(ctx, "a", 0, past); return err },
			"no revision":        func() error { _, err := s.Delete(ctx, "a", 0); return err },
			"no revision too":    func() error { return s.Purge(ctx, "a", 0) },
			"many, one bad":      func() error { _, err := s.LoadMany(ctx, ""); return err },
		} {
			if e := asError(t, f()); !errors.Is(e, dynactor.ErrInvalid) {
				t.Errorf("%s: got %v", name, e)
			}
		}
		if n := db.Faults.Count(""); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
	t.Run("D-24 what is no state is an error", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		s := p.State()
		saved(t, s, "good", 0, "x")
		n := func(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
		str := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
		kind, data := str("google.protobuf.StringValue"), &types.AttributeValueMemberB{Value: []byte{}}
		for id, attrs := range map[string]map[string]types.AttributeValue{
			"nothing":        {},
			"text":           {"rev": str("1"), "ts": n("1"), "type": kind, "data": data},
			"zero":           {"rev": n("0"), "ts": n("1"), "type": kind, "data": data},
			"part":           {"rev": n("1.5"), "ts": n("1"), "type": kind, "data": data},
			"no type":        {"rev": n("1"), "ts": n("1"), "data": data},
			"no data":        {"rev": n("1"), "ts": n("1"), "type": kind},
			"unknown type":   {"rev": n("1"), "ts": n("1"), "type": str("x.Y"), "data": data},
			"bad bytes":      {"rev": n("1"), "ts": n("1"), "type": kind, "data": &types.AttributeValueMemberB{Value: []byte{0xff}}},
			"encoded":        {"rev": n("1"), "ts": n("1"), "type": kind, "data": data, "enc": str("zstd")},
			"tags":           {"rev": n("1"), "ts": n("1"), "type": kind, "data": data, "tags": str("x")},
			"an end in text": {"rev": n("1"), "ts": n("1"), "type": kind, "data": data, "until": str("x")},
		} {
			attrs["pid"] = str(id)
			if _, err := db.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &db.StateTable, Item: attrs}); err != nil {
				t.Fatal(err)
			}
			st, err := s.Load(t.Context(), id)
			if e := asError(t, err); !errors.Is(e, dynactor.ErrDecode) || e.ID != id || st.Exists() {
				t.Errorf("%s: got %v, %v", id, st, err)
			}
			if _, err := s.LoadMany(t.Context(), "good", id); !errors.Is(err, dynactor.ErrDecode) {
				t.Errorf("%s, with others: %v", id, err)
			}
			if _, err := s.Save(t.Context(), id, 0, text("x")); !errors.Is(err, dynactor.ErrConflict) {
				t.Errorf("%s, saved over: %v", id, err)
			}
			if st.Revision > 0 { // it can be repaired
				saved(t, s, id, st.Revision, "repaired")
				checkState(t, s, id, "repaired", st.Revision+1)
			}
		}
	})
	t.Run("D-26 ids are in the tables that they are routed to", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		other, bad := db.SnapshotsTable+"-2", false
		o := dynactor.Options{StateTables: []string{db.StateTable, other}, StateTable: func(id string) string {
			switch {
			case bad:
				return "elsewhere"
			case strings.HasPrefix(id, "o/"):
				return other
			}
			return db.StateTable
		}}
		t.Cleanup(func() {
			_, _ = db.Client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: &other})
		})
		s := openOn(t, db, db.Client, o).State()
		saved(t, s, "a", 0, "1")
		if out, err := db.Client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &other}); err == nil {
			t.Errorf("a table that was not used is there: %v", out.Table.TableStatus)
		}
		saved(t, s, "o/a", 0, "2")
		saved(t, s, "b", 0, "3")
		for table, want := range map[string][]string{db.StateTable: {"a", "b"}, other: {"o/a"}} {
			out, err := db.Client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(table)})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for _, it := range out.Items {
				got[it["pid"].(*types.AttributeValueMemberS).Value] = true
			}
			for _, id := range want {
				if !got[id] || len(got) != len(want)+1 {
					t.Errorf("%s holds %v, want %v and the table's own", table, got, want)
				}
			}
		}
		states, err := s.LoadMany(t.Context(), "o/a", "a", "none", "a")
		if err != nil || textOf(states[0].Message)+textOf(states[1].Message)+textOf(states[3].Message) != "211" || states[2].Exists() {
			t.Errorf("%v, %v", states, err)
		}
		if diff := cmp.Diff(map[string]int64{"a": 1, "b": 1, "o/a": 1}, listed(t, s, "")); diff != "" {
			t.Errorf("ids (-want +got):\n%s", diff)
		}
		if err := p.VerifyTables(t.Context()); !errors.Is(err, dynactor.ErrSchema) || !strings.Contains(err.Error(), db.EventsTable) || strings.Contains(err.Error(), db.StateTable) {
			t.Errorf("%v, want only the tables of events and snapshots", err)
		}
		bad = true
		if _, err := s.Load(t.Context(), "a"); !errors.Is(err, dynactor.ErrInvalid) {
			t.Error(err)
		}
	})
}
