package dynactor_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// The last answer of a save says nothing about the attempts before it. Each case is
// a save and a deletion over revision 1, and a save with a write of one's own.
func TestState_Outcome(t *testing.T) {
	t.Parallel()
	answer := func(status int, code string) dynactortest.Action {
		return dynactortest.Answer(status, code, "by a test")
	}
	internal, lost := answer(500, "InternalServerError"), dynactortest.DropAnswer()
	for _, tt := range []struct {
		name    string
		do      []dynactortest.Action // with the attempts in their order; the last one stays
		once    bool                  // it does not stay
		between int64                 // other writers bring the row to this revision after the first attempt
		verdict error                 // nil: success
		stored  bool
		current int64 // that a conflict tells
	}{
		{name: "no trouble", stored: true},
		{name: "D-19 the answer is lost", do: []dynactortest.Action{lost}, once: true, stored: true},
		{name: "500 after it", do: []dynactortest.Action{dynactortest.FailAfter(500)}, once: true, stored: true},
		{name: "the answer is cut", do: []dynactortest.Action{dynactortest.CutBody(1)}, once: true, stored: true},
		{name: "500 before it", do: []dynactortest.Action{internal}, once: true, stored: true},
		{name: "throttled, then free", do: []dynactortest.Action{dynactortest.Throttle()}, once: true, stored: true},
		{name: "K05 every answer is lost", do: []dynactortest.Action{lost}, verdict: dynactor.ErrOutcomeUnknown, stored: true},
		{name: "500 each time", do: []dynactortest.Action{internal}, verdict: dynactor.ErrOutcomeUnknown},
		{name: "lost, then throttled", do: []dynactortest.Action{lost, dynactortest.Throttle()}, verdict: dynactor.ErrOutcomeUnknown, stored: true},
		{name: "lost, then denied", do: []dynactortest.Action{lost, denied}, verdict: dynactor.ErrOutcomeUnknown, stored: true},
		{name: "throttled", do: []dynactortest.Action{dynactortest.Throttle()}, verdict: dynactor.ErrThrottled},
		{name: "denied", do: []dynactortest.Action{denied}, verdict: errNotOurs},
		{name: "refused connections", do: []dynactortest.Action{dynactortest.Refuse()}, verdict: errNotOurs},
		{name: "another writer is first", between: 2, verdict: dynactor.ErrConflict, current: 2},
		{name: "other writers are first", between: 4, verdict: dynactor.ErrConflict, current: 4},
		{name: "throttled, and other writers are first", do: []dynactortest.Action{dynactortest.Throttle()}, once: true, between: 4, verdict: dynactor.ErrConflict, current: 4},
		{name: "not carried out and unanswered, and another writer follows", do: []dynactortest.Action{internal}, once: true, between: 2, verdict: dynactor.ErrConflict, current: 2},
		{name: "not carried out and unanswered, and others follow", do: []dynactortest.Action{internal}, once: true, between: 3, verdict: dynactor.ErrOutcomeUnknown},
		{name: "carried out and unanswered, and others follow", do: []dynactortest.Action{lost}, once: true, between: 4, verdict: dynactor.ErrOutcomeUnknown, stored: true},
	} {
		for _, strip := range []bool{false, true} {
			for _, op := range []string{"save", "deletion", "transaction"} {
				name := tt.name + ", " + op
				if strip {
					name += ", the server leaves the old item out"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					db := dynactortest.New(t)
					p := openOn(t, db, impatient{db.Client}, dynactor.Options{})
					s := p.State()
					ready(t, p, db)
					saved(t, s, "a", 0, "old")
					quiet, _ := db.NewClient()
					rival := openOn(t, db, quiet, dynactor.Options{}).State()
					operation := "PutItem"
					if op == "transaction" {
						operation = "TransactWriteItems"
					}
					overtake := func(dynactortest.Request) bool {
						st, err := rival.Load(context.WithoutCancel(t.Context()), "a")
						for rev := st.Revision; err == nil && rev < tt.between; rev++ {
							_, err = rival.Save(context.WithoutCancel(t.Context()), "a", rev, text("theirs"))
						}
						if err != nil {
							t.Error(err)
						}
						return false
					}
					for i, do := range tt.do {
						rule := dynactortest.Rule{Op: operation, Times: 1, Do: do}
						if i == len(tt.do)-1 && !tt.once {
							rule.Times = 0
						}
						db.Faults.Add(rule)
					}
					if tt.between > 0 { // asked when no rule above acts any more
						db.Faults.Add(dynactortest.Rule{Op: operation, Match: overtake})
					}
					if strip {
						db.Faults.Add(dynactortest.Rule{Op: operation, Do: dynactortest.StripOldItem()})
					}
					var rev int64
					var err error
					switch op {
					case "save":
						rev, err = s.Save(t.Context(), "a", 1, text("ours"))
					case "deletion":
						rev, err = s.Delete(t.Context(), "a", 1)
					default:
						rev, err = s.SaveWith(t.Context(), "a", 1, dynactor.State{Message: text("ours")}, ownPut(db.SnapshotsTable, "mine", ""))
					}
					db.Faults.Clear()
					want := tt.verdict
					if op == "transaction" && tt.stored && tt.between > 0 && err == nil {
						want = nil // a server that knows the token says what became of it
					}
					checkVerdict(t, err, want)
					if tt.current > 0 {
						checkStale(t, err, 1, tt.current)
					}
					value := map[string]string{"deletion": "", "save": "ours", "transaction": "ours"}[op]
					switch {
					case tt.between > 0:
						checkState(t, s, "a", "theirs", tt.between)
					case tt.stored:
						checkState(t, s, "a", value, 2)
					default:
						checkState(t, s, "a", "old", 1)
					}
					if err == nil && rev != 2 {
						t.Errorf("revision %d", rev)
					}
					// K05: whatever happened, a load and a save go on.
					st, err := s.Load(t.Context(), "a")
					if err != nil {
						t.Fatal(err)
					}
					saved(t, s, "a", st.Revision, "more")
				})
			}
		}
	}
}

