package dynactor_test

import (
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/persistence"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// Values that stand for themselves in the tables below.
var (
	aText    = &types.AttributeValueMemberS{Value: "x"}
	aNumber  = &types.AttributeValueMemberN{Value: "7"}
	aNull    = &types.AttributeValueMemberNULL{Value: true}
	negative = &types.AttributeValueMemberN{Value: "-1"}
	fraction = &types.AttributeValueMemberN{Value: "1.5"}
	tooLarge = &types.AttributeValueMemberN{Value: "9223372036854775808"}
	aList    = &types.AttributeValueMemberL{Value: []types.AttributeValue{aText}}
)

// with is an item with one attribute replaced, or left out for nil.
func with(it map[string]types.AttributeValue, name string, v types.AttributeValue) map[string]types.AttributeValue {
	it = maps.Clone(it)
	if it[name] = v; v == nil {
		delete(it, name)
	}
	return it
}

// wrong are attributes and what makes no sense in them; nil for leaving them out.
type wrong map[string][]types.AttributeValue

// each runs f for every one.
func (w wrong) each(t *testing.T, f func(t *testing.T, name string, v types.AttributeValue)) {
	t.Helper()
	for name, values := range w {
		for _, v := range values {
			kind := "missing"
			if v != nil {
				kind = strings.TrimPrefix(typeName(v), "AttributeValueMember")
			}
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				f(t, name, v)
			})
		}
	}
}

func typeName(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberN:
		return "N " + v.Value
	case *types.AttributeValueMemberS:
		return "S"
	case *types.AttributeValueMemberNULL:
		return "NULL"
	default:
		return "L"
	}
}

// E09, B07: an event that makes no sense is named, nothing from it on is
// delivered, nothing is written, and it is never a panic of another type.
func TestForeign_Events(t *testing.T) {
	t.Parallel()
	bad := wrong{
		"type": {nil, aNumber, aNull}, "data": {nil, aText, aNull}, "ts": {nil, aText, fraction, negative, aNull},
		"op": {nil, aNumber}, "last": {aText, fraction, &types.AttributeValueMemberN{Value: "1"}}, "tags": {aText, aList},
		"meta": {aText, aList, &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"k": aNumber}}}, "enc": {aText, aNumber},
	}
	p, db := open(t, dynactor.Options{})
	ready(t, p, db)
	bad.each(t, func(t *testing.T, name string, v types.AttributeValue) {
		t.Helper()
		id := t.Name()
		fill(t, p.Journal(), id, 1)
		putItem(t, db, db.EventsTable, with(eventItem(id, "2"), name, v))
		putItem(t, db, db.EventsTable, eventItem(id, "3"))

		got, err := replayed(t.Context(), p.Journal(), id, 1, 0)
		var delivered []string
		panicked := caught(func() {
			s := p.GetState()
			s.GetEvents(id, 0, 0, func(m any) { delivered = append(delivered, textOf(m)) })
		})
		for what, err := range map[string]error{"replay": err, "session": panicked} {
			e, ok := errors.AsType[*dynactor.Error](err)
			if !ok || !errors.Is(e, dynactor.ErrDecode) || e.ID != id || e.Index != 1 || !strings.Contains(e.Error(), `attribute "`+name+`"`) {
				t.Errorf("%s: got %v, want ErrDecode of index 1 and the attribute", what, err)
			}
		}
		if diff := cmp.Diff([][]string{texts(1, 1), texts(1, 1)}, [][]string{got, delivered}); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})

	t.Run("attributes of others are ignored", func(t *testing.T) {
		t.Parallel()
		it := eventItem("extras", "1")
		for i, v := range []types.AttributeValue{aText, aNumber, aNull, aList} {
			it["of others "+string(rune('a'+i))] = v
		}
		putItem(t, db, db.EventsTable, it)
		if got, err := replayed(t.Context(), p.Journal(), "extras", 1, 0); err != nil || !slices.Equal(got, texts(1, 1)) {
			t.Errorf("replayed %q, %v", got, err)
		}
	})
}

