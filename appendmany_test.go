package dynactor_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// Nothing of an append is stored when one of its slots is taken.
func TestAppendAllOrNothing(t *testing.T) {
	t.Parallel()
	for slot, name := range map[int64]string{3: "first", 4: "second", 5: "last"} {
		t.Run("J-27 J-31 A03 "+name+" slot is taken", func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			fill(t, p.Journal(), "a", 2)
			db.Faults.Reset()
			db.Faults.Add(before("TransactWriteItems", func() { put(t, db, db.EventsTable, eventOf(t, "a", slot, text("other"))) }))

			_, err := p.Journal().Append(t.Context(), "a", 2, numbered(3, 5)...)

			var e *dynactor.Error
			if verdict(err) != "conflict" || !errors.As(err, &e) || e.ID != "a" || e.Index != 2 {
				t.Errorf("told %v, want a conflict of \"a\" at index 2", err)
			}
			if n := attempts(db, "TransactWriteItems"); n != 1 {
				t.Errorf("%d attempts, want 1: a taken slot stays taken", n)
			}
			if diff := cmp.Diff([]string{"1", "2", "other"}, tableTexts(t, db, "a")); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("J-30 a failure of the store is the failure of the whole append", func(t *testing.T) {
		t.Parallel()
		for _, s := range shapes {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				p, db := fixture(t)
				db.Faults.Add(dynactortest.Rule{Op: s.op, Do: dynactortest.Answer(400, "AccessDeniedException", "by a test")})
				head, err := p.Journal().Append(t.Context(), "a", 5, numbered(6, 5+s.events)...)
				if head != 5 || verdict(err) != "failure" {
					t.Errorf("told head %d, %v", head, err)
				}
				if diff := cmp.Diff(texts(1, 5), content(t, db, "a")); diff != "" {
					t.Errorf("stream (-want +got):\n%s", diff)
				}
			})
		}
	})
}

// J-41: the reasons of a cancelled transaction are read item by item.
func TestAppendCancellationReasons(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reasons  []string
		verdict  string
		attempts int
	}{
		{[]string{"None", "TransactionConflict", "None"}, "success", 2},
		{[]string{"ThrottlingError", "None", "None"}, "success", 2},
		{[]string{"None", "None", "ProvisionedThroughputExceeded"}, "success", 2},
		{[]string{"TransactionConflict", "ThrottlingError", "TransactionConflict"}, "success", 2},
		{[]string{"None", "None", "ConditionalCheckFailed"}, "conflict", 1},
		{[]string{"TransactionConflict", "ConditionalCheckFailed", "None"}, "conflict", 1},
		{[]string{"ValidationError", "None", "None"}, "failure", 1},
		{[]string{"ValidationError", "TransactionConflict", "None"}, "failure", 1},
		{[]string{"ItemCollectionSizeLimitExceeded", "None", "None"}, "failure", 1},
		{[]string{"None", "None", "None"}, "failure", 1},
		{nil, "failure", 1},
	} {
		t.Run("J-41 "+strings.Join(tt.reasons, " "), func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			ready(t, p, db)
			db.Faults.Add(dynactortest.Rule{Op: "TransactWriteItems", Times: 1, Do: dynactortest.CancelTransaction(tt.reasons...)})

			_, err := p.Journal().Append(t.Context(), "a", 0, numbered(1, 3)...)

			if got := verdict(err); got != tt.verdict {
				t.Errorf("told %s, want %s: %v", got, tt.verdict, err)
			}
			if n := attempts(db, "TransactWriteItems"); n != tt.attempts {
				t.Errorf("%d attempts, want %d", n, tt.attempts)
			}
			if err != nil && !errors.As(err, new(*types.TransactionCanceledException)) {
				t.Errorf("the SDK's error is not in the chain: %v", err)
			}
		})
	}
}

// tableTexts are the texts of the events that are stored, deleted or not.
func tableTexts(t *testing.T, db *dynactortest.DB, id string) []string {
	t.Helper()
	var list []string
	for _, it := range items(t, db, db.EventsTable, id) {
		data, ok := it["data"].(*types.AttributeValueMemberB)
		if !ok {
			continue // the mark
		}
		var m wrapperspb.StringValue
		if err := proto.Unmarshal(data.Value, &m); err != nil {
			t.Fatal(err)
		}
		list = append(list, m.GetValue())
	}
	return list
}
