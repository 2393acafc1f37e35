package dynactor_test

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// retained makes two providers on the same rows, which keep the row of a deleted
// state for an hour of a clock.
func retained(t *testing.T) (mine, theirs *dynactor.Provider, faults *dynactortest.Faults, c *clock) {
	t.Helper()
	db := dynactortest.New(t)
	c = &clock{}
	o := dynactor.Options{Now: c.Now, StateRetention: time.Hour}
	client, faults := db.NewClient()
	mine, theirs = openOn(t, db, client, o), openOn(t, db, db.Client, o)
	if err := theirs.State().EnsureTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := mine.State().EnsureTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	return mine, theirs, faults, c
}

// The row of a deleted state goes at last, and its id begins anew with number 1.
func TestState_NewLife(t *testing.T) {
	t.Parallel()

	// begin lets the row of a deleted state go, and begins anew up to revision 2.
	begin := func(t *testing.T, s *dynactor.StateStore, c *clock) {
		t.Helper()
		c.Advance(4 * time.Second)
		if err := s.Purge(t.Context(), "a", 2); err != nil {
			t.Fatal(err)
		}
		saved(t, s, "a", 0, "new 1")
		saved(t, s, "a", 1, "new 2")
	}

	for name, write := range map[string]any{"save": keep("old"), "delete": drop{}} {
		t.Run("an actor that knows the number from the life before does not "+name, func(t *testing.T) {
			t.Parallel()
			p, other, _, c := retained(t)
			saved(t, other.State(), "a", 0, "x")
			if _, err := other.State().Delete(t.Context(), "a", 1); err != nil {
				t.Fatal(err)
			}
			c.Advance(time.Hour - time.Second)
			w := newKeepers(t)
			w.keeper(p, "a", dynactor.UsingStateOptions{})
			w.expect("a", get{}, at("", 2))
			begin(t, other.State(), c)
			if f, ok := w.ask("a", write).(*dynactor.PersistenceFailure); !ok || f.GetCode() != "conflict" {
				t.Errorf("answered %v", f)
			}
			checkState(t, other.State(), "a", "new 2", 2)
			w.expect("a", keep("newest"), at("newest", 3))
		})
	}

	t.Run("a purge that may have been done does not say that it was not", func(t *testing.T) {
		t.Parallel()
		mine, theirs, faults, c := retained(t)
		if _, err := theirs.State().SaveState(t.Context(), "a", 0, dynactor.State{Message: text("x"), Until: c.Now().Add(time.Minute)}); err != nil {
			t.Fatal(err)
		}
		c.Advance(2 * time.Hour)
		attempts := 0
		faults.Add(dynactortest.Rule{Op: "DeleteItem", Do: dynactortest.DropAnswer(), Match: func(dynactortest.Request) bool {
			if attempts++; attempts == 2 { // somebody begins anew
				saved(t, theirs.State(), "a", 0, "new 1")
			}
			return attempts == 1
		}})
		if err := mine.State().Purge(t.Context(), "a", 1); !errors.Is(err, dynactor.ErrOutcomeUnknown) || errors.Is(err, dynactor.ErrInvalid) {
			t.Errorf("got %v", err)
		}
		checkState(t, theirs.State(), "a", "new 1", 1)
	})

	t.Run("a conflict with a row that came after the refusal names no revision", func(t *testing.T) {
		t.Parallel()
		mine, theirs, faults, _ := retained(t)
		faults.Add(dynactortest.Rule{Op: "GetItem", Times: 1, Match: func(dynactortest.Request) bool {
			saved(t, theirs.State(), "a", 0, "new 1")
			return true
		}})
		_, err := mine.State().Save(t.Context(), "a", 1, text("x"))
		if !errors.Is(err, dynactor.ErrConflict) || errors.As(err, new(*dynactor.RevisionConflict)) {
			t.Errorf("got %v", err)
		}
		checkState(t, theirs.State(), "a", "new 1", 1)
	})
}

// Of two continuations that wait, the first fails, and the second comes before
// the restart. Both callers are answered.
func TestUsing_ContinuationOfADeadSession(t *testing.T) {
	t.Parallel()

	// both runs two messages that continue, lets both continue, and returns the answers.
	both := func(system *actor.ActorSystem, ask func(func(actor.Context)) *actor.Future, run func(func()), write func(actor.Context)) (got [2]any) {
		var wakes [2]*actor.Future
		var asked [2]*actor.Future
		for i := range wakes {
			wakes[i] = actor.NewFuture(system, longest)
			asked[i] = ask(func(ctx actor.Context) { ctx.ReenterAfter(wakes[i], func(any, error) { write(ctx) }) })
		}
		run(func() { // both are in the mailbox before either runs
			for _, w := range wakes {
				system.Root.Send(w.PID(), "go")
			}
		})
		for i, f := range asked {
			got[i], _ = f.Result()
		}
		return got
	}
	check := func(t *testing.T, got [2]any) {
		t.Helper()
		for i, g := range got {
			if f, ok := g.(*dynactor.PersistenceFailure); !ok || f.GetCode() != "failed" {
				t.Errorf("caller %d is answered %v", i+1, g)
			}
		}
	}

	t.Run("events", func(t *testing.T) {
		t.Parallel()
		for op, persist := range map[string]func(*member){
			"PutItem":            func(m *member) { m.PersistReceive(text("2")) },
			"TransactWriteItems": func(m *member) { _ = m.PersistAll(text("2"), text("3")) },
		} {
			p, db := open(t, dynactor.Options{})
			h := newHouse(t)
			h.using(p, "a", dynactor.UsingOptions{})
			h.expect("a", pay("1"), texts(1, 1))
			db.Faults.Add(dynactortest.Rule{Op: op, Table: db.EventsTable, Times: 1, Do: denied})
			var m *member
			h.run("a", func(now *member, _ actor.Context) { m = now })
			check(t, both(h.system, func(f func(actor.Context)) *actor.Future {
				return h.system.Root.RequestFuture(h.pid("a"), do(func(_ *member, ctx actor.Context) { f(ctx) }), longest)
			}, func(f func()) {
				h.run("a", func(*member, actor.Context) { f() })
			}, func(ctx actor.Context) { persist(m); ctx.Respond("stored") }))
			h.expect("a", get{}, texts(1, 1))
		}
	})

	t.Run("state", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		w := newKeepers(t)
		w.keeper(p, "a", dynactor.UsingStateOptions{})
		w.expect("a", keep("x"), at("x", 1))
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: denied})
		var k *keeper
		w.runKeeper("a", func(now *keeper, _ actor.Context) { k = now })
		check(t, both(w.system, func(f func(actor.Context)) *actor.Future {
			return w.system.Root.RequestFuture(w.pid("a"), keeperDo(func(_ *keeper, ctx actor.Context) { f(ctx) }), longest)
		}, func(f func()) {
			w.runKeeper("a", func(*keeper, actor.Context) { f() })
		}, func(ctx actor.Context) { _ = k.SaveState(text("y")); ctx.Respond("stored") }))
		w.expect("a", get{}, at("x", 1))
	})
}
