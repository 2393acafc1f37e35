package main

import (
	"strings"
	"testing"
)

func TestVerdict(t *testing.T) {
	t.Parallel()
	good := report{
		opening: 100,
		tally:   tally{deposited: 50, withdrawn: 30},
		rows:    []row{{"a", 70, 70, 3, 3, 3}, {"b", 50, 50, 1, 1, 1}},
	}
	for _, c := range []struct {
		name  string
		spoil func(*report)
		line  string
	}{
		{"good", func(*report) {}, "recovered 2 of 2 accounts, balances equal"},
		{"balance", func(r *report) { r.rows[0].after++ }, "recovered 1 of 2 accounts, the others DIFFER"},
		{"lost event", func(r *report) { r.rows[1].recovered-- }, "recovered 1 of 2 accounts, the others DIFFER"},
		{"event too many", func(r *report) { r.rows[1].head++ }, "recovered 1 of 2 accounts, the others DIFFER"},
		{"money made", func(r *report) { r.tally.withdrawn++ }, "recovered 2 of 2 accounts, but the books do NOT balance: 1.20 instead of 1.19"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := good
			r.rows = append([]row(nil), good.rows...)
			c.spoil(&r)
			line, ok := r.verdict()
			if line != c.line || ok != (c.name == "good") {
				t.Errorf("got %q, %t", line, ok)
			}
		})
	}
}

func TestAccountsThatDifferAreShown(t *testing.T) {
	t.Parallel()
	r := report{rows: make([]row, shownRows+3)}
	r.rows[shownRows+1] = row{name: "last", before: 1}
	var out strings.Builder
	r.printAccounts(&out)
	for _, want := range []string{"last", "DIFFERS", "and 2 more"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestCents(t *testing.T) {
	t.Parallel()
	for c, want := range map[cents]string{0: "0.00", 7: "0.07", 12345: "123.45", -7: "-0.07", -12345: "-123.45"} {
		if got := c.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
