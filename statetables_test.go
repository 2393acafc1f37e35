package dynactor_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// A table of state is made when it is first used, apart from the others.
func TestState_Tables(t *testing.T) {
	t.Parallel()
	pid := []types.KeySchemaElement{{AttributeName: aws.String("pid"), KeyType: types.KeyTypeHash}}
	text := []types.AttributeDefinition{{AttributeName: aws.String("pid"), AttributeType: types.ScalarAttributeTypeS}}
	createState := func(t *testing.T, db *dynactortest.DB, keys []types.KeySchemaElement, defs []types.AttributeDefinition) {
		t.Helper()
		if _, err := db.Client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: &db.StateTable, BillingMode: types.BillingModePayPerRequest, KeySchema: keys, AttributeDefinitions: defs,
		}); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("it is made with its key, expiry and own item, and the others are not", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		saved(t, p.State(), "a", 0, "x")
		d, err := db.Client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &db.StateTable})
		if err != nil || len(d.Table.KeySchema) != 1 || *d.Table.KeySchema[0].AttributeName != "pid" {
			t.Errorf("%v, %v", d, err)
		}
		ttl, err := db.Client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &db.StateTable})
		if err != nil || aws.ToString(ttl.TimeToLiveDescription.AttributeName) != "exp" {
			t.Errorf("%v, %v", ttl, err)
		}
		own := rowOf(t, db, "__dynactor__")
		if len(own) != 3 || own["fmt"].(*types.AttributeValueMemberN).Value != "1" || own["layout"].(*types.AttributeValueMemberS).Value != "per-actor" {
			t.Errorf("the table's own item is %v", own)
		}
		for _, other := range []string{db.EventsTable, db.SnapshotsTable} {
			if _, err := db.Client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &other}); !errors.As(err, new(*types.ResourceNotFoundException)) {
				t.Errorf("%s: %v", other, err)
			}
		}
		if err := p.EnsureTables(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.VerifyTables(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("events and snapshots do not make it", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		fill(t, p.Journal(), "a", 1)
		for _, r := range db.Faults.Requests() {
			if r.Table == db.StateTable {
				t.Errorf("%v", r)
			}
		}
	})
	t.Run("it is not made where that is left to others, and found when they have made it", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{NoCreateTables: true})
		_, err := p.State().Load(t.Context(), "a")
		isError(t, asError(t, err), dynactor.ErrSchema)
		createState(t, db, pid, text)
		saved(t, p.State(), "a", 0, "x")
		if n := db.Faults.Count("UpdateTimeToLive"); n != 0 {
			t.Errorf("expiry was switched on %d times", n)
		}
		if err := p.VerifyTables(t.Context()); err == nil || !strings.Contains(err.Error(), `"`+db.StateTable+`" does not expire items by attribute "exp"`) {
			t.Error(err)
		}
	})
	t.Run("another key, format or layout is refused", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		createState(t, db, append(pid[:1:1], types.KeySchemaElement{AttributeName: aws.String("seq"), KeyType: types.KeyTypeRange}),
			append(text[:1:1], types.AttributeDefinition{AttributeName: aws.String("seq"), AttributeType: types.ScalarAttributeTypeN}))
		_, err := p.State().Load(t.Context(), "a")
		if isError(t, asError(t, err), dynactor.ErrSchema); !strings.Contains(err.Error(), "HASH pid (S), RANGE seq (N), expected HASH pid (S)") {
			t.Error(err)
		}
		for name, v := range map[string]types.AttributeValue{"fmt": &types.AttributeValueMemberN{Value: "2"}, "layout": &types.AttributeValueMemberS{Value: "other"}} {
			p, db := open(t, dynactor.Options{})
			saved(t, p.State(), "a", 0, "x")
			own := rowOf(t, db, "__dynactor__")
			own[name] = v
			putItem(t, db, db.StateTable, own)
			_, err := openOn(t, db, db.Client, dynactor.Options{}).State().Load(t.Context(), "a")
			isError(t, asError(t, err), dynactor.ErrSchema)
		}
	})
	t.Run("one that is lost is not made again", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		saved(t, p.State(), "a", 0, "x")
		if _, err := db.Client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &db.StateTable}); err != nil {
			t.Fatal(err)
		}
		db.Faults.Reset()
		_, errLoad := p.State().Load(t.Context(), "a")
		_, errSave := p.State().Save(t.Context(), "a", 1, wrapperspb.String("y"))
		isError(t, asError(t, errLoad), dynactor.ErrSchema)
		isError(t, asError(t, errSave), dynactor.ErrSchema)
		if n := db.Faults.Count("CreateTable"); n != 0 {
			t.Error("made again")
		}
	})
	t.Run("names of tables and attributes are options", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{Attributes: dynactor.AttributeNames{
			ID: "the.id", Revision: "r#v", Until: "until when", Gone: "deleted", Expires: "ttl", Operation: "o", Type: "t", Data: "d", Timestamp: "at", Tags: "g",
		}})
		s := p.State()
		saved(t, s, "a", 0, "x")
		saved(t, s, "a", 1, "y")
		checkState(t, s, "a", "y", 2)
		if got := listed(t, s, ""); len(got) != 1 || got["a"] != 2 {
			t.Errorf("listed %v", got)
		}
		if _, err := s.Delete(t.Context(), "a", 2); err != nil {
			t.Error(err)
		}
		checkState(t, s, "a", "", 3)
		isError(t, asError(t, s.Purge(t.Context(), "a", 3)), dynactor.ErrInvalid)
		if n := db.Faults.Count("DeleteItem"); n != 1 {
			t.Errorf("%d deletions", n)
		}
	})
}

// One request for each save and load, at the price of the row's size.
func TestState_Wire(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{})
	s := p.State()
	if err := errors.Join(s.EnsureTables(t.Context()), p.EnsureTables(t.Context())); err != nil {
		t.Fatal(err)
	}
	rev := int64(0)
	for _, tt := range []struct {
		payload int
		writes  float64
		reads   float64
	}{{0, 1, 1}, {900, 1, 1}, {1024, 2, 1}, {4500, 5, 2}, {9 << 10, 10, 3}} {
		db.Faults.Reset()
		rev = saved(t, s, "a", rev, strings.Repeat("x", tt.payload))
		cost(t, db, map[string]int{"PutItem": 1}, tt.writes, 0)
		db.Faults.Reset()
		if _, err := s.Load(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		cost(t, db, map[string]int{"GetItem": 1}, 0, tt.reads)
		if !db.Faults.Requests()[0].ConsistentRead() { // D-18
			t.Error("a load is not strongly consistent")
		}
	}
	db.Faults.Reset()
	if _, err := s.SaveWith(t.Context(), "a", rev, dynactor.State{Message: wrapperspb.String("x")}, ownPut(db.SnapshotsTable, "mine", "")); err != nil {
		t.Fatal(err)
	}
	cost(t, db, map[string]int{"TransactWriteItems": 1}, 4, 0)
	for _, r := range db.Faults.Requests() {
		if len(r.Token()) != 22 {
			t.Errorf("token %q", r.Token())
		}
	}
	// A22: every write carries its condition.
	db.Faults.Reset()
	if _, err := s.Delete(t.Context(), "a", rev+1); err != nil {
		t.Fatal(err)
	}
	_ = s.Purge(t.Context(), "a", rev+2)
	for _, r := range db.Faults.Requests() {
		if c, _ := r.Input()["ConditionExpression"].(string); r.Op != "GetItem" && !strings.Contains(c, "#rev = :r") {
			t.Errorf("%v has the condition %q", r, c)
		}
	}
}
