package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/examples/bank/bankpb"
)

// ledger is what the journal says, and nothing else: the entries of each account,
// in order. No actor is asked.
type ledger map[string][]bankpb.Entry

// readLedger replays the accounts.
func readLedger(ctx context.Context, j *dynactor.Journal, accounts []string) (ledger, error) {
	l := ledger{}
	for _, account := range accounts {
		l[account] = nil
		for e, err := range j.Replay(ctx, kind+"/"+account, 1, 0) {
			if err != nil {
				return nil, err
			}
			l[account] = append(l[account], bankpb.EntryOf(e.Message))
		}
	}
	return l, nil
}

func (l ledger) balance(account string) int64 {
	var sum int64
	for _, e := range l[account] {
		sum += e.Change()
	}
	return sum
}

// total is the number of entries, and the money of all accounts.
func (l ledger) total() (entries int, money int64) {
	for account := range l {
		entries += len(l[account])
		money += l.balance(account)
	}
	return entries, money
}

// posting is an entry of this run, with the balance after it.
type posting struct {
	bankpb.Entry
	balance int64
}

// auditor compares what was answered with the journal.
type auditor struct {
	verdict
	postings map[string][]posting // by account and key
}

// audit compares what was answered with the journal. before is the journal as it
// was at the beginning.
func audit(before, now ledger, decided []decision) verdict {
	a := auditor{postings: map[string][]posting{}}
	for account := range now {
		a.read(account, before[account], now[account])
	}
	a.pair(now)
	_, expected := before.total()
	for _, d := range decided {
		if d.refused() {
			a.refusal(d)
			continue
		}
		a.acknowledged++
		expected += d.adds()
		if a.receipts(d) {
			a.found++
		} else {
			a.lost++
		}
	}
	for key := range a.postings {
		a.wrong++
		a.note("nobody was told of %s", key)
	}
	_, money := now.total()
	a.off = money - expected
	slices.Sort(a.notes)
	return a.verdict
}

// read takes in what this run has added to an account.
func (a *auditor) read(account string, before, now []bankpb.Entry) {
	if len(now) < len(before) || !slices.Equal(now[:len(before)], before) {
		a.wrong++
		a.note("the history of %s is not what it was before", account)
	}
	old := min(len(before), len(now))
	balance := ledger{account: now[:old]}.balance(account)
	for _, e := range now[old:] {
		balance += e.Change()
		if balance < 0 && e.Takes {
			a.wrong++
			a.note("%s is overdrawn by %s", account, e.Tx)
		}
		key := account + " " + e.Key()
		a.postings[key] = append(a.postings[key], posting{e, balance})
	}
}

// pair counts the transfers that were not debited once and credited once.
func (a *auditor) pair(now ledger) {
	legs := map[string]int{} // debits less credits
	for account, entries := range now {
		for _, e := range entries {
			switch {
			case e.Other == "":
			case e.Takes:
				legs[e.Tx+": "+account+" to "+e.Other]++
			default:
				legs[e.Tx+": "+e.Other+" to "+account]--
			}
		}
	}
	for transfer, n := range legs {
		if n != 0 {
			a.halves++
			a.note("debits less credits of %s: %d", transfer, n)
		}
	}
}

// receipts looks for each leg of a transaction that was acknowledged, and tells
// whether all are there.
func (a *auditor) receipts(d decision) bool {
	found := true
	for i, e := range d.entries() {
		p, there := a.take(d.accounts()[i], e)
		if !there {
			found = false
			continue
		}
		want := &bankpb.Receipt{TxId: d.id, Balance: p.balance}
		if p.Entry != e || !proto.Equal(d.answers[i], want) {
			a.wrong++
			a.note("%s of %s was answered with %v; the journal has %v, %v", d.id, d.accounts()[i], d.answers[i], p.Entry, want)
		}
	}
	return found
}

// refusal looks for the refusal of a transaction. It is no money, so it is not
// counted as lost.
func (a *auditor) refusal(d decision) {
	p, there := a.take(d.accounts()[0], d.entries()[0])
	if !there || p.Refused == bankpb.Reason_REASON_UNSPECIFIED {
		a.wrong++
		a.note("%s of %s was refused; the journal has %v", d.id, d.accounts()[0], p.Entry)
	}
}

// take finds an entry, which should be there once.
func (a *auditor) take(account string, e bankpb.Entry) (posting, bool) {
	key := account + " " + e.Key()
	found := a.postings[key]
	delete(a.postings, key)
	switch len(found) {
	case 0:
		a.note("lost: %s", key)
		return posting{}, false
	case 1:
	default:
		a.duplicated++
		a.note("%d times: %s", len(found), key)
	}
	return found[0], true
}

// accounts are those of the legs.
func (t transaction) accounts() (names []string) {
	for _, l := range t.legs() {
		names = append(names, l.account)
	}
	return names
}

// entries are what the legs must have left in the journal.
func (t transaction) entries() []bankpb.Entry {
	debit := bankpb.Entry{Tx: t.id, Amount: t.amount, Takes: true, Other: t.to}
	credit := bankpb.Entry{Tx: t.id, Amount: t.amount, Other: t.from}
	switch {
	case t.from == "":
		return []bankpb.Entry{credit}
	case t.to == "":
		return []bankpb.Entry{debit}
	}
	return []bankpb.Entry{debit, credit}
}

// adds is what the bank has more after the transaction.
func (t transaction) adds() int64 {
	var sum int64
	for _, e := range t.entries() {
		sum += e.Change()
	}
	return sum
}

// verdict is the result of an audit.
type verdict struct {
	acknowledged, found, duplicated, lost int

	halves int   // transfers with one leg only
	wrong  int   // entries that do not fit their answers, or the history before
	off    int64 // money that is there and should not be, in cents; negative for what is missing
	notes  []string
}

func (v *verdict) note(format string, args ...any) {
	v.notes = append(v.notes, fmt.Sprintf(format, args...))
}

func (v verdict) good() bool {
	return v.found == v.acknowledged && v.duplicated == 0 && v.lost == 0 && v.halves == 0 && v.wrong == 0 && v.off == 0
}

// String is the last line of the demonstration.
func (v verdict) String() string {
	money := "total money unchanged"
	if v.off != 0 {
		money = "total money off by " + cents(v.off)
	}
	if v.halves > 0 {
		money += fmt.Sprintf(", transfers done by half %d", v.halves)
	}
	if v.wrong > 0 {
		money += fmt.Sprintf(", wrong %d", v.wrong)
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
