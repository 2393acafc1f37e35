package dynactor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

func sweep(t *testing.T, j *dynactor.Journal, id string, want int) {
	t.Helper()
	if n, err := j.Sweep(t.Context(), id); err != nil || n != want {
		t.Errorf("sweep of %q removed %d, %v; want %d", id, n, err, want)
	}
}

// An item goes when it is older than DeleteDelay, and not a millisecond before.
func TestSweep_GoesByAge(t *testing.T) {
	t.Parallel()
	start := time.UnixMilli(1_700_000_000_000)
	now := start
	p, db := open(t, dynactor.Options{DeleteDelay: 10 * time.Hour, Now: func() time.Time { return now }})
	j := p.Journal()
	at := func(d time.Duration) { now = start.Add(d) }
	for i, list := range []int{1, 4, 6, 9} { // the heads before
		at(time.Duration(i) * time.Hour)
		next := []int{3, 5, 8, 10}[i]
		if _, err := j.Append(t.Context(), "a", int64(list)-1, numbered(list, next)...); err != nil {
			t.Fatal(err)
		}
	}
	deleteTo(t, j, "a", 9)
	sweep(t, j, "a", 0)
	at(10*time.Hour - time.Millisecond)
	sweep(t, j, "a", 0)
	at(10 * time.Hour)
	sweep(t, j, "a", 3)
	at(11 * time.Hour)
	sweep(t, j, "a", 2)
	checkNumbers(t, db, "a", 0, 6, 7, 8, 9, 10)
	at(1000 * time.Hour)
	sweep(t, j, "a", 3)
	checkNumbers(t, db, "a", 0, 9, 10)
	sweep(t, j, "a", 0)
	checkReplay(t, j, "a", 1, 0, 10, 10)
	odd := eventOf(t, "a", 8, text("8")) // nobody knows how old it is
	delete(odd, "ts")
	put(t, db, db.EventsTable, odd)
	sweep(t, j, "a", 0)
	checkNumbers(t, db, "a", 0, 8, 9, 10)
}

// batches are the numbers in the deletions of each BatchWriteItem.
func batches(t *testing.T, f *dynactortest.Faults) [][]int64 {
	t.Helper()
	var list [][]int64
	for _, r := range f.Requests() {
		if r.Op != "BatchWriteItem" {
			continue
		}
		var batch []int64
		tables, _ := r.Input()["RequestItems"].(map[string]any)
		for _, writes := range tables {
			for _, w := range writes.([]any) {
				key := w.(map[string]any)["DeleteRequest"].(map[string]any)["Key"].(map[string]any)
				n, err := strconv.ParseInt(key["seq"].(map[string]any)["N"].(string), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				batch = append(batch, n)
			}
		}
		list = append(list, batch)
	}
	return list
}

func TestSweep_InBatches(t *testing.T) {
	t.Parallel()
	for _, n := range []int{24, 25, 26, 51, 230} {
		t.Run(fmt.Sprintf("C16 %d items", n), func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			fill(t, p.Journal(), "a", n+2)
			deleteTo(t, p.Journal(), "a", int64(n)+1)
			q, faults := later(t, db)
			ready(t, q, db)
			faults.Reset()
			faults.Add(dynactortest.Rule{Match: forward, Do: smallPages(60)})
			sweep(t, q.Journal(), "a", n)
			checkNumbers(t, db, "a", 0, int64(n)+1, int64(n)+2)
			sent := slices.Concat(batches(t, faults)...)
			if diff := cmp.Diff(upTo(1, int64(n)), sent); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
			for _, b := range batches(t, faults) {
				if len(b) > 25 {
					t.Errorf("a batch of %d", len(b))
				}
			}
			for _, r := range faults.Requests() {
				names := strings.Join(slices.Sorted(values(r.Input()["ExpressionAttributeNames"])), " ")
				if forward(r) && (r.Input()["ProjectionExpression"] == nil || names != "pid seq ts") {
					t.Errorf("J-74: a sweep reads more than keys: %s", r.Body)
				}
			}
		})
	}
}

// values are the strings in a JSON object.
func values(object any) func(func(string) bool) {
	return func(yield func(string) bool) {
		m, _ := object.(map[string]any)
		for _, v := range m {
			if !yield(fmt.Sprint(v)) {
				return
			}
		}
	}
}

// sweepable is a stream with 60 items that can be removed, and a provider that does.
func sweepable(t *testing.T, o dynactor.Options) (*dynactor.Journal, *dynactortest.DB, *dynactortest.Faults) {
	t.Helper()
	p, db := open(t, dynactor.Options{})
	fill(t, p.Journal(), "a", 62)
	deleteTo(t, p.Journal(), "a", 61)
	client, faults := db.NewClient()
	var c clock
	c.Advance(dynactor.DefaultDeleteDelay + time.Minute)
	o.Now = c.Now
	q := openOn(t, db, client, o)
	if err := q.EnsureTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	faults.Reset()
	return q.Journal(), db, faults
}

