package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
	"github.com/dynactor/dynactor/examples/bank/bankpb"
)

// Two incarnations of an account store a first event each. With the condition one
// of them fails; without it both are told that all is well, and the audit sees that
// an acknowledged event is gone.
func TestConditionIsWhatKeepsEvents(t *testing.T) {
	t.Parallel()
	for _, unsafe := range []bool{false, true} {
		db := dynactortest.New(t)
		store := storeConfig{Endpoint: db.Endpoint, Events: db.EventsTable, Snapshots: db.SnapshotsTable, Unsafe: unsafe}
		provider, err := store.open(t.Context(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { provider.close(context.WithoutCancel(t.Context())) })
		sessions := []persistence.ProviderState{provider.GetState(), provider.GetState()}
		for _, s := range sessions {
			s.Restart()
			s.GetEvents(kind+"/a", 0, 0, func(any) { t.Error("there is an event") })
		}
		var decided []decision
		for i, s := range sessions {
			tx := transaction{id: []string{"t1", "t2"}[i], to: "a", amount: 10}
			err := persist(s, &bankpb.Deposited{TxId: tx.id, Amount: tx.amount})
			switch {
			case err == nil:
				decided = append(decided, decision{tx, []proto.Message{&bankpb.Receipt{TxId: tx.id, Balance: 10}}})
			case !errors.Is(err, dynactor.ErrConflict):
				t.Fatal(err)
			}
		}
		now, err := readLedger(t.Context(), provider.Journal(), []string{"a"})
		if err != nil {
			t.Fatal(err)
		}
		want := "acknowledged 1, in journal 1, duplicated 0, lost 0, total money unchanged"
		if unsafe {
			want = "acknowledged 2, in journal 1, duplicated 0, lost 1, total money off by -0.10"
		}
		if v := audit(ledger{}, now, decided); v.String() != want {
			t.Errorf("unsafe %t\n got %s\nwant %s\n%s", unsafe, v, want, v.report())
		}
	}
}

// persist returns the panic of PersistEvent.
func persist(s persistence.ProviderState, event proto.Message) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = reason.(error)
		}
	}()
	s.PersistEvent(kind+"/a", 0, event)
	return nil
}
