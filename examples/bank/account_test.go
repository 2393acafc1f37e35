package main

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
	"github.com/dynactor/dynactor/examples/bank/bankpb"
)

// testStore is a store with tables of the test's own.
type testStore struct {
	*store
	flags flags
}

func newTestStore(t *testing.T) *testStore {
	t.Helper()
	db := dynactortest.New(t)
	f := flags{endpoint: db.Endpoint, events: db.EventsTable, snapshots: db.SnapshotsTable}
	s, err := openStore(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return &testStore{s, f}
}

// bank opens a bank with the accounts "a" and "b", which stops with the test.
func (s *testStore) bank(t *testing.T, o dynactor.Options) *bank {
	t.Helper()
	o.EventsTable, o.SnapshotsTable = s.flags.events, s.flags.snapshots
	o.Logger = slog.New(slog.DiscardHandler)
	b, err := openBank(t.Context(), s.client, o, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !b.system.IsStopped() {
			stop(t, b)
		}
	})
	return b
}

func stop(t *testing.T, b *bank) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
	defer cancel()
	if err := b.stop(ctx); err != nil {
		t.Error(err)
	}
}

// want sends a command and checks the answer.
func want(t *testing.T, b *bank, name string, command, want proto.Message) {
	t.Helper()
	got, err := b.ask(t.Context(), name, command)
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, want) {
		t.Errorf("%s answers %T{%v} with\n got %T{%v}\nwant %T{%v}", name, command, command, got, got, want, want)
	}
}

// wantStatus checks an account and its journal.
func wantStatus(t *testing.T, b *bank, name string, balance, events int64) {
	t.Helper()
	want(t, b, name, &bankpb.GetStatus{}, &bankpb.Status{Balance: balance, Events: events})
	head, err := b.provider.Journal().Head(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if head != events {
		t.Errorf("head of %s: got %d, want %d", name, head, events)
	}
}

func deposit(tx string, amount int64) *bankpb.Deposit {
	return &bankpb.Deposit{TxId: tx, Amount: amount}
}

func withdraw(tx string, amount int64) *bankpb.Withdraw {
	return &bankpb.Withdraw{TxId: tx, Amount: amount}
}

func receipt(tx string, balance int64) *bankpb.Receipt {
	return &bankpb.Receipt{TxId: tx, Balance: balance}
}

func refusal(tx string, reason bankpb.Reason, balance int64) *bankpb.Refusal {
	return &bankpb.Refusal{TxId: tx, Reason: reason, Balance: balance}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	b := newTestStore(t).bank(t, dynactor.Options{})
	want(t, b, "a", deposit("first", 100), receipt("first", 100))
	for _, c := range []struct {
		name    string
		command proto.Message
		tx      string
		reason  bankpb.Reason
	}{
		{"withdrawal overdraws", withdraw("1", 101), "1", bankpb.Reason_REASON_OVERDRAFT},
		{"debit overdraws", &bankpb.Debit{TxId: "1", To: "b", Amount: 101}, "1", bankpb.Reason_REASON_OVERDRAFT},
		{"no id", deposit("", 1), "", bankpb.Reason_REASON_INVALID},
		{"id with a slash", deposit("b/1", 1), "b/1", bankpb.Reason_REASON_INVALID},
		{"no amount", deposit("1", 0), "1", bankpb.Reason_REASON_INVALID},
		{"negative amount", withdraw("1", -1), "1", bankpb.Reason_REASON_INVALID},
		{"amount too large", deposit("1", bankpb.MaxAmount+1), "1", bankpb.Reason_REASON_INVALID},
		{"debit for itself", &bankpb.Debit{TxId: "1", To: "a", Amount: 1}, "1", bankpb.Reason_REASON_INVALID},
		{"id of another amount", deposit("first", 99), "first", bankpb.Reason_REASON_ID_TAKEN},
		{"id of another kind", withdraw("first", 100), "first", bankpb.Reason_REASON_ID_TAKEN},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want(t, b, "a", c.command, refusal(c.tx, c.reason, 100))
			wantStatus(t, b, "a", 100, 1)
		})
	}
}

func TestRefusalIsDecidedAnew(t *testing.T) {
	t.Parallel()
	b := newTestStore(t).bank(t, dynactor.Options{})
	want(t, b, "a", withdraw("1", 5), refusal("1", bankpb.Reason_REASON_OVERDRAFT, 0))
	want(t, b, "a", deposit("2", 8), receipt("2", 8))
	want(t, b, "a", withdraw("1", 5), receipt("1", 3))
	wantStatus(t, b, "a", 3, 2)
}

func TestCreditIsNotBarredByUsedID(t *testing.T) {
	t.Parallel()
	b := newTestStore(t).bank(t, dynactor.Options{})
	want(t, b, "b", deposit("1", 5), receipt("1", 5))
	want(t, b, "b", &bankpb.Credit{TxId: "1", From: "a", Amount: 5}, receipt("1", 10))
	want(t, b, "b", &bankpb.Credit{TxId: "1", From: "c", Amount: 5}, receipt("1", 15))
	want(t, b, "b", &bankpb.Credit{TxId: "1", From: "a", Amount: 5}, receipt("1", 10))
	wantStatus(t, b, "b", 15, 3)
}

