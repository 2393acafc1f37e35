package dynactor_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/persistence"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// resuming starts a member whose supervisor does what it should not.
func (h *house) resuming(p *dynactor.Provider, id string, o dynactor.UsingOptions) {
	h.t.Helper()
	h.spawnProps(id, actor.PropsFromProducer(func() actor.Actor { return &member{h: h} },
		actor.WithReceiverMiddleware(dynactor.Using(p, o)),
		actor.WithGuardian(actor.NewOneForOneStrategy(10, longest, func(any) actor.Directive { return actor.ResumeDirective }))))
}

// code is the code of a PersistenceFailure; empty for any other answer.
func code(answer any) string {
	f, _ := answer.(*dynactor.PersistenceFailure)
	return f.GetCode()
}

// saved checks which snapshots there are.
func (h *house) saved(p *dynactor.Provider, id string, want ...int64) {
	h.t.Helper()
	if got, err := p.Snapshots().List(h.t.Context(), id); err != nil || !cmp.Equal(want, got) {
		h.t.Errorf("snapshots %v, %v, want %v", got, err, want)
	}
}

// TestUsing_Aftermath is about what an actor does after a failure.
func TestUsing_Aftermath(t *testing.T) {
	t.Parallel()

	t.Run("a failed write that is resumed: nothing more is handled", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		h := newHouse(t)
		h.applyFirst = true
		h.resuming(p, "a", dynactor.UsingOptions{})
		h.expect("a", pay("1"), texts(1, 1))
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: denied})
		for _, message := range []any{pay("2"), get{}, pay("3")} {
			if got := h.ask("a", message); code(got) != "failed" {
				t.Errorf("%v was answered %v", message, got)
			}
		}
		h.stop("a") // a poison pill gets through
		events(t, p.GetState(), "a", 0, 0, "1")
	})

	t.Run("a failed recovery that is resumed: nothing is handled", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		fill(t, p.Journal(), "a", 3)
		garble(t, db, db.EventsTable, "a", 2)
		h := newHouse(t)
		h.resuming(p, "a", dynactor.UsingOptions{})
		for _, message := range []any{get{}, pay("x"), get{}} {
			if got := h.ask("a", message); code(got) != "recovering" {
				t.Errorf("%v was answered %v", message, got)
			}
		}
		if got := stored(t, db, "a"); !cmp.Equal([]int64{1, 2, 3}, got) {
			t.Errorf("stored %v", got)
		}
	})

	t.Run("a panic of its own that is resumed: no snapshot is asked for", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{SnapshotInterval: 1})
		h := newHouse(t)
		h.resuming(p, "a", dynactor.UsingOptions{})
		h.send("a", do(func(m *member, _ actor.Context) { m.PersistReceive(text("1")); panic("before it was applied") }))
		h.expect("a", pay("2"), []string{"2"})
		h.expect("a", get{}, []string{"2"})
		h.saved(p, "a")
		h.stop("a")
		h.using(p, "a", dynactor.UsingOptions{})
		h.expect("a", get{}, texts(1, 2))
	})

	t.Run("a refusal that the handler swallows: the snapshot that was due is not asked for", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{SnapshotInterval: 1})
		h := newHouse(t)
		h.using(p, "a", dynactor.UsingOptions{})
		h.run("a", func(m *member, _ actor.Context) {
			m.state = append(m.state, "1")
			m.PersistReceive(text("1"))
			m.state = append(m.state, "too large")
			isError(t, caught(func() { m.PersistReceive(text(strings.Repeat("x", 401<<10))) }), dynactor.ErrTooLarge)
		})
		h.expect("a", get{}, []string{"1", "too large"}) // as it wished
		h.saved(p, "a")
		h.noFailures()
		h.send("a", fail{})
		h.expect("a", get{}, texts(1, 1))
	})

	t.Run("a failed write that the handler swallows: the next message fails", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 1})
		ready(t, p, db)
		h := newHouse(t)
		h.using(p, "a", dynactor.UsingOptions{})
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: denied})
		h.run("a", func(m *member, _ actor.Context) {
			m.state = append(m.state, "x")
			_ = caught(func() { m.PersistReceive(text("x")) })
		})
		if got := h.ask("a", get{}); code(got) != "failed" {
			t.Errorf("answered %v", got)
		}
		h.failed(nil)
		h.expect("a", get{}, nil)
	})

	t.Run("a continuation that fails is answered", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		h := newHouse(t)
		h.using(p, "a", dynactor.UsingOptions{})
		h.expect("a", pay("1"), texts(1, 1))
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: denied})
		soon := actor.NewFuture(h.system, longest)
		reply := h.system.Root.RequestFuture(h.pid("a"), do(func(m *member, ctx actor.Context) {
			ctx.ReenterAfter(soon, func(any, error) {
				m.PersistReceive(text("2"))
				ctx.Respond("never")
			})
			ctx.Send(soon.PID(), "now")
		}), longest)
		if got, err := reply.Result(); err != nil || code(got) != "failed" {
			t.Errorf("answered %v, %v", got, err)
		}
		h.failed(nil)
		h.expect("a", pay("2"), texts(1, 2))
	})

	t.Run("a failure in the snapshot's handler is no answer to the message", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 1})
		h := newHouse(t)
		var failing atomic.Bool
		h.hook = func(m *member, ctx actor.Context) {
			if _, ok := ctx.Message().(*persistence.RequestSnapshot); ok && failing.Load() {
				db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: denied})
				m.PersistReceive(text("x"))
			}
		}
		h.using(p, "a", dynactor.UsingOptions{Reply: func(e *dynactor.Error) any { t.Errorf("an answer to %v", e); return nil }})
		failing.Store(true)
		h.expect("a", pay("1"), texts(1, 1))
		h.failed(nil)
		failing.Store(false)
		h.expect("a", get{}, texts(1, 1))
	})

	t.Run("a resolver that panics: the actor fails and can be stopped", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		h := newHouse(t)
		h.using(p, "a", dynactor.UsingOptions{ID: func(actor.ReceiverContext) string { panic("no id") }})
		for range 11 {
			if e := <-h.failures; e.Reason != "no id" {
				t.Errorf("failed with %v", e.Reason)
			}
		}
		eventually(t, "the actor's end", func() bool {
			_, alive := h.system.ProcessRegistry.GetLocal("a")
			return !alive
		})
	})

	t.Run("ids that cannot be one are refused", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		for _, id := range []string{"", "__dynactor__", strings.Repeat("x", 1025), "\xff"} {
			h := newHouse(t)
			h.using(p, "a", dynactor.UsingOptions{ID: func(actor.ReceiverContext) string { return id }})
			h.stopped("a", dynactor.ErrInvalid)
		}
		noWrites(t, db)
	})

	t.Run("a policy that panics: the event is stored, once", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		h := newHouse(t)
		var calm atomic.Bool
		h.using(p, "a", dynactor.UsingOptions{Snapshot: func(dynactor.Progress) bool {
			if !calm.Load() {
				panic("as asked")
			}
			return false
		}})
		h.send("a", pay("1"))
		<-h.failures
		calm.Store(true)
		h.expect("a", pay("2"), texts(1, 2))
	})

	t.Run("a reply that panics: the actor is restarted all the same", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		h := newHouse(t)
		h.using(p, "a", dynactor.UsingOptions{Reply: func(*dynactor.Error) any { panic("as asked") }})
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: denied})
		h.system.Root.RequestFuture(h.pid("a"), pay("1"), longest)
		<-h.failures
		h.expect("a", pay("1"), texts(1, 1))
	})

	t.Run("an actor with children stops for good, and may persist until then", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{SnapshotInterval: 1})
		h := newHouse(t)
		asked, release := make(chan struct{}), make(chan struct{})
		child := actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Stopping); ok {
				close(asked)
				<-release
			}
		})
		h.hook = func(m *member, ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Terminated); ok {
				m.PersistReceive(text("child gone"))
			}
		}
		h.using(p, "a", dynactor.UsingOptions{})
		h.run("a", func(_ *member, ctx actor.Context) {
			if _, err := ctx.SpawnNamed(child, "child"); err != nil {
				t.Error(err)
			}
		})
		late := actor.NewFuture(h.system, longest)
		h.send("a", do(func(m *member, ctx actor.Context) {
			ctx.ReenterAfter(late, func(any, error) { m.PersistReceive(text("continued")); close(release) })
			ctx.Stop(ctx.Self())
		}))
		<-asked
		h.system.Root.Send(late.PID(), "now")
		eventually(t, "the actor's end", func() bool {
			_, alive := h.system.ProcessRegistry.GetLocal("a")
			return !alive
		})
		h.noFailures()
		events(t, p.GetState(), "a", 0, 0, "continued", "child gone")
		h.saved(p, "a")
	})

	t.Run("a receive timeout that is set anew when the replay is complete, or taken away, stays so", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		fill(t, p.Journal(), "a", 2)
		for name, c := range map[string]struct {
			started, event, complete, want time.Duration
		}{
			"none":             {},
			"started":          {started: time.Hour, want: time.Hour},
			"an event":         {event: time.Hour, want: time.Hour},
			"set anew":         {started: time.Hour, complete: time.Minute, want: time.Minute},
			"taken away":       {started: time.Hour, complete: -1},
			"the last of both": {started: time.Hour, event: time.Minute, want: time.Minute},
		} {
			h := newHouse(t)
			set := func(ctx actor.Context, d time.Duration) {
				switch {
				case d > 0:
					ctx.SetReceiveTimeout(d)
				case d < 0:
					ctx.CancelReceiveTimeout()
				}
			}
			h.hook = func(_ *member, ctx actor.Context) {
				switch ctx.Message().(type) {
				case *actor.Started:
					set(ctx, c.started)
				case *persistence.ReplayComplete:
					set(ctx, c.complete)
				case *wrapperspb.StringValue:
					if got := ctx.ReceiveTimeout(); got != 0 {
						t.Errorf("%s: a timeout of %s runs during the replay", name, got)
					}
					set(ctx, c.event)
				}
			}
			h.using(p, "a", dynactor.UsingOptions{})
			h.run("a", func(_ *member, ctx actor.Context) {
				if got := ctx.ReceiveTimeout(); got != c.want {
					t.Errorf("%s: the timeout is %s, want %s", name, got, c.want)
				}
			})
		}
	})

	t.Run("stashed messages are handled by the next incarnation", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{SnapshotInterval: 1})
		h := newHouse(t)
		var stashing atomic.Bool
		stashing.Store(true)
		h.hook = func(_ *member, ctx actor.Context) {
			if _, ok := ctx.Message().(pay); ok && stashing.Swap(false) {
				ctx.Stash()
				panic("not now")
			}
		}
		h.using(p, "a", dynactor.UsingOptions{})
		h.send("a", pay("1"))
		h.expect("a", get{}, texts(1, 1))
	})

	t.Run("a decorated context is what the actor sees", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{SnapshotInterval: 1})
		h := newHouse(t)
		h.hook = func(_ *member, ctx actor.Context) {
			if _, ok := ctx.(decorated); !ok {
				t.Errorf("%T: the context is a %T", ctx.Message(), ctx)
			}
		}
		h.spawnProps("a", actor.PropsFromProducer(func() actor.Actor { return &member{h: h} },
			actor.WithReceiverMiddleware(dynactor.Using(p, dynactor.UsingOptions{})),
			actor.WithContextDecorator(func(next actor.ContextDecoratorFunc) actor.ContextDecoratorFunc {
				return func(ctx actor.Context) actor.Context { return decorated{next(ctx)} }
			})))
		h.expect("a", pay("1"), texts(1, 1))
		h.send("a", fail{})
		h.expect("a", pay("2"), texts(1, 2))
		h.expect("a", get{}, texts(1, 2))
		h.saved(p, "a", 1, 2)
	})
}

type decorated struct{ actor.Context }
