package model

import (
	"strings"
	"testing"
)

// room is for more states than any of the small searches has.
const room = 8_000_000

func TestEachRuleIsNeeded(t *testing.T) {
	t.Parallel()
	for _, r := range Rules() {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			got := Search(r.Shown(), room, r)
			switch {
			case got.Bad == "":
				t.Errorf("nothing is broken without it in %q: %d states, all of them: %t", r.Shown().Name, got.States, got.Full)
			case len(got.Trace) != got.Depth+1:
				t.Errorf("the trace has %d steps at depth %d:\n%s", len(got.Trace), got.Depth, strings.Join(got.Trace, "\n"))
			default:
				t.Logf("%s\n%s", strings.Join(got.Trace, "\n"), got.Bad)
			}
		})
	}
}

func TestNothingIsBroken(t *testing.T) {
	t.Parallel()
	for _, b := range []Bounds{sleepers, resets} { // make model searches more
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			if got := Search(b, room); got.Bad != "" || !got.Full {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestSearchStopsAtItsLimit(t *testing.T) {
	t.Parallel()
	if got := Search(tiny, 1000); got.Full || got.Bad != "" || got.States > 2000 {
		t.Errorf("%+v", got)
	}
}

func TestCanonicalIsOneState(t *testing.T) {
	t.Parallel()
	seen := 0
	m := machine{b: groups}
	var walk func(s State, depth int)
	walk = func(s State, depth int) {
		var next []State
		m.emit = func(_ Step, t State, _ string) { next = append(next, t) }
		m.next(&s)
		for _, n := range next {
			seen++
			c := n.canonical()
			if again := c.canonical(); again != c {
				t.Fatalf("canonical is not stable:\n%+v\n%+v", c, again)
			}
			n.w[0], n.w[1] = n.w[1], n.w[0]
			if swapped := n.canonical(); n.w[0].key() != n.w[1].key() && swapped != c {
				t.Fatalf("exchanged incarnations are another state:\n%+v\n%+v", c, swapped)
			}
			if depth > 0 {
				walk(n, depth-1)
			}
		}
	}
	walk(State{left: groups.Operations}, 5)
	if seen < 1000 {
		t.Errorf("only %d states were looked at", seen)
	}
}