// errNotOurs stands for an error that matches none of the verdicts.
var errNotOurs = errors.New("any other error")

func checkVerdict(t *testing.T, err, want error) {
	t.Helper()
	verdicts := []error{dynactor.ErrConflict, dynactor.ErrOutcomeUnknown}
	if want == nil || err == nil {
		if (want == nil) != (err == nil) {
			t.Errorf("got %v, want %v", err, want)
		}
		return
	}
	e := asError(t, err)
	if want != errNotOurs && !errors.Is(e, want) { //nolint:errorlint // it is never wrapped
		t.Errorf("got %v, want %v", err, want)
	}
	for _, other := range verdicts {
		if other != want && errors.Is(e, other) { //nolint:errorlint // it is never wrapped
			t.Errorf("got %v, which also matches %v", err, other)
		}
	}
}

// Writes of one's own in the same transaction.
func TestState_SaveWith(t *testing.T) {
	t.Parallel()

	const absent = "attribute_not_exists(pid)"
	there := func(t *testing.T, db *dynactortest.DB, id string) bool {
		t.Helper()
		out, err := db.Client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &db.SnapshotsTable, ConsistentRead: aws.Bool(true), Key: map[string]types.AttributeValue{
			"pid": &types.AttributeValueMemberS{Value: id}, "seq": &types.AttributeValueMemberN{Value: "1"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return out.Item != nil
	}

	t.Run("K04 all is stored, or nothing", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		s := p.State()
		five := func() (list []types.TransactWriteItem) {
			for i := range 4 {
				list = append(list, ownPut(db.SnapshotsTable, strconv.Itoa(i), absent))
			}
			return list
		}
		_, err := s.SaveWith(t.Context(), "a", 7, dynactor.State{Message: text("x")}, five()...)
		checkStale(t, err, 7, 0)
		for i := range 4 {
			if there(t, db, strconv.Itoa(i)) {
				t.Errorf("write %d is stored", i)
			}
		}
		if rev, err := s.SaveWith(t.Context(), "a", 0, dynactor.State{Message: text("x")}, five()...); rev != 1 || err != nil {
			t.Errorf("%d, %v", rev, err)
		}
		for i := range 4 {
			if !there(t, db, strconv.Itoa(i)) {
				t.Errorf("write %d is not stored", i)
			}
		}
		checkState(t, s, "a", "x", 1)
	})
	t.Run("one's own failed condition is no conflict, and tells its position", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		s := p.State()
		x := dynactor.State{Message: text("x")}
		if _, err := s.SaveWith(t.Context(), "a", 0, x, ownPut(db.SnapshotsTable, "taken", absent)); err != nil {
			t.Fatal(err)
		}
		for position := range 3 {
			extra := []types.TransactWriteItem{
				ownPut(db.SnapshotsTable, "free 1", absent), ownPut(db.SnapshotsTable, "free 2", absent), ownPut(db.SnapshotsTable, "free 3", absent),
			}
			extra[position] = ownPut(db.SnapshotsTable, "taken", absent)
			_, err := s.SaveWith(t.Context(), "a", 1, x, extra...)
			e, ok := errors.AsType[*dynactor.ExtraError](err)
			if !ok || e.Position != position || errors.Is(err, dynactor.ErrConflict) || errors.Is(err, dynactor.ErrOutcomeUnknown) {
				t.Errorf("position %d: got %v", position, err)
			}
			if !strings.Contains(err.Error(), "condition of write "+strconv.Itoa(position)) {
				t.Error(err)
			}
			var canceled *types.TransactionCanceledException
			if !errors.As(err, &canceled) {
				t.Errorf("the cause is lost: %v", err)
			}
		}
		checkState(t, s, "a", "x", 1)
	})
	t.Run("with an unanswered attempt before it is unknown", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		s := p.State()
		x := dynactor.State{Message: text("x")}
		if _, err := s.SaveWith(t.Context(), "a", 0, x, ownPut(db.SnapshotsTable, "taken", absent)); err != nil {
			t.Fatal(err)
		}
		db.Faults.Add(dynactortest.Rule{Op: "TransactWriteItems", Times: 1, Do: dynactortest.Answer(500, "InternalServerError", "no")})
		_, err := s.SaveWith(t.Context(), "a", 1, x, ownPut(db.SnapshotsTable, "taken", absent))
		if !errors.Is(err, dynactor.ErrOutcomeUnknown) || !errors.As(err, new(*dynactor.ExtraError)) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("sizes and numbers at the limits", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		s := p.State()
		var most []types.TransactWriteItem
		for i := range 99 {
			most = append(most, ownPut(db.SnapshotsTable, strconv.Itoa(i), ""))
		}
		if _, err := s.SaveWith(t.Context(), "a", 0, dynactor.State{Message: text("x")}, most...); err != nil {
			t.Error(err)
		}
		db.Faults.Reset()
		big := func(n int) types.TransactWriteItem {
			w := ownPut(db.SnapshotsTable, "big", "")
			w.Put.Item["data"] = &types.AttributeValueMemberB{Value: make([]byte, n)}
			return w
		}
		var heavy []types.TransactWriteItem
		for range 11 {
			heavy = append(heavy, big(390<<10))
		}
		for name, extra := range map[string][]types.TransactWriteItem{
			"too many": append(most, most[0]), "one too large": {big(400 << 10)}, "all together": heavy,
		} {
			_, err := s.SaveWith(t.Context(), "a", 1, dynactor.State{Message: text("y")}, extra...)
			if !errors.Is(err, dynactor.ErrTooLarge) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if n := db.Faults.Count(""); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

// No attempt is sent when half of StateRetention has passed since the call began.
func TestState_LateAttempts(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"too late": 31 * time.Minute, "a clock that was set back": -16 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &clock{}
			// The time limit of the write must not be what stops it.
			p, db := open(t, dynactor.Options{StateRetention: time.Hour, WriteTimeout: 7 * time.Minute, Now: c.Now})
			s := p.State()
			saved(t, s, "a", 0, "x")
			db.Faults.Reset()
			db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Match: func(dynactortest.Request) bool {
				c.Advance(ahead)
				return true
			}, Do: dynactortest.Answer(500, "InternalServerError", "no")})
			_, err := s.Save(t.Context(), "a", 1, text("y"))
			checkVerdict(t, err, dynactor.ErrOutcomeUnknown)
			if n := db.Faults.Count("PutItem"); n != 1 {
				t.Errorf("%d attempts", n)
			}
			checkState(t, s, "a", "x", 1)
		})
	}
}
