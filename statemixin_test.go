package dynactor_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

func TestStateMixin(t *testing.T) {
	t.Parallel()

	t.Run("a state outlasts failures, stops and deletions", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		w := newKeepers(t)
		w.keeper(p, "a", dynactor.UsingStateOptions{})
		w.expect("a", get{}, at("", 0))
		w.expect("a", drop{}, at("", 0))
		w.expect("a", keep("x"), at("x", 1))
		w.expect("a", keep("y"), at("y", 2))
		w.send("a", fail{})
		w.expect("a", get{}, at("y", 2))
		w.stop("a")
		w.keeper(p, "a", dynactor.UsingStateOptions{})
		w.expect("a", get{}, at("y", 2))
		w.expect("a", drop{}, at("", 3))
		w.send("a", fail{})
		w.expect("a", get{}, at("", 3))
		w.expect("a", keep("z"), at("z", 4))
		checkState(t, p.State(), "a", "z", 4)
	})

	t.Run("the state comes first, in one request, and a save is one", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		saved(t, p.State(), "a", 0, "x")
		db.Faults.Reset()
		w := newKeepers(t)
		var mu sync.Mutex
		var order []string
		w.hook = func(_ *keeper, ctx actor.Context) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, fmt.Sprintf("%T", ctx.Message()))
		}
		w.keeper(p, "a", dynactor.UsingStateOptions{})
		w.expect("a", get{}, at("x", 1))
		cost(t, db, map[string]int{"GetItem": 1}, 0, 1)
		db.Faults.Reset()
		w.expect("a", keep("y"), at("y", 2))
		cost(t, db, map[string]int{"PutItem": 1}, 1, 0)
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(order, " "); got != "*actor.Started *dynactor.StateLoaded dynactor_test.get dynactor_test.keep" {
			t.Error(got)
		}
	})

	t.Run("a second activation that saved first makes this one fail, and load", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		one, two := newKeepers(t), newKeepers(t)
		one.keeper(p, "a", dynactor.UsingStateOptions{})
		one.expect("a", keep("1"), at("1", 1))
		two.keeper(openOn(t, db, db.Client, dynactor.Options{}), "a", dynactor.UsingStateOptions{})
		two.expect("a", keep("2"), at("2", 2))
		for i, m := range []any{keep("lost"), drop{}} {
			if f, ok := one.ask("a", m).(*dynactor.PersistenceFailure); !ok || f.GetCode() != "conflict" || f.GetId() != "a" {
				t.Errorf("%v: answered %v", m, f)
			}
			one.failed(dynactor.ErrConflict)
			two.expect("a", get{}, at("2", 2+i))
			one.expect("a", get{}, at("2", 2+i))
			two.expect("a", keep("2"), at("2", 3+i)) // makes the first old again
		}
	})

	t.Run("what is refused before it is sent is returned, and the actor lives", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		w := newKeepers(t)
		w.keeper(p, "a", dynactor.UsingStateOptions{})
		w.expect("a", keep("x"), at("x", 1))
		db.Faults.Reset()
		w.runKeeper("a", func(k *keeper, _ actor.Context) {
			for _, tc := range []struct{ err, want error }{
				{k.SaveState(nil), dynactor.ErrInvalid},
				{k.SaveState(text("\xff")), dynactor.ErrInvalid},
				{k.SaveState(text(strings.Repeat("x", 401<<10))), dynactor.ErrTooLarge},
				{k.PutState(dynactor.State{Message: text("x"), Tags: []string{""}}), dynactor.ErrInvalid},
				{k.PutState(dynactor.State{Message: text("x"), Until: time.Now().Add(-1)}), dynactor.ErrInvalid},
			} {
				if e := asError(t, tc.err); !errors.Is(e, tc.want) || e.ID != "a" {
					t.Errorf("got %v, want %v", e, tc.want)
				}
			}
		})
		noWrites(t, db)
		w.expect("a", keep("y"), at("y", 2))
		w.noFailures()
	})

	t.Run("before the state is loaded all is refused, and from then on it is not", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		w := newKeepers(t)
		w.hook = func(k *keeper, ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				isError(t, asError(t, k.SaveState(text("x"))), dynactor.ErrRecovering)
				isError(t, asError(t, k.DeleteState()), dynactor.ErrRecovering)
			case *dynactor.StateLoaded:
				if k.Revision() == 0 {
					if err := k.SaveState(text("first")); err != nil {
						t.Error(err)
					}
				}
			}
		}
		w.keeper(p, "a", dynactor.UsingStateOptions{})
		w.runKeeper("a", func(*keeper, actor.Context) {})
		checkState(t, p.State(), "a", "first", 1)
		k := &keeper{}
		isError(t, asError(t, k.SaveState(text("x"))), dynactor.ErrInvalid)
		isError(t, asError(t, k.DeleteState()), dynactor.ErrInvalid)
		if k.StateID() != "" || k.Revision() != 0 {
			t.Error(k.StateID(), k.Revision())
		}
	})

	t.Run("ids are the actor's name or what the resolver says, and none that is made up", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		w := newKeepers(t)
		w.keeper(p, "a", dynactor.UsingStateOptions{ID: func(ctx actor.ReceiverContext) string { return "cart/" + ctx.Self().GetId() + "$1A" }})
		w.expect("a", keep("x"), at("x", 1))
		checkState(t, p.State(), "cart/a$1A", "x", 1)
		db.Faults.Reset()
		w.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &keeper{w: w} },
			actor.WithReceiverMiddleware(dynactor.UsingState(p, dynactor.UsingStateOptions{}))))
		w.failed(dynactor.ErrUnstableID)
		noWrites(t, db)
		w.spawnProps("b", actor.PropsFromFunc(func(actor.Context) {}, actor.WithReceiverMiddleware(dynactor.UsingState(p, dynactor.UsingStateOptions{}))))
		eventually(t, "the failure of an actor without a mixin", func() bool {
			e := <-w.failures
			err, _ := e.Reason.(error)
			return errors.Is(err, dynactor.ErrInvalid)
		})
		isError(t, caught(func() { dynactor.UsingState(nil, dynactor.UsingStateOptions{}) }), dynactor.ErrInvalid)
	})

	t.Run("a continuation that comes after a restart writes nothing", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		w := newKeepers(t)
		w.keeper(p, "a", dynactor.UsingStateOptions{})
		w.expect("a", keep("x"), at("x", 1))
		late := actor.NewFuture(w.system, longest)
		w.runKeeper("a", func(k *keeper, ctx actor.Context) {
			ctx.ReenterAfter(late, func(any, error) { _ = k.SaveState(text("late")) })
		})
		w.send("a", fail{})
		w.expect("a", keep("y"), at("y", 2))
		<-w.failures // of fail
		w.system.Root.Send(late.PID(), "now")
		w.failed(dynactor.ErrStopped)
		w.expect("a", get{}, at("y", 2))
	})

	t.Run("a condition of the actor's own writes that fails is returned", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		w := newKeepers(t)
		w.keeper(p, "a", dynactor.UsingStateOptions{})
		w.runKeeper("a", func(k *keeper, _ actor.Context) {
			st := dynactor.State{Message: text("x")}
			if err := k.PutStateWith(st, ownPut(db.SnapshotsTable, "mine", "attribute_not_exists(pid)")); err != nil {
				t.Error(err)
			}
			err := k.PutStateWith(st, ownPut(db.SnapshotsTable, "mine", "attribute_not_exists(pid)"))
			if extra, ok := errors.AsType[*dynactor.ExtraError](err); !ok || extra.Position != 0 || errors.Is(err, dynactor.ErrConflict) {
				t.Errorf("got %v", err)
			}
			if err := k.SaveState(text("y")); err != nil || k.Revision() != 2 {
				t.Errorf("%v, revision %d", err, k.Revision())
			}
		})
		w.noFailures()
	})

	t.Run("a revision that is known for too long is read again", func(t *testing.T) {
		t.Parallel()
		c := &clock{}
		p, db := open(t, dynactor.Options{StateRetention: time.Hour, Now: c.Now})
		w := newKeepers(t)
		w.keeper(p, "a", dynactor.UsingStateOptions{})
		w.expect("a", keep("x"), at("x", 1))
		c.Advance(29 * time.Minute)
		db.Faults.Reset()
		w.expect("a", keep("y"), at("y", 2))
		cost(t, db, map[string]int{"PutItem": 1}, 1, 0)
		c.Advance(31 * time.Minute)
		db.Faults.Reset()
		w.expect("a", keep("z"), at("z", 3))
		cost(t, db, map[string]int{"GetItem": 1, "PutItem": 1}, 1, 1)

		// Others delete it, its row goes, and a new life comes to the very same number.
		s := p.State()
		if _, err := s.Delete(t.Context(), "a", 3); err != nil {
			t.Fatal(err)
		}
		c.Advance(61 * time.Minute)
		if err := s.Purge(t.Context(), "a", 4); err != nil {
			t.Fatal(err)
		}
		for rev := range int64(3) {
			saved(t, s, "a", rev, "new")
		}
		if f, ok := w.ask("a", keep("old")).(*dynactor.PersistenceFailure); !ok || f.GetCode() != "conflict" {
			t.Errorf("answered %v", f)
		}
		w.expect("a", get{}, at("new", 3))
	})

	t.Run("a load goes on while it fails for a passing cause, and the receive timeout waits", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		saved(t, p.State(), "a", 0, "x")
		db.Faults.Add(dynactortest.Rule{Op: "GetItem", Times: 3, Do: dynactortest.Throttle()})
		w := newKeepers(t)
		w.hook = func(_ *keeper, ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				ctx.SetReceiveTimeout(time.Hour)
			case *dynactor.StateLoaded:
				if got := ctx.ReceiveTimeout(); got != time.Hour {
					t.Errorf("the receive timeout is %s", got)
				}
			}
		}
		w.keeper(p, "a", dynactor.UsingStateOptions{})
		w.expect("a", get{}, at("x", 1))
		w.noFailures()
	})

	t.Run("an actor that swallows a failure, or is resumed, handles nothing more", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		w := newKeepers(t)
		w.spawnProps("a", actor.PropsFromProducer(func() actor.Actor { return &keeper{w: w} },
			actor.WithReceiverMiddleware(dynactor.UsingState(p, dynactor.UsingStateOptions{})),
			actor.WithGuardian(actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.ResumeDirective }))))
		w.expect("a", keep("x"), at("x", 1))
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: denied})
		w.runKeeper("a", func(k *keeper, _ actor.Context) {
			if err := caught(func() { _ = k.SaveState(text("y")) }); err == nil {
				t.Error("it did not fail")
			}
		})
		for _, m := range []any{get{}, keep("z"), get{}} {
			if f, ok := w.ask("a", m).(*dynactor.PersistenceFailure); !ok || f.GetCode() != "failed" {
				t.Errorf("%v: answered %v", m, f)
			}
		}
		checkState(t, p.State(), "a", "x", 1)
	})

	t.Run("a load that failed and is resumed: nothing is handled", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		saved(t, p.State(), "a", 0, "x")
		db.Faults.Add(dynactortest.Rule{Op: "GetItem", Table: db.StateTable, Do: denied})
		w := newKeepers(t)
		w.spawnProps("a", actor.PropsFromProducer(func() actor.Actor { return &keeper{w: w} },
			actor.WithReceiverMiddleware(dynactor.UsingState(p, dynactor.UsingStateOptions{})),
			actor.WithGuardian(actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.ResumeDirective }))))
		for _, m := range []any{get{}, keep("z"), get{}} {
			if f, ok := w.ask("a", m).(*dynactor.PersistenceFailure); !ok || f.GetCode() != "recovering" {
				t.Errorf("%v: answered %v", m, f)
			}
		}
		db.Faults.Clear()
		checkState(t, p.State(), "a", "x", 1)
	})

	t.Run("a continuation that fails answers", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		w := newKeepers(t)
		w.keeper(p, "a", dynactor.UsingStateOptions{})
		w.expect("a", keep("x"), at("x", 1))
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: denied})
		soon := actor.NewFuture(w.system, longest)
		w.system.Root.Send(soon.PID(), "now")
		got := w.ask("a", keeperDo(func(k *keeper, ctx actor.Context) {
			ctx.ReenterAfter(soon, func(any, error) { _ = k.SaveState(text("y")) })
		}))
		if f, ok := got.(*dynactor.PersistenceFailure); !ok || f.GetCode() != "failed" {
			t.Errorf("answered %v", got)
		}
		w.expect("a", get{}, at("x", 1))
	})

	t.Run("own answers", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		w := newKeepers(t)
		w.keeper(p, "a", dynactor.UsingStateOptions{Reply: func(e *dynactor.Error) any { return e.Code() }})
		w.expect("a", keep("x"), at("x", 1))
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: denied})
		if got := w.ask("a", keep("y")); got != "failed" {
			t.Errorf("answered %v", got)
		}
		w.expect("a", get{}, at("x", 1))
	})
}

