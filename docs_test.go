package dynactor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/persistence"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/clustered"
	"github.com/dynactor/dynactor/dynactortest"
)

// docPages are the pages that the tests of this file keep true.
var docPages = []string{
	"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/actors.md", "docs/design.md", "docs/state.md", "docs/operations.md", "docs/testing.md",
}

// The snippets of the pages.

func checkTables(ctx context.Context, p *dynactor.Provider) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return p.EnsureTables(ctx)
}

func newProvider(ctx context.Context, o dynactor.Options) (*dynactor.Provider, error) {
	idle := 2 * (dynactor.DefaultMaxConcurrentReads + dynactor.DefaultMaxConcurrentWrites)
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = idle, idle
		})),
		config.WithCredentialsCacheOptions(func(c *aws.CredentialsCacheOptions) {
			c.ExpiryWindow, c.ExpiryWindowJitterFrac = 5*time.Minute, 0.5
		}),
	)
	if err != nil {
		return nil, err
	}
	return dynactor.New(dynamodb.NewFromConfig(cfg), o)
}

type wallet struct {
	dynactor.Mixin

	cents int64
}

func (w *wallet) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.SetReceiveTimeout(time.Minute)
	case *actor.ReceiveTimeout: // nobody has asked for a minute
		ctx.Poison(ctx.Self())
	case *persistence.RequestSnapshot:
		w.PersistSnapshot(wrapperspb.UInt64(uint64(w.cents)))
	case *wrapperspb.UInt64Value: // the snapshot, in a recovery
		w.cents = int64(m.GetValue())
	case *wrapperspb.Int64Value: // an event, in a recovery
		w.cents += m.GetValue()
	case []int64: // a command
		events := make([]proto.Message, len(m))
		for i, cents := range m {
			events[i] = wrapperspb.Int64(cents)
		}
		if err := w.PersistAll(events...); err != nil {
			ctx.Respond(err) // refused: nothing was stored, and the wallet is as it was
			return
		}
		for _, cents := range m {
			w.cents += cents
		}
		ctx.Respond(w.cents)
	}
}

func walletProps(provider *dynactor.Provider) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return &wallet{} },
		actor.WithReceiverMiddleware(dynactor.Using(provider, dynactor.UsingOptions{Snapshot: dynactor.EveryEvents(100)})))
}

func addApples(ctx context.Context, s *dynactor.StateStore, n int64) error {
	for {
		apples, revision, err := dynactor.LoadState[*wrapperspb.Int64Value](ctx, s, "apples")
		if err != nil {
			return err
		}
		_, err = s.Save(ctx, "apples", revision, wrapperspb.Int64(apples.GetValue()+n))
		if !errors.Is(err, dynactor.ErrConflict) { // somebody else was faster: load again
			return err
		}
	}
}

type counter struct {
	dynactor.StateMixin

	n int64
}

func (c *counter) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *dynactor.StateLoaded: // before anything else
		if n, ok := m.Message.(*wrapperspb.Int64Value); ok {
			c.n = n.GetValue()
		}
	case *wrapperspb.Int64Value:
		if err := c.SaveState(wrapperspb.Int64(c.n + m.GetValue())); err != nil {
			ctx.Respond(err.Error()) // nothing was sent: too large, for example
			return
		}
		c.n += m.GetValue()
		ctx.Respond(wrapperspb.Int64(c.n))
	}
}

func counterProps(p *dynactor.Provider) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return &counter{} },
		actor.WithReceiverMiddleware(dynactor.UsingState(p, dynactor.UsingStateOptions{})))
}

func topicKind(s *dynactor.StateStore, log *slog.Logger) *cluster.Kind {
	subscribers := clustered.KeyValueStore[*cluster.Subscribers](s, "prototopic/")
	return cluster.NewKind(cluster.TopicActorKind, actor.PropsFromProducer(func() actor.Actor {
		return cluster.NewTopicActor(subscribers, log)
	}))
}

