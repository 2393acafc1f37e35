package dynactor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// forward matches the queries that read events in ascending order.
func forward(r dynactortest.Request) bool {
	return r.Op == "Query" && r.Input()["ScanIndexForward"] != false
}

// isSeq is for HideItems: it hides the events with these numbers.
func isSeq(seqs ...string) func(map[string]any) bool {
	return func(item map[string]any) bool {
		n, _ := item["seq"].(map[string]any)
		s, _ := n["N"].(string)
		return slices.Contains(seqs, s)
	}
}

// editItems is for EditAnswer: it passes the list of items of an answer through edit.
func editItems(edit func(items []any) []any) func(string, []byte) []byte {
	return editAnswer(func(out map[string]any) {
		if list, ok := out["Items"].([]any); ok {
			out["Items"] = edit(list)
		}
	})
}

func editAnswer(edit func(out map[string]any)) func(string, []byte) []byte {
	return func(_ string, body []byte) []byte {
		var out map[string]any
		if json.Unmarshal(body, &out) != nil {
			return body
		}
		edit(out)
		body, _ = json.Marshal(out)
		return body
	}
}

// smallPages makes the pages of queries about "a" as small as this, as DynamoDB
// does with big items.
func smallPages(most int) dynactortest.Action {
	return dynactortest.EditAnswer(editAnswer(func(out map[string]any) {
		list, _ := out["Items"].([]any)
		if len(list) <= most {
			return
		}
		last, _ := list[most-1].(map[string]any)
		out["Items"], out["Count"], out["ScannedCount"] = list[:most], most, most
		out["LastEvaluatedKey"] = map[string]any{"pid": map[string]any{"S": "a"}, "seq": last["seq"]}
	}))
}

// outcome is how a replay went: what was delivered, and the error's kind.
type outcome struct {
	Events []string
	Err    error
	Index  int64
}

// watch replays to the end. It fails the test when an error is not the last thing, or comes with an event.
func watch(ctx context.Context, t *testing.T, j *dynactor.Journal, id string, from, to int64) (got outcome, err error) {
	t.Helper()
	for e, e2 := range j.Replay(ctx, id, from, to) {
		if err != nil {
			t.Errorf("after the error came %v, %v", e, e2)
		}
		if err = e2; err != nil {
			if e.Message != nil || e.Seq != 0 {
				t.Errorf("with the error came %v", e)
			}
			continue
		}
		got.Events = append(got.Events, strings.TrimSpace(textOf(e.Message)))
	}
	for _, kind := range []error{dynactor.ErrGap, dynactor.ErrConflict, dynactor.ErrDecode, context.Canceled} {
		if errors.Is(err, kind) {
			got.Err = kind
		}
	}
	if e, ok := errors.AsType[*dynactor.Error](err); ok {
		got.Index = e.Index
		if e.ID != id || e.Op != "replay" {
			t.Errorf("error does not tell where: %v", err)
		}
	}
	if err != nil && got.Err == nil {
		t.Errorf("unexpected: %v", err)
	}
	return got, err
}

// wants compares how a replay went, and looks for a text in the error's.
func (o outcome) wants(t *testing.T, err error, want outcome, says string) {
	t.Helper()
	same := cmp.Comparer(func(a, b error) bool { return a == b }) //nolint:errorlint // both are sentinels
	if diff := cmp.Diff(want, o, same); diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if err != nil && !strings.Contains(err.Error(), says) {
		t.Errorf("%q does not say %q", err, says)
	}
}

