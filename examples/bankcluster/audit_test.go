package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor/examples/bank/bankpb"
)

// The books and the journal of a small run after an older one.
func smallRun() (before, now ledger, decided []decision) {
	receipt := func(tx string, balance int64) proto.Message { return &bankpb.Receipt{TxId: tx, Balance: balance} }
	before = ledger{"a": {{Tx: "old", Amount: 100}}, "b": nil}
	now = ledger{
		"a": {
			{Tx: "old", Amount: 100},
			{Tx: "t1", Amount: 50},
			{Tx: "t3", Amount: 70, Takes: true, Other: "b"},
			{Tx: "t4", Refused: bankpb.Reason_REASON_OVERDRAFT},
			{Tx: "t5", Refused: bankpb.Reason_REASON_OVERDRAFT},
		},
		"b": {
			{Tx: "t3", Amount: 70, Other: "a"},
			{Tx: "t2", Amount: 30, Takes: true},
		},
	}
	decided = []decision{
		{transaction{"t1", "", "a", 50}, []proto.Message{receipt("t1", 150)}},
		{transaction{"t3", "a", "b", 70}, []proto.Message{receipt("t3", 80), receipt("t3", 70)}},
		{transaction{"t2", "b", "", 30}, []proto.Message{receipt("t2", 40)}},
		{transaction{"t4", "a", "", 81}, []proto.Message{&bankpb.Refusal{TxId: "t4", Reason: bankpb.Reason_REASON_OVERDRAFT, Balance: 80}}},
		{transaction{"t5", "a", "b", 99}, []proto.Message{&bankpb.Refusal{TxId: "t5", Reason: bankpb.Reason_REASON_OVERDRAFT, Balance: 80}}},
	}
	return before, now, decided
}

// The audit finds whatever is wrong with a journal.
func TestAudit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		doctor func(now ledger)
		want   string // the last line after the number acknowledged
		note   string
	}{
		{"nothing wrong", func(ledger) {}, "in journal 3, duplicated 0, lost 0, total money unchanged", ""},
		{"lost deposit", func(l ledger) {
			l["a"] = slices.Delete(l["a"], 1, 2)
		}, "in journal 2, duplicated 0, lost 1, total money off by -0.50, wrong 1", "lost: a t1"},
		{"lost withdrawal", func(l ledger) {
			l["b"] = l["b"][:1]
		}, "in journal 2, duplicated 0, lost 1, total money off by 0.30", "lost: b t2"},
		{"doubled deposit", func(l ledger) {
			l["a"] = append(l["a"], l["a"][1])
		}, "in journal 3, duplicated 1, lost 0, total money off by 0.50", "2 times: a t1"},
		{"doubled transfer", func(l ledger) {
			l["a"] = append(l["a"], l["a"][2])
			l["b"] = append(l["b"], l["b"][0])
		}, "in journal 3, duplicated 2, lost 0, total money unchanged", "2 times: b a/t3"},
		{"credit without debit", func(l ledger) {
			l["a"] = slices.Delete(l["a"], 2, 3)
		}, "in journal 2, duplicated 0, lost 1, total money off by 0.70, transfers done by half 1", "debits less credits of t3: a to b: -1"},
		{"debit without credit", func(l ledger) {
			l["b"] = append(l["b"][1:], bankpb.Entry{Tx: "t6", Amount: 70})
		}, "in journal 2, duplicated 0, lost 1, total money unchanged, transfers done by half 1, wrong 3", "lost: b a/t3"},
		{"credited twice", func(l ledger) {
			l["b"] = append(l["b"], l["b"][0])
		}, "in journal 3, duplicated 1, lost 0, total money off by 0.70, transfers done by half 1", "debits less credits of t3: a to b: -1"},
		{"wrong amount", func(l ledger) {
			l["a"][1].Amount++
		}, "in journal 3, duplicated 0, lost 0, total money off by 0.01, wrong 2", "t1 of a was answered with"},
		{"wrong balances, right sum", func(l ledger) {
			l["a"][1].Amount++
			l["b"][1].Amount++
		}, "in journal 3, duplicated 0, lost 0, total money unchanged, wrong 3", "t1 of a was answered with"},
		{"other order", func(l ledger) {
			l["a"][1], l["a"][2] = l["a"][2], l["a"][1]
		}, "in journal 3, duplicated 0, lost 0, total money unchanged, wrong 2", "t3 of a was answered with"},
		{"overdrawn", func(l ledger) {
			l["b"][0], l["b"][1] = l["b"][1], l["b"][0]
		}, "in journal 3, duplicated 0, lost 0, total money unchanged, wrong 3", "b is overdrawn by t2"},
		{"refused, but done", func(l ledger) {
			l["a"][3] = bankpb.Entry{Tx: "t4", Amount: 81, Takes: true}
		}, "in journal 3, duplicated 0, lost 0, total money off by -0.81, wrong 2", "t4 of a was refused; the journal has"},
		{"refused transfer, half done", func(l ledger) {
			l["b"] = append(l["b"], bankpb.Entry{Tx: "t5", Amount: 99, Other: "a"})
		}, "in journal 3, duplicated 0, lost 0, total money off by 0.99, transfers done by half 1, wrong 1", "nobody was told of b a/t5"},
		{"lost refusal", func(l ledger) {
			l["a"] = l["a"][:4]
		}, "in journal 3, duplicated 0, lost 0, total money unchanged, wrong 1", "t5 of a was refused; the journal has"},
		{"invented deposit", func(l ledger) {
			l["b"] = append(l["b"], bankpb.Entry{Tx: "t9", Amount: 5})
		}, "in journal 3, duplicated 0, lost 0, total money off by 0.05, wrong 1", "nobody was told of b t9"},
		{"changed past", func(l ledger) {
			l["a"][0].Tx = "other"
		}, "in journal 3, duplicated 0, lost 0, total money unchanged, wrong 1", "the history of a is not what it was before"},
		{"no past", func(l ledger) {
			l["a"] = nil
		}, "in journal 1, duplicated 0, lost 2, total money off by -0.80, transfers done by half 1, wrong 3", "the history of a is not what it was before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			before, now, decided := smallRun()
			c.doctor(now)
			v := audit(before, now, decided)
			want := fmt.Sprintf("acknowledged 3, %s", c.want)
			if v.String() != want || v.good() != (c.note == "") || !strings.Contains(v.report(), c.note) {
				t.Errorf("good %t\n got %s\nwant %s\n%s", v.good(), v, want, v.report())
			}
		})
	}
}

func TestReportIsShort(t *testing.T) {
	t.Parallel()
	v := audit(ledger{}, ledger{"a": slices.Repeat([]bankpb.Entry{{Tx: "x", Amount: 1, Takes: true}}, 50)}, nil)
	if lines := strings.Split(v.report(), "\n"); len(lines) != 11 || lines[10] != "and 41 more" {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
}