// E09: sort keys that no sequence number can be.
func TestForeign_SortKeys(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{})
	ready(t, p, db)
	for name, tc := range map[string]struct {
		seq    string
		unseen bool // outside of what is read
	}{
		"negative":           {"-3", true},
		"below the mark":     {"0.5", true},
		"beside the mark":    {"1.5", true},
		"between two events": {"2.5", false},
		"after the last":     {"4.5", false},
		"beyond 63 bits":     {"9223372036854775808", false},
		"far beyond":         {"1E100", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, ctx := t.Name(), t.Context()
			fill(t, p.Journal(), id, 4)
			if err := p.Journal().DeleteTo(ctx, id, 1); err != nil {
				t.Fatal(err)
			}
			putItem(t, db, db.EventsTable, eventItem(id, tc.seq))
			_, err := replayed(ctx, p.Journal(), id, 1, 0)
			errs := map[string]error{"replay": err, "erase": p.Journal().Erase(ctx, id)}
			_, errs["sweep"] = p.Journal().Sweep(ctx, id)
			for what, err := range errs {
				if err != nil && (!errors.Is(err, dynactor.ErrDecode) || own(err) != 1) {
					t.Errorf("%s: got %v, want ErrDecode or nothing", what, err)
				}
				if err == nil && !tc.unseen && what == "replay" {
					t.Errorf("%s: got nothing, want ErrDecode", what)
				}
			}
			// Whatever was done about it, the mark and with it the numbers are still there.
			client, _ := db.NewClient()
			out, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &db.EventsTable, Key: map[string]types.AttributeValue{
				"pid": &types.AttributeValueMemberS{Value: id}, "seq": &types.AttributeValueMemberN{Value: "0"},
			}})
			if err != nil || out.Item["del"] == nil {
				t.Errorf("the mark is %v, %v", out.Item, err)
			}
		})
	}
}

// E09: the stream's own item.
func TestForeign_Mark(t *testing.T) {
	t.Parallel()
	bad := wrong{"del": {nil, aText, negative, fraction, tooLarge, aNull}, "reset": {aText, negative, aNull}}
	p, db := open(t, dynactor.Options{})
	ready(t, p, db)
	bad.each(t, func(t *testing.T, name string, v types.AttributeValue) {
		t.Helper()
		id := t.Name()
		fill(t, p.Journal(), id, 2)
		mark := map[string]types.AttributeValue{
			"pid": &types.AttributeValueMemberS{Value: id}, "seq": &types.AttributeValueMemberN{Value: "0"}, "del": &types.AttributeValueMemberN{Value: "1"},
		}
		putItem(t, db, db.EventsTable, with(mark, name, v))
		s := p.GetState()
		for method, call := range calls(t.Context(), p, s, id) {
			if strings.HasPrefix(method, "SnapshotStore.") || strings.HasPrefix(method, "StateStore.") {
				continue // they have no such item
			}
			err := call()
			if e, ok := errors.AsType[*dynactor.Error](err); !ok || !errors.Is(e, dynactor.ErrDecode) || e.ID != id {
				t.Errorf("%s: got %v, want ErrDecode", method, err)
			}
		}
		for _, r := range db.Faults.Requests() {
			if about(id)(r) && (r.Op == "PutItem" || r.Op == "UpdateItem" || r.Op == "BatchWriteItem") {
				t.Errorf("%s of a stream that makes no sense", r)
			}
		}
	})
}

// E09, S-26: snapshots.
func TestForeign_Snapshots(t *testing.T) {
	t.Parallel()
	bad := wrong{
		"type": {nil, aNumber, &types.AttributeValueMemberS{Value: "bank.v1.Unknown"}}, "data": {nil, aText, aNull, &types.AttributeValueMemberB{Value: []byte{1}}},
		"ts": {nil, aText, fraction}, "exp": {aText, fraction, aNull}, "enc": {aText, aNumber},
	}
	p, db := open(t, dynactor.Options{SnapshotInterval: 10})
	ready(t, p, db)
	bad.each(t, func(t *testing.T, name string, v types.AttributeValue) {
		t.Helper()
		id, store := t.Name(), p.Snapshots()
		fill(t, p.Journal(), id, 3)
		it := eventItem(id, "2")
		delete(it, "op")
		putItem(t, db, db.SnapshotsTable, with(it, name, v))
		snap, found, err := store.Latest(t.Context(), id)
		if !found || snap.Seq != 2 || snap.Message != nil || !errors.Is(err, dynactor.ErrDecode) {
			t.Errorf("latest: got %+v, %t, %v, want ErrDecode of 2", snap, found, err)
		}
		if e, ok := errors.AsType[*dynactor.Error](err); !ok || e.ID != id || e.Index != 2 {
			t.Errorf("latest: got %v, want id and index", err)
		}
		if err := caught(func() { recovered(p.GetState(), id) }); !errors.Is(err, dynactor.ErrDecode) || own(err) != 1 || err.Index != 2 {
			t.Errorf("recovery: got %v, want ErrDecode of 2, wrapped once", err)
		}
		if name == "exp" {
			if _, err := store.List(t.Context(), id); !errors.Is(err, dynactor.ErrDecode) {
				t.Errorf("list: got %v, want ErrDecode", err)
			}
		}
		if err := store.Delete(t.Context(), id, 2); err != nil {
			t.Errorf("it cannot be removed: %v", err)
		}
		if _, found, err := store.Latest(t.Context(), id); found || err != nil {
			t.Errorf("after its removal: %t, %v", found, err)
		}
	})
}

