package dynactor_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// rowOf is the stored row of an id; nil for none.
func rowOf(t *testing.T, db *dynactortest.DB, id string) map[string]types.AttributeValue {
	t.Helper()
	client, _ := db.NewClient()
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &db.StateTable, ConsistentRead: aws.Bool(true), Key: map[string]types.AttributeValue{
		"pid": &types.AttributeValueMemberS{Value: id},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

// removeRow removes a row as DynamoDB does when it has expired.
func removeRow(t *testing.T, db *dynactortest.DB, id string) {
	t.Helper()
	if _, err := db.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &db.StateTable, Key: map[string]types.AttributeValue{
		"pid": &types.AttributeValueMemberS{Value: id},
	}}); err != nil {
		t.Fatal(err)
	}
}

// What is stored, attribute by attribute.
func TestState_StoredForm(t *testing.T) {
	t.Parallel()
	now := time.Now().Round(0)
	p, db := open(t, dynactor.Options{StateRetention: 2 * time.Hour, Now: func() time.Time { return now }})
	s := p.State()
	ms, exp := strconv.FormatInt(now.UnixMilli(), 10), func(d time.Duration) string {
		return strconv.FormatInt(now.Add(d+time.Second-1).Unix(), 10)
	}
	check := func(want map[string]string) {
		t.Helper()
		row := rowOf(t, db, "a")
		if op, ok := row["op"].(*types.AttributeValueMemberS); !ok || len(op.Value) != 22 {
			t.Errorf("op is %v", row["op"])
		}
		got := map[string]string{}
		for name, v := range row {
			switch v := v.(type) {
			case *types.AttributeValueMemberS:
				got[name] = v.Value
			case *types.AttributeValueMemberN:
				got[name] = v.Value
			case *types.AttributeValueMemberB:
				got[name] = string(v.Value)
			case *types.AttributeValueMemberBOOL:
				got[name] = strconv.FormatBool(v.Value)
			case *types.AttributeValueMemberSS:
				slices.Sort(v.Value)
				got[name] = v.Value[0] + "," + v.Value[len(v.Value)-1]
			}
		}
		delete(got, "op")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("row (-want +got):\n%s", diff)
		}
	}
	value := map[string]string{"pid": "a", "rev": "1", "type": "google.protobuf.StringValue", "data": "\n\x01x", "ts": ms}
	saved(t, s, "a", 0, "x")
	check(value)
	until := now.Add(time.Minute)
	if _, err := s.SaveState(t.Context(), "a", 1, dynactor.State{Message: text("x"), Until: until, Tags: []string{"t", "s", "t"}}); err != nil {
		t.Fatal(err)
	}
	ends := maps.Clone(value)
	maps.Copy(ends, map[string]string{"rev": "2", "tags": "s,t", "until": strconv.FormatInt(until.UnixMilli(), 10), "exp": exp(time.Minute + 2*time.Hour)})
	check(ends)
	st, err := s.Load(t.Context(), "a")
	want := dynactor.State{ID: "a", Revision: 2, Type: "google.protobuf.StringValue", Time: time.UnixMilli(now.UnixMilli()), Until: time.UnixMilli(until.UnixMilli())}
	slices.Sort(st.Tags)
	if !cmp.Equal(st.Tags, []string{"s", "t"}) {
		t.Errorf("tags %v", st.Tags)
	}
	st.Message, st.Tags = nil, nil
	if diff := cmp.Diff(want, st); diff != "" || err != nil {
		t.Errorf("%v, state (-want +got):\n%s", err, diff)
	}
	if _, err := s.Delete(t.Context(), "a", 2); err != nil {
		t.Fatal(err)
	}
	check(map[string]string{"pid": "a", "rev": "3", "gone": "true", "ts": ms, "exp": exp(2 * time.Hour)})
	saved(t, s, "a", 3, "x")
	value["rev"] = "4"
	check(value) // exp is gone, or the row would be
}

