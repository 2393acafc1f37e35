package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor/examples/bank/bankpb"
)

// Amounts in cents.
const (
	opening = 1_000_00
	most    = 100_00
)

// transaction is one that was acknowledged, in all its legs.
type transaction struct {
	id       string
	from, to string // accounts; one of them is empty for deposits and withdrawals
	amount   int64
}

// load makes transactions and keeps the books of what was acknowledged. It is safe
// for concurrent use.
type load struct {
	teller   *teller
	accounts []string
	run      string // begins the transaction ids, so that no two runs share one

	next    atomic.Int64
	refused atomic.Int64

	mu    sync.Mutex
	acked []transaction
}

// acknowledged counts the transactions that were.
func (l *load) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// open gives each account its opening deposit.
func (l *load) open(ctx context.Context) error {
	var all sync.WaitGroup
	errs := make(chan error, len(l.accounts))
	for _, account := range l.accounts {
		all.Go(func() {
			if err := l.transact(ctx, transaction{id: l.id(), to: account, amount: opening}); err != nil {
				errs <- fmt.Errorf("open %s: %w", account, err)
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}

// run makes transactions until stop is closed or there have been enough, each to
// its end.
func (l *load) work(ctx context.Context, workers int, stop <-chan struct{}) error {
	var all sync.WaitGroup
	errs := make(chan error, workers)
	for range workers {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := l.transact(ctx, l.random()); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}

func (l *load) id() string { return fmt.Sprintf("%s-%06d", l.run, l.next.Add(1)) }

// random makes up a transaction: two in five are deposits, one in five is a
// withdrawal, the others are transfers.
func (l *load) random() transaction {
	n := rand.IntN(len(l.accounts))
	t := transaction{id: l.id(), amount: 1 + rand.Int64N(most)}
	switch rand.IntN(5) {
	case 0, 1:
		t.to = l.accounts[n]
	case 2:
		t.from = l.accounts[n]
	default:
		t.from, t.to = l.accounts[n], l.accounts[(n+1+rand.IntN(len(l.accounts)-1))%len(l.accounts)]
	}
	return t
}

// transact carries a transaction out until all its legs are answered.
func (l *load) transact(ctx context.Context, t transaction) error {
	for _, leg := range t.legs() {
		answer, err := l.teller.ask(ctx, leg.account, leg.command)
		if err != nil {
			return fmt.Errorf("transaction %s at %s: %w", t.id, leg.account, err)
		}
		switch a := answer.(type) {
		case *bankpb.Receipt:
		case *bankpb.Refusal:
			if a.GetReason() == bankpb.Reason_REASON_OVERDRAFT && leg.account == t.from {
				l.refused.Add(1)
				return nil // with nothing stored
			}
			return fmt.Errorf("transaction %s was refused by %s: %v", t.id, leg.account, a.GetReason())
		default:
			return fmt.Errorf("%s answered with a %T", leg.account, answer)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked = append(l.acked, t)
	return nil
}

// leg is what a transaction asks of one account.
type leg struct {
	account string
	command proto.Message
}

// legs are in the order in which they must be done: money may be under way, but
// never in two places.
func (t transaction) legs() []leg {
	switch {
	case t.from == "":
		return []leg{{t.to, &bankpb.Deposit{TxId: t.id, Amount: t.amount}}}
	case t.to == "":
		return []leg{{t.from, &bankpb.Withdraw{TxId: t.id, Amount: t.amount}}}
	}
	return []leg{
		{t.from, &bankpb.Debit{TxId: t.id, To: t.to, Amount: t.amount}},
		{t.to, &bankpb.Credit{TxId: t.id, From: t.from, Amount: t.amount}},
	}
}
