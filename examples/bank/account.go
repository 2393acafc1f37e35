package main

import (
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/examples/bank/bankpb"
)

// account is a bank account as a persistent actor. What it stores are events;
// its state is what the events add up to.
//
// Every transaction has an id, and the account knows all that it has done. So a
// repeat is answered like the first time and changes nothing.
type account struct {
	persistence.Mixin

	state *bankpb.AccountState
}

// accountProps makes accounts whose events and snapshots the provider stores.
func accountProps(provider *dynactor.Provider) *actor.Props {
	return actor.PropsFromProducer(
		func() actor.Actor { return &account{state: &bankpb.AccountState{}} },
		actor.WithReceiverMiddleware(persistence.Using(provider)),
		actor.WithGuardian(actor.NewOneForOneStrategy(10, 10*time.Second, afterFailure)),
	)
}

// afterFailure decides what becomes of an account that could not store or read
// an event. A restart reads the journal again, which knows what was stored.
// Resuming would go on with a state that may be wrong.
func afterFailure(reason any) actor.Directive {
	if err, ok := reason.(error); ok && errors.Is(err, dynactor.ErrClosed) {
		return actor.StopDirective
	}
	return actor.RestartDirective
}

// Receive handles commands, and in a recovery the snapshot and the events.
func (a *account) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *bankpb.Deposit:
		a.transact(ctx, &bankpb.Deposited{TxId: m.GetTxId(), Amount: m.GetAmount()})
	case *bankpb.Withdraw:
		a.transact(ctx, &bankpb.Withdrawn{TxId: m.GetTxId(), Amount: m.GetAmount()})
	case *bankpb.Debit:
		a.transact(ctx, &bankpb.Debited{TxId: m.GetTxId(), To: m.GetTo(), Amount: m.GetAmount()})
	case *bankpb.Credit:
		a.transact(ctx, &bankpb.Credited{TxId: m.GetTxId(), From: m.GetFrom(), Amount: m.GetAmount()})
	case *bankpb.GetStatus:
		ctx.Respond(&bankpb.Status{Balance: a.state.GetBalance(), Events: a.state.GetEvents()})
	case *persistence.RequestSnapshot:
		a.PersistSnapshot(proto.CloneOf(a.state))
	case *bankpb.AccountState:
		// Anybody can send such a message; only in a recovery is it the account's past.
		if a.Recovering() {
			a.state = m
		}
	case *bankpb.Deposited, *bankpb.Withdrawn, *bankpb.Debited, *bankpb.Credited:
		if a.Recovering() {
			a.state.Apply(bankpb.EntryOf(m))
		}
	}
}

// transact answers a command: from memory when it is a repeat, with a refusal,
// or with a receipt once its event is stored.
func (a *account) transact(ctx actor.Context, event proto.Message) {
	e := bankpb.EntryOf(event)
	if receipt := a.state.Known(e); receipt != nil {
		ctx.Respond(receipt)
		return
	}
	if reason := a.state.Objection(a.Name(), e); reason != bankpb.Reason_REASON_UNSPECIFIED {
		ctx.Respond(&bankpb.Refusal{TxId: e.Tx, Reason: reason, Balance: a.state.GetBalance()})
		return
	}
	// Rule one: take the sender before persisting. When a snapshot is due,
	// PersistReceive delivers RequestSnapshot through this same context, and
	// afterwards the context has no sender any more: a reply would be lost.
	sender := ctx.Sender()
	// Rule two: persist before applying. That RequestSnapshot comes from inside
	// PersistReceive, and the snapshot is stored as one of the events before this
	// one. If this one were in the state already, a recovery would apply it twice.
	a.PersistReceive(event)
	receipt := a.state.Apply(e)
	if sender != nil {
		ctx.Send(sender, receipt)
	}
}
