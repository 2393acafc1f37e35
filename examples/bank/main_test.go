package main

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dynactor/dynactor/dynactortest"
)

// tables are flags for tables that no other test uses.
func tables(db *dynactortest.DB) []string {
	return []string{"-events-table", db.EventsTable, "-snapshots-table", db.SnapshotsTable}
}

// mustRun runs the program and returns its output; its last line must be right.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr strings.Builder
	code := run(t.Context(), args, &stdout, &stderr)
	if last := "\nrecovered 4 of 4 accounts, balances equal\n"; code != 0 || !strings.HasSuffix(stdout.String(), last) {
		t.Fatalf("exit code %d\n%s%s", code, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// numbers are what differs from run to run, with the space that aligns it.
var numbers = regexp.MustCompile(`( +)-?[0-9][0-9.]*`)

// TestExpectedOutput compares a small run on the embedded store with
// expected.txt, where N stands for any number.
func TestExpectedOutput(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	out := mustRun(t, append(tables(db), "-accounts", "4", "-ops", "300")...)
	out = strings.NewReplacer(db.EventsTable, "EVENTS", db.SnapshotsTable, "SNAPSHOTS").Replace(out)
	out = regexp.MustCompile(`ids [a-z0-9]+`).ReplaceAllString(out, "ids RUN")
	got := numbers.ReplaceAllString(out, " N")
	want, err := os.ReadFile("expected.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSecondRunContinues(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	args := append(tables(db), "-accounts", "4", "-ops", "200", "-endpoint", db.Endpoint)
	find := func(out, pattern string) string {
		found := regexp.MustCompile(pattern).FindStringSubmatch(out)
		if found == nil {
			t.Fatalf("no %s in\n%s", pattern, out)
		}
		return found[1]
	}
	first := mustRun(t, args...)
	second := mustRun(t, args...)
	left := find(first, `\ntotal +([0-9.]+)`)
	taken := find(second, `4 come with a history, opening balances ([0-9.]+)\n`)
	if left != taken || left == "0.00" {
		t.Errorf("the first run left %s, the second began with %s", left, taken)
	}
	if ids := `ids ([a-z0-9]+)`; find(first, ids) == find(second, ids) {
		t.Errorf("both runs use the ids %s", find(first, ids))
	}
}

// An interrupted run leaves accounts that the next one takes over.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	args := append(tables(db), "-accounts", "4", "-endpoint", db.Endpoint)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stdout := writer(func(s string) {
		if strings.HasPrefix(s, "transactions:") {
			time.AfterFunc(300*time.Millisecond, cancel)
		}
	})
	var stderr strings.Builder
	code := run(ctx, append(args, "-ops", "1000000"), stdout, &stderr)
	if code != 130 || !strings.HasSuffix(stderr.String(), "bank: interrupted; what was answered is stored\n") {
		t.Errorf("exit code %d\n%s", code, stderr.String())
	}
	if out := mustRun(t, append(args, "-ops", "50")...); strings.Contains(out, " 0 come with a history") {
		t.Errorf("the interrupted run stored nothing\n%s", out)
	}
}

type writer func(string)

func (w writer) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, args string
		code       int
		want       string
	}{
		{"nothing listens", "-endpoint http://127.0.0.1:1", 1, "bank: no DynamoDB answers (http://127.0.0.1:1): "},
		{"bad table name", "-events-table a", 1, `EventsTable "a" is not`},
		{"not a URL", "-endpoint localhost:8000", 2, "bank: -endpoint must be a URL like http://localhost:8000\n"},
		{"two stores", "-aws -endpoint http://localhost:8000", 2, "bank: -endpoint and -aws exclude each other\n"},
		{"one account", "-accounts 1", 2, "bank: -accounts must be at least 2, for transfers\n"},
		{"unknown flag", "-account 5", 2, "flag provided but not defined: -account\n"},
		{"no flag", "go", 2, "bank: there are no arguments but flags\n"},
		{"help", "-help", 0, "Usage of bank:\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr strings.Builder
			start := time.Now()
			code := run(t.Context(), strings.Fields(c.args), &stdout, &stderr)
			if code != c.code || !strings.Contains(stderr.String(), c.want) {
				t.Errorf("exit code %d\n%s", code, stderr.String())
			}
			if took := time.Since(start); took > 2*reachTime {
				t.Errorf("it took %s", took)
			}
		})
	}
}
