package dynactor_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// operation is a call whose requests fail in turn. It begins with 30 events of
// "a", in appends of three and one kilobyte each, snapshots of "a" at 10 and 20,
// and the states "a" at revision 3 and "gone", which was deleted long ago.
type operation struct {
	name   string
	before func(*subject) // after that, and before the requests that are counted
	do     func(*subject) (string, error)
	want   string // of do without trouble, and again after trouble
	fails  error  // without trouble
}

// subject is what an operation works on.
type subject struct {
	t      *testing.T
	p      *dynactor.Provider
	db     *dynactortest.DB
	faults *dynactortest.Faults
	other  *dynactor.Provider // of another process
	clock  *clock
}

func newSubject(t *testing.T) *subject {
	t.Helper()
	s := &subject{t: t, db: dynactortest.New(t), clock: &clock{}}
	o := dynactor.Options{SnapshotInterval: 5, SnapshotFallback: true, KeepSnapshots: 2, DeleteEventsOnSnapshot: true, Now: s.clock.Now}
	client, faults := s.db.NewClient()
	s.faults = faults
	s.p, s.other = openOn(t, s.db, client, o), openOn(t, s.db, s.db.Client, o)
	ctx, j := t.Context(), s.other.Journal()
	err := errors.Join(s.p.EnsureTables(ctx), s.p.State().EnsureTables(ctx), s.other.State().EnsureTables(ctx))
	fillSized(t, j, "a", 30, 1000, 3)
	for _, seq := range []int64{10, 20} {
		err = errors.Join(err, s.other.Snapshots().Save(ctx, "a", seq, text(fmt.Sprint("up to ", seq))))
	}
	for i := range int64(3) {
		saved(t, s.other.State(), "a", i, fmt.Sprint(i+1))
	}
	saved(t, s.other.State(), "gone", 0, "x")
	if _, e := s.other.State().Delete(ctx, "gone", 1); e != nil {
		err = errors.Join(err, e)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.clock.Advance(10 * 24 * time.Hour)
	s.faults.Reset()
	return s
}

// count is how many events a replay delivers, which must be the last ones.
func (s *subject) count(p *dynactor.Provider, from int64) (string, error) {
	n, next := 0, from
	for e, err := range p.Journal().Replay(s.t.Context(), "a", from, 0) {
		if err != nil {
			return fmt.Sprint(n), err
		}
		if e.Seq != next && n > 0 {
			s.t.Errorf("number %d comes after %d", e.Seq, next-1)
		}
		n, next = n+1, e.Seq+1
	}
	return fmt.Sprint(n, " to ", next-1), nil
}

// recoverOnce is what an actor does when it starts.
func recoverOnce(s *subject) (got string, err error) {
	if failure := caught(func() {
		state, index, events := recovered(s.p.GetState(), "a")
		got = fmt.Sprint(state, " at ", index, " and ", len(events))
	}); failure != nil {
		return "", failure
	}
	return got, nil
}

// persistAndSave is an actor that prunes after its snapshot. Whatever fails then is
// no failure of the actor, and nothing that a recovery needs may be gone.
func persistAndSave(s *subject) (string, error) {
	session := s.p.GetState()
	failure := caught(func() {
		_, index, events := recovered(session, "a")
		session.PersistEvent("a", index+len(events), text("x"))
		if err := caught(func() { session.PersistSnapshot("a", index+len(events)+1, text("new")) }); err != nil {
			s.t.Errorf("a snapshot failed its actor: %v", err)
		}
	})
	_, index, events := recovered(s.other.GetState(), "a")
	head, err := s.other.Journal().Head(s.t.Context(), "a")
	if err != nil || index+len(events) != int(head) {
		s.t.Errorf("an actor recovers %d and %d events, the head is %d, %v", index, len(events), head, err)
	}
	if failure != nil {
		return "", failure
	}
	return "whole", nil
}

func operations() []operation {
	replay := func(from int64) func(*subject) (string, error) {
		return func(s *subject) (string, error) { return s.count(s.p, from) }
	}
	// halfSeen hides the middle of the last append from the first three queries.
	halfSeen := func(s *subject) {
		s.faults.Add(dynactortest.Rule{Op: "Query", Table: s.db.EventsTable, Times: 3, Do: dynactortest.HideItems(func(it map[string]any) bool {
			return it["seq"].(map[string]any)["N"] == "29"
		})})
	}
	deleted := func(s *subject) { deleteTo(s.t, s.other.Journal(), "a", 10) }
	return []operation{
		{name: "replay", do: replay(1), want: "30 to 30"},
		{name: "replay of what is deleted in part", before: deleted, do: replay(1), want: "20 to 30"},
		{name: "recover", do: recoverOnce, want: "up to 20 at 20 and 10"},
		{name: "recover past a snapshot that is spoiled", before: func(s *subject) { deleted(s); spoil(s.t, s.db, "a", 20) }, do: recoverOnce, want: "up to 10 at 10 and 20"},
		{name: "replay while an append is seen by half", before: halfSeen, do: replay(25), want: "6 to 30"},
		{name: "recover while an append is seen by half", before: halfSeen, do: recoverOnce, want: "up to 20 at 20 and 10"},
		{name: "persist and save a snapshot", do: persistAndSave, want: "whole"},
		{name: "persist and save a snapshot beside others", before: func(s *subject) {
			for _, seq := range []int64{24, 27, 30} {
				if err := s.other.Snapshots().Save(s.t.Context(), "a", seq, text("others")); err != nil {
					s.t.Error(err)
				}
			}
		}, do: persistAndSave, want: "whole"},
		{name: "head", do: func(s *subject) (string, error) {
			n, err := s.p.Journal().Head(s.t.Context(), "a")
			return fmt.Sprint(n), err
		}, want: "30"},
		{name: "append at a number that is taken", do: func(s *subject) (string, error) {
			_, err := s.p.Journal().Append(s.t.Context(), "a", 27, text("x"))
			return "", err
		}, fails: dynactor.ErrConflict},
		{name: "delete to", do: func(s *subject) (string, error) {
			return "", s.p.Journal().DeleteTo(s.t.Context(), "a", 12)
		}},
		{name: "sweep", before: deleted, do: func(s *subject) (string, error) {
			_, err := s.p.Journal().Sweep(s.t.Context(), "a")
			return fmt.Sprint(len(numbers(s.t, s.db, s.db.EventsTable, "a"))), err
		}, want: "22"},
		{name: "delete all", do: func(s *subject) (string, error) {
			return "", s.p.Journal().DeleteAll(s.t.Context(), "a")
		}},
		{name: "erase", do: func(s *subject) (string, error) {
			err := s.p.Journal().Erase(s.t.Context(), "a")
			return fmt.Sprint(numbers(s.t, s.db, s.db.EventsTable, "a")), err
		}, want: "[0]"},
		{name: "list snapshots", do: func(s *subject) (string, error) {
			list, err := s.p.Snapshots().List(s.t.Context(), "a")
			return fmt.Sprint(list), err
		}, want: "[10 20]"},
		{name: "load a snapshot", do: func(s *subject) (string, error) {
			snap, found, err := s.p.Snapshots().AtOrBefore(s.t.Context(), "a", 15)
			return fmt.Sprint(snap.Seq, found), err
		}, want: "10 true"},
		{name: "delete snapshots", do: func(s *subject) (string, error) {
			err := s.p.Snapshots().DeleteTo(s.t.Context(), "a", 15)
			return fmt.Sprint(numbers(s.t, s.db, s.db.SnapshotsTable, "a")), err
		}, want: "[20]"},
		{name: "load a state", do: func(s *subject) (string, error) {
			st, err := s.p.State().Load(s.t.Context(), "a")
			return fmt.Sprint(textOf(st.Message), st.Revision), err
		}, want: "33"},
		{name: "load states", do: func(s *subject) (string, error) {
			list, err := s.p.State().LoadMany(s.t.Context(), "a", "none", "gone")
			if err != nil {
				return "", err
			}
			return fmt.Sprint(list[0].Revision, list[1].Revision, list[2].Revision), nil
		}, want: "3 0 2"},
		{name: "list states", do: func(s *subject) (string, error) {
			n := 0
			for _, err := range s.p.State().IDs(s.t.Context(), "") {
				if err != nil {
					return "", err
				}
				n++
			}
			return fmt.Sprint(n), nil
		}, want: "2"},
		{name: "save a state at another revision", do: func(s *subject) (string, error) {
			_, err := s.p.State().Save(s.t.Context(), "a", 2, text("x"))
			return "", err
		}, fails: dynactor.ErrConflict},
		{name: "save a state where there is none", do: func(s *subject) (string, error) {
			_, err := s.p.State().Save(s.t.Context(), "none", 2, text("x"))
			return "", err
		}, fails: dynactor.ErrConflict},
		{name: "save a state with a write that is refused", do: func(s *subject) (string, error) {
			_, err := s.p.State().SaveWith(s.t.Context(), "a", 2, dynactor.State{Message: text("x")}, []types.TransactWriteItem{ownPut(s.db.EventsTable, "mine", "")}...)
			return "", err
		}, fails: dynactor.ErrConflict},
		{name: "purge", do: func(s *subject) (string, error) {
			return "", s.p.State().Purge(s.t.Context(), "gone", 2)
		}},
		{name: "purge what has a value", do: func(s *subject) (string, error) {
			return "", s.p.State().Purge(s.t.Context(), "a", 3)
		}, fails: dynactor.ErrInvalid},
	}
}

// TestEachRequestFails refuses, for good, each single request of an operation in
// turn. The operation fails with that, and with nothing that would be said about
// the data, or it does what it should do all the same. Done again, it succeeds.
func TestEachRequestFails(t *testing.T) {
	t.Parallel()
	for _, op := range operations() {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			for k, n := 0, 1; k <= n; k++ { // the last time nothing fails
				s := newSubject(t)
				s.faults.Add(dynactortest.Rule{Skip: k, Times: 1, Do: denied})
				if op.before != nil {
					op.before(s)
				}
				got, err := op.do(s)
				n = max(n, s.faults.Count(""))
				switch {
				case k == n && op.fails == nil && err != nil, err == nil && (op.fails != nil || got != op.want):
					t.Errorf("request %d of %d: %q, %v, want %q, %v", k+1, n, got, err, op.want, op.fails)
				case err != nil && !errors.Is(err, op.fails):
					checkPassing(t, k, err)
				}
				s.faults.Clear()
				if got, err = op.do(s); !errors.Is(err, op.fails) || got != op.want {
					t.Errorf("again after request %d of %d: %q, %v, want %q, %v", k+1, n, got, err, op.want, op.fails)
				}
			}
		})
	}
}

// checkPassing wants an error that says nothing about the data.
func checkPassing(t *testing.T, k int, err error) {
	t.Helper()
	for _, said := range []error{
		dynactor.ErrConflict, dynactor.ErrGap, dynactor.ErrAhead, dynactor.ErrNoSnapshot, dynactor.ErrDecode, dynactor.ErrInvalid, dynactor.ErrSchema, dynactor.ErrTooLarge,
	} {
		if errors.Is(err, said) {
			t.Errorf("request %d was refused, and the error is %v", k+1, err)
		}
	}
	if !errors.As(err, new(*dynactor.Error)) {
		t.Errorf("request %d: %T %v", k+1, err, err)
	}
}
