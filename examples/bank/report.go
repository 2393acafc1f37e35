package main

import (
	"fmt"
	"io"
	"time"

	"github.com/dynactor/dynactor/dynactortest"
)

// shownRows is how many accounts the table shows; those that differ are always shown.
const shownRows = 30

// row is an account before the stop and after the recovery.
type row struct {
	name          string
	before, after int64 // balance
	events        int64 // that the account has stored, by the driver's book
	recovered     int64 // events, by the recovered account
	head          int64 // of the journal
}

func (r row) equal() bool {
	return r.before == r.after && r.events == r.recovered && r.events == r.head
}

// report is the result of a run.
type report struct {
	opening int64 // sum of the balances at the start
	tally   tally
	rows    []row
	phases  []phase
}

// phase is a part of the run and what it took.
type phase struct {
	name  string
	usage dynactortest.Usage
	time  time.Duration
}

// cents prints an amount of money.
type cents int64

func (c cents) String() string {
	sign := ""
	if c < 0 {
		sign, c = "-", -c
	}
	return fmt.Sprintf("%s%d.%02d", sign, c/100, c%100)
}

// totals sums up the rows and tells how many accounts came back as they were.
func (r *report) totals() (before, after, events int64, equal int) {
	for _, row := range r.rows {
		before += row.before
		after += row.after
		events += row.events
		if row.equal() {
			equal++
		}
	}
	return before, after, events, equal
}

// expected is what all accounts must hold: transfers move money, they make none.
func (r *report) expected() int64 { return r.opening + r.tally.deposited - r.tally.withdrawn }

func (r *report) printTally(w io.Writer) {
	t := r.tally
	say(w, "  %-42s %8d %14s\n", "deposits", t.deposits, cents(t.deposited))
	say(w, "  %-42s %8d %14s\n", "withdrawals", t.withdrawals, cents(t.withdrawn))
	say(w, "  %-42s %8d %14s\n", "transfers", t.transfers, cents(t.moved))
	say(w, "  %-42s %8d\n", "refused, they would overdraw", t.refused)
	say(w, "  %-42s %8d\n", "sent twice, answered alike", t.repeated)
	say(w, "  %-42s %8d\n", "cut after the debit, completed by a repeat", t.completed)
}

func (r *report) printAccounts(w io.Writer) {
	say(w, "%-14s %14s %14s %8s\n", "account", "before", "after", "events")
	hidden := 0
	for i, row := range r.rows {
		switch {
		case !row.equal():
			say(w, "%-14s %14s %14s %8d  DIFFERS: it recovered %d events, the journal's head is %d\n",
				row.name, cents(row.before), cents(row.after), row.events, row.recovered, row.head)
		case i < shownRows:
			say(w, "%-14s %14s %14s %8d\n", row.name, cents(row.before), cents(row.after), row.events)
		default:
			hidden++
		}
	}
	if hidden > 0 {
		say(w, "and %d more that are equal\n", hidden)
	}
	before, after, events, _ := r.totals()
	say(w, "%-14s %14s %14s %8d\n", "total", cents(before), cents(after), events)
	say(w, "books: opening %s + deposits %s - withdrawals %s = %s\n",
		cents(r.opening), cents(r.tally.deposited), cents(r.tally.withdrawn), cents(r.expected()))
}

func (r *report) printPhases(w io.Writer) {
	say(w, "%-14s %10s %12s %12s %10s\n", "phase", "requests", "write units", "read units", "seconds")
	for _, p := range r.phases {
		say(w, "%-14s %10d %12.1f %12.1f %10.1f\n",
			p.name, p.usage.Requests, p.usage.WriteUnits, p.usage.ReadUnits, p.time.Seconds())
	}
}

// verdict is the last line, and whether all is well.
func (r *report) verdict() (line string, ok bool) {
	_, after, _, equal := r.totals()
	switch {
	case equal != len(r.rows):
		return fmt.Sprintf("recovered %d of %d accounts, the others DIFFER", equal, len(r.rows)), false
	case after != r.expected():
		return fmt.Sprintf("recovered %d of %d accounts, but the books do NOT balance: %s instead of %s",
			equal, len(r.rows), cents(after), cents(r.expected())), false
	}
	return fmt.Sprintf("recovered %d of %d accounts, balances equal", equal, len(r.rows)), true
}

// say prints. A console that cannot be written to has nobody to tell.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
