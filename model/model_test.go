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
			case r.Spare() && (got.Bad != "" || !got.Full):
				t.Errorf("without it: %+v, want nothing broken", got)
			case r.Spare():
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