func TestBesideAThrottledTable(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 2, Do: dynactortest.Throttle()})
	p, err := dynactor.New(db.Client, dynactor.Options{EventsTable: db.EventsTable, SnapshotsTable: db.SnapshotsTable})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Journal().Append(t.Context(), "alice", 0, wrapperspb.Int64(21)); err != nil {
		t.Error(err)
	}
}

func TestDocs_SnippetsWork(t *testing.T) {
	t.Parallel()
	p, _ := open(t, dynactor.Options{})
	if err := checkTables(t.Context(), p); err != nil {
		t.Error(err)
	}
	if err := errors.Join(addApples(t.Context(), p.State(), 2), addApples(t.Context(), p.State(), 3)); err != nil {
		t.Error(err)
	}
	if n, _, err := dynactor.LoadState[*wrapperspb.Int64Value](t.Context(), p.State(), "apples"); n.GetValue() != 5 || err != nil {
		t.Errorf("%v apples, %v", n, err)
	}
	counters := newProcess(t)
	counters.spawnProps("counter", counterProps(p))
	counters.system.Root.Send(counters.pid("counter"), wrapperspb.Int64(2))
	if got, err := counters.system.Root.RequestFuture(counters.pid("counter"), wrapperspb.Int64(3), longest).Result(); err != nil || got.(*wrapperspb.Int64Value).GetValue() != 5 {
		t.Errorf("counted %v, %v", got, err)
	}
	if kind := topicKind(p.State(), slog.Default()); kind.Kind != cluster.TopicActorKind {
		t.Error(kind.Kind)
	}
	own, err := newProvider(t.Context(), dynactor.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := own.Close(t.Context()); err != nil {
		t.Error(err)
	}
	w := newProcess(t)
	for _, answers := range [][]any{{int64(3), int64(7), dynactor.ErrTooLarge}, {int64(10), int64(14), dynactor.ErrTooLarge}} {
		w.spawnProps("wallet", walletProps(p))
		for i, command := range [][]int64{{1, 2}, {4}, make([]int64, 101)} {
			got, err := w.system.Root.RequestFuture(w.pid("wallet"), command, longest).Result()
			if refused, ok := got.(error); ok && i == 2 && errors.Is(refused, dynactor.ErrTooLarge) {
				continue
			}
			if err != nil || got != answers[i] {
				t.Errorf("%v: answered %v, %v, want %v", command, got, err, answers[i])
			}
		}
		w.stop("wallet")
	}
}

// Every snippet is code that is compiled, word for word.
func TestDocs_SnippetsAreCode(t *testing.T) {
	t.Parallel()
	here := readDoc(t, "docs_test.go")
	for _, name := range docPages {
		for i, block := range codeBlocks(readDoc(t, name), "go") {
			if name == "README.md" && i == 0 {
				continue // TestDocs_ReadmeBeginsWithTheExample
			}
			if !strings.Contains(here, "\n"+block) {
				t.Errorf("%s: not in docs_test.go:\n%s", name, block)
			}
		}
	}
}

func TestDocs_ReadmeBeginsWithTheExample(t *testing.T) {
	t.Parallel()
	readme := readDoc(t, "README.md")
	before, _, found := strings.Cut(readme, "```go\n")
	if lines := strings.Count(readme, "\n"); lines >= 200 || !found || strings.Count(before, "\n") >= 20 {
		t.Errorf("%d lines, code after %d", lines, strings.Count(before, "\n"))
	}
	var example string
	for name, source := range goFiles(t) {
		if filepath.Dir(name) == "." && strings.Contains(source, "\nfunc Example() {") {
			example = source
		}
	}
	want := strings.NewReplacer("package dynactor_test\n", "package main\n", "\nfunc Example() {", "\nfunc main() {").Replace(example)
	if diff := cmp.Diff(want, codeBlocks(readme, "go")[0]); diff != "" {
		t.Errorf("the first snippet is not the file with func Example (-file +README):\n%s", diff)
	}
}

func TestDocs_TestsExist(t *testing.T) {
	t.Parallel()
	declared := map[string]bool{}
	for name, source := range goFiles(t) {
		if strings.HasSuffix(name, "_test.go") {
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(source, -1) {
				declared[m[1]] = true
			}
		}
	}
	for _, name := range docPages {
		for _, test := range regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z0-9]\w*`).FindAllString(readDoc(t, name), -1) {
			if !declared[test] {
				t.Errorf("%s: there is no %s", name, test)
			}
		}
	}
	for _, row := range tableRows(t, "README.md", "guarantee") {
		if !strings.Contains(row[2], "`Test") {
			t.Errorf("no test for %q", row[0])
		}
	}
}

