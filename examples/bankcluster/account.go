package main

import (
	"context"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/clustered"
	"github.com/dynactor/dynactor/examples/bank/bankpb"
)

// kind is the kind of the virtual actors; an account's persistence id is
// "account/" and its name.
const kind = "account"

// idle is how long an account stays in memory when nobody asks it.
const idle = 20 * time.Second

// snapshotEvery is a number of events.
const snapshotEvery = 50

// account is a bank account as a virtual actor. The cluster makes it where and when
// it is needed; here or there, it recovers from the journal first.
type account struct {
	dynactor.Mixin

	journal *dynactor.Journal
	state   *bankpb.AccountState
}

// accountKind makes accounts whose events and snapshots the provider stores.
func accountKind(p *dynactor.Provider) *cluster.Kind {
	return cluster.NewKind(kind, accountProps(p))
}

func accountProps(p *dynactor.Provider) *actor.Props {
	return actor.PropsFromProducer(
		func() actor.Actor { return &account{journal: p.Journal(), state: &bankpb.AccountState{}} },
		actor.WithReceiverMiddleware(clustered.Using(p, dynactor.UsingOptions{Snapshot: dynactor.EveryEvents(snapshotEvery)})),
	)
}

// Receive handles commands, and in a recovery the snapshot and the events.
func (a *account) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.SetReceiveTimeout(idle)
	case *actor.ReceiveTimeout:
		ctx.Poison(ctx.Self())
	case *bankpb.Deposit:
		a.transact(ctx, &bankpb.Deposited{TxId: m.GetTxId(), Amount: m.GetAmount()})
	case *bankpb.Withdraw:
		a.transact(ctx, &bankpb.Withdrawn{TxId: m.GetTxId(), Amount: m.GetAmount()})
	case *bankpb.Debit:
		a.transact(ctx, &bankpb.Debited{TxId: m.GetTxId(), To: m.GetTo(), Amount: m.GetAmount()})
	case *bankpb.Credit:
		a.transact(ctx, &bankpb.Credited{TxId: m.GetTxId(), From: m.GetFrom(), Amount: m.GetAmount()})
	case *bankpb.GetStatus:
		if a.current(ctx) {
			ctx.Respond(&bankpb.Status{Balance: a.state.GetBalance(), Events: a.state.GetEvents()})
		}
	case *persistence.RequestSnapshot:
		a.PersistSnapshot(proto.CloneOf(a.state))
	case *bankpb.AccountState:
		if a.Recovering() {
			a.state = m
		}
	case *bankpb.Deposited, *bankpb.Withdrawn, *bankpb.Debited, *bankpb.Credited, *bankpb.Refused:
		if a.Recovering() {
			a.state.Apply(bankpb.EntryOf(m))
		}
	}
}

// transact answers a command with what was decided on its transaction: from memory
// when it is a repeat, else by an event. A refusal is stored, too. In a split brain
// the account may live on two nodes, and each believes to be the only one; but only
// that whose write succeeds knows how the account stands. And what was refused stays
// refused, when a command that was sent twice arrives late.
//
// An event that cannot be stored is answered by clustered.Using.
func (a *account) transact(ctx actor.Context, event proto.Message) {
	e := bankpb.EntryOf(event)
	if answer := a.state.Known(e); answer != nil {
		ctx.Respond(answer)
		return
	}
	reason := a.state.Objection(strings.TrimPrefix(a.PersistenceID(), kind+"/"), e)
	if reason == bankpb.Reason_REASON_OVERDRAFT {
		event = &bankpb.Refused{TxId: e.Tx, Reason: reason}
	} else if reason != bankpb.Reason_REASON_UNSPECIFIED { // the command can never be right
		ctx.Respond(&bankpb.Refusal{TxId: e.Tx, Reason: reason, Balance: a.state.GetBalance()})
		return
	}
	a.PersistReceive(event)
	ctx.Respond(a.state.Apply(bankpb.EntryOf(event)))
}

// current tells whether the account knows all that is stored. An answer that stores
// nothing has to look: in a split brain this account may have gone on elsewhere. Then
// this one must recover, and the client ask again.
func (a *account) current(ctx actor.Context) bool {
	look, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	head, err := a.journal.Head(look, a.PersistenceID())
	if err == nil && head == a.Head() {
		return true
	}
	ctx.Respond(cluster.NewGrainErrorResponse("stale", "the account has gone on elsewhere, or nobody can tell"))
	if err == nil {
		panic(dynactor.ErrConflict) // the supervisor restarts the account
	}
	return false
}
