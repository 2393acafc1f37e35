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

// TestMain is this program for the children that the tests start.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// TestPlay runs the whole play, in short: the last line must say that all is well.
func TestPlay(t *testing.T) { //nolint:paralleltest // its processes need the machine
	db := dynactortest.New(t)
	if db.Ring == "embedded" { // the nodes need one in a process of its own
		server, err := startProcess("store", "-role", "server")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.end)
		if db.Endpoint, err = server.firstLine(t.Context()); err != nil {
			t.Fatal(err)
		}
		server.watch()
	}
	args := []string{
		"-pace", "1s", "-accounts", "6", "-concurrency", "4",
		"-endpoint", db.Endpoint, "-events-table", db.EventsTable, "-snapshots-table", db.SnapshotsTable,
	}
	last := regexp.MustCompile(`\nacknowledged ([0-9]+), in journal ([0-9]+), duplicated 0, lost 0, total money unchanged\n$`)
	for range 2 { // the second run goes on from the first
		var stdout, stderr strings.Builder
		code := run(t.Context(), args, &stdout, &stderr)
		found := last.FindStringSubmatch(stdout.String())
		if code != 0 || found == nil || found[1] != found[2] {
			t.Fatalf("exit code %d\n%s%s", code, stdout.String(), stderr.String())
		}
		if !strings.Contains(stdout.String(), "node 4 joins") {
			t.Errorf("not all has happened:\n%s", stdout.String())
		}
		t.Log(stdout.String())
	}
}

// Without the condition of the puts the same play goes wrong, and the audit says so.
func TestPlay_WithoutConditions(t *testing.T) { //nolint:paralleltest // its processes need the machine
	var stdout, stderr strings.Builder
	code := run(t.Context(), []string{"-pace", "1500ms", "-accounts", "6", "-unsafe-overwrite"}, &stdout, &stderr)
	last := regexp.MustCompile(`\nacknowledged [0-9]+, in journal [0-9]+, duplicated [0-9]+, lost [0-9]+, [^\n]+\n$`)
	if code != 1 || !last.MatchString(stdout.String()) || strings.Contains(stdout.String(), "lost 0, total money unchanged") {
		t.Errorf("exit code %d\n%s%s", code, stdout.String(), stderr.String())
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-endpoint", "http://localhost:1", "-aws"}, {"-accounts", "1"}, {"-concurrency", "0"}, {"-pace", "0s"}, {"-limit", "-1s"}, {"more"}, {"-nonsense"},
	} {
		var stdout, stderr strings.Builder
		if code := run(t.Context(), args, &stdout, &stderr); code != 2 || stderr.String() == "" {
			t.Errorf("%v: exit code %d, %q", args, code, stderr.String())
		}
	}
}

// A time limit ends the play, and says what it waited for.
func TestPlay_Limit(t *testing.T) { //nolint:paralleltest // its processes need the machine
	var stdout, stderr strings.Builder
	began := time.Now()
	code := run(t.Context(), []string{"-limit", "2s"}, &stdout, &stderr)
	if code != 1 || stderr.String() == "" || time.Since(began) > 30*time.Second {
		t.Errorf("exit code %d after %s\n%s%s", code, time.Since(began), stdout.String(), stderr.String())
	}
}
