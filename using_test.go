package dynactor_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/persistence"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

func TestUsing(t *testing.T) {
	t.Parallel()

	for _, applyFirst := range []bool{false, true} {
		for _, n := range []int64{0, 1, 3} {
			t.Run(fmt.Sprintf("B01 B02 B04 every reply arrives, no event is lost or doubled, applied first %v, every %d", applyFirst, n), func(t *testing.T) {
				t.Parallel()
				p, _ := open(t, dynactor.Options{})
				h := newHouse(t)
				h.applyFirst = applyFirst
				o := dynactor.UsingOptions{Snapshot: dynactor.EveryEvents(n)}
				h.using(p, "a", o)
				for k := range 10 {
					h.expect("a", pay(strconv.Itoa(k+1)), texts(1, k+1))
					h.send("a", fail{})
					h.expect("a", get{}, texts(1, k+1))
					h.stop("a")
					h.using(p, "a", o)
					h.expect("a", get{}, texts(1, k+1))
				}
				var want []int64 // of 10 events the last three snapshots
				switch n {
				case 1:
					want = []int64{8, 9, 10}
				case 3:
					want = []int64{3, 6, 9}
				}
				if got, err := p.Snapshots().List(t.Context(), "a"); err != nil || !cmp.Equal(want, got) {
					t.Errorf("snapshots %v, %v, want %v", got, err, want)
				}
			})
		}
	}

	for _, interval := range []int{0, -1} {
		t.Run(fmt.Sprintf("B03 no snapshot is asked for at interval %d", interval), func(t *testing.T) {
			t.Parallel()
			p, _ := open(t, dynactor.Options{SnapshotInterval: interval})
			h := newHouse(t)
			h.using(p, "a", dynactor.UsingOptions{})
			for i := range 10 {
				h.expect("a", pay(strconv.Itoa(i+1)), texts(1, i+1))
			}
			if n := h.count("RequestSnapshot"); n != 0 {
				t.Errorf("asked %d times", n)
			}
			h.noFailures()
		})
	}

	t.Run("the interval of the provider is the default policy, and several events in one message make one snapshot", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{SnapshotInterval: 2})
		h := newHouse(t)
		h.using(p, "a", dynactor.UsingOptions{})
		h.run("a", func(m *member, _ actor.Context) {
			for i := range 5 {
				m.PersistReceive(text(strconv.Itoa(i + 1)))
				m.state = append(m.state, strconv.Itoa(i+1))
			}
		})
		h.expect("a", get{}, texts(1, 5))
		if got, err := p.Snapshots().List(t.Context(), "a"); err != nil || !cmp.Equal([]int64{5}, got) {
			t.Errorf("snapshots %v, %v, want one at 5", got, err)
		}
	})

	t.Run("a failed persist is answered, its due snapshot is not saved, and what was applied too early is gone", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 2})
		h := newHouse(t)
		h.applyFirst = true
		h.using(p, "a", dynactor.UsingOptions{})
		h.expect("a", pay("1"), texts(1, 1))
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Table: db.EventsTable, Skip: 1, Times: 1, Do: denied})
		got := h.ask("a", do(func(m *member, ctx actor.Context) {
			for _, s := range []string{"2", "3"} {
				m.state = append(m.state, s)
				m.PersistReceive(text(s))
			}
			ctx.Respond("never")
		}))
		if f, ok := got.(*dynactor.PersistenceFailure); !ok || f.GetCode() != "failed" || f.GetId() != "a" || f.GetMessage() == "" {
			t.Errorf("answered %v, want a PersistenceFailure", got)
		}
		h.failed(nil)
		h.expect("a", get{}, texts(1, 2))
		if got, err := p.Snapshots().List(t.Context(), "a"); err != nil || len(got) != 0 {
			t.Errorf("snapshots %v, %v, want none", got, err)
		}
		h.expect("a", pay("3"), texts(1, 3))
	})

	t.Run("B10 each failure is answered, the queue is kept, and the eleventh in ten seconds stops the actor", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		h := newHouse(t)
		h.using(p, "a", dynactor.UsingOptions{})
		h.expect("a", pay("1"), texts(1, 1))
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Do: denied})
		var answers []*actor.Future
		for range 11 {
			answers = append(answers, h.system.Root.RequestFuture(h.pid("a"), pay("x"), longest))
		}
		for _, f := range answers {
			if got, err := f.Result(); err != nil || got.(*dynactor.PersistenceFailure).GetCode() != "failed" {
				t.Errorf("answered %v, %v", got, err)
			}
		}
		h.stopped("a", nil)
	})

	t.Run("the answer is the user's, and may be none", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		h := newHouse(t)
		h.using(p, "a", dynactor.UsingOptions{Reply: func(e *dynactor.Error) any { return e }})
		h.using(p, "b", dynactor.UsingOptions{Reply: func(*dynactor.Error) any { return nil }})
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 2, Do: denied})
		if e, ok := h.ask("a", pay("1")).(*dynactor.Error); !ok || e.Op != "persist event" {
			t.Errorf("answered %v", e)
		}
		silent := h.system.Root.RequestFuture(h.pid("b"), pay("1"), time.Second/2)
		if got, err := silent.Result(); !errors.Is(err, actor.ErrTimeout) {
			t.Errorf("answered %v, %v, want nothing", got, err)
		}
	})

	t.Run("a panic that is not ours, and a message without a sender, are not answered", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		h := newHouse(t)
		h.using(p, "a", dynactor.UsingOptions{Reply: func(*dynactor.Error) any { t.Error("an answer"); return nil }})
		h.send("a", fail{})
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: denied})
		h.send("a", pay("1"))
		h.expect("a", pay("2"), []string{"2"})
	})

	t.Run("a handler that fails after it persisted loses its due snapshot, not its event", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{SnapshotInterval: 1})
		h := newHouse(t)
		h.using(p, "a", dynactor.UsingOptions{})
		h.send("a", do(func(m *member, _ actor.Context) { m.PersistReceive(text("1")); panic("as asked") }))
		h.expect("a", get{}, texts(1, 1))
		if n := h.count("RequestSnapshot"); n != 0 {
			t.Errorf("asked %d times", n)
		}
	})

	t.Run("events persisted when the replay is complete ask for their snapshot after the next message", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{SnapshotInterval: 1})
		h := newHouse(t)
		h.hook = func(m *member, ctx actor.Context) {
			if _, ok := ctx.Message().(*persistence.ReplayComplete); ok && m.Head() == 0 {
				m.PersistReceive(text("1"))
				m.state = append(m.state, "1")
			}
		}
		h.using(p, "a", dynactor.UsingOptions{})
		h.expect("a", get{}, texts(1, 1))
		h.expect("a", get{}, texts(1, 1))
		if got, err := p.Snapshots().List(t.Context(), "a"); err != nil || !cmp.Equal([]int64{1}, got) {
			t.Errorf("snapshots %v, %v, want one at 1", got, err)
		}
	})

	t.Run("children have streams of their own", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		h := newHouse(t)
		child := actor.PropsFromProducer(func() actor.Actor { return &member{h: h} }, actor.WithReceiverMiddleware(dynactor.Using(p, dynactor.UsingOptions{})))
		h.using(p, "parent", dynactor.UsingOptions{})
		h.run("parent", func(_ *member, ctx actor.Context) {
			if _, err := ctx.SpawnNamed(child, "child"); err != nil {
				t.Error(err)
			}
		})
		h.expect("parent/child", pay("1"), texts(1, 1))
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: denied})
		if f, ok := h.ask("parent/child", pay("2")).(*dynactor.PersistenceFailure); !ok || f.GetId() != "parent/child" {
			t.Errorf("answered %v", f)
		}
		h.expect("parent/child", pay("2"), texts(1, 2))
	})
}