func TestSweep_OfUnprocessedItems(t *testing.T) {
	t.Parallel()
	t.Run("J-53 C17 only leftovers are sent again", func(t *testing.T) {
		t.Parallel()
		j, db, faults := sweepable(t, dynactor.Options{})
		faults.Add(dynactortest.Rule{Op: "BatchWriteItem", Times: 3, Do: dynactortest.Unprocessed(5)})
		sweep(t, j, "a", 60)
		checkNumbers(t, db, "a", 0, 61, 62)
		want := [][]int64{upTo(1, 25), upTo(6, 25), upTo(11, 25), upTo(16, 25), upTo(26, 50), upTo(51, 60)}
		got := batches(t, faults)
		for _, b := range got {
			slices.Sort(b)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("C17 little by little is progress", func(t *testing.T) {
		t.Parallel()
		j, db, faults := sweepable(t, dynactor.Options{WriteTimeout: 4 * time.Second})
		faults.Add(dynactortest.Rule{Op: "BatchWriteItem", Do: dynactortest.Unprocessed(1)})
		sweep(t, j, "a", 60)
		checkNumbers(t, db, "a", 0, 61, 62)
	})
	t.Run("C17 for ever is an error that tells how many are left", func(t *testing.T) {
		t.Parallel()
		j, db, faults := sweepable(t, dynactor.Options{WriteTimeout: 4 * time.Second})
		faults.Add(dynactortest.Rule{Op: "BatchWriteItem", Times: 1})
		faults.Add(dynactortest.Rule{Op: "BatchWriteItem", Times: 1, Do: dynactortest.Unprocessed(15)})
		faults.Add(dynactortest.Rule{Op: "BatchWriteItem", Do: dynactortest.Unprocessed(0)})
		_, err := j.Sweep(t.Context(), "a")
		if !errors.Is(err, dynactor.ErrThrottled) || !strings.Contains(err.Error(), "20 of 60 deletions are left") {
			t.Errorf("got %v", err)
		}
		checkNumbers(t, db, "a", append([]int64{0}, upTo(41, 62)...)...)
	})
	t.Run("C17 the end of the context ends it", func(t *testing.T) {
		t.Parallel()
		j, _, faults := sweepable(t, dynactor.Options{})
		faults.Add(dynactortest.Rule{Op: "BatchWriteItem", Do: dynactortest.Unprocessed(0)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := j.Sweep(ctx, "a")
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "60 of 60 deletions are left") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("C20 a chunk that fails once is sent again", func(t *testing.T) {
		t.Parallel()
		j, db, faults := sweepable(t, dynactor.Options{})
		faults.Add(dynactortest.Rule{Op: "BatchWriteItem", Skip: 1, Times: 1, Do: dynactortest.Answer(500, "InternalServerError", "no")})
		sweep(t, j, "a", 60)
		checkNumbers(t, db, "a", 0, 61, 62)
		got := slices.Concat(batches(t, faults)...)
		slices.Sort(got)
		if diff := cmp.Diff(upTo(1, 60), slices.Compact(got)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A removal can end after any batch, and be begun anew.
func TestDelete_RemovalIsCrashSafe(t *testing.T) {
	t.Parallel()
	for crash := range 3 {
		for name, again := range map[string]func(context.Context, *dynactor.Journal) error{
			"J-71 Sweep": func(ctx context.Context, j *dynactor.Journal) error { _, err := j.Sweep(ctx, "a"); return err },
			"C21 Erase":  func(ctx context.Context, j *dynactor.Journal) error { return j.Erase(ctx, "a") },
		} {
			t.Run(fmt.Sprintf("%s, after batch %d", name, crash), func(t *testing.T) {
				t.Parallel()
				j, db, faults := sweepable(t, dynactor.Options{})
				reached := make(chan struct{})
				faults.Add(dynactortest.Rule{Op: "BatchWriteItem", Skip: crash, Do: dynactortest.Hold(reached, nil)})
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					<-reached
					cancel()
				}()
				if err := again(ctx, j); !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
				faults.Clear()
				first := int64(25*crash) + 1
				checkNumbers(t, db, "a", append([]int64{0}, upTo(first, 62)...)...)
				erased := strings.HasSuffix(name, "Erase")
				if erased {
					checkReplay(t, j, "a", 1, 0, 1, 0)
				} else {
					checkReplay(t, j, "a", 1, 0, 62, 62)
				}
				checkHead(t, j, "a", 62)
				if err := again(t.Context(), j); err != nil {
					t.Error(err)
				}
				if erased {
					checkNumbers(t, db, "a", 0)
				} else {
					checkNumbers(t, db, "a", 0, 61, 62)
				}
				checkHead(t, j, "a", 62)
			})
		}
	}
}