// Replies get lost when the sender is taken after persisting, and a recovery
// applies an event twice when it is applied before persisting.
func TestSnapshotsLoseNoReplyAndNoEvent(t *testing.T) {
	t.Parallel()
	for _, interval := range []int{0, 1, 2, 3, 7} {
		s := newTestStore(t)
		o := dynactor.Options{SnapshotInterval: interval}
		b := s.bank(t, o)
		for i := int64(1); i <= 10; i++ {
			// Not ask, whose repeat would make up for a lost reply.
			tx := strconv.FormatInt(i, 10)
			got, err := wait(t.Context(), b.system.Root.RequestFuture(b.accounts["a"], deposit(tx, i), defaultPatience))
			if err != nil || !proto.Equal(got, receipt(tx, i*(i+1)/2)) {
				t.Fatalf("interval %d, event %d: got %v, %v", interval, i, got, err)
			}
		}
		stop(t, b)
		b = s.bank(t, o)
		wantStatus(t, b, "a", 55, 10)
	}
}

func TestRepeatsAreHarmless(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	o := dynactor.Options{SnapshotInterval: 3}
	b := s.bank(t, o)
	steps := []struct{ command, answer proto.Message }{
		{deposit("1", 100), receipt("1", 100)},
		{withdraw("2", 30), receipt("2", 70)},
		{&bankpb.Debit{TxId: "3", To: "b", Amount: 20}, receipt("3", 50)},
		{&bankpb.Credit{TxId: "4", From: "b", Amount: 5}, receipt("4", 55)},
		{withdraw("5", 55), receipt("5", 0)},
	}
	for _, step := range steps {
		want(t, b, "a", step.command, step.answer)
		want(t, b, "a", step.command, step.answer)
	}
	wantStatus(t, b, "a", 0, 5)
	// The first three come from the snapshot now, the others from events.
	stop(t, b)
	b = s.bank(t, o)
	for _, step := range steps {
		want(t, b, "a", step.command, step.answer)
	}
	wantStatus(t, b, "a", 0, 5)
}

func TestTransfer(t *testing.T) {
	t.Parallel()
	b := newTestStore(t).bank(t, dynactor.Options{})
	want(t, b, "a", deposit("1", 100), receipt("1", 100))
	for range 2 {
		debit, credit, err := b.transfer(t.Context(), "2", "a", "b", 60)
		if err != nil || !proto.Equal(debit, receipt("2", 40)) || !proto.Equal(credit, receipt("2", 60)) {
			t.Fatalf("got %v, %v, %v", debit, credit, err)
		}
	}
	debit, credit, err := b.transfer(t.Context(), "3", "a", "b", 60)
	if err != nil || !proto.Equal(debit, refusal("3", bankpb.Reason_REASON_OVERDRAFT, 40)) || credit != nil {
		t.Fatalf("got %v, %v, %v", debit, credit, err)
	}
	for _, to := range []string{"a", "nobody"} {
		if _, _, err := b.transfer(t.Context(), "4", "a", to, 1); err == nil {
			t.Errorf("transfer to %s", to)
		}
	}
	wantStatus(t, b, "a", 40, 2)
	wantStatus(t, b, "b", 60, 1)
}

func TestTransferCutBetweenLegs(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	b := s.bank(t, dynactor.Options{})
	want(t, b, "a", deposit("1", 100), receipt("1", 100))
	want(t, b, "a", &bankpb.Debit{TxId: "2", To: "b", Amount: 60}, receipt("2", 40))
	stop(t, b)
	b = s.bank(t, dynactor.Options{})
	wantStatus(t, b, "b", 0, 0)
	debit, credit, err := b.transfer(t.Context(), "2", "a", "b", 60)
	if err != nil || !proto.Equal(debit, receipt("2", 40)) || !proto.Equal(credit, receipt("2", 60)) {
		t.Fatalf("got %v, %v, %v", debit, credit, err)
	}
	wantStatus(t, b, "a", 40, 2)
	wantStatus(t, b, "b", 60, 1)
}

func TestFailedWrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		rule    dynactortest.Rule
		timeout time.Duration // for the write
	}{
		{"refused", dynactortest.Rule{Times: 1, Do: dynactortest.Answer(http.StatusBadRequest, "ValidationException", "no")}, 0},
		// Every attempt reaches the store, and the first one is carried out.
		{"stored, but nobody knows", dynactortest.Rule{Do: dynactortest.DropAnswer()}, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newTestStore(t)
			b := s.bank(t, dynactor.Options{WriteTimeout: c.timeout})
			b.patience = 2 * time.Second
			want(t, b, "a", deposit("1", 100), receipt("1", 100))
			var restarts atomic.Int64
			b.system.EventStream.Subscribe(func(e any) {
				if f, ok := e.(*actor.SupervisorEvent); ok && f.Directive == actor.RestartDirective {
					restarts.Add(1)
				}
			})
			c.rule.Op = "PutItem"
			s.meter.Add(c.rule)
			want(t, b, "a", withdraw("2", 30), receipt("2", 70))
			if n := restarts.Load(); n != 1 {
				t.Errorf("restarts of the account: got %d, want 1", n)
			}
			wantStatus(t, b, "a", 70, 2)
		})
	}
}

// Anybody can send what looks like history.
func TestForgedHistory(t *testing.T) {
	t.Parallel()
	b := newTestStore(t).bank(t, dynactor.Options{})
	want(t, b, "a", deposit("1", 100), receipt("1", 100))
	b.system.Root.Send(b.accounts["a"], &bankpb.Deposited{TxId: "2", Amount: 1})
	b.system.Root.Send(b.accounts["a"], &bankpb.AccountState{Balance: 1000})
	wantStatus(t, b, "a", 100, 1)
}
