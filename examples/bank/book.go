package main

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor/examples/bank/bankpb"
)

// book is what the driver knows about an account, apart from the account: what
// it must answer next, and how it must stand.
type book struct {
	name string

	mu          sync.Mutex // held from a command to its answer
	balance     int64
	events      int64
	first, last *posted // by this run; nil for none
}

// posted is a leg that was carried out, with its answer.
type posted struct {
	leg     leg
	receipt proto.Message
}

// settle checks the answer to a new command and takes it over into the book. It
// tells whether the command was carried out.
func (l leg) settle(tx string, answer proto.Message) (done bool, err error) {
	b := l.book
	after := b.balance + l.change
	if after < 0 {
		return false, l.check(answer, &bankpb.Refusal{TxId: tx, Reason: bankpb.Reason_REASON_OVERDRAFT, Balance: b.balance})
	}
	if err := l.check(answer, &bankpb.Receipt{TxId: tx, Balance: after}); err != nil {
		return false, err
	}
	b.balance = after
	b.events++
	b.last = &posted{l, answer}
	if b.first == nil {
		b.first = b.last
	}
	return true, nil
}

// check compares an answer with what it must be.
func (l leg) check(answer, want proto.Message) error {
	if proto.Equal(answer, want) {
		return nil
	}
	return fmt.Errorf("%s answered %T{%v} with %T{%v}; it must be %T{%v}",
		l.book.name, l.command, l.command, answer, answer, want, want)
}