func TestState_Expiry(t *testing.T) {
	t.Parallel()

	t.Run("D-23 F01 an expired value is absent at once, and can be saved over", func(t *testing.T) {
		t.Parallel()
		c := &clock{}
		p, db := open(t, dynactor.Options{Now: c.Now})
		s := p.State()
		until := c.Now().Add(time.Minute)
		for _, id := range []string{"a", "b"} {
			if _, err := s.SaveState(t.Context(), id, 0, dynactor.State{Message: text("x"), Until: until}); err != nil {
				t.Fatal(err)
			}
		}
		c.Advance(30 * time.Second)
		checkState(t, s, "a", "x", 1)
		c.Advance(31 * time.Second)
		checkState(t, s, "a", "", 1)
		if got := listed(t, s, ""); len(got) != 0 {
			t.Errorf("listed %v", got)
		}
		_, err := s.Save(t.Context(), "a", 0, text("y"))
		checkStale(t, err, 0, 1)
		saved(t, s, "a", 1, "y")
		checkState(t, s, "a", "y", 2)
		if rev, err := s.Delete(t.Context(), "b", 1); err != nil || rev != 2 {
			t.Errorf("%d, %v", rev, err)
		}
		removeRow(t, db, "b")
		checkState(t, s, "b", "", 0)
		saved(t, s, "b", 0, "z")
		checkState(t, s, "b", "z", 1)
	})

	t.Run("D-10 D-15 a row is purged when it is old enough, and numbers begin anew", func(t *testing.T) {
		t.Parallel()
		c := &clock{}
		p, db := open(t, dynactor.Options{StateRetention: time.Hour, Now: c.Now})
		s := p.State()
		ctx := t.Context()
		if err := s.Purge(ctx, "never", 1); err != nil {
			t.Error(err)
		}
		saved(t, s, "a", 0, "x")
		isError(t, asError(t, s.Purge(ctx, "a", 1)), dynactor.ErrInvalid) // it has a value
		checkStale(t, s.Purge(ctx, "a", 2), 2, 1)
		if _, err := s.Delete(ctx, "a", 1); err != nil {
			t.Fatal(err)
		}
		if _, err := s.SaveState(ctx, "b", 0, dynactor.State{Message: text("x"), Until: c.Now().Add(time.Minute)}); err != nil {
			t.Fatal(err)
		}
		c.Advance(59 * time.Minute)
		for id, rev := range map[string]int64{"a": 2, "b": 1} {
			isError(t, asError(t, s.Purge(ctx, id, rev)), dynactor.ErrInvalid) // too early
		}
		checkState(t, s, "a", "", 2)
		c.Advance(3 * time.Minute)
		db.Faults.Add(dynactortest.Rule{Op: "DeleteItem", Times: 1, Do: dynactortest.DropAnswer()}) // an own retry is no trouble
		for id, rev := range map[string]int64{"a": 2, "b": 1} {
			if err := s.Purge(ctx, id, rev); err != nil {
				t.Error(err)
			}
			if row := rowOf(t, db, id); row != nil {
				t.Errorf("%q is there: %v", id, row)
			}
			checkState(t, s, id, "", 0)
			saved(t, s, id, 0, "y")
		}
		checkStale(t, s.Purge(ctx, "a", 2), 2, 1)
		db.Faults.Add(dynactortest.Rule{Op: "DeleteItem", Do: denied})
		if err := s.Purge(ctx, "a", 1); err == nil || errors.Is(err, dynactor.ErrOutcomeUnknown) {
			t.Error(err)
		}
	})
}

