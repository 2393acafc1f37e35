package dynactor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// readAhead is how many ranges a replay reads at once, the one that is being
// delivered included; each holds at most two pages.
const readAhead = 4

func TestReplay_Pages(t *testing.T) {
	t.Parallel()
	t.Run("J-15 C05 pages of 1 MB", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{ReadTimeout: time.Minute, WriteTimeout: time.Minute})
		fillSized(t, p.Journal(), "a", 31, 100_000, 4)
		db.Faults.Reset()
		checkReplay(t, p.Journal(), "a", 1, 0, 1, 31)
		if n := db.Faults.Count("Query"); n < 4 { // one of them is for the head
			t.Errorf("%d queries are no pages", n)
		}
	})
	for _, tt := range []struct {
		name  string
		rules []dynactortest.Rule
	}{
		{"J-15 small pages", []dynactortest.Rule{{Match: forward, Do: smallPages(7)}}},
		{"J-15 pages of one event", []dynactortest.Rule{{Match: forward, Do: smallPages(1)}}},
		{"J-15 pages that get smaller", []dynactortest.Rule{{Match: forward, Times: 1, Do: smallPages(20)}, {Match: forward, Do: smallPages(3)}}},
		{"J-15 pages that get larger", []dynactortest.Rule{{Match: forward, Times: 1, Do: smallPages(3)}, {Match: forward, Do: smallPages(20)}}},
		{"C07 empty pages first", []dynactortest.Rule{{Op: "Query", Times: 3, Do: dynactortest.EmptyPage()}}},
		{"C07 empty pages between", []dynactortest.Rule{
			{Match: forward, Times: 1, Do: smallPages(10)}, {Op: "Query", Times: 6, Do: dynactortest.EmptyPage()}, {Match: forward, Do: smallPages(10)},
		}},
		{"C08 an empty key is the end", []dynactortest.Rule{{Op: "Query", Do: dynactortest.EditAnswer(editAnswer(func(out map[string]any) {
			if out["LastEvaluatedKey"] == nil {
				out["LastEvaluatedKey"] = map[string]any{}
			}
		}))}}},
		{"C08 a full page is not the end", []dynactortest.Rule{{Match: forward, Times: 1, Do: smallPages(10)}, {Match: forward, Do: fullPages(10)}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			fillSized(t, p.Journal(), "a", 40, 1, 4)
			db.Faults.Reset()
			for _, rule := range tt.rules {
				db.Faults.Add(rule)
			}
			checkReplay(t, p.Journal(), "a", 1, 0, 1, 40)
			if n := db.Faults.Count("GetItem"); n != 2 { // the mark, before and after
				t.Errorf("the mark was read %d times: holes were seen where there are none", n)
			}
			for _, to := range []int64{6, 7, 8, 20, 21, 41} { // J-16
				checkReplay(t, p.Journal(), "a", 1, to, 1, int(min(to, 40)))
			}
			checkReplay(t, p.Journal(), "a", 5, 33, 5, 33)
			checkReplay(t, p.Journal(), "b", 1, 0, 1, 0)
			if _, _, got := recovered(p.GetState(), "b"); got != nil {
				t.Errorf("an empty stream holds %v", got)
			}
			for _, r := range db.Faults.Requests() {
				if r.Op != "Query" && r.Op != "GetItem" || r.Status != 200 || rangeTurnedRound(r) {
					t.Errorf("C09: %s %s", r, r.Body)
				}
			}
		})
	}
}

// fullPages is smallPages for servers that do not look whether anything follows
// a page that is just full.
func fullPages(most int) dynactortest.Action {
	return dynactortest.Sequence(dynactortest.EditAnswer(editAnswer(func(out map[string]any) {
		list, _ := out["Items"].([]any)
		if len(list) == most && out["LastEvaluatedKey"] == nil {
			last, _ := list[most-1].(map[string]any)
			out["LastEvaluatedKey"] = map[string]any{"pid": map[string]any{"S": "a"}, "seq": last["seq"]}
		}
	})), smallPages(most))
}

// rangeTurnedRound tells whether a query asks for a range that ends before it
// begins, which DynamoDB refuses.
func rangeTurnedRound(r dynactortest.Request) bool {
	text, _ := r.Input()["KeyConditionExpression"].(string)
	return strings.Contains(text, "BETWEEN") && bound(r, ":lo") > bound(r, ":hi")
}

