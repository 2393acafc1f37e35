package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/examples/bank/bankpb"
)

// ledger is what the journal says, and nothing else: no actor is asked.
type ledger struct {
	balances map[string]int64
	entries  map[string]int // how often each entry is there, by account and key
	legs     map[string]int // of transfers: debits less credits, by transaction id and accounts
	events   int
}

// readLedger replays the accounts.
func readLedger(ctx context.Context, j *dynactor.Journal, accounts []string) (*ledger, error) {
	l := newLedger()
	for _, account := range accounts {
		l.balances[account] = 0
		for e, err := range j.Replay(ctx, kind+"/"+account, 1, 0) {
			if err != nil {
				return nil, err
			}
			l.add(account, bankpb.EntryOf(e.Message))
		}
	}
	return l, nil
}

func newLedger() *ledger {
	return &ledger{balances: map[string]int64{}, entries: map[string]int{}, legs: map[string]int{}}
}

func (l *ledger) add(account string, e bankpb.Entry) {
	l.events++
	l.balances[account] += e.Change()
	l.entries[account+" "+e.Key()]++
	if e.Other == "" {
		return
	}
	if e.Takes {
		l.legs[e.Tx+": "+account+" to "+e.Other]++
	} else {
		l.legs[e.Tx+": "+e.Other+" to "+account]--
	}
}

func (l *ledger) total() int64 {
	var sum int64
	for _, b := range l.balances {
		sum += b
	}
	return sum
}

// verdict is the result of an audit.
type verdict struct {
	acknowledged, found, duplicated, lost int

	halves int   // transfers with one leg only
	differ int   // accounts that say something else than the journal
	off    int64 // money that is there and should not be, in cents; negative for what is missing
	notes  []string
}

// audit compares what was acknowledged with the journal. before is the journal at
// the beginning.
func audit(before, now *ledger, acked []transaction) verdict {
	v := verdict{acknowledged: len(acked)}
	note := func(format string, args ...any) { v.notes = append(v.notes, fmt.Sprintf(format, args...)) }
	expected := before.total()
	for _, t := range acked {
		found := true
		for _, k := range t.keys() {
			if now.entries[k] == 0 {
				found = false
				note("lost: %s, acknowledged as %v", k, t)
			}
		}
		if found {
			v.found++
		} else {
			v.lost++
		}
		if t.from == "" {
			expected += t.amount
		}
		if t.to == "" {
			expected -= t.amount
		}
	}
	for k, n := range now.entries {
		if n > 1 {
			v.duplicated++
			note("%d times: %s", n, k)
		}
	}
	for transfer, n := range now.legs {
		if n != 0 {
			v.halves++
			note("debits less credits of %s: %d", transfer, n)
		}
	}
	v.off = now.total() - expected
	slices.Sort(v.notes)
	return v
}

// keys are the transaction's entries in a ledger.
func (t transaction) keys() []string {
	switch {
	case t.from == "":
		return []string{t.to + " " + t.id}
	case t.to == "":
		return []string{t.from + " " + t.id}
	}
	return []string{t.from + " " + t.id, t.to + " " + t.from + "/" + t.id}
}

func (v verdict) good() bool {
	return v.found == v.acknowledged && v.duplicated == 0 && v.lost == 0 && v.halves == 0 && v.off == 0 && v.differ == 0
}

// String is the last line of the demonstration.
func (v verdict) String() string {
	money := "total money unchanged"
	switch {
	case v.off != 0:
		money = fmt.Sprintf("total money off by %s", cents(v.off))
	case v.halves > 0:
		money = fmt.Sprintf("%d transfers done by half", v.halves)
	case v.differ > 0:
		money = fmt.Sprintf("%d accounts say something else", v.differ)
	}
	return fmt.Sprintf("acknowledged %d, in journal %d, duplicated %d, lost %d, %s", v.acknowledged, v.found, v.duplicated, v.lost, money)
}

// report is what to look at when an audit fails.
func (v verdict) report() string {
	const most = 10
	list := v.notes[:min(len(v.notes), most)]
	if more := len(v.notes) - len(list); more > 0 {
		list = append(slices.Clone(list), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, "\n")
}

func cents(n int64) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf("%s%d.%02d", sign, n/100, n%100)
}
