package dynactor_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/persistence"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// TestUsing_Lifecycle has actors do what they should not, or late.
func TestUsing_Lifecycle(t *testing.T) {
	t.Parallel()

	t.Run("ids are the actor's name or what the resolver says", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		h := newHouse(t)
		h.using(p, "a", dynactor.UsingOptions{ID: func(ctx actor.ReceiverContext) string { return "other/" + ctx.Self().GetId() + "$1A" }})
		h.expect("a", pay("1"), texts(1, 1))
		h.run("a", func(m *member, _ actor.Context) {
			if got := m.PersistenceID(); got != "other/a$1A" {
				t.Errorf("the id is %q", got)
			}
		})
		if got, err := replayed(t.Context(), p.Journal(), "other/a$1A", 1, 0); err != nil || !cmp.Equal(texts(1, 1), got) {
			t.Errorf("stored %v, %v", got, err)
		}
	})

	t.Run("B13 generated names are refused", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		h := newHouse(t)
		h.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &member{h: h} },
			actor.WithReceiverMiddleware(dynactor.Using(p, dynactor.UsingOptions{}))))
		h.failed(dynactor.ErrUnstableID)
		noWrites(t, db)
	})

	t.Run("a continuation that comes after a restart writes nothing", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		h := newHouse(t)
		h.using(p, "a", dynactor.UsingOptions{})
		h.expect("a", pay("1"), texts(1, 1))
		late := actor.NewFuture(h.system, longest)
		ran := make(chan error, 2)
		h.run("a", func(m *member, ctx actor.Context) {
			ctx.ReenterAfter(late, func(any, error) {
				ran <- m.SaveSnapshot(m.list())
				ran <- m.DeleteEventsTo(1)
				m.PersistReceive(text("late"))
			})
		})
		h.send("a", fail{})
		h.expect("a", pay("2"), texts(1, 2))
		<-h.failures // of fail
		h.system.Root.Send(late.PID(), "now")
		isError(t, asError(t, <-ran), dynactor.ErrStopped)
		isError(t, asError(t, <-ran), dynactor.ErrStopped)
		h.failed(dynactor.ErrStopped)
		h.expect("a", get{}, texts(1, 2))
		if got, err := p.Snapshots().List(t.Context(), "a"); err != nil || len(got) != 0 {
			t.Errorf("snapshots %v, %v, want none", got, err)
		}
	})

	t.Run("a continuation in time persists, and its snapshot comes after the next message", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{SnapshotInterval: 1})
		h := newHouse(t)
		h.using(p, "a", dynactor.UsingOptions{})
		soon := actor.NewFuture(h.system, longest)
		ran := make(chan struct{})
		h.run("a", func(m *member, ctx actor.Context) {
			ctx.ReenterAfter(soon, func(any, error) {
				defer close(ran)
				m.PersistReceive(text("1"))
				m.state = append(m.state, "1")
			})
		})
		h.system.Root.Send(soon.PID(), "now")
		<-ran
		if n := h.count("RequestSnapshot"); n != 0 {
			t.Errorf("asked %d times", n)
		}
		h.expect("a", get{}, texts(1, 1))
		h.expect("a", get{}, texts(1, 1))
		if n := h.count("RequestSnapshot"); n != 1 {
			t.Errorf("asked %d times, want once", n)
		}
	})

	t.Run("a stopping actor may persist but not save, a restarting one neither", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		h := newHouse(t)
		restarting := make(chan *dynactor.Error, 1)
		h.hook = func(m *member, ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Restarting:
				m.PersistSnapshot(m.list())
				restarting <- caught(func() { m.PersistReceive(text("x")) })
			case *actor.Stopping:
				m.PersistReceive(text("last"))
				m.PersistSnapshot(m.list())
			}
		}
		h.using(p, "a", dynactor.UsingOptions{})
		h.expect("a", pay("1"), texts(1, 1))
		h.send("a", fail{})
		isError(t, <-restarting, dynactor.ErrStopped)
		h.expect("a", get{}, texts(1, 1))
		h.stop("a")
		h.hook = nil
		h.using(p, "a", dynactor.UsingOptions{})
		h.expect("a", get{}, []string{"1", "last"})
		if got, err := p.Snapshots().List(t.Context(), "a"); err != nil || len(got) != 0 {
			t.Errorf("snapshots %v, %v, want none", got, err)
		}
	})

	t.Run("B06 an instance that is used again is refused, before it gets an event", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		h := newHouse(t)
		same := &member{h: h}
		h.spawnProps("a", actor.PropsFromProducer(func() actor.Actor { return same }, actor.WithReceiverMiddleware(dynactor.Using(p, dynactor.UsingOptions{}))))
		h.expect("a", pay("1"), texts(1, 1))
		db.Faults.Reset()
		h.send("a", fail{})
		<-h.failures
		h.failed(dynactor.ErrStopped)
		noWrites(t, db)
	})

	t.Run("an actor without a Mixin fails, and the process goes on", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		h := newHouse(t)
		h.spawnProps("a", actor.PropsFromFunc(func(actor.Context) {}, actor.WithReceiverMiddleware(dynactor.Using(p, dynactor.UsingOptions{}))))
		h.failed(dynactor.ErrInvalid)
	})

	t.Run("no provider is refused at once", func(t *testing.T) {
		t.Parallel()
		isError(t, caught(func() { dynactor.Using(nil, dynactor.UsingOptions{}) }), dynactor.ErrInvalid)
	})

	t.Run("a recovery longer than the receive timeout does not passivate the actor", func(t *testing.T) {
		t.Parallel()
		const timeout = 200 * time.Millisecond
		p, db := open(t, dynactor.Options{})
		fill(t, p.Journal(), "a", 3)
		h := newHouse(t)
		timedOut := make(chan string, 10)
		h.hook = func(m *member, ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				ctx.SetReceiveTimeout(timeout)
			case *persistence.ReplayComplete:
				timedOut <- "recovered"
			case *actor.ReceiveTimeout:
				timedOut <- "timed out"
				ctx.Poison(ctx.Self())
			case get:
				timedOut <- "asked"
			}
		}
		db.Faults.Add(dynactortest.Rule{Op: "Query", Times: 1, Do: dynactortest.Delay(3*timeout, 0)})
		h.using(p, "a", dynactor.UsingOptions{})
		next := func(want string) {
			t.Helper()
			if got := <-timedOut; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		next("recovered")
		h.expect("a", get{}, texts(1, 3)) // behind a timeout that went off meanwhile
		next("asked")
		next("timed out")
	})
}

// asError is an error as the library's own.
func asError(t *testing.T, err error) *dynactor.Error {
	t.Helper()
	e, ok := err.(*dynactor.Error) //nolint:errorlint // it must not be wrapped
	if !ok {
		t.Fatalf("got %v, want a *dynactor.Error", err)
	}
	return e
}