func TestDocs_Links(t *testing.T) {
	t.Parallel()
	for _, name := range docPages {
		text := regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(readDoc(t, name), "")
		for _, m := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := filepath.Join(filepath.Dir(name), file)
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if anchor != "" && !slices.Contains(headings(readDoc(t, target)), anchor) {
				t.Errorf("%s: no heading for %s", name, m[1])
			}
		}
	}
}

func TestDocs_MakeTargets(t *testing.T) {
	t.Parallel()
	targets := regexp.MustCompile(`(?m)^([a-z-]+):.*## `).FindAllStringSubmatch(readDoc(t, "Makefile"), -1)
	for _, name := range docPages {
		for _, m := range regexp.MustCompile("(?m)(?:`|^)make ([a-z-]+)").FindAllStringSubmatch(readDoc(t, name), -1) {
			if !slices.ContainsFunc(targets, func(target []string) bool { return target[1] == m[1] }) {
				t.Errorf("%s: there is no target %s", name, m[1])
			}
		}
	}
}

// Every text of a skip is in the table, and nothing else is.
func TestDocs_Skips(t *testing.T) {
	t.Parallel()
	var want, got []string
	for name, source := range goFiles(t) {
		file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true // without a text: a fuzzer's or rapid's
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && (f.Sel.Name == "Skip" || f.Sel.Name == "Skipf") {
				text, ok := call.Args[0].(*ast.BasicLit)
				if !ok {
					t.Errorf("%s: the text of a skip is no literal, so it cannot be compared", name)
					return true
				}
				s, _ := strconv.Unquote(text.Value)
				want = append(want, s)
			}
			return true
		})
	}
	for _, row := range tableRows(t, "docs/testing.md", "ring", "text") {
		got = append(got, row[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(slices.Compact(want), got); diff != "" {
		t.Errorf("(-skips in the code +in docs/testing.md):\n%s", diff)
	}
}

// Every sentinel is explained, every message is listed, every action is named.
func TestDocs_NothingIsForgotten(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ what, page, form, sources, pattern string }{
		{"sentinel", "docs/operations.md", "| `%s` |", "errors.go", `(?m)^\t(Err\w+)\s+= errors\.New`},
		{"warning", "docs/operations.md", "| `dynactor: %s` |", "*.go", `\.warn\(ctx, "([^"]+)"`},
		{"message", "docs/operations.md", "| `%s` |", "observe.go", `ErrorContext\(ctx, "([^"]+)"`},
		{"attribute", "docs/design.md", "`%s`", "layout.go", `\{&a\.\w+, "(\w+)"\}`},
		{"action", "docs/testing.md", "`%s`", "dynactortest/*.go", `(?m)^func ([A-Z]\w*)\(.*\) Action \{`},
		{"fuzz test", "docs/testing.md", "`%s`", "*_test.go", `(?m)^func (Fuzz\w+)\(`},
		{"operation of an actor", "docs/operations.md", "`%s`", "session.go", `const op = "([^"]+)"`},
		{"operation of an actor", "docs/operations.md", "`%s`", "session.go", `s\.report\(ctx, "([^"]+)"`},
	} {
		page, n := strings.Join(strings.Fields(readDoc(t, tt.page)), " "), 0
		for name, source := range goFiles(t) {
			if ok, _ := filepath.Match(tt.sources, name); !ok {
				continue
			}
			for _, m := range regexp.MustCompile(tt.pattern).FindAllStringSubmatch(source, -1) {
				n++
				if !strings.Contains(page, fmt.Sprintf(tt.form, m[1])) {
					t.Errorf("%s lacks the %s %q", tt.page, tt.what, m[1])
				}
			}
		}
		if n == 0 {
			t.Errorf("no %s is found in the sources", tt.what)
		}
	}
	known := readDoc(t, "errors.go")
	for _, name := range docPages {
		for _, sentinel := range regexp.MustCompile(`\bErr[A-Z]\w*`).FindAllString(readDoc(t, name), -1) {
			if !strings.Contains(known, "\t"+sentinel+" ") {
				t.Errorf("%s: there is no %s", name, sentinel)
			}
		}
	}
}

func TestDocs_Defaults(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"`ReadTimeout`": inWords(dynactor.DefaultReadTimeout), "`WriteTimeout`": inWords(dynactor.DefaultWriteTimeout),
		"`RecoveryTimeout`": inWords(dynactor.DefaultRecoveryTimeout), "`TableTimeout`": inWords(dynactor.DefaultTableTimeout),
		"`DeleteDelay`":         inWords(dynactor.DefaultDeleteDelay),
		"`StateRetention`":      inWords(dynactor.DefaultStateRetention),
		"`MaxConcurrentReads`":  fmt.Sprint(dynactor.DefaultMaxConcurrentReads),
		"`MaxConcurrentWrites`": fmt.Sprint(dynactor.DefaultMaxConcurrentWrites),
		"`KeepSnapshots`":       fmt.Sprint(dynactor.DefaultKeepSnapshots),
	}
	got := map[string]string{}
	for _, row := range tableRows(t, "docs/operations.md", "option", "default") {
		got[row[0]] = row[1]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-code +docs/operations.md):\n%s", diff)
	}
	// Other figures, with what they come from.
	sources := goFiles(t)
	for _, tt := range []struct{ file, is, page, said string }{
		{"codec.go", "const maxID = 1024", "docs/design.md", "1 to 1,024 bytes"},
		{"size.go", "maxItemBytes        = 400 << 10", "docs/design.md", "More than 400 KB in an item"},
		{"size.go", "maxTransactionBytes = 4 << 20", "docs/design.md", "100 events or 4 MB"},
		{"size.go", "MaxEvents = 100", "docs/design.md", "100 events or 4 MB"},
		{"client.go", "const maxAttempts = 40", "docs/design.md", "Up to 40 attempts"},
		{"client.go", "firstBackoff = 50 * time.Millisecond", "docs/design.md", "between 0 and 50 ms"},
		{"client.go", "maxBackoff   = time.Second", "docs/design.md", "doubling up to 1 s"},
		{"recovery.go", "const maxTail = 1000", "docs/design.md", "at most 1,000"},
		{"history.go", "const holeLooks = 6", "docs/design.md", "up to six times"},
		{"stream.go", "const rangesAhead = 4", "docs/design.md", "at most four at a time"},
		{"delete.go", "const minPrune = 100", "docs/design.md", "at least 100"},
		{"batch.go", "const maxBatch = 25", "docs/design.md", "in batches of 25"},
		{"append.go", "o.DeleteDelay/2", "docs/design.md", "more than half of `DeleteDelay`"},
		{"options.go", "MinDeleteDelay = time.Hour", "docs/operations.md", "15 minutes with the minimum"},
		{"options.go", "DefaultDeleteDelay         = 24 * time.Hour", "docs/operations.md", "6 hours with the default"},
		{"options.go", "8*min(o.WriteTimeout", "docs/operations.md", "at least 1 h and eight times `WriteTimeout`"},
		{"options.go", "MinStateRetention = time.Hour", "docs/design.md", "`StateRetention`, at least 1 h and eight times `WriteTimeout`"},
		{"options.go", "DefaultStateRetention      = 7 * 24 * time.Hour", "docs/state.md", "`Options.StateRetention` (7 days)"},
		{"saving.go", "const maxTransaction = 100", "docs/state.md", "up to 99 writes of your own"},
		{"stateread.go", "const maxBatchGet = 100", "docs/state.md", "many, 100 in a request"},
		{"layout.go", "const format = 1", "CHANGELOG.md", "**Stored format: 1**"},
		{"layout.go", "const format = 1", "docs/design.md", "## Stored format 1"},
		{"layout.go", `const layoutName = "per-actor"`, "docs/design.md", "`per-actor`"},
	} {
		if !strings.Contains(sources[tt.file], tt.is) {
			t.Errorf("%s no longer has %q: look at %q in %s", tt.file, tt.is, tt.said, tt.page)
		}
		if !strings.Contains(strings.Join(strings.Fields(readDoc(t, tt.page)), " "), tt.said) {
			t.Errorf("%s no longer says %q", tt.page, tt.said)
		}
	}
}

