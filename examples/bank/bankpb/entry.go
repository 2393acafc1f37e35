// Package bankpb has the messages of the bank examples, and what they mean for an account.
package bankpb

// Entry is what an event means for an account.
type Entry struct {
	Tx      string
	Amount  int64
	Takes   bool   // the money leaves the account
	Other   string // the other account of a transfer
	Refused Reason // unspecified when the money was moved
}

// EntryOf reads an event. It is empty for what is none.
func EntryOf(event any) Entry {
	switch e := event.(type) {
	case *Deposited:
		return Entry{Tx: e.GetTxId(), Amount: e.GetAmount()}
	case *Withdrawn:
		return Entry{Tx: e.GetTxId(), Amount: e.GetAmount(), Takes: true}
	case *Debited:
		return Entry{Tx: e.GetTxId(), Amount: e.GetAmount(), Takes: true, Other: e.GetTo()}
	case *Credited:
		return Entry{Tx: e.GetTxId(), Amount: e.GetAmount(), Other: e.GetFrom()}
	case *Refused:
		return Entry{Tx: e.GetTxId(), Refused: e.GetReason()}
	}
	return Entry{}
}

// Change is what the entry adds to the balance.
func (e Entry) Change() int64 {
	if e.Takes {
		return -e.Amount
	}
	return e.Amount
}

// Key is what the account remembers the entry by. That of a credit holds its
// source, which accepts an id once: so no other use of the id at the target can
// bar a credit whose debit was done, and the money always arrives. Ids have no
// slash, so the two kinds of keys cannot meet.
func (e Entry) Key() string {
	if e.Other != "" && !e.Takes {
		return e.Other + "/" + e.Tx
	}
	return e.Tx
}