// bound is a number in the condition of a query.
func bound(r dynactortest.Request, name string) (n int64) {
	values, _ := r.Input()["ExpressionAttributeValues"].(map[string]any)
	value, _ := values[name].(map[string]any)
	_, _ = fmt.Sscan(fmt.Sprint(value["N"]), &n)
	return n
}

// While the consumer is held, no more is read ahead than what memory allows.
func TestReplay_ReadsAheadWithinBounds(t *testing.T) {
	t.Parallel()
	const page, total = 10, 200
	p, db := open(t, dynactor.Options{})
	fillSized(t, p.Journal(), "a", total, 1, 5)
	db.Faults.Reset()
	db.Faults.Add(dynactortest.Rule{Match: forward, Do: smallPages(page)})
	pages := func() (asked, answered int) {
		for _, r := range db.Faults.Requests() {
			if !forward(r) {
				continue
			}
			if asked++; !r.End.IsZero() {
				answered++
			}
		}
		return asked, answered
	}
	next := 1
	for e, err := range p.Journal().Replay(t.Context(), "a", 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if textOf(e.Message) != fmt.Sprint(next) {
			t.Fatalf("got %s, want %d", textOf(e.Message), next)
		}
		next++
		atPage := (int(e.Seq) - 1) / page
		if e.Seq == 1 {
			eventually(t, "pages are read ahead", func() bool {
				asked, answered := pages()
				return asked >= readAhead && asked == answered
			})
		}
		if asked, _ := pages(); asked > atPage+1+readAhead {
			t.Fatalf("at page %d, %d pages have been asked for", atPage+1, asked)
		}
	}
	if next != total+1 {
		t.Errorf("ended after %d", next-1)
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		case <-tick.C:
		}
	}
}

// labelled runs f, and tells which goroutines that it has started, and that are
// in this library, are left.
func labelled(t *testing.T, f func(context.Context)) (left string) {
	t.Helper()
	labels := pprof.Labels("test", t.Name())
	pprof.Do(t.Context(), labels, func(ctx context.Context) {
		f(ctx)
		var b bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
			t.Error(err)
		}
		for stack := range strings.SplitSeq(b.String(), "\n\n") {
			if strings.Contains(stack, fmt.Sprintf("%q", t.Name())) && strings.Contains(stack, "dynactor.(*Journal)") {
				left += stack + "\n"
			}
		}
	})
	return left
}

