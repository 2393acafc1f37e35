package dynactor_test

import (
	"context"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// An item's age counts from its time stamp, so a write that waited for the tables
// gets a new one.
func TestStamps_AfterTheTables(t *testing.T) {
	t.Parallel()
	const waited = 10 * time.Second
	for name, tc := range map[string]struct {
		op    string
		write func(context.Context, *dynactor.Provider) error
		kept  time.Duration // how long after the stamp the item may go; 0 for ever
	}{
		"an event": {op: "PutItem", write: func(ctx context.Context, p *dynactor.Provider) error {
			_, err := p.Journal().Append(ctx, "a", 0, text("1"))
			return err
		}},
		"events": {op: "TransactWriteItems", write: func(ctx context.Context, p *dynactor.Provider) error {
			_, err := p.Journal().Append(ctx, "a", 0, text("1"), text("2"))
			return err
		}},
		"a state": {op: "PutItem", write: func(ctx context.Context, p *dynactor.Provider) error {
			_, err := p.State().Save(ctx, "a", 0, text("1"))
			return err
		}},
		"the end of a state": {
			op: "PutItem",
			write: func(ctx context.Context, p *dynactor.Provider) error {
				_, err := p.State().Delete(ctx, "other", 1)
				return err
			},
			kept: dynactor.DefaultStateRetention,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			fill(t, p.Journal(), "other", 1) // the tables know their format
			saved(t, p.State(), "other", 0, "1")
			now := &clock{}
			p = openOn(t, db, db.Client, dynactor.Options{Now: now.Now})
			db.Faults.Reset()
			db.Faults.Add(dynactortest.Rule{Op: "DescribeTable", Times: 1, Do: dynactortest.Delay(time.Millisecond, 0), Match: func(dynactortest.Request) bool {
				now.Advance(waited)
				return true
			}})
			start := time.Now()
			if err := tc.write(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			puts := 0
			for _, r := range db.Faults.Requests() {
				if r.Op != tc.op {
					continue
				}
				puts++
				for _, ts := range numbersIn(r.Body, "ts") {
					if at := time.UnixMilli(ts); at.Before(start.Add(waited - time.Second)) {
						t.Errorf("stamped %s, sent %s later", at, waited)
					}
				}
				for _, exp := range numbersIn(r.Body, "exp") {
					if at := time.Unix(exp, 0); at.Before(start.Add(waited + tc.kept - 2*time.Second)) {
						t.Errorf("may go at %s, which is too early", at)
					}
				}
				if got := len(numbersIn(r.Body, "exp")) > 0; got != (tc.kept > 0) || len(numbersIn(r.Body, "ts")) == 0 {
					t.Errorf("%s", r.Body)
				}
			}
			if puts != 1 {
				t.Errorf("%d requests, want 1", puts)
			}
		})
	}
}

// numbersIn are the values of an attribute in a request.
func numbersIn(body []byte, name string) []int64 {
	var list []int64
	for _, m := range regexp.MustCompile(`"`+name+`":\{"N":"([0-9]+)"\}`).FindAllSubmatch(body, -1) {
		n, _ := strconv.ParseInt(string(m[1]), 10, 64)
		list = append(list, n)
	}
	return list
}
