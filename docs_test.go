package dynactor_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
)

// docPages are the pages that the tests of this file keep true.
var docPages = []string{
	"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/actors.md", "docs/design.md", "docs/state.md", "docs/operations.md", "docs/testing.md",
}

// The snippets of the pages.

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
	here := readDoc(t, "docs_snippets_test.go")
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
