package dynactor_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// later makes another provider on the same tables, in whose eyes all items are
// old enough to be removed.
func later(t *testing.T, db *dynactortest.DB) (*dynactor.Provider, *dynactortest.Faults) {
	t.Helper()
	client, faults := db.NewClient()
	var c clock
	c.Advance(dynactor.DefaultDeleteDelay + time.Minute)
	return openOn(t, db, client, dynactor.Options{Now: c.Now}), faults
}

// checkNumbers compares what the events table holds of a stream.
func checkNumbers(t *testing.T, db *dynactortest.DB, id string, want ...int64) {
	t.Helper()
	if diff := cmp.Diff(want, numbers(t, db, db.EventsTable, id)); diff != "" {
		t.Errorf("items of %q (-want +got):\n%s", id, diff)
	}
}

// checkMark compares the stream's own item: the mark, and where the state is empty.
func checkMark(t *testing.T, db *dynactortest.DB, id, del, reset string) {
	t.Helper()
	got := map[string]string{"del": "", "reset": ""}
	if list := items(t, db, db.EventsTable, id); len(list) > 0 {
		for name := range got {
			if n, ok := list[0][name].(*types.AttributeValueMemberN); ok {
				got[name] = n.Value
			}
		}
	}
	if diff := cmp.Diff(map[string]string{"del": del, "reset": reset}, got); diff != "" {
		t.Errorf("mark of %q (-want +got):\n%s", id, diff)
	}
}

func deleteTo(t *testing.T, j *dynactor.Journal, id string, seq int64) {
	t.Helper()
	if err := j.DeleteTo(t.Context(), id, seq); err != nil {
		t.Fatal(err)
	}
}

// What replay shows is the same whether the items are there still or not.
func TestDelete_To(t *testing.T) {
	t.Parallel()
	for _, hard := range []bool{false, true} { // J-73
		t.Run(fmt.Sprintf("swept %t", hard), func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			j := p.Journal()
			five(t, j, "a")
			five(t, j, "b")
			deleteTo(t, j, "a", 3)
			checkNumbers(t, db, "a", 0, 1, 2, 3, 4, 5)
			if hard {
				q, _ := later(t, db)
				sweep(t, q.Journal(), "a", 2)
				sweep(t, q.Journal(), "a", 0)
				sweep(t, q.Journal(), "b", 0)
				checkNumbers(t, db, "a", 0, 3, 4, 5) // what is at the mark stays
			}
			checkReplay(t, j, "a", 1, 0, 4, 5) // J-58
			checkReplay(t, j, "a", 3, 0, 4, 5) // J-65
			checkReplay(t, j, "a", 1, 2, 1, 0) // J-66
			checkReplay(t, j, "a", 1, 3, 1, 0) // J-67
			checkReplay(t, j, "a", 4, 0, 4, 5) // J-68
			checkReplay(t, j, "a", 1, 4, 4, 4) // J-69
			checkHead(t, j, "a", 5)
			checkReplay(t, j, "b", 1, 0, 1, 5)
			for _, seq := range []int64{3, 2, 0, -1, math.MinInt64} { // J-59, J-60, C04
				deleteTo(t, j, "a", seq)
				checkReplay(t, j, "a", 1, 0, 4, 5)
				checkMark(t, db, "a", "3", "")
			}
			deleteTo(t, j, "a", 4) // between two events of one append
			checkReplay(t, j, "a", 1, 0, 5, 5)
			for _, seq := range []int64{math.MaxInt64, 100, 5} { // J-61, J-62, C04
				deleteTo(t, j, "a", seq)
				checkReplay(t, j, "a", 1, 0, 1, 0)
				checkHead(t, j, "a", 5)
				checkMark(t, db, "a", "5", "")
			}
			if hard {
				q, _ := later(t, db)
				sweep(t, q.Journal(), "a", 2)
				checkNumbers(t, db, "a", 0, 5)
			}
			for head := range int64(5) { // J-64, C02
				if _, err := j.Append(t.Context(), "a", head, text("x")); !errors.Is(err, dynactor.ErrConflict) {
					t.Errorf("append after %d: %v", head, err)
				}
			}
			if head, err := j.Append(t.Context(), "a", 5, text("6")); err != nil || head != 6 {
				t.Errorf("append after 5: %d, %v", head, err)
			}
			checkReplay(t, j, "a", 1, 0, 6, 6)
		})
	}
	t.Run("J-63 unknown id", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		deleteTo(t, p.Journal(), "a", 3)
		sweep(t, p.Journal(), "a", 0)
		if err := errors.Join(p.Journal().DeleteAll(t.Context(), "a"), p.Journal().Erase(t.Context(), "a")); err != nil {
			t.Error(err)
		}
		checkNumbers(t, db, "a")
		five(t, p.Journal(), "b")
		deleteTo(t, p.Journal(), "b", -1)
		deleteTo(t, p.Journal(), "b", 0)
		checkNumbers(t, db, "b", 1, 2, 3, 4, 5)
	})
	t.Run("J-70 a failure is reported", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{WriteTimeout: 4 * time.Second})
		five(t, p.Journal(), "a")
		db.Faults.Add(dynactortest.Rule{Op: "UpdateItem", Times: 1, Do: dynactortest.Answer(400, "AccessDeniedException", "no")})
		err := p.Journal().DeleteTo(t.Context(), "a", 3)
		if e, ok := errors.AsType[*dynactor.Error](err); !ok || e.ID != "a" || e.Index != 2 || errors.Is(err, dynactor.ErrOutcomeUnknown) {
			t.Errorf("refused: %v", err)
		}
		checkReplay(t, p.Journal(), "a", 1, 0, 1, 5)
		db.Faults.Add(dynactortest.Rule{Op: "UpdateItem", Do: dynactortest.FailAfter(500)})
		if err := p.Journal().DeleteTo(t.Context(), "a", 3); !errors.Is(err, dynactor.ErrOutcomeUnknown) {
			t.Errorf("no answer: %v", err)
		}
		checkReplay(t, p.Journal(), "a", 1, 0, 4, 5)
	})
	t.Run("J-60 one that went further meanwhile stays", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		five(t, p.Journal(), "a")
		other, _ := later(t, db)
		reached, release := make(chan struct{}), make(chan struct{})
		db.Faults.Add(dynactortest.Rule{Op: "UpdateItem", Times: 1, Do: dynactortest.Hold(reached, release)})
		go func() {
			<-reached
			defer close(release)
			if err := other.Journal().DeleteTo(t.Context(), "a", 5); err != nil {
				t.Error(err)
			}
		}()
		deleteTo(t, p.Journal(), "a", 3)
		checkMark(t, db, "a", "5", "")
	})
	t.Run("an answer that was lost once is no failure", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		five(t, p.Journal(), "a")
		db.Faults.Add(dynactortest.Rule{Op: "UpdateItem", Times: 1, Do: dynactortest.DropAnswer()})
		deleteTo(t, p.Journal(), "a", 3)
		db.Faults.Add(dynactortest.Rule{Op: "UpdateItem", Times: 1, Do: dynactortest.DropAnswer()})
		if err := p.Journal().DeleteAll(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		checkMark(t, db, "a", "5", "5")
	})
}

