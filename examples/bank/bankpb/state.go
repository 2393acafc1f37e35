package bankpb

import (
	"strings"

	"google.golang.org/protobuf/proto"
)

// MaxAmount is the most that one transaction can move, in cents. It keeps sums
// far away from what an int64 can hold.
const MaxAmount = 1 << 40

// Known is the answer to an entry that the account has decided on already; nil when
// it has not.
func (s *AccountState) Known(e Entry) proto.Message {
	if refusal := s.GetRefusals()[e.Tx]; refusal != nil && e.Takes {
		return refusal
	}
	known := s.GetPostings()[e.Key()]
	if known == nil || known.GetChange() != e.Change() || known.GetOther() != e.Other {
		return nil
	}
	return &Receipt{TxId: e.Tx, Balance: known.GetBalance()}
}

// Objection says why the account with that name refuses an entry; unspecified when
// it does not.
func (s *AccountState) Objection(name string, e Entry) Reason {
	switch {
	case e.Tx == "" || strings.Contains(e.Tx, "/") || e.Amount < 1 || e.Amount > MaxAmount || e.Other == name:
		return Reason_REASON_INVALID
	case s.GetPostings()[e.Key()] != nil:
		return Reason_REASON_ID_TAKEN
	case e.Change() < 0 && s.GetBalance()+e.Change() < 0:
		return Reason_REASON_OVERDRAFT
	}
	return Reason_REASON_UNSPECIFIED
}

// Apply makes an entry part of the state. It returns the answer to its command: a
// Receipt, or a Refusal.
func (s *AccountState) Apply(e Entry) proto.Message {
	s.Events++
	if e.Refused != Reason_REASON_UNSPECIFIED {
		if s.Refusals == nil {
			s.Refusals = map[string]*Refusal{}
		}
		s.Refusals[e.Tx] = &Refusal{TxId: e.Tx, Reason: e.Refused, Balance: s.GetBalance()}
		return s.Refusals[e.Tx]
	}
	s.Balance += e.Change()
	if s.Postings == nil {
		s.Postings = map[string]*Posting{}
	}
	s.Postings[e.Key()] = &Posting{Change: e.Change(), Balance: s.GetBalance(), Other: e.Other}
	return &Receipt{TxId: e.Tx, Balance: s.GetBalance()}
}
