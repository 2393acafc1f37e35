package dynactor_test

import (
	"errors"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// An answer without a body is none: the SDK takes it for a success without items.
func TestEmptyAnswers(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{WriteTimeout: 400 * time.Millisecond, ReadTimeout: 400 * time.Millisecond})
	ready(t, p, db)
	fill(t, p.Journal(), "a", 2)
	empty := dynactortest.EditAnswer(func(string, []byte) []byte { return nil })
	db.Faults.Add(dynactortest.Rule{Op: "PutItem", Do: empty})
	if _, err := p.Journal().Append(t.Context(), "a", 2, text("3")); err == nil {
		// The first attempt was carried out, so the second finds it: that is a success.
		if got, err := replayed(t.Context(), p.Journal(), "a", 0, 0); err != nil || len(got) != 3 {
			t.Errorf("told that it is stored, but the stream is %v, %v", got, err)
		}
	} else if !errors.Is(err, dynactor.ErrOutcomeUnknown) {
		t.Errorf("append: %v", err)
	}
	db.Faults.Clear()
	db.Faults.Add(dynactortest.Rule{Op: "Query", Do: empty})
	if got, err := replayed(t.Context(), p.Journal(), "a", 0, 0); err == nil {
		t.Errorf("a replay without answers yields %v and no error", got)
	}
}

// A snapshot that stands in for deleted events stays, whatever SnapshotTTL says.
func TestSnapshotTTL_OverADeletedHistory(t *testing.T) {
	t.Parallel()
	var now clock
	p, db := open(t, dynactor.Options{Now: now.Now})
	fill(t, p.Journal(), "a", 5)
	if err := p.Snapshots().Save(t.Context(), "a", 5, text("s-5")); err != nil {
		t.Fatal(err)
	}
	if err := p.Journal().DeleteTo(t.Context(), "a", 5); err != nil {
		t.Fatal(err)
	}
	q := openOn(t, db, db.Client, dynactor.Options{Now: now.Now, SnapshotInterval: 1, KeepSnapshots: 1, SnapshotTTL: time.Hour})
	s := q.GetState()
	recovered(s, "a")
	s.PersistEvent("a", 5, text("6"))
	s.PersistSnapshot("a", 6, text("s-6"))
	now.Advance(2 * time.Hour)
	snapshot, index, events := recovered(q.GetState(), "a")
	if snapshot != "s-6" || index != 6 || events != nil {
		t.Errorf("recovered %q at %d and %v", snapshot, index, events)
	}

	// The other way round: a snapshot that will expire allows no deletion.
	fill(t, p.Journal(), "b", 5)
	if err := q.Snapshots().Save(t.Context(), "b", 5, text("s-5")); err != nil {
		t.Fatal(err)
	}
	r := p.GetState()
	recovered(r, "b")
	if err := caught(func() { r.DeleteEvents("b", 4) }); !errors.Is(err, dynactor.ErrNoSnapshot) {
		t.Errorf("deletion under an expiring snapshot: %v", err)
	}
}

// The largest index is not the smallest.
func TestDeletion_OfEverything(t *testing.T) {
	t.Parallel()
	p, _ := open(t, dynactor.Options{})
	fill(t, p.Journal(), "a", 3)
	for _, seq := range []int64{1, 2} {
		if err := p.Snapshots().Save(t.Context(), "a", seq, text("s")); err != nil {
			t.Fatal(err)
		}
	}
	s := p.GetState()
	if err := caught(func() { s.DeleteEvents("a", math.MaxInt) }); !errors.Is(err, dynactor.ErrNoSnapshot) {
		t.Errorf("events: %v", err)
	}
	s.DeleteSnapshots("a", math.MaxInt)
	checkSnapshots(t, p.Snapshots(), "a")
}

// A damaged last number is an error, not a search without end.
func TestDamagedLast(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{})
	fill(t, p.Journal(), "a", 3)
	if _, err := db.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &db.EventsTable,
		Key: map[string]types.AttributeValue{
			"pid": &types.AttributeValueMemberS{Value: "a"}, "seq": &types.AttributeValueMemberN{Value: "2"},
		},
		UpdateExpression:          new("SET #l = :l"),
		ExpressionAttributeNames:  map[string]string{"#l": "last"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":l": &types.AttributeValueMemberN{Value: "9000000000000000000"}},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := replayed(t.Context(), p.Journal(), "a", 0, 0); !errors.Is(err, dynactor.ErrDecode) {
		t.Errorf("replay: %v", err)
	}
}

// A write that comes before the replay it was found for makes it look again.
func TestSession_WritesBetweenLookAndReplay(t *testing.T) {
	t.Parallel()
	p, _ := open(t, dynactor.Options{})
	s := p.GetState()
	s.Restart()
	s.GetSnapshot("a")
	s.PersistEvent("a", 0, text("1"))
	var got []string
	s.GetEvents("a", 0, 0, func(e any) { got = append(got, textOf(e)) })
	if len(got) != 1 {
		t.Errorf("delivered %v", got)
	}
	s.PersistEvent("a", 1, text("2"))
}

// panicky is a transport that panics once in a while.
type panicky struct {
	base http.RoundTripper
	left int
}

func (p *panicky) RoundTrip(req *http.Request) (*http.Response, error) {
	if p.left > 0 {
		p.left--
		panic("a transport of the user's")
	}
	return p.base.RoundTrip(req)
}

// A panic below the SDK gives its place back.
func TestLimits_SurvivePanics(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	transport := &panicky{base: db.Faults}
	client, _ := db.NewClient(func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: transport} })
	p := openOn(t, db, client, dynactor.Options{MaxConcurrentReads: 1, ReadTimeout: 2 * time.Second})
	ready(t, p, db)
	transport.left = 1
	func() {
		defer func() { _ = recover() }()
		_, _, _ = p.Snapshots().Latest(t.Context(), "a")
	}()
	if _, _, err := p.Snapshots().Latest(t.Context(), "a"); err != nil {
		t.Errorf("after the panic: %v", err)
	}
}