func TestDelete_Erase(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{})
	j := p.Journal()
	five(t, j, "a")
	five(t, j, "b")
	for range 2 {
		if err := j.Erase(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		checkNumbers(t, db, "a", 0) // J-73
		checkMark(t, db, "a", "5", "5")
		checkReplay(t, j, "a", 1, 0, 1, 0)
		checkHead(t, j, "a", 5)
	}
	if _, err := j.Append(t.Context(), "a", 0, text("x")); !errors.Is(err, dynactor.ErrConflict) {
		t.Errorf("append after 0: %v", err)
	}
	if _, err := j.Append(t.Context(), "a", 5, numbered(6, 7)...); err != nil {
		t.Error(err)
	}
	checkReplay(t, j, "a", 1, 0, 6, 7)
	checkReplay(t, j, "b", 1, 0, 1, 5)
}

// A query looks at 1 MB at a time.
func TestDelete_EraseInPages(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{})
	j := p.Journal()
	const n = 7
	for i := range n {
		if _, err := j.Append(t.Context(), "a", int64(i), text(strings.Repeat("x", 390<<10))); err != nil {
			t.Fatal(err)
		}
	}
	db.Faults.Reset()
	if err := j.Erase(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	checkNumbers(t, db, "a", 0)
	checkMark(t, db, "a", "7", "7")
	if got := db.Faults.Count("BatchWriteItem"); got < 2 {
		t.Errorf("%d batches: there was one page only", got)
	}
}

// Writers and deletions side by side: nothing acknowledged is lost.
func TestDelete_BesideAppends(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{})
	ready(t, p, db)
	q, _ := later(t, db)
	const total = 40
	var running sync.WaitGroup
	running.Go(func() {
		for i := 1; i <= total; i++ {
			if _, err := p.Journal().Append(t.Context(), "a", int64(i)-1, numbered(i, i)...); err != nil {
				t.Error(err)
				return
			}
		}
	})
	running.Go(func() {
		for {
			head, err := q.Journal().Head(t.Context(), "a")
			if err != nil {
				t.Error(err)
				return
			}
			if err := q.Journal().DeleteTo(t.Context(), "a", head-3); err != nil {
				t.Error(err)
				return
			}
			if _, err := q.Journal().Sweep(t.Context(), "a"); err != nil {
				t.Error(err)
				return
			}
			if head == total || t.Failed() {
				return
			}
		}
	})
	running.Wait()
	checkReplay(t, p.Journal(), "a", 1, 0, total-2, total) // J-72
	checkHead(t, p.Journal(), "a", total)
	checkNumbers(t, db, "a", append([]int64{0}, upTo(total-3, total)...)...)
}
