package dynactor_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
)

func TestBadInput_Indexes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		index     int
		recovered bool
	}{
		"behind":                {1, true},
		"ahead":                 {4, true},
		"negative":              {-1, true},
		"behind, not recovered": {0, false},
		"ahead, not recovered":  {4, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			ready(t, p, db)
			fill(t, p.Journal(), "a", 3)
			s := p.GetState()
			if tc.recovered {
				recovered(s, "a")
			}
			db.Faults.Reset()
			for range 2 { // and the session stays refused
				err := caught(func() { s.PersistEvent("a", tc.index, text("x")) })
				if !errors.Is(err, dynactor.ErrConflict) || err.ID != "a" || err.Index != int64(max(tc.index, -1)) {
					t.Errorf("got %v, want ErrConflict at index %d", err, tc.index)
				}
			}
			if err := caught(func() { s.PersistEvent("a", 3, text("x")) }); !errors.Is(err, dynactor.ErrConflict) {
				t.Errorf("the next index after a failure: got %v, want the same failure", err)
			}
			if n := db.Faults.Count("PutItem"); n != 0 {
				t.Errorf("%d events were written", n)
			}
			recovered(s, "a")
			s.PersistEvent("a", 3, text("4"))
			if got, err := replayed(t.Context(), p.Journal(), "a", 1, 0); err != nil || !slices.Equal(got, texts(1, 4)) {
				t.Errorf("stored %q, %v", got, err)
			}
		})
	}

	t.Run("of a replay and a snapshot", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		s := p.GetState()
		_, err := replayed(t.Context(), p.Journal(), "a", -1, 0)
		_, until := replayed(t.Context(), p.Journal(), "a", 1, -1)
		for what, err := range map[string]error{
			"replay from": err, "replay to": until,
			"events from": caught(func() { s.GetEvents("a", -1, 0, func(any) {}) }),
			"events to":   caught(func() { s.GetEvents("a", 0, -1, func(any) {}) }),
			"snapshot at": p.Snapshots().Save(t.Context(), "a", 0, text("x")),
		} {
			if !errors.Is(err, dynactor.ErrInvalid) {
				t.Errorf("%s: got %v, want ErrInvalid", what, err)
			}
		}
		if n := db.Faults.Count(""); n != 0 {
			t.Errorf("%d requests, want none", n)
		}
	})
}

// What an actor must not do while its history is on its way to it.
func TestBadInput_WhileReplaying(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{})
	ready(t, p, db)
	fill(t, p.Journal(), "a", 3)
	s := p.GetState()
	var during []error
	s.GetEvents("a", 0, 0, func(any) {
		s.PersistSnapshot("a", 1, text("x")) // logged
		during = append(during,
			caught(func() { s.PersistEvent("a", 3, text("x")) }),
			caught(func() { s.DeleteEvents("a", 1) }),
			caught(func() { s.DeleteSnapshots("a", 1) }))
	})
	for i, err := range during {
		if !errors.Is(err, dynactor.ErrRecovering) {
			t.Errorf("call %d: got %v, want ErrRecovering", i, err)
		}
	}
	if len(during) != 9 {
		t.Errorf("%d calls, want 3 for each of 3 events", len(during))
	}
	if seqs, err := p.Snapshots().List(t.Context(), "a"); len(seqs) != 0 || err != nil {
		t.Errorf("snapshots %v, %v", seqs, err)
	}
	s.PersistEvent("a", 3, text("4")) // and then it may
	if n := maps.Clone(counts(db.Faults))["PutItem"]; n != 1 {
		t.Errorf("%d events were written, want the last", n)
	}
}

// eventItem is an event as it is stored.
func eventItem(id, seq string) map[string]types.AttributeValue {
	data, _ := proto.Marshal(text(seq))
	return map[string]types.AttributeValue{
		"pid": &types.AttributeValueMemberS{Value: id}, "seq": &types.AttributeValueMemberN{Value: seq},
		"type": &types.AttributeValueMemberS{Value: "google.protobuf.StringValue"}, "data": &types.AttributeValueMemberB{Value: data},
		"ts": &types.AttributeValueMemberN{Value: "1700000000000"}, "op": &types.AttributeValueMemberS{Value: "0123456789012345678901"},
	}
}