// What each path costs, counted at the wire.
func TestDocs_Costs(t *testing.T) {
	t.Parallel()
	type usage = dynactortest.Usage
	minus := func(a, b usage) usage {
		return usage{Requests: a.Requests - b.Requests, WriteUnits: a.WriteUnits - b.WriteUnits, ReadUnits: a.ReadUnits - b.ReadUnits}
	}
	// cost is what act uses, of an actor that has recovered.
	cost := func(o dynactor.Options, events int, before, act func(*dynactor.Provider, persister)) usage {
		p, db := open(t, o)
		ready(t, p, db)
		s := p.GetState()
		recovered(s, "a")
		for i := range events {
			s.PersistEvent("a", i, text("x"))
		}
		if before != nil {
			before(p, s)
		}
		db.Faults.Reset()
		act(p, s)
		return db.Faults.Usage()
	}
	snapshot := func(index int) func(*dynactor.Provider, persister) {
		return func(_ *dynactor.Provider, s persister) { s.PersistSnapshot("a", index, text("state")) }
	}
	recovery := func(p *dynactor.Provider, _ persister) { recovered(p.GetState(), "a") }
	appending := func(n int) func(*dynactor.Provider, persister) {
		return func(p *dynactor.Provider, _ persister) { fill(t, p.Journal(), "b", n) }
	}
	before := func(p *dynactor.Provider, _ persister) {
		if _, err := p.State().Save(t.Context(), "a", 0, text("x")); err != nil {
			t.Error(err)
		}
	}
	now := &clock{}
	one, deleting := dynactor.Options{KeepSnapshots: 1}, dynactor.Options{KeepSnapshots: 1, DeleteEventsOnSnapshot: true}
	old := deleting
	old.Now = now.Now
	want := map[string]usage{
		"persist one event": cost(dynactor.Options{}, 1, nil,
			func(_ *dynactor.Provider, s persister) { s.PersistEvent("a", 1, text("x")) }),
		"recovery with `SnapshotInterval` set, snapshot and newest events in one page": cost(dynactor.Options{SnapshotInterval: 2}, 3, snapshot(2), recovery),
		"recovery without `SnapshotInterval`, all events in one page":                  cost(dynactor.Options{}, 3, nil, recovery),
		"save a snapshot, no older one to delete yet":                                  cost(dynactor.Options{}, 3, snapshot(1), snapshot(2)),
		"save a snapshot and delete an older one":                                      cost(one, 3, snapshot(1), snapshot(2)),
		"the same with `DeleteEventsOnSnapshot`, no item old enough":                   cost(deleting, 3, snapshot(2), snapshot(3)),
		"the same, 25 items old enough": cost(old, 26, func(p *dynactor.Provider, s persister) {
			snapshot(1)(p, s)
			now.Advance(dynactor.DefaultDeleteDelay + time.Minute)
		}, snapshot(26)),
		"first save of an incarnation, in addition": minus(cost(dynactor.Options{}, 2, nil, snapshot(2)), usage{Requests: 1, WriteUnits: 1}),
		"`Journal.Append` of one event":             cost(dynactor.Options{}, 0, nil, appending(1)),
		"`Journal.Append` of ten events":            cost(dynactor.Options{}, 0, nil, appending(10)),
		"save or delete a durable state": cost(dynactor.Options{}, 0, before, func(p *dynactor.Provider, _ persister) {
			if _, err := p.State().Save(t.Context(), "a", 1, text("y")); err != nil {
				t.Error(err)
			}
		}),
		"load a durable state": cost(dynactor.Options{}, 0, before, func(p *dynactor.Provider, _ persister) {
			if _, err := p.State().Load(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		}),
		"`Journal.Head`": cost(dynactor.Options{}, 3, nil, func(p *dynactor.Provider, _ persister) {
			if _, err := p.Journal().Head(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		}),
	}
	p, db := open(t, dynactor.Options{})
	ready(t, p, db)
	if err := openOn(t, db, db.Client, dynactor.Options{}).EnsureTables(t.Context()); err != nil {
		t.Error(err)
	}
	want["check of the tables, once for each provider"] = db.Faults.Usage()
	got := map[string]usage{}
	for _, row := range tableRows(t, "README.md", "path", "requests") {
		var u usage
		if _, err := fmt.Sscan(strings.Join(row[1:], " "), &u.Requests, &u.WriteUnits, &u.ReadUnits); err != nil {
			t.Errorf("%v: %v", row, err)
		}
		got[row[0]] = u
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-measured +README):\n%s", diff)
	}
}

// persister is what the framework sees of a session, as far as costs go.
type persister interface {
	PersistEvent(name string, index int, event proto.Message)
	PersistSnapshot(name string, index int, snapshot proto.Message)
}

// The policies allow what is used, and nothing else.
func TestDocs_Policies(t *testing.T) {
	t.Parallel()
	var got []map[string][]string // of each policy: the actions on each table
	for _, block := range codeBlocks(readDoc(t, "docs/operations.md"), "json") {
		var policy struct {
			Version   string
			Statement []struct {
				Sid, Effect, Resource string
				Action                []string
			}
		}
		d := json.NewDecoder(strings.NewReader(block))
		d.DisallowUnknownFields()
		if err := d.Decode(&policy); err != nil {
			t.Fatal(err)
		}
		allowed := map[string][]string{}
		for _, s := range policy.Statement {
			_, table, _ := strings.Cut(s.Resource, ":table/")
			if allowed[table] = append(allowed[table], s.Action...); policy.Version != "2012-10-17" || s.Effect != "Allow" || s.Sid == "" {
				t.Errorf("version %q, statement %+v", policy.Version, s)
			}
		}
		for _, actions := range allowed {
			slices.Sort(actions)
		}
		got = append(got, allowed)
	}
	now := &clock{}
	p, db := open(t, dynactor.Options{Now: now.Now})
	if err := p.EnsureTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.State().EnsureTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	creation := actionsUsed(db)
	db.Faults.Reset()
	p = openOn(t, db, db.Client, dynactor.Options{NoCreateTables: true, KeepSnapshots: 1, Now: now.Now})
	s := p.GetState()
	recovered(s, "a")
	for i := range 3 {
		s.PersistEvent("a", i, text("x"))
		s.PersistSnapshot("a", i+1, text("state"))
	}
	_, err := p.Journal().Append(t.Context(), "a", 3, numbered(4, 5)...)
	now.Advance(dynactor.DefaultDeleteDelay + time.Minute)
	s.DeleteEvents("a", 1)
	states := p.State()
	_, errSave := states.SaveWith(t.Context(), "a", 0, dynactor.State{Message: text("x")}, ownPut(db.SnapshotsTable, "b", ""))
	_, errLoad := states.LoadMany(t.Context(), "a")
	_, errDelete := states.Delete(t.Context(), "a", 1)
	now.Advance(dynactor.DefaultStateRetention + time.Minute)
	for row, err := range states.IDs(t.Context(), "") {
		if row.ID != "a" || err != nil {
			t.Error(row, err)
		}
	}
	if err := errors.Join(err, errSave, errLoad, errDelete, states.Purge(t.Context(), "a", 2), p.Journal().Erase(t.Context(), "a"), p.Snapshots().DeleteTo(t.Context(), "a", math.MaxInt64),
		p.VerifyTables(t.Context())); err != nil {
		t.Error(err)
	}
	use := actionsUsed(db)
	both := map[string][]string{}
	for table := range use {
		// The table's own item is written at its first use, whoever made the table.
		use[table] = append(use[table], "dynamodb:PutItem")
		slices.Sort(use[table])
		use[table] = slices.Compact(use[table])
		both[table] = slices.Concat(use[table], creation[table])
		slices.Sort(both[table])
		both[table] = slices.Compact(both[table])
	}
	if diff := cmp.Diff([]map[string][]string{use, both}, got); diff != "" {
		t.Errorf("(-used +allowed):\n%s", diff)
	}
}

// actionsUsed are the actions on each table, by its default name.
func actionsUsed(db *dynactortest.DB) map[string][]string {
	used := map[string][]string{}
	for _, r := range db.Faults.Requests() {
		table := map[string]string{db.EventsTable: dynactor.DefaultEventsTable, db.SnapshotsTable: dynactor.DefaultSnapshotsTable, db.StateTable: dynactor.DefaultStateTable}[r.Table]
		used[table] = append(used[table], "dynamodb:"+strings.Replace(r.Op, "TransactWriteItems", "PutItem", 1))
	}
	for table, actions := range used {
		slices.Sort(actions)
		used[table] = slices.Compact(actions)
	}
	return used
}

// The modules that must move together do.
func TestDocs_OpenTelemetry(t *testing.T) {
	t.Parallel()
	page, mod, versions := readDoc(t, "docs/testing.md"), readDoc(t, "go.mod"), map[string]bool{}
	for _, name := range []string{"", "/metric", "/trace", "/sdk", "/sdk/metric", "/exporters/prometheus"} {
		module := "go.opentelemetry.io/otel" + name
		found := regexp.MustCompile(`(?m)^\t` + regexp.QuoteMeta(module) + ` (v\S+)`).FindStringSubmatch(mod)
		if found == nil || !strings.Contains(page, "`"+module+"`") {
			t.Errorf("%s is not in go.mod (%v), or not in docs/testing.md", module, found)
			continue
		}
		if name != "/exporters/prometheus" {
			versions[found[1]] = true
		}
	}
	if len(versions) != 1 {
		t.Errorf("versions %v", versions)
	}
}

func readDoc(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// goFiles are the sources of the module by their names.
func goFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	if err := filepath.WalkDir(".", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".go") {
			files[name] = readDoc(t, name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

// codeBlocks are the fenced blocks of a language.
func codeBlocks(page, language string) []string {
	var blocks []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// tableRows are the cells of the table whose head begins with these cells.
func tableRows(t *testing.T, name string, head ...string) [][]string {
	t.Helper()
	_, rest, found := strings.Cut(readDoc(t, name), "\n| "+strings.Join(head, " | ")+" |")
	if !found {
		t.Fatalf("%s has no table %v", name, head)
	}
	var rows [][]string
	for _, line := range strings.Split(rest, "\n")[2:] {
		if !strings.HasPrefix(line, "| ") {
			break
		}
		rows = append(rows, strings.Split(strings.Trim(line, "| "), " | "))
	}
	return rows
}

// headings are the anchors of a page.
func headings(page string) []string {
	var anchors []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		kept := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		anchors = append(anchors, strings.ReplaceAll(kept, " ", "-"))
	}
	return anchors
}

// inWords is a duration as the pages write it.
func inWords(d time.Duration) string {
	if d >= time.Hour {
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}