// An actor that is killed at any point between a message and its answer holds the
// old or the new value afterwards, and its caller was told the truth.
func TestStateMixin_KilledAtEachPoint(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]dynactortest.Action{
		"before the request is sent":   dynactortest.Refuse(),
		"when it is refused":           denied,
		"when it is not there yet":     dynactortest.Answer(500, "InternalServerError", "no"),
		"when it is stored":            dynactortest.DropAnswer(),
		"when the answer is a failure": dynactortest.FailAfter(500),
		"when the answer is cut":       dynactortest.CutBody(1),
	} {
		for what, m := range map[string]any{"a save": keep("new"), "a deletion": drop{}} {
			t.Run(what+" "+name, func(t *testing.T) {
				t.Parallel()
				db := dynactortest.New(t)
				p := openOn(t, db, impatient{db.Client}, dynactor.Options{})
				w := newKeepers(t)
				w.keeper(p, "a", dynactor.UsingStateOptions{})
				w.expect("a", keep("old"), at("old", 1))
				// Its retries do not get through, and then the process dies with it.
				first := true
				var mu sync.Mutex
				db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: do})
				db.Faults.Add(dynactortest.Rule{Op: "PutItem", Match: func(dynactortest.Request) bool {
					mu.Lock()
					defer mu.Unlock()
					return first
				}, Do: dynactortest.Throttle()})
				answer := w.ask("a", m)
				mu.Lock()
				first = false
				mu.Unlock()
				next := newKeepers(t)
				next.keeper(openOn(t, db, db.Client, dynactor.Options{}), "a", dynactor.UsingStateOptions{})
				got, _ := next.ask("a", get{}).([]string)
				value := map[string]string{"a save": "new", "a deletion": ""}[what]
				isOld, isNew := got[0] == "old" && got[1] == "1", got[0] == value && got[1] == "2"
				switch f := answer.(type) {
				case []string:
					if !isNew {
						t.Errorf("acknowledged, but %v is there", got)
					}
				case *dynactor.PersistenceFailure:
					if unknown := f.GetCode() == "outcome_unknown"; !isOld && (!isNew || !unknown) {
						t.Errorf("told %v, and %v is there", f, got)
					}
				default:
					t.Errorf("told %v", answer)
				}
				next.expect("a", keep("more"), at("more", map[bool]int{true: 2, false: 3}[isOld]))
			})
		}
	}
	t.Run("after it is stored and before the answer", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		w := newKeepers(t)
		w.keeper(p, "a", dynactor.UsingStateOptions{})
		w.send("a", keeperDo(func(k *keeper, _ actor.Context) {
			if err := k.SaveState(text("new")); err != nil {
				t.Error(err)
			}
			panic("killed")
		}))
		w.expect("a", get{}, at("new", 1))
	})
}