func TestReplay_Gaps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		remove   []int64
		mark     string
		from, to int64
		want     outcome
		says     string
	}{
		{"J-25 C12 in the middle", []int64{2}, "", 1, 0, outcome{texts(1, 1), dynactor.ErrGap, 1}, "expected number 2, found number 3"},
		{"J-25 in a window", []int64{2}, "", 1, 3, outcome{texts(1, 1), dynactor.ErrGap, 1}, "expected number 2, found number 3"},
		{"J-25 at the end of a window", []int64{3}, "", 1, 3, outcome{texts(1, 2), dynactor.ErrGap, 2}, "expected number 3, found number 4"},
		{"J-25 several", []int64{2, 3}, "", 1, 0, outcome{texts(1, 1), dynactor.ErrGap, 1}, "expected number 2, found number 4"},
		{"J-25 at the beginning", []int64{1}, "", 1, 0, outcome{nil, dynactor.ErrGap, 0}, "expected number 1, found number 2"},
		{"J-25 after the mark", []int64{1, 2, 3}, "2", 1, 0, outcome{nil, dynactor.ErrGap, 2}, "expected number 3, found number 4"},
		{"J-25 the first of an append of two", []int64{4}, "", 1, 0, outcome{texts(1, 3), dynactor.ErrGap, 3}, "expected number 4, found number 5"},
		{"J-25 the last of an append of two", []int64{5}, "", 1, 0, outcome{texts(1, 3), dynactor.ErrGap, 4}, "expected number 5, found nothing after it"},
		{"J-25 the last, beyond it asked for", []int64{5}, "", 1, math.MaxInt64, outcome{texts(1, 3), dynactor.ErrGap, 4}, "expected number 5, found nothing after it"},
		{"J-25 the last, exactly it asked for", []int64{5}, "", 1, 5, outcome{texts(1, 3), dynactor.ErrGap, 4}, "expected number 5, found nothing after it"},
		{"a hole before the window is not looked at", []int64{2}, "", 3, 0, outcome{Events: texts(3, 5)}, ""},
		{"a hole after the window is not looked at", []int64{3}, "", 1, 2, outcome{Events: texts(1, 2)}, ""},
		{"a hole below the mark is none", []int64{1, 2}, "3", 1, 0, outcome{Events: texts(4, 5)}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			five(t, p.Journal(), "a")
			remove(t, db, db.EventsTable, "a", tt.remove...)
			if tt.mark != "" {
				mark := keyOf("a", 0)
				mark["del"] = &types.AttributeValueMemberN{Value: tt.mark}
				put(t, db, db.EventsTable, mark)
			}
			got, err := watch(t.Context(), t, p.Journal(), "a", tt.from, tt.to)
			got.wants(t, err, tt.want, tt.says)
		})
	}
}

func TestReplay_Order(t *testing.T) {
	t.Parallel()
	seqOf := func(item any) string {
		it, _ := item.(map[string]any)
		for _, s := range []string{"1", "2", "3", "4", "5"} {
			if isSeq(s)(it) {
				return s
			}
		}
		return ""
	}
	swap := func(items []any) []any {
		for i := range items {
			if i > 0 && seqOf(items[i-1]) == "2" && seqOf(items[i]) == "3" {
				items[i-1], items[i] = items[i], items[i-1]
			}
		}
		return items
	}
	twice := func(items []any) []any {
		for i := range items {
			if seqOf(items[i]) == "2" {
				return slices.Insert(items, i, items[i])
			}
		}
		return items
	}
	older := func(items []any) []any {
		for i := range items {
			if seqOf(items[i]) == "3" {
				return slices.Insert(items, i+1, items[0])
			}
		}
		return items
	}
	for _, tt := range []struct {
		name  string
		edit  func([]any) []any
		times int
		want  outcome
		says  string
	}{
		{"C12 reordered", swap, 0, outcome{texts(1, 1), dynactor.ErrGap, 1}, "expected number 2, found number 3"},
		{"C12 reordered in one answer only", swap, 1, outcome{Events: texts(1, 5)}, ""},
		{"C12 doubled", twice, 0, outcome{texts(1, 2), dynactor.ErrGap, 1}, "number 2 came after 2"},
		{"C12 an older one again", older, 0, outcome{texts(1, 3), dynactor.ErrGap, 2}, "number 1 came after 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			five(t, p.Journal(), "a")
			db.Faults.Add(dynactortest.Rule{Match: forward, Times: tt.times, Do: dynactortest.EditAnswer(editItems(tt.edit))})
			got, err := watch(t.Context(), t, p.Journal(), "a", 1, 0)
			got.wants(t, err, tt.want, tt.says)
		})
	}
}