// clerk is an actor that writes down what it gets.
type clerk struct {
	persistence.Mixin

	mu  *sync.Mutex
	got *[]string
}

func (c *clerk) Receive(ctx actor.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m := ctx.Message().(type) {
	case *wrapperspb.StringValue:
		*c.got = append(*c.got, m.GetValue())
	case *persistence.ReplayComplete:
		*c.got = append(*c.got, "complete")
	}
}

// B07: an actor whose history has an event of an unknown type in the middle.
func TestForeign_B07_AnActor(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{})
	ready(t, p, db)
	for head := range int64(5) { // one by one
		if _, err := p.Journal().Append(t.Context(), "a", head, numbered(int(head+1), int(head+1))...); err != nil {
			t.Fatal(err)
		}
	}
	putItem(t, db, db.EventsTable, with(eventItem("a", "2"), "type", &types.AttributeValueMemberS{Value: "bank.v1.Unknown"}))
	before := stream(t, db, "a")
	db.Faults.Reset()

	var mu sync.Mutex
	var got []string
	reasons := make(chan any, 100)
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	defer system.Shutdown()
	sub := system.EventStream.Subscribe(func(e any) {
		if s, ok := e.(*actor.SupervisorEvent); ok {
			reasons <- s.Reason
		}
	})
	defer system.EventStream.Unsubscribe(sub)
	props := actor.PropsFromProducer(func() actor.Actor { return &clerk{mu: &mu, got: &got} }, actor.WithReceiverMiddleware(persistence.Using(p)))
	pid, err := system.Root.SpawnNamed(props, "a")
	if err != nil {
		t.Fatal(err)
	}
	reason := <-reasons
	e, ok := reason.(*dynactor.Error)
	if !ok || !errors.Is(e, dynactor.ErrDecode) || e.Op != "replay" || e.ID != "a" || e.Index != 1 || !strings.Contains(e.Error(), "bank.v1.Unknown") {
		t.Errorf("the supervisor got %v, want ErrDecode with id, index and type", reason)
	}
	_ = system.Root.StopFuture(pid).Wait()

	mu.Lock()
	defer mu.Unlock()
	if slices.ContainsFunc(got, func(s string) bool { return s != "1" }) || len(got) == 0 {
		t.Errorf("delivered %q, want nothing but event 1", got)
	}
	for _, op := range []string{"PutItem", "UpdateItem", "TransactWriteItems", "BatchWriteItem", "DeleteItem"} {
		if n := db.Faults.Count(op); n != 0 {
			t.Errorf("%d times %s", n, op)
		}
	}
	if diff := cmp.Diff(before, stream(t, db, "a"), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("the stream was changed (-before +after):\n%s", diff)
	}
}

// stream are the items of a stream, read past the fault layer.
func stream(t *testing.T, db *dynactortest.DB, id string) []map[string]types.AttributeValue {
	t.Helper()
	client, _ := db.NewClient()
	expr := "pid = :id"
	out, err := client.Query(t.Context(), &dynamodb.QueryInput{
		TableName: &db.EventsTable, KeyConditionExpression: &expr,
		ExpressionAttributeValues: map[string]types.AttributeValue{":id": &types.AttributeValueMemberS{Value: id}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Items
}
