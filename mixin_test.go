package dynactor_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// applied persists events by a function of the Mixin and applies them.
func (m *member) applied(err error, events ...string) error {
	if err == nil {
		m.state = append(m.state, events...)
	}
	return err
}

func TestMixin(t *testing.T) {
	t.Parallel()

	t.Run("100 events are one request, 101 are refused", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 40})
		h := newHouse(t)
		h.using(p, "a", dynactor.UsingOptions{})
		h.expect("a", get{}, nil)
		db.Faults.Reset()
		h.run("a", func(m *member, _ actor.Context) {
			isError(t, asError(t, m.PersistAll(numbered(1, 101)...)), dynactor.ErrTooLarge)
			if n := len(db.Faults.Requests()); n != 0 {
				t.Errorf("%d requests", n)
			}
			if err := m.applied(m.PersistAll(numbered(1, 100)...), texts(1, 100)...); err != nil || m.Head() != 100 {
				t.Errorf("%v, the head is %d", err, m.Head())
			}
			if n := len(db.Faults.Requests()); n != 1 || db.Faults.Count("TransactWriteItems") != 1 {
				t.Errorf("%d requests, want one", n)
			}
		})
		h.expect("a", get{}, texts(1, 100))
		h.noFailures()
		if got, err := p.Snapshots().List(t.Context(), "a"); err != nil || !cmp.Equal([]int64{100}, got) {
			t.Errorf("snapshots %v, %v, want one at 100", got, err)
		}
	})

	t.Run("what is refused before it is sent is returned, and the actor lives", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		h := newHouse(t)
		h.using(p, "a", dynactor.UsingOptions{})
		h.run("a", func(m *member, _ actor.Context) {
			isError(t, asError(t, m.SaveSnapshot(m.list())), dynactor.ErrInvalid) // of no events
		})
		h.expect("a", pay("1"), texts(1, 1))
		db.Faults.Reset()
		huge := text(strings.Repeat("x", 401<<10))
		h.run("a", func(m *member, _ actor.Context) {
			for name, tc := range map[string]struct {
				err  error
				want error
			}{
				"none":           {m.PersistAll(), dynactor.ErrInvalid},
				"nil":            {m.PersistAll(text("2"), nil), dynactor.ErrInvalid},
				"typed nil":      {m.PersistAll((*wrapperspb.StringValue)(nil)), dynactor.ErrInvalid},
				"bad UTF-8":      {m.PersistAll(text("\xff")), dynactor.ErrInvalid},
				"too large":      {m.PersistAll(huge), dynactor.ErrTooLarge},
				"one too large":  {m.PersistAll(text("2"), huge), dynactor.ErrTooLarge},
				"an empty tag":   {m.Persist(dynactor.Event{Message: text("2"), Tags: []string{""}}), dynactor.ErrInvalid},
				"an empty key":   {m.PersistEvents(dynactor.Event{Message: text("2"), Meta: map[string]string{"": "x"}}), dynactor.ErrInvalid},
				"no events":      {m.PersistEvents(), dynactor.ErrInvalid},
				"a huge state":   {m.SaveSnapshot(huge), dynactor.ErrTooLarge},
				"no state":       {m.SaveSnapshot(nil), dynactor.ErrInvalid},
				"no snapshot":    {m.DeleteEventsTo(1), dynactor.ErrNoSnapshot},
				"beyond the end": {m.DeleteEventsTo(2), nil},
			} {
				if e, ok := errors.AsType[*dynactor.Error](tc.err); !ok || (tc.want != nil && !errors.Is(e, tc.want)) || e.ID != "a" {
					t.Errorf("%s: got %v, want %v", name, tc.err, tc.want)
				}
			}
		})
		noWrites(t, db)
		h.expect("a", pay("2"), texts(1, 2))
		h.noFailures()
	})

	t.Run("before and during recovery all is refused", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		fill(t, p.Journal(), "a", 2)
		db.Faults.Reset()
		h := newHouse(t)
		seen := 0
		h.hook = func(m *member, ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started, *wrapperspb.StringValue:
				seen++
				for _, err := range []error{m.PersistAll(text("x")), m.SaveSnapshot(m.list()), m.DeleteEventsTo(1)} {
					isError(t, asError(t, err), dynactor.ErrRecovering)
				}
				if m.Head() != 0 || m.PersistenceID() != "a" {
					t.Errorf("head %d, id %q", m.Head(), m.PersistenceID())
				}
			}
		}
		h.using(p, "a", dynactor.UsingOptions{})
		h.expect("a", get{}, texts(1, 2))
		if seen != 3 {
			t.Errorf("asked %d times", seen)
		}
		noWrites(t, db)
	})

	t.Run("without Using all is refused", func(t *testing.T) {
		t.Parallel()
		m := &member{}
		for _, err := range []error{
			m.PersistAll(text("x")), m.Persist(dynactor.Event{Message: text("x")}), m.SaveSnapshot(text("x")), m.DeleteEventsTo(1),
		} {
			isError(t, asError(t, err), dynactor.ErrInvalid)
		}
		if m.Head() != 0 || m.PersistenceID() != "" {
			t.Errorf("head %d, id %q", m.Head(), m.PersistenceID())
		}
	})

	t.Run("tags and metadata are stored", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		h := newHouse(t)
		h.using(p, "a", dynactor.UsingOptions{})
		want := []dynactor.Event{
			{Message: text("1"), Tags: []string{"red"}, Meta: map[string]string{"by": "me"}},
			{Message: text("2"), Tags: []string{"blue"}},
			{Message: text("3")},
		}
		h.run("a", func(m *member, _ actor.Context) {
			if err := errors.Join(m.Persist(want[0]), m.PersistEvents(want[1:]...)); err != nil {
				t.Error(err)
			}
		})
		i := 0
		for e, err := range p.Journal().Replay(t.Context(), "a", 1, 0) {
			got := dynactor.Event{Message: e.Message, Tags: e.Tags, Meta: e.Meta}
			if err != nil || !proto.Equal(got.Message, want[i].Message) || !cmp.Equal(got.Tags, want[i].Tags) || !cmp.Equal(got.Meta, want[i].Meta) {
				t.Errorf("stored %v, %v, want %v", got, err, want[i])
			}
			i++
		}
	})

	t.Run("all ways of persisting and saving can be mixed", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{KeepSnapshots: -1})
		h := newHouse(t)
		o := dynactor.UsingOptions{Snapshot: dynactor.EveryEvents(4)}
		h.using(p, "a", o)
		next := 0
		more := func(n int) (list []string) {
			for range n {
				next++
				list = append(list, strconv.Itoa(next))
			}
			return list
		}
		for round := range 6 {
			h.run("a", func(m *member, _ actor.Context) {
				e := more(3)
				if err := m.applied(m.PersistAll(text(e[0]), text(e[1]), text(e[2])), e...); err != nil {
					t.Error(err)
				}
				e = more(1)
				m.PersistReceive(text(e[0]))
				m.state = append(m.state, e...)
				e = more(1)
				if err := m.applied(m.Persist(dynactor.Event{Message: text(e[0])}), e...); err != nil {
					t.Error(err)
				}
				switch round % 3 {
				case 0:
					m.PersistSnapshot(m.list())
				case 1:
					if err := m.SaveSnapshot(m.list()); err != nil {
						t.Error(err)
					}
				}
				if m.Head() != int64(next) {
					t.Errorf("the head is %d, want %d", m.Head(), next)
				}
			})
			h.expect("a", get{}, texts(1, next))
			if round%2 == 0 {
				h.send("a", fail{})
			} else {
				h.stop("a")
				h.using(p, "a", o)
			}
			h.expect("a", get{}, texts(1, next))
		}
		if got, err := p.Snapshots().List(t.Context(), "a"); err != nil || !cmp.Equal([]int64{5, 10, 15, 20, 25, 30}, got) {
			t.Errorf("snapshots %v, %v, want one after each round", got, err)
		}
		// Recovery from the snapshot is not taken for a replay of all.
		h.run("a", func(m *member, _ actor.Context) {
			if err := m.DeleteEventsTo(5); err != nil {
				t.Error(err)
			}
		})
		h.send("a", fail{})
		h.expect("a", get{}, texts(1, next))
	})

	for name, do := range map[string]dynactortest.Action{
		"the answer is lost":      dynactortest.DropAnswer(),
		"it fails after it":       dynactortest.FailAfter(500),
		"it is never carried out": denied,
	} {
		t.Run("all or none when "+name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			h := newHouse(t)
			h.using(p, "a", dynactor.UsingOptions{})
			h.expect("a", pay("1"), texts(1, 1))
			db.Faults.Add(dynactortest.Rule{Op: "TransactWriteItems", Times: 1, Do: do})
			got := h.ask("a", do3)
			h.send("a", fail{})
			state := h.ask("a", get{})
			switch answer := got.(type) {
			case string:
				if diff := cmp.Diff(texts(1, 4), state); diff != "" {
					t.Errorf("acknowledged, but (-want +got):\n%s", diff)
				}
			case *dynactor.PersistenceFailure:
				all, none := cmp.Equal(texts(1, 4), state), cmp.Equal(texts(1, 1), state)
				if !none && (!all || answer.GetCode() != "outcome_unknown") {
					t.Errorf("told %v, state %v", answer, state)
				}
			}
		})
	}

	t.Run("an actor that closes its provider in the midst is told", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		h := newHouse(t)
		h.using(p, "a", dynactor.UsingOptions{})
		h.expect("a", pay("1"), texts(1, 1))
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if f, ok := h.ask("a", pay("2")).(*dynactor.PersistenceFailure); !ok || f.GetCode() != "closed" {
			t.Errorf("answered %v", f)
		}
	})
}

// do3 persists 2 to 4 at once.
var do3 = do(func(m *member, ctx actor.Context) {
	if err := m.PersistAll(numbered(2, 4)...); err != nil {
		panic(err)
	}
	ctx.Respond("done")
})
