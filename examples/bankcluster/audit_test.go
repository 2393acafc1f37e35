package main

import (
	"testing"

	"github.com/dynactor/dynactor/examples/bank/bankpb"
)

// TestAudit doctors a journal in all the ways that the audit is there to find.
func TestAudit(t *testing.T) {
	t.Parallel()
	acked := []transaction{
		{id: "1", to: "a", amount: 100},
		{id: "2", to: "b", amount: 100},
		{id: "3", from: "a", amount: 10},
		{id: "4", from: "b", to: "a", amount: 30},
	}
	type posting struct {
		account string
		entry   bankpb.Entry
	}
	right := []posting{
		{"a", bankpb.Entry{Tx: "1", Amount: 100}},
		{"b", bankpb.Entry{Tx: "2", Amount: 100}},
		{"a", bankpb.Entry{Tx: "3", Amount: 10, Takes: true}},
		{"b", bankpb.Entry{Tx: "4", Amount: 30, Takes: true, Other: "a"}},
		{"a", bankpb.Entry{Tx: "4", Amount: 30, Other: "b"}},
	}
	for name, tc := range map[string]struct {
		doctor func([]posting) []posting
		good   bool
		want   string
	}{
		"right": {
			func(p []posting) []posting { return p }, true,
			"acknowledged 4, in journal 4, duplicated 0, lost 0, total money unchanged",
		},
		"a deposit is lost": {
			func(p []posting) []posting { return p[1:] }, false,
			"acknowledged 4, in journal 3, duplicated 0, lost 1, total money off by -1.00",
		},
		"a withdrawal is lost": {
			func(p []posting) []posting { return append(p[:2:2], p[3:]...) }, false,
			"acknowledged 4, in journal 3, duplicated 0, lost 1, total money off by 0.10",
		},
		"a deposit is there twice": {
			func(p []posting) []posting { return append(p, p[0]) }, false,
			"acknowledged 4, in journal 4, duplicated 1, lost 0, total money off by 1.00",
		},
		"a transfer is there twice": {
			func(p []posting) []posting { return append(p, p[3:]...) }, false,
			"acknowledged 4, in journal 4, duplicated 2, lost 0, total money unchanged",
		},
		"a credit is lost": {
			func(p []posting) []posting { return p[:4] }, false,
			"acknowledged 4, in journal 3, duplicated 0, lost 1, total money off by -0.30",
		},
		"half a transfer that nobody was told of": {
			func(p []posting) []posting {
				return append(p, posting{"a", bankpb.Entry{Tx: "5", Amount: 1, Takes: true, Other: "b"}})
			}, false,
			"acknowledged 4, in journal 4, duplicated 0, lost 0, total money off by -0.01",
		},
		"halves that cancel out": {
			func(p []posting) []posting {
				return append(p, posting{"a", bankpb.Entry{Tx: "5", Amount: 1, Takes: true, Other: "b"}}, posting{"b", bankpb.Entry{Tx: "6", Amount: 1, Other: "a"}})
			}, false,
			"acknowledged 4, in journal 4, duplicated 0, lost 0, 2 transfers done by half",
		},
		"another amount": {
			func(p []posting) []posting { p[0].entry.Amount++; return p }, false,
			"acknowledged 4, in journal 4, duplicated 0, lost 0, total money off by 0.01",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, now := newLedger(), newLedger()
			for _, l := range []*ledger{before, now} {
				l.add("a", bankpb.Entry{Tx: "earlier", Amount: 500})
			}
			for _, p := range tc.doctor(append([]posting(nil), right...)) {
				now.add(p.account, p.entry)
			}
			v := audit(before, now, acked)
			if v.good() != tc.good || v.String() != tc.want {
				t.Errorf("got %v, %s\nwant %v, %s\n%s", v.good(), v, tc.good, tc.want, v.report())
			}
			if !v.good() && v.off == 0 && v.report() == "" {
				t.Error("nothing tells what is wrong")
			}
		})
	}
}