func TestReplay_EndsEarly(t *testing.T) {
	t.Parallel()
	const page, total = 10, 200
	long := func(t *testing.T) (*dynactor.Provider, *dynactortest.DB) {
		t.Helper()
		p, db := open(t, dynactor.Options{})
		fillSized(t, p.Journal(), "a", total, 1, 5)
		db.Faults.Reset()
		db.Faults.Add(dynactortest.Rule{Match: forward, Times: 2, Do: smallPages(page)})
		return p, db
	}
	// held makes all range pages but the first stay under way.
	held := func(t *testing.T) (*dynactor.Provider, *dynactortest.DB, chan struct{}) {
		t.Helper()
		p, db := long(t)
		reached := make(chan struct{}, 100)
		db.Faults.Add(dynactortest.Rule{Match: forward, Do: dynactortest.Sequence(dynactortest.Hold(reached, nil), smallPages(page))})
		return p, db, reached
	}
	t.Run("break stops reading", func(t *testing.T) {
		t.Parallel()
		p, db, reached := held(t)
		left := labelled(t, func(ctx context.Context) {
			for _, err := range p.Journal().Replay(ctx, "a", 1, 0) {
				if err != nil {
					t.Error(err)
				}
				<-reached
				break
			}
		})
		if left != "" {
			t.Errorf("left behind:\n%s", left)
		}
		for _, r := range db.Faults.Requests() {
			if r.End.IsZero() {
				t.Errorf("still under way: %s", r)
			}
		}
		if n := db.Faults.Count("Query"); n > 2+2*readAhead {
			t.Errorf("%d queries for one event", n)
		}
	})
	t.Run("J-24 the consumer's panic goes through", func(t *testing.T) {
		t.Parallel()
		p, _, reached := held(t)
		left := labelled(t, func(ctx context.Context) {
			defer func() {
				if r := recover(); r != "enough" {
					t.Errorf("recovered %v", r)
				}
			}()
			for _, err := range p.Journal().Replay(ctx, "a", 1, 0) {
				<-reached
				if err == nil {
					panic("enough")
				}
			}
		})
		if left != "" {
			t.Errorf("left behind:\n%s", left)
		}
	})
	t.Run("J-24 the actor's panic goes through a session", func(t *testing.T) {
		t.Parallel()
		p, _, reached := held(t)
		s, calls := p.GetState(), 0
		left := labelled(t, func(context.Context) {
			defer func() {
				if r := recover(); r != "enough" || calls != 1 {
					t.Errorf("recovered %v after %d calls", r, calls)
				}
			}()
			s.GetEvents("a", 0, 0, func(any) {
				calls++
				<-reached
				panic("enough")
			})
		})
		if left != "" {
			t.Errorf("left behind:\n%s", left)
		}
		if err := caught(func() { s.PersistEvent("a", 1, text("2")) }); !errors.Is(err, dynactor.ErrRecovering) {
			t.Errorf("persisting in the midst of a replay: %v", err)
		}
	})
	t.Run("J-23 cancelling between events", func(t *testing.T) {
		t.Parallel()
		p, _ := long(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got []string
		var errs []error
		for e, err := range p.Journal().Replay(ctx, "a", 1, 0) {
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if got = append(got, textOf(e.Message)); len(got) == 3 {
				cancel()
			}
		}
		if diff := cmp.Diff(texts(1, 3), got); diff != "" || len(errs) != 1 || !errors.Is(errs[0], context.Canceled) {
			t.Errorf("%v (-want +got):\n%s", errs, diff)
		}
	})
	t.Run("J-23 cancelling while a page is read", func(t *testing.T) {
		t.Parallel()
		p, _, reached := held(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			<-reached
			cancel()
		}()
		left := labelled(t, func(context.Context) {
			got, err := watch(ctx, t, p.Journal(), "a", 1, 0)
			if len(got.Events) > 2*page || !errors.Is(err, context.Canceled) {
				t.Errorf("%d events, %v", len(got.Events), err)
			}
		})
		if left != "" {
			t.Errorf("left behind:\n%s", left)
		}
	})
	t.Run("J-23 cancelled before", func(t *testing.T) {
		t.Parallel()
		p, db := long(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		got, err := watch(ctx, t, p.Journal(), "a", 1, 0)
		if got.Events != nil || !errors.Is(err, context.Canceled) || db.Faults.Count("") != 0 {
			t.Errorf("got %v, %v, %d requests", got.Events, err, db.Faults.Count(""))
		}
	})
	t.Run("a failed page", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		fillSized(t, p.Journal(), "a", total, 1, 5)
		third := func(r dynactortest.Request) bool { return forward(r) && bound(r, ":lo") == 2*page+1 }
		db.Faults.Add(dynactortest.Rule{Match: third, Do: dynactortest.Answer(400, "ValidationException", "no")})
		db.Faults.Add(dynactortest.Rule{Match: forward, Do: smallPages(page)})
		var got []string
		var errs []error
		for e, err := range p.Journal().Replay(t.Context(), "a", 1, 0) {
			if err != nil {
				errs = append(errs, err)
				continue
			}
			got = append(got, textOf(e.Message))
		}
		if diff := cmp.Diff(texts(1, 2*page), got); diff != "" || len(errs) != 1 || errors.Is(errs[0], dynactor.ErrGap) {
			t.Errorf("%v (-want +got):\n%s", errs, diff)
		}
	})
}

// A consumer may take longer than any request may.
func TestReplay_ForASlowConsumer(t *testing.T) {
	t.Parallel()
	const limit = 5 * time.Second
	p, db := open(t, dynactor.Options{ReadTimeout: limit})
	fill(t, p.Journal(), "a", 200)
	db.Faults.Add(dynactortest.Rule{Match: forward, Do: smallPages(10)})
	var got []string
	for e, err := range p.Journal().Replay(t.Context(), "a", 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, textOf(e.Message)); e.Seq == 5 {
			<-time.After(limit + limit/10)
		}
	}
	if diff := cmp.Diff(texts(1, 200), got); diff != "" {
		t.Errorf("C11 (-want +got):\n%s", diff)
	}
}
