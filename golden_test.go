package dynactor_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// wireValue is an attribute as DynamoDB's exports write it.
type wireValue struct {
	S, N, B *string
	BOOL    *bool
	SS      []string
	M       map[string]wireValue
}

func (v wireValue) attribute(t *testing.T) types.AttributeValue {
	t.Helper()
	switch {
	case v.S != nil:
		return &types.AttributeValueMemberS{Value: *v.S}
	case v.N != nil:
		return &types.AttributeValueMemberN{Value: *v.N}
	case v.BOOL != nil:
		return &types.AttributeValueMemberBOOL{Value: *v.BOOL}
	case v.SS != nil:
		return &types.AttributeValueMemberSS{Value: v.SS}
	case v.M != nil:
		m := map[string]types.AttributeValue{}
		for name, part := range v.M {
			m[name] = part.attribute(t)
		}
		return &types.AttributeValueMemberM{Value: m}
	}
	data, err := base64.StdEncoding.DecodeString(*v.B)
	if err != nil {
		t.Fatal(err)
	}
	return &types.AttributeValueMemberB{Value: data}
}

// restore fills tables with the rows of a file, as an import would.
func restore(t *testing.T, db *dynactortest.DB, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows map[string][]map[string]wireValue
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	client, _ := db.NewClient()
	// The tables alone: what they say of their format comes from the file.
	p := openOn(t, db, client, dynactor.Options{})
	if err := errors.Join(p.EnsureTables(t.Context()), p.State().EnsureTables(t.Context())); err != nil {
		t.Fatal(err)
	}
	for kind, table := range map[string]string{"events": db.EventsTable, "snapshots": db.SnapshotsTable, "state": db.StateTable} {
		for _, row := range rows[kind] {
			it := map[string]types.AttributeValue{}
			for name, v := range row {
				it[name] = v.attribute(t)
			}
			put(t, db, table, it)
		}
		delete(rows, kind)
	}
	if len(rows) > 0 {
		t.Fatalf("%s has rows of unknown tables: %v", file, rows)
	}
}

// Rows that any release has written stay readable for ever. A change that needs
// these rows changed is a new format.
func TestGolden_L05_Format1(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	restore(t, db, "testdata/format-1.json")
	now := time.UnixMilli(1_700_000_100_000)
	p := openOn(t, db, db.Client, dynactor.Options{SnapshotInterval: 2, Now: func() time.Time { return now }})
	ctx := t.Context()
	written := time.UnixMilli(1_700_000_000_123)

	var events []dynactor.Event
	for e, err := range p.Journal().Replay(ctx, "alice", 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	want := []dynactor.Event{
		{
			ID: "alice", Seq: 2, Type: "google.protobuf.Empty", Message: &emptypb.Empty{}, Time: written, Operation: "AAAAAAAAAAAAAAAAAAAAAg",
			Tags: []string{"blue", "red"}, Meta: map[string]string{"trace": "1", "empty": ""},
		},
		{ID: "alice", Seq: 3, Type: "google.protobuf.StringValue", Message: text("three"), Time: written, Operation: "AAAAAAAAAAAAAAAAAAAAAg"},
		{ID: "alice", Seq: 4, Type: "google.protobuf.StringValue", Message: text("4"), Time: written, Operation: "AAAAAAAAAAAAAAAAAAAAAw"},
	}
	if diff := cmp.Diff(want, events, protocmp.Transform()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	checkRecovery(t, p, "alice", "three and before", 3, 4, 4)
	session := p.GetState()
	if m, index, ok := session.GetSnapshot("bob"); !ok || index != 2 {
		t.Errorf("after a deletion of all: %v at %d, %t", m, index, ok)
	} else if r, is := m.(*dynactor.Reset); !is || r.Seq != 2 {
		t.Errorf("after a deletion of all: %v", m)
	}
	if _, found, err := p.Snapshots().Latest(ctx, "carol"); found || err != nil {
		t.Errorf("a snapshot that has expired: %t, %v", found, err)
	}
	for id, want := range map[string]dynactor.State{
		"alice": {Revision: 7, Type: "google.protobuf.StringValue", Message: text("state"), Time: written, Tags: []string{"blue", "red"}, Until: time.UnixMilli(1_700_000_200_000)},
		"bob":   {Revision: 3, Time: written}, // deleted
		"carol": {Revision: 1, Time: written, Until: time.UnixMilli(1_700_000_050_000)},
	} {
		got, err := p.State().Load(ctx, id)
		want.ID = id
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || err != nil {
			t.Errorf("state of %s: %v (-want +got):\n%s", id, err, diff)
		}
	}
	// And all of it can be gone on with.
	if head, err := p.Journal().Append(ctx, "alice", 4, text("five")); head != 5 || err != nil {
		t.Errorf("append: %d, %v", head, err)
	}
	if head, err := p.Journal().Append(ctx, "bob", 2, text("three")); head != 3 || err != nil {
		t.Errorf("append after a deletion of all: %d, %v", head, err)
	}
	for id, revision := range map[string]int64{"alice": 7, "bob": 3, "carol": 1} {
		if now, err := p.State().Save(ctx, id, revision, text("new")); now != revision+1 || err != nil {
			t.Errorf("save of %s: %d, %v", id, now, err)
		}
	}
}
