package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dynactor/dynactor/dynactortest"
)

// console collects what the program prints, and lets a test wait for it.
type console struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{} // closed at the next change
}

func newConsole() *console { return &console{changed: make(chan struct{})} }

func (c *console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
	return c.text.Write(b)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// await waits for a pattern, and returns its last group.
func (c *console) await(ctx context.Context, t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for {
		c.mu.Lock()
		found, changed := re.FindStringSubmatch(c.text.String()), c.changed
		c.mu.Unlock()
		if found != nil {
			return found[len(found)-1]
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("no %s in\n%s", pattern, c)
		}
	}
}

// quick are the flags of a short run on a store for one test. The embedded one is in
// a process of its own, as it is by default: nodes that start look at tables while
// others write, which is a data race inside of it.
func quick(t *testing.T) []string {
	t.Helper()
	db := dynactortest.New(t)
	endpoint := db.Endpoint
	if db.Ring == "embedded" {
		var ready serverReady
		server, err := startProcess(t.Context(), "store", roleServer, struct{}{}, &ready, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.end)
		endpoint = ready.URL
	}
	return []string{
		"-endpoint", endpoint, "-events-table", db.EventsTable, "-snapshots-table", db.SnapshotsTable,
		"-pace", "1s", "-accounts", "12", "-concurrency", "8",
	}
}

const goodLine = `\nacknowledged ([0-9]+), in journal ([0-9]+), duplicated 0, lost 0, total money unchanged\n$`

// A cluster in which a node is killed, one is split off and one joins does what it
// has acknowledged, once. Another run goes on with the same store.
func TestPlay(t *testing.T) {
	t.Parallel()
	args := quick(t)
	for _, past := range []bool{false, true} {
		out := newConsole()
		code := run(t.Context(), args, nil, out, out)
		found := regexp.MustCompile(goodLine).FindStringSubmatch(out.String())
		if code != 0 || found == nil || found[1] != found[2] || len(found[1]) < 2 {
			t.Fatalf("exit code %d\n%s", code, out)
		}
		if strings.Contains(out.String(), "the store has ") != past {
			t.Errorf("earlier runs %t\n%s", past, out)
		}
		if !strings.Contains(out.String(), "all 12 accounts agree with the journal") {
			t.Errorf("no comparison\n%s", out)
		}
	}
}

// With the condition taken off every put, the same run loses acknowledged
// transactions, and the audit says so.
func TestPlayWithoutConditions(t *testing.T) {
	t.Parallel()
	out := newConsole()
	code := run(t.Context(), append(quick(t), "-unsafe-overwrite"), nil, out, out)
	found := regexp.MustCompile(`\nacknowledged [0-9]+, in journal [0-9]+, duplicated [0-9]+, lost ([0-9]+), .*\n$`).FindStringSubmatch(out.String())
	if code != 1 || found == nil || found[1] == "0" {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// A run that takes too long, or is interrupted, says so and leaves no process.
func TestPlayCutShort(t *testing.T) {
	t.Parallel()
	args := quick(t)

	out := newConsole()
	code := run(t.Context(), append(args, "-limit", "4s"), nil, out, out)
	if code != 1 || !strings.Contains(out.String(), "\nbankcluster: the demonstration was not over after 4s\n") {
		t.Errorf("exit code %d\n%s", code, out)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out = newConsole()
	ended := make(chan int)
	go func() { ended <- run(ctx, args, nil, out, out) }()
	out.await(t.Context(), t, "load on three nodes")
	cancel()
	if code := <-ended; code != 130 || !strings.HasSuffix(out.String(), "\nbankcluster: interrupted\n") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// A driver that is killed takes its processes with it, one that is stopped as well.
func TestNothingOutlivesTheDriver(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc to find the processes in")
	}
	driver, out := startDriver(t)
	out.await(t.Context(), t, "node 2 is stopped with SIGSTOP")
	children := childrenOf(t, driver.Process.Pid)
	if err := driver.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = driver.Wait() // it was killed
	t.Cleanup(func() {
		for _, pid := range children {
			if parent, _ := stat(pid); parent != 0 && t.Failed() {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it should be gone
			}
		}
	})
	if len(children) != 3 { // the store, and two nodes that live or are stopped
		t.Errorf("%d children\n%s", len(children), out)
	}
	deadline := time.Now().Add(10 * time.Second)
	for _, pid := range children {
		for parent, state := stat(pid); parent != 0 && state != "Z"; parent, state = stat(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d is still there, in state %s", pid, state)
			}
			time.Sleep(10 * time.Millisecond) // nobody tells when a stranger ends
		}
	}
}

// A process that ends by itself ends the demonstration, with an error.
func TestProcessThatEnds(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc to find the processes in")
	}
	for _, which := range []int{0, 3} { // the oldest is the store
		driver, out := startDriver(t)
		out.await(t.Context(), t, "load on three nodes")
		children := childrenOf(t, driver.Process.Pid)
		if len(children) != 4 {
			t.Fatalf("%d children\n%s", len(children), out)
		}
		slices.Sort(children)
		if err := syscall.Kill(children[which], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = driver.Wait() // its exit code is looked at
		last := regexp.MustCompile(`\nbankcluster: (the store|node [1-3]) has ended: signal: killed\n`)
		if code := driver.ProcessState.ExitCode(); code != 1 || !last.MatchString(out.String()) {
			t.Errorf("exit code %d\n%s", code, out)
		}
	}
}

// startDriver starts the program as a process, with an embedded store.
func startDriver(t *testing.T) (*exec.Cmd, *console) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := newConsole()
	driver := exec.CommandContext(t.Context(), self, "-pace", "1s", "-accounts", "4", "-concurrency", "2")
	driver.Env = append(os.Environ(), childVariable+"=1")
	driver.Stdout, driver.Stderr = out, out
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	return driver, out
}

// childrenOf lists the processes whose parent is pid.
func childrenOf(t *testing.T, pid int) (children []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			if parent, state := stat(n); parent == pid && state != "Z" {
				children = append(children, n)
			}
		}
	}
	return children
}

// stat is the parent and the state of a process; 0 when it is gone.
func stat(pid int) (parent int, state string) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, ""
	}
	// The name before them is in parentheses and may hold anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	parent, err = strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0, ""
	}
	return parent, string(fields[0])
}
