package dynactor_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// sentinels are all that the package exports; checkSentinels sees to that.
var sentinels = map[string]error{
	"ErrConflict": dynactor.ErrConflict, "ErrOutcomeUnknown": dynactor.ErrOutcomeUnknown, "ErrGap": dynactor.ErrGap,
	"ErrAhead": dynactor.ErrAhead, "ErrNoSnapshot": dynactor.ErrNoSnapshot, "ErrDecode": dynactor.ErrDecode,
	"ErrTooLarge": dynactor.ErrTooLarge, "ErrInvalid": dynactor.ErrInvalid, "ErrUnstableID": dynactor.ErrUnstableID,
	"ErrRecovering": dynactor.ErrRecovering, "ErrThrottled": dynactor.ErrThrottled, "ErrClosed": dynactor.ErrClosed, "ErrStopped": dynactor.ErrStopped,
	"ErrSchema": dynactor.ErrSchema,
}

// matches are the names of the sentinels that an error matches.
func matches(err error) []string {
	var names []string
	for name, s := range sentinels {
		if errors.Is(err, s) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// own counts the *dynactor.Error in an error and all that it wraps.
func own(err error) int {
	n := 0
	if _, ok := err.(*dynactor.Error); ok { //nolint:errorlint // each link of the chain is looked at
		n++
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			n += own(inner)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			n += own(inner)
		}
	}
	return n
}

// deleteItem removes an item past the fault layer.
func deleteItem(t *testing.T, db *dynactortest.DB, table, id, seq string) {
	t.Helper()
	client, _ := db.NewClient()
	if _, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: map[string]types.AttributeValue{
		"pid": &types.AttributeValueMemberS{Value: id}, "seq": &types.AttributeValueMemberN{Value: seq},
	}}); err != nil {
		t.Fatal(err)
	}
}