// A reader may see half of a transaction for a while: what is hidden here is of one
// append of 3 to 6.
func TestReplay_OfHalfSeenAppends(t *testing.T) {
	t.Parallel()
	hiding := func(t *testing.T, times int, seqs ...string) (*dynactor.Provider, *dynactortest.DB, dynactortest.Rule) {
		t.Helper()
		p, db := open(t, dynactor.Options{})
		if _, err := p.Journal().Append(t.Context(), "a", 0, numbered(1, 2)...); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Journal().Append(t.Context(), "a", 2, numbered(3, 6)...); err != nil {
			t.Fatal(err)
		}
		return p, db, dynactortest.Rule{Op: "Query", Times: times, Do: dynactortest.HideItems(isSeq(seqs...))}
	}
	for _, seqs := range [][]string{{"3"}, {"4"}, {"6"}, {"3", "4"}, {"5", "6"}, {"3", "5"}} {
		for _, times := range []int{1, 3} {
			t.Run(fmt.Sprintf("%v hidden %d times", seqs, times), func(t *testing.T) {
				t.Parallel()
				p, db, hide := hiding(t, times, seqs...)
				for _, to := range []int64{0, 6, math.MaxInt64} {
					db.Faults.Clear()
					db.Faults.Add(hide)
					checkReplay(t, p.Journal(), "a", 1, to, 1, 6)
				}
				for _, interval := range []int{0, 2, 100} {
					db.Faults.Clear()
					s := openOn(t, db, db.Client, dynactor.Options{SnapshotInterval: interval}).GetState()
					db.Faults.Add(hide)
					_, _, got := recovered(s, "a")
					if diff := cmp.Diff(texts(1, 6), got); diff != "" {
						t.Errorf("recovery with interval %d (-want +got):\n%s", interval, diff)
					}
					s.PersistEvent("a", 6, text("7"))
					remove(t, db, db.EventsTable, "a", 7)
				}
			})
		}
		if len(seqs) > 1 {
			continue
		}
		t.Run(fmt.Sprintf("%v hidden for ever", seqs), func(t *testing.T) {
			t.Parallel()
			p, db, hide := hiding(t, 0, seqs...)
			db.Faults.Add(hide)
			got, err := watch(t.Context(), t, p.Journal(), "a", 1, 6)
			got.Index = 0
			got.wants(t, err, outcome{Events: texts(1, 2), Err: dynactor.ErrGap}, "expected number "+seqs[0])
			var events []string
			panicked := caught(func() { p.GetState().GetEvents("a", 0, 0, func(e any) { events = append(events, textOf(e)) }) })
			if diff := cmp.Diff(texts(1, 2), events); diff != "" || !errors.Is(panicked, dynactor.ErrGap) {
				t.Errorf("recovery: %v (-want +got):\n%s", panicked, diff)
			}
		})
	}
}

// Deletions come in between the reads of a replay, which are pages of 10 here.
func TestReplay_WhileEventsAreDeleted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		deleteTo int64
		sweep    bool
		from     int64
		pages    int // read before the deletion comes in
		want     outcome
	}{
		{"before the first page", 3, false, 1, 0, outcome{Events: texts(1, 40), Err: dynactor.ErrConflict}},
		{"before the first page, and swept", 3, true, 1, 0, outcome{Events: texts(4, 40)}},
		{"before the first page, all", 40, false, 1, 0, outcome{Events: texts(1, 40), Err: dynactor.ErrConflict}},
		{"before the first page, all, and swept", 40, true, 1, 0, outcome{}},
		{"before the first page, below the window", 3, true, 4, 0, outcome{Events: texts(4, 40)}},
		{"after the first page", 3, false, 1, 1, outcome{Events: texts(1, 40), Err: dynactor.ErrConflict}},
		{"after the first page, and swept", 30, true, 1, 1, outcome{Events: texts(1, 10), Err: dynactor.ErrConflict}},
		{"after the first page, all, and swept", 40, true, 1, 1, outcome{Events: texts(1, 10), Err: dynactor.ErrConflict}},
		{"after the first page, below the window", 3, true, 4, 1, outcome{Events: texts(4, 40)}},
		{"after the first page, up to the window", 4, true, 4, 1, outcome{Events: texts(4, 40), Err: dynactor.ErrConflict}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			fillSized(t, p.Journal(), "a", 40, 1, 5)
			var late clock
			late.Advance(2 * dynactor.DefaultDeleteDelay)
			client, _ := db.NewClient()
			other := openOn(t, db, client, dynactor.Options{Now: late.Now})
			reached, release := make(chan struct{}, 100), make(chan struct{})
			if tt.pages > 0 {
				db.Faults.Add(dynactortest.Rule{Match: forward, Times: tt.pages, Do: smallPages(10)})
			}
			db.Faults.Add(dynactortest.Rule{Match: forward, Do: dynactortest.Sequence(dynactortest.Hold(reached, release), smallPages(10))})
			go func() {
				<-reached
				defer close(release)
				if err := other.Journal().DeleteTo(t.Context(), "a", tt.deleteTo); err != nil {
					t.Error(err)
				}
				if tt.sweep {
					if n, err := other.Journal().Sweep(t.Context(), "a"); err != nil || int64(n) != tt.deleteTo-1 {
						t.Errorf("swept %d, %v", n, err)
					}
				}
			}()
			got, err := watch(t.Context(), t, p.Journal(), "a", tt.from, 0)
			got.Index = 0
			got.wants(t, err, tt.want, "")
		})
	}
}