func TestState_LoadMany(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{ReadTimeout: 2 * time.Second})
	s := p.State()
	var ids []string
	for i := range 230 {
		id := strconv.Itoa(i)
		ids = append(ids, id)
		if i%10 != 0 {
			saved(t, s, id, 0, id)
		}
	}
	if _, err := s.Delete(t.Context(), "1", 1); err != nil {
		t.Fatal(err)
	}
	check := func(requests int) {
		t.Helper()
		db.Faults.Reset()
		states, err := s.LoadMany(t.Context(), append(ids, "5", "5")...)
		if err != nil {
			t.Fatal(err)
		}
		for i, id := range append(ids, "5", "5") {
			st, value := states[i], ""
			if st.Exists() {
				value = textOf(st.Message)
			}
			want, rev := id, int64(1)
			switch n, _ := strconv.Atoi(id); {
			case n%10 == 0:
				want, rev = "", 0
			case n == 1:
				want, rev = "", 2
			}
			if st.ID != id || value != want || st.Revision != rev {
				t.Errorf("%s: got %v", id, st)
			}
		}
		if n := db.Faults.Count("BatchGetItem"); n != requests || n != db.Faults.Count("") {
			t.Errorf("%d requests, want %d: %v", n, requests, db.Faults.Requests())
		}
		for _, r := range db.Faults.Requests() {
			asked := r.Input()["RequestItems"].(map[string]any)[db.StateTable].(map[string]any)
			if asked["ConsistentRead"] != true {
				t.Errorf("not strongly consistent: %v", r)
			}
		}
	}
	check(3)
	db.Faults.Add(dynactortest.Rule{Op: "BatchGetItem", Times: 1, Do: dynactortest.Unprocessed(7)})
	db.Faults.Add(dynactortest.Rule{Op: "BatchGetItem", Times: 2, Do: dynactortest.Unprocessed(0)})
	check(6)
	if states, err := s.LoadMany(t.Context()); len(states) != 0 || err != nil {
		t.Errorf("%v, %v", states, err)
	}
	db.Faults.Clear()
	db.Faults.Add(dynactortest.Rule{Op: "BatchGetItem", Do: dynactortest.Unprocessed(0)})
	if _, err := s.LoadMany(t.Context(), "1"); !errors.Is(err, dynactor.ErrThrottled) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.LoadMany(ctx, "1"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestState_IDs(t *testing.T) {
	t.Parallel()

	t.Run("D-25 each id once, from any place on, while others come and go", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		s := p.State()
		if got := listed(t, s, ""); len(got) != 0 {
			t.Errorf("listed %v", got)
		}
		want := map[string]int64{}
		for i := range 60 {
			id := "k" + strconv.Itoa(i)
			want[id] = saved(t, s, id, 0, string(make([]byte, 40<<10))) // pages of 1 MB
		}
		db.Faults.Reset()
		var order []string
		for row, err := range s.IDs(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			if _, mine := want[row.ID]; mine {
				order = append(order, row.ID)
			}
			if n := len(order); n%7 == 0 && row.Exists {
				saved(t, s, row.ID, row.Revision, string(make([]byte, 40<<10))) // written again
				want[row.ID]++
				extra := "z" + strconv.Itoa(n)
				if rev, err := s.Save(t.Context(), extra, 0, text("x")); err == nil {
					if _, err := s.Delete(t.Context(), extra, rev); err != nil {
						t.Error(err)
					}
				}
			}
		}
		if n := db.Faults.Count("Scan"); n < 3 {
			t.Errorf("%d pages", n)
		}
		sorted := slices.Clone(order)
		slices.Sort(sorted)
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), sorted); diff != "" {
			t.Errorf("ids (-want +got):\n%s", diff)
		}
		for _, at := range []int{0, 30, 58, 59} {
			got := slices.Sorted(maps.Keys(listed(t, s, order[at])))
			rest := slices.Clone(order[at+1:])
			slices.Sort(rest)
			if !slices.Equal(rest, got) {
				t.Errorf("after %q: %v, want %v", order[at], got, rest)
			}
		}
		if diff := cmp.Diff(want, listed(t, s, "")); diff != "" {
			t.Errorf("revisions (-want +got):\n%s", diff)
		}
	})

	t.Run("rows without a value are told apart, a bad one ends it", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		s := p.State()
		saved(t, s, "a", 0, "x")
		if _, err := s.Delete(t.Context(), "a", 1); err != nil {
			t.Fatal(err)
		}
		var rows []dynactor.StateRow
		for row, err := range s.IDs(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, row)
		}
		if diff := cmp.Diff([]dynactor.StateRow{{ID: "a", Revision: 2}}, rows); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
		putItem(t, db, db.StateTable, map[string]types.AttributeValue{"pid": &types.AttributeValueMemberS{Value: "bad"}})
		var last error
		for _, err := range s.IDs(t.Context(), "") {
			last = err
		}
		if !errors.Is(last, dynactor.ErrDecode) {
			t.Errorf("got %v", last)
		}
		db.Faults.Add(dynactortest.Rule{Op: "Scan", Do: denied})
		n := 0
		for _, err := range s.IDs(t.Context(), "") {
			n++
			if asError(t, err) == nil || n > 1 {
				t.Error(err)
			}
		}
	})
}
