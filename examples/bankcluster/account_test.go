package main

import (
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
	"github.com/dynactor/dynactor/examples/bank/bankpb"
)

// side is one side of a split brain: an actor system of its own, on the same store.
type side struct {
	t       *testing.T
	system  *actor.ActorSystem
	account *actor.PID
}

func newSide(t *testing.T, db *dynactortest.DB) *side {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	provider, err := dynactor.New(db.Client, dynactor.Options{EventsTable: db.EventsTable, SnapshotsTable: db.SnapshotsTable, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	s := &side{t: t, system: actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))}
	t.Cleanup(s.system.Shutdown)
	if s.account, err = s.system.Root.SpawnNamed(accountProps(provider), kind+"/a"); err != nil {
		t.Fatal(err)
	}
	return s
}

// asks sends a command and compares the answer; a grain error by its reason.
func (s *side) asks(command proto.Message, want any) {
	s.t.Helper()
	answer, err := s.system.Root.RequestFuture(s.account, command, 20*time.Second).Result()
	if err != nil {
		s.t.Fatalf("%T: %v", command, err)
	}
	if failed, is := answer.(*cluster.GrainErrorResponse); is {
		answer = failed.GetReason()
	}
	got, is := answer.(proto.Message)
	wanted, message := want.(proto.Message)
	if is != message || is && !proto.Equal(got, wanted) || !is && answer != want {
		s.t.Fatalf("%T is answered with %v, want %v", command, answer, want)
	}
}

// On both sides of a split brain an account answers what is stored, or not at all.
func TestAccountInASplitBrain(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	left, right := newSide(t, db), newSide(t, db)
	deposit := func(tx string, amount int64) proto.Message { return &bankpb.Deposit{TxId: tx, Amount: amount} }
	withdraw := func(tx string, amount int64) proto.Message { return &bankpb.Withdraw{TxId: tx, Amount: amount} }
	receipt := func(tx string, balance int64) proto.Message { return &bankpb.Receipt{TxId: tx, Balance: balance} }
	refusal := func(tx string, balance int64) proto.Message {
		return &bankpb.Refusal{TxId: tx, Reason: bankpb.Reason_REASON_OVERDRAFT, Balance: balance}
	}

	left.asks(&bankpb.GetStatus{}, &bankpb.Status{})
	right.asks(&bankpb.GetStatus{}, &bankpb.Status{})
	left.asks(deposit("t1", 100), receipt("t1", 100))

	// The right one believes that there is no money. It must not say so.
	right.asks(withdraw("t2", 60), "conflict")
	right.asks(withdraw("t2", 60), receipt("t2", 40))
	// The left one does not know that t2 was carried out, and that there is less money.
	left.asks(withdraw("t2", 60), "conflict")
	left.asks(withdraw("t2", 60), receipt("t2", 40))
	left.asks(withdraw("t3", 60), refusal("t3", 40))
	right.asks(&bankpb.GetStatus{}, "stale")
	right.asks(&bankpb.GetStatus{}, &bankpb.Status{Balance: 40, Events: 3})

	// What was refused stays refused, here and there, when there is money at last.
	right.asks(deposit("t4", 100), receipt("t4", 140))
	right.asks(withdraw("t3", 60), refusal("t3", 40))
	left.asks(withdraw("t3", 60), refusal("t3", 40))
}

// Commands that can never be right are refused without an event.
func TestAccountRefusesNonsense(t *testing.T) {
	t.Parallel()
	s := newSide(t, dynactortest.New(t))
	invalid := func(tx string) proto.Message {
		return &bankpb.Refusal{TxId: tx, Reason: bankpb.Reason_REASON_INVALID}
	}
	s.asks(&bankpb.Deposit{TxId: "t1"}, invalid("t1"))
	s.asks(&bankpb.Withdraw{Amount: 5}, invalid(""))
	s.asks(&bankpb.Debit{TxId: "t2", Amount: 5, To: "a"}, invalid("t2"))
	s.asks(&bankpb.Credit{TxId: "t/3", Amount: 5, From: "b"}, invalid("t/3"))
	s.asks(&bankpb.Deposit{TxId: "t4", Amount: bankpb.MaxAmount + 1}, invalid("t4"))
	s.asks(&bankpb.GetStatus{}, &bankpb.Status{})
}