// K06: each sentinel can be met, alone, in one *Error that tells where.
func TestErrors_K06_Sentinels(t *testing.T) {
	t.Parallel()
	type env struct {
		p  *dynactor.Provider
		db *dynactortest.DB
	}
	throttled := dynactortest.Rule{Do: dynactortest.Throttle()}
	rows := map[string]struct {
		o    dynactor.Options
		fail func(t *testing.T, e env) error
		want dynactor.Error // without its cause
	}{
		"ErrConflict": {
			fail: func(t *testing.T, e env) error {
				t.Helper()
				_, err := e.p.Journal().Append(t.Context(), "a", 7, text("x"))
				return err
			},
			want: dynactor.Error{Op: "append", ID: "a", Index: 7},
		},
		"ErrOutcomeUnknown": {
			o: dynactor.Options{WriteTimeout: time.Second},
			fail: func(t *testing.T, e env) error {
				t.Helper()
				e.db.Faults.Add(dynactortest.Rule{Op: "PutItem", Do: dynactortest.Hold(nil, nil)})
				_, err := e.p.Journal().Append(t.Context(), "a", 0, text("x"))
				return err
			},
			want: dynactor.Error{Op: "append", ID: "a", Index: 0},
		},
		"ErrGap": {
			fail: func(t *testing.T, e env) error {
				t.Helper()
				fill(t, e.p.Journal(), "a", 5)
				deleteItem(t, e.db, e.db.EventsTable, "a", "3")
				_, err := replayed(t.Context(), e.p.Journal(), "a", 1, 0)
				return err
			},
			want: dynactor.Error{Op: "replay", ID: "a", Index: 2},
		},
		"ErrAhead": {
			o: dynactor.Options{SnapshotInterval: 10},
			fail: func(t *testing.T, e env) error {
				t.Helper()
				if err := e.p.Snapshots().Save(t.Context(), "a", 9, text("x")); err != nil {
					t.Fatal(err)
				}
				return caught(func() { recovered(e.p.GetState(), "a") })
			},
			want: dynactor.Error{Op: "load snapshot", ID: "a", Index: -1},
		},
		"ErrNoSnapshot": {
			fail: func(t *testing.T, e env) error {
				t.Helper()
				fill(t, e.p.Journal(), "a", 3)
				if err := e.p.Journal().DeleteTo(t.Context(), "a", 2); err != nil {
					t.Fatal(err)
				}
				return caught(func() { recovered(e.p.GetState(), "a") })
			},
			want: dynactor.Error{Op: "load snapshot", ID: "a", Index: -1},
		},
		"ErrDecode": {
			fail: func(t *testing.T, e env) error {
				t.Helper()
				fill(t, e.p.Journal(), "a", 1)
				it := eventItem("a", "2")
				it["type"] = &types.AttributeValueMemberS{Value: "bank.v1.Unknown"}
				putItem(t, e.db, e.db.EventsTable, it)
				_, err := replayed(t.Context(), e.p.Journal(), "a", 1, 0)
				return err
			},
			want: dynactor.Error{Op: "replay", ID: "a", Index: 1},
		},
		"ErrTooLarge": {
			fail: func(t *testing.T, e env) error {
				t.Helper()
				return e.p.Snapshots().Save(t.Context(), "a", 4, blob(400<<10))
			},
			want: dynactor.Error{Op: "save snapshot", ID: "a", Index: 4},
		},
		"ErrInvalid": {
			fail: func(t *testing.T, e env) error {
				t.Helper()
				_, err := e.p.Journal().Append(t.Context(), "a", -5, text("x"))
				return err
			},
			want: dynactor.Error{Op: "append", ID: "a", Index: -1},
		},
		"ErrUnstableID": {
			fail: func(t *testing.T, e env) error {
				t.Helper()
				return caught(func() { e.p.GetState().PersistEvent("$1A", 0, text("x")) })
			},
			want: dynactor.Error{Op: "persist event", ID: "$1A", Index: 0},
		},
		"ErrRecovering": {
			fail: func(t *testing.T, e env) error {
				t.Helper()
				fill(t, e.p.Journal(), "a", 2)
				s := e.p.GetState()
				var err error
				s.GetEvents("a", 0, 0, func(any) {
					if e := caught(func() { s.PersistEvent("a", 2, text("x")) }); e != nil {
						err = e
					}
				})
				return err
			},
			want: dynactor.Error{Op: "persist event", ID: "a", Index: 2},
		},
		"ErrThrottled": {
			o: dynactor.Options{WriteTimeout: time.Second},
			fail: func(t *testing.T, e env) error {
				t.Helper()
				throttled := throttled
				throttled.Op = "PutItem"
				e.db.Faults.Add(throttled)
				_, err := e.p.Journal().Append(t.Context(), "a", 0, text("x"))
				return err
			},
			want: dynactor.Error{Op: "append", ID: "a", Index: 0},
		},
		"ErrClosed": {
			fail: func(t *testing.T, e env) error {
				t.Helper()
				if err := e.p.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				return e.p.Journal().DeleteAll(t.Context(), "a")
			},
			want: dynactor.Error{Op: "delete all events", ID: "a", Index: -1},
		},
		"ErrStopped": {
			fail: func(t *testing.T, e env) error {
				t.Helper()
				h := newHouse(t)
				h.using(e.p, "a", dynactor.UsingOptions{})
				var old *member
				h.run("a", func(m *member, _ actor.Context) { old = m })
				h.stop("a")
				return caught(func() { old.PersistReceive(text("x")) })
			},
			want: dynactor.Error{Op: "persist event", ID: "a", Index: -1},
		},
		"ErrSchema": {
			fail: func(t *testing.T, e env) error {
				t.Helper()
				client, _ := e.db.NewClient()
				if _, err := client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &e.db.EventsTable}); err != nil {
					t.Fatal(err)
				}
				_, err := e.p.Journal().Head(t.Context(), "a")
				return err
			},
			want: dynactor.Error{Op: "read head", ID: "a", Index: -1},
		},
	}
	for _, name := range exportedSentinels(t) {
		row, ok := rows[name]
		if !ok || sentinels[name] == nil {
			t.Errorf("%s has no row here", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, row.o)
			ready(t, p, db)
			err := row.fail(t, env{p, db})
			e, ok := err.(*dynactor.Error) //nolint:errorlint // it must be the outermost
			if !ok || e == nil {
				t.Fatalf("got %T %v, want an *Error", err, err)
			}
			if diff := cmp.Diff([]string{name}, matches(err)); diff != "" {
				t.Errorf("%v matches (-want +got):\n%s", err, diff)
			}
			if got := (dynactor.Error{Op: e.Op, ID: e.ID, Index: e.Index}); got != row.want {
				t.Errorf("got %+v, want %+v", got, row.want)
			}
			if n := own(err); n != 1 {
				t.Errorf("%v is wrapped %d times", err, n)
			}
		})
	}
}

// exportedSentinels reads the names from the source.
func exportedSentinels(t *testing.T) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Err") {
			names = append(names, v.Names[0].Name)
		}
		return true
	})
	if len(names) < len(sentinels) {
		t.Errorf("%d sentinels in errors.go, %d here", len(names), len(sentinels))
	}
	return names
}

func TestErrors_Format(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err  dynactor.Error
		want string
	}{
		{dynactor.Error{Op: "ensure tables", Index: -1, Err: dynactor.ErrSchema}, "dynactor: ensure tables: table does not fit"},
		{dynactor.Error{Op: "read head", ID: "a\n", Index: -1, Err: dynactor.ErrClosed}, `dynactor: read head of "a\n": provider is closed`},
		{
			dynactor.Error{Op: "replay", ID: "kind/identity", Index: 0, Err: dynactor.ErrGap},
			`dynactor: replay of "kind/identity" at index 0: gap in the event stream`,
		},
	} {
		if got := tc.err.Error(); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
		if !errors.Is(&tc.err, tc.err.Err) {
			t.Errorf("%v does not unwrap to its cause", &tc.err)
		}
	}
}
