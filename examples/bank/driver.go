package main

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor/examples/bank/bankpb"
)

// In cents: the usual amounts go up to most; some withdrawals ask for tooMuch.
const (
	most    = 100_00
	tooMuch = 1_000_000_00
)

// driver makes up transactions, carries them out, and checks every answer
// against its books. It is safe for concurrent use.
type driver struct {
	bank  *bank
	books []*book
	run   string // begins the transaction ids, so that no two runs share one
	seed  uint64

	mu    sync.Mutex
	tally tally
}

func newDriver() *driver {
	return &driver{run: strings.ToLower(crand.Text()[:8]), seed: rand.Uint64()}
}

// tally counts what was done.
type tally struct {
	deposits, withdrawals, transfers int
	deposited, withdrawn, moved      int64 // in cents
	refused                          int   // for want of money
	repeated                         int   // done twice, and answered alike
	completed                        int   // transfers that ended after the debit, and were done again
}

// transaction is a deposit or a withdrawal with one leg, or a transfer with two.
type transaction struct {
	id     string
	amount int64
	legs   []leg
	cut    bool // the first attempt ends after the first leg
	repeat bool
}

// leg is what a transaction does to one account.
type leg struct {
	book    *book
	command proto.Message
	change  int64
}

// transaction makes up the i-th transaction: two in five are deposits, one in
// five is a withdrawal, the others are transfers. Some are sent twice, and some
// transfers end after the debit at first.
func (d *driver) transaction(i int) transaction {
	r := rand.New(rand.NewPCG(d.seed, uint64(i)))
	t := transaction{id: fmt.Sprintf("%s-%06d", d.run, i), amount: 1 + r.Int64N(most)}
	n := r.IntN(len(d.books))
	a, b := d.books[n], d.books[(n+1+r.IntN(len(d.books)-1))%len(d.books)]
	switch kind := r.IntN(5); {
	case kind < 2:
		t.legs = []leg{{a, &bankpb.Deposit{TxId: t.id, Amount: t.amount}, t.amount}}
	case kind < 3:
		if r.IntN(10) == 0 {
			t.amount += tooMuch
		}
		t.legs = []leg{{a, &bankpb.Withdraw{TxId: t.id, Amount: t.amount}, -t.amount}}
	default:
		t.legs = []leg{
			{a, &bankpb.Debit{TxId: t.id, To: b.name, Amount: t.amount}, -t.amount},
			{b, &bankpb.Credit{TxId: t.id, From: a.name, Amount: t.amount}, t.amount},
		}
		t.cut = r.IntN(20) == 0
	}
	t.repeat = !t.cut && r.IntN(10) == 0
	return t
}

// operate carries out a transaction, and checks the answers.
func (d *driver) operate(ctx context.Context, t transaction) error {
	// While its accounts are locked the answers can be foretold.
	defer t.lock()()
	if t.cut {
		if _, err := d.bank.ask(ctx, t.legs[0].book.name, t.legs[0].command); err != nil {
			return err
		}
	}
	answers, err := d.send(ctx, t)
	if err != nil {
		return err
	}
	done := true
	for i, answer := range answers {
		done, err = t.legs[i].settle(t.id, answer)
		if err != nil {
			return err
		}
	}
	if t.repeat {
		again, err := d.send(ctx, t)
		if err != nil {
			return err
		}
		for i, answer := range again {
			if err := t.legs[i].check(answer, answers[i]); err != nil {
				return err
			}
		}
	}
	d.count(t, done)
	return nil
}

// send sends a transaction. It returns the answer of each leg that was begun.
func (d *driver) send(ctx context.Context, t transaction) ([]proto.Message, error) {
	from := t.legs[0]
	if len(t.legs) == 1 {
		answer, err := d.bank.ask(ctx, from.book.name, from.command)
		return []proto.Message{answer}, err
	}
	debit, credit, err := d.bank.transfer(ctx, t.id, from.book.name, t.legs[1].book.name, t.amount)
	if credit == nil {
		return []proto.Message{debit}, err
	}
	return []proto.Message{debit, credit}, err
}

// lock locks the transaction's accounts, always in the same order, so that two
// transfers cannot wait for each other. It returns what unlocks them.
func (t transaction) lock() (unlock func()) {
	legs := slices.SortedFunc(slices.Values(t.legs), func(a, b leg) int { return cmp.Compare(a.book.name, b.book.name) })
	for _, l := range legs {
		l.book.mu.Lock()
	}
	return func() {
		for _, l := range legs {
			l.book.mu.Unlock()
		}
	}
}

func (d *driver) count(t transaction, done bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !done:
		d.tally.refused++
	case len(t.legs) == 2:
		d.tally.transfers++
		d.tally.moved += t.amount
	case t.legs[0].change > 0:
		d.tally.deposits++
		d.tally.deposited += t.amount
	default:
		d.tally.withdrawals++
		d.tally.withdrawn += t.amount
	}
	if t.repeat {
		d.tally.repeated++
	}
	if t.cut && done {
		d.tally.completed++
	}
}

// remind sends the first and the last transaction of an account again, to a bank
// that can know of them from the store only.
func (d *driver) remind(ctx context.Context, b *book) error {
	for _, p := range []*posted{b.first, b.last} {
		if p == nil {
			continue
		}
		answer, err := d.bank.ask(ctx, b.name, p.leg.command)
		if err != nil {
			return err
		}
		if err := p.leg.check(answer, p.receipt); err != nil {
			return err
		}
	}
	return nil
}
