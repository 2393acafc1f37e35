package main

import "github.com/dynactor/dynactor/examples/bank/bankpb"

// entry is what an event means for an account.
type entry struct {
	tx     string
	amount int64
	takes  bool   // the money leaves the account
	other  string // the other account of a transfer
}

// entryOf reads an event.
func entryOf(event any) entry {
	switch e := event.(type) {
	case *bankpb.Deposited:
		return entry{tx: e.GetTxId(), amount: e.GetAmount()}
	case *bankpb.Withdrawn:
		return entry{tx: e.GetTxId(), amount: e.GetAmount(), takes: true}
	case *bankpb.Debited:
		return entry{tx: e.GetTxId(), amount: e.GetAmount(), takes: true, other: e.GetTo()}
	case *bankpb.Credited:
		return entry{tx: e.GetTxId(), amount: e.GetAmount(), other: e.GetFrom()}
	}
	return entry{}
}

// change is what the entry adds to the balance.
func (e entry) change() int64 {
	if e.takes {
		return -e.amount
	}
	return e.amount
}

// key is what the account remembers the entry by. That of a credit holds its
// source, which accepts an id once: so no other use of the id at the target can
// bar a credit whose debit was done, and the money always arrives. Ids have no
// slash, so the two kinds of keys cannot meet.
func (e entry) key() string {
	if e.other != "" && !e.takes {
		return e.other + "/" + e.tx
	}
	return e.tx
}
