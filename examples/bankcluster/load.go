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
	tooMuch = 1_000_000_00
)

// transaction is a deposit, a withdrawal or a transfer.
type transaction struct {
	id       string
	from, to string // accounts; one of them is empty for deposits and withdrawals
	amount   int64
}

// decision is a transaction that was answered, in all its legs: a Receipt for each,
// or a Refusal for the first.
type decision struct {
	transaction
	answers []proto.Message
}

func (d decision) refused() bool {
	_, is := d.answers[0].(*bankpb.Refusal)
	return is
}

// load makes transactions and keeps the books of what was answered. It is safe for
// concurrent use.
type load struct {
	client   *client
	accounts []string
	run      string // begins the transaction ids, so that no two runs share one

	next    atomic.Int64
	refused atomic.Int64

	mu      sync.Mutex
	decided []decision // only ever longer
}

// decisions are those so far.
func (l *load) decisions() []decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.decided[:len(l.decided):len(l.decided)]
}

// acknowledged counts the transactions that were carried out.
func (l *load) acknowledged() int { return len(l.decisions()) - int(l.refused.Load()) }

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

// work makes transactions until stop is closed, each to its end.
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
// withdrawal, the others are transfers. Some withdrawals ask for too much.
func (l *load) random() transaction {
	n := rand.IntN(len(l.accounts))
	t := transaction{id: l.id(), amount: 1 + rand.Int64N(most)}
	switch rand.IntN(5) {
	case 0, 1:
		t.to = l.accounts[n]
	case 2:
		t.from = l.accounts[n]
		if rand.IntN(10) == 0 {
			t.amount += tooMuch
		}
	default:
		t.from, t.to = l.accounts[n], l.accounts[(n+1+rand.IntN(len(l.accounts)-1))%len(l.accounts)]
	}
	return t
}

// transact carries a transaction out until all its legs are answered.
func (l *load) transact(ctx context.Context, t transaction) error {
	d := decision{transaction: t}
	for _, leg := range t.legs() {
		answer, err := l.client.ask(ctx, leg.account, leg.command)
		if err != nil {
			return fmt.Errorf("transaction %s: %w", t.id, err)
		}
		d.answers = append(d.answers, answer)
		if r, is := answer.(*bankpb.Refusal); is {
			if r.GetReason() != bankpb.Reason_REASON_OVERDRAFT || leg.account != t.from {
				return fmt.Errorf("transaction %s was refused by %s: %v", t.id, leg.account, r.GetReason())
			}
			l.refused.Add(1)
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decided = append(l.decided, d)
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
