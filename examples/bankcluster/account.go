package main

import (
	"context"
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

// account is a bank account as a virtual actor. The cluster makes it where and when
// it is needed; here or there, it recovers from the journal first.
type account struct {
	dynactor.Mixin

	journal *dynactor.Journal
	name    string
	state   *bankpb.AccountState
}

// accountKind makes accounts whose events and snapshots the provider stores.
func accountKind(p *dynactor.Provider) *cluster.Kind {
	return cluster.NewKind(kind, actor.PropsFromProducer(
		func() actor.Actor { return &account{journal: p.Journal(), state: &bankpb.AccountState{}} },
		actor.WithReceiverMiddleware(clustered.Using(p, dynactor.UsingOptions{Snapshot: dynactor.EveryEvents(50)})),
	))
}

// Receive handles commands, and in a recovery the snapshot and the events.
func (a *account) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		a.name = cluster.GetClusterIdentity(ctx).Identity
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
	case *bankpb.Deposited, *bankpb.Withdrawn, *bankpb.Debited, *bankpb.Credited:
		if a.Recovering() {
			a.state.Apply(bankpb.EntryOf(m))
		}
	}
}

// transact answers a command: from memory when it is a repeat, with a refusal, or
// with a receipt once its event is stored. An event that cannot be stored is
// answered by clustered.Using.
func (a *account) transact(ctx actor.Context, event proto.Message) {
	e := bankpb.EntryOf(event)
	if receipt := a.state.Known(e); receipt != nil {
		ctx.Respond(receipt)
		return
	}
	if reason := a.state.Objection(a.name, e); reason != bankpb.Reason_REASON_UNSPECIFIED {
		if a.current(ctx) {
			ctx.Respond(&bankpb.Refusal{TxId: e.Tx, Reason: reason, Balance: a.state.GetBalance()})
		}
		return
	}
	a.PersistReceive(event)
	ctx.Respond(a.state.Apply(e))
}

// current tells whether the account knows all that is stored. An event proves that
// when it is stored, by the condition of its put. An answer that stores nothing has
// to look: in a split brain this account may live on another node, too, and have
// gone on there. Then this one must recover, and the client ask again.
func (a *account) current(ctx actor.Context) bool {
	look, cancel := context.WithTimeout(context.Background(), 2*time.Second)
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
