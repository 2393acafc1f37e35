package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

// tally counts operations and faults by kind, and keeps violations. It is safe
// for concurrent use.
type tally struct {
	mu         sync.Mutex
	operations map[string]int
	outcomes   map[string]int // of the operations, for information
	faults     map[string]int
	violations []string
	violated   int
}

func newTally() *tally {
	return &tally{operations: map[string]int{}, outcomes: map[string]int{}, faults: map[string]int{}}
}

func (t *tally) operation(kind string) { t.count(t.operations, kind) }
func (t *tally) outcome(kind string)   { t.count(t.outcomes, kind) }
func (t *tally) fault(kind string)     { t.count(t.faults, kind) }

func (t *tally) count(m map[string]int, kind string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m[kind]++
}

// mostViolations bounds what is kept and printed.
const mostViolations = 20

func (t *tally) violation(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.violated++
	if len(t.violations) < mostViolations {
		t.violations = append(t.violations, fmt.Sprintf(format, args...))
	}
}

func (t *tally) sums() (operations, faults, violations int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return sum(t.operations), sum(t.faults), t.violated
}

func sum(m map[string]int) int {
	n := 0
	for _, v := range m {
		n += v
	}
	return n
}

// print shows everything by kind.
func (t *tally) print(w io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, part := range []struct {
		name string
		m    map[string]int
	}{{"operations", t.operations}, {"outcomes", t.outcomes}, {"faults", t.faults}} {
		for _, kind := range slices.Sorted(maps.Keys(part.m)) {
			_, _ = fmt.Fprintf(w, "%-10s %-34s %9d\n", part.name, kind, part.m[kind])
		}
	}
	for _, v := range t.violations {
		_, _ = fmt.Fprintln(w, "VIOLATION ", strings.ReplaceAll(v, "\n", "\n           "))
	}
}
