package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/examples/bank/bankpb"
)

// stopTime is how long the accounts may take to finish what they have begun.
const stopTime = 5 * time.Second

// demonstration is one run of the program on its store.
type demonstration struct {
	ops     int
	store   *store
	options dynactor.Options
	names   []string
	workers workers
	out     io.Writer
	driver  *driver
	report  report
}

// demonstrate works with a bank, recovers it in another actor system, and
// compares. It tells whether all is as it should be.
func demonstrate(ctx context.Context, f flags, stdout, stderr io.Writer) (ok bool, err error) {
	s, err := openStore(ctx, f)
	if err != nil {
		return false, err
	}
	defer s.close()
	d := &demonstration{
		ops: f.ops, store: s, out: stdout,
		options: dynactor.Options{
			EventsTable: f.events, SnapshotsTable: f.snapshots, SnapshotInterval: 50,
			// The framework reports what it does at INFO.
			Logger: slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		},
		workers: workers{atATime: f.concurrency, out: stderr, every: time.Second},
		driver:  newDriver(),
	}
	for i := range f.accounts {
		name := fmt.Sprintf("account-%04d", i)
		d.names = append(d.names, name)
		d.driver.books = append(d.driver.books, &book{name: name})
	}
	say(d.out, "store: %s, tables %s and %s\n", s.name, f.events, f.snapshots)
	if err := d.withBank(ctx, "opening", d.work); err != nil {
		return false, err
	}
	say(d.out, "\nThe actor system has been stopped. A new one recovers the accounts.\n\n")
	if err := d.withBank(ctx, "recovery", d.compare); err != nil {
		return false, err
	}
	line, ok := d.report.verdict()
	d.report.printAccounts(d.out)
	say(d.out, "\n")
	d.report.printPhases(d.out)
	say(d.out, "\n%s\n", line)
	return ok, nil
}

// withBank opens a new actor system, waits until every account has recovered,
// and stops the system after use.
func (d *demonstration) withBank(ctx context.Context, phase string, use func(context.Context, []*bankpb.Status) error) error {
	var statuses []*bankpb.Status
	err := d.phase(phase, func() (err error) {
		if d.driver.bank, err = openBank(ctx, d.store.client, d.options, d.names); err != nil {
			return err
		}
		statuses, err = d.statuses(ctx, phase)
		return err
	})
	if d.driver.bank == nil {
		return err
	}
	if err == nil {
		err = use(ctx, statuses)
	}
	// After Ctrl-C, too, the accounts finish what they have begun.
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if stopErr := d.driver.bank.stop(stopping); err == nil && stopErr != nil {
		err = fmt.Errorf("stop the bank: %w", stopErr)
	}
	return err
}

// work makes the transactions.
func (d *demonstration) work(ctx context.Context, opening []*bankpb.Status) error {
	old := 0
	for i, s := range opening {
		d.driver.books[i].balance, d.driver.books[i].events = s.GetBalance(), s.GetEvents()
		d.report.opening += s.GetBalance()
		if s.GetEvents() > 0 {
			old++
		}
	}
	say(d.out, "accounts: %d, of which %d come with a history, opening balances %s\n",
		len(opening), old, cents(d.report.opening))
	say(d.out, "transactions: %d, %d at a time, ids %s-...\n", d.ops, d.workers.atATime, d.driver.run)
	err := d.phase("transactions", func() error {
		return d.workers.do(ctx, "transactions", d.ops, func(ctx context.Context, i int) error {
			t := d.driver.transaction(i)
			if err := d.driver.operate(ctx, t); err != nil {
				return fmt.Errorf("transaction %s: %w", t.id, err)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	d.report.tally = d.driver.tally
	d.report.printTally(d.out)
	before, err := d.statuses(ctx, "balances")
	if err != nil {
		return err
	}
	for i, b := range d.driver.books {
		if s := before[i]; s.GetBalance() != b.balance || s.GetEvents() != b.events {
			return fmt.Errorf("%s has %s after %d events; by the books it is %s after %d",
				b.name, cents(s.GetBalance()), s.GetEvents(), cents(b.balance), b.events)
		}
	}
	return nil
}

// compare looks at the recovered accounts, and sees that they remember their
// transactions: repeats are answered alike and store nothing.
func (d *demonstration) compare(ctx context.Context, recovered []*bankpb.Status) error {
	d.report.rows = make([]row, len(recovered))
	journal := d.driver.bank.provider.Journal()
	return d.phase("repeats", func() error {
		return d.workers.do(ctx, "repeats", len(recovered), func(ctx context.Context, i int) error {
			b, s := d.driver.books[i], recovered[i]
			if err := d.driver.remind(ctx, b); err != nil {
				return fmt.Errorf("after the recovery: %w", err)
			}
			head, err := journal.Head(ctx, b.name)
			d.report.rows[i] = row{
				name: b.name, before: b.balance, after: s.GetBalance(),
				events: b.events, recovered: s.GetEvents(), head: head,
			}
			return err
		})
	})
}

// statuses asks all accounts how they stand.
func (d *demonstration) statuses(ctx context.Context, what string) ([]*bankpb.Status, error) {
	statuses := make([]*bankpb.Status, len(d.names))
	err := d.workers.do(ctx, what, len(statuses), func(ctx context.Context, i int) (err error) {
		statuses[i], err = d.driver.bank.status(ctx, d.names[i])
		return err
	})
	return statuses, err
}

// phase measures a part of the run.
func (d *demonstration) phase(name string, part func() error) error {
	d.store.meter.Reset()
	start := time.Now()
	err := part()
	d.report.phases = append(d.report.phases, phase{name, d.store.meter.Usage(), time.Since(start)})
	return err
}
