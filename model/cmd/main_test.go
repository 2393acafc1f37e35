package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dynactor/dynactor/model"
)

func TestRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args      []string
		want, err string
	}{
		{args: []string{"-rules"}, want: "keep-marked        the item at the mark stays"},
		{args: []string{"-without", "condition"}, want: "broken: an event is acknowledged, but its number belongs to another"},
		{args: []string{"-without", "look-before"}, want: "broken: a number is stored once more after it was emptied"},
		{args: []string{"-without", "nonsense"}, err: `no rule "nonsense"`},
		{args: []string{"-nonsense"}, err: "not defined"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			err := run(c.args, &out)
			if (err == nil) != (c.err == "") || (err != nil && !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			if !strings.Contains(out.String(), c.want) {
				t.Errorf("%s\nwant %q", out.String(), c.want)
			}
		})
	}
}

func TestRulesAreListed(t *testing.T) {
	t.Parallel()
	for _, r := range model.Rules() {
		if got, ok := model.RuleNamed(r.String()); !ok || got != r || r.Text() == "" {
			t.Errorf("rule %d: %q, %q", r, r, r.Text())
		}
	}
}
