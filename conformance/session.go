package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// begin is a case on a session that has recovered an empty stream and persisted n events.
func begin(name, why string, needs []Feature, n int, check func(ctx context.Context, e ProviderEnv, s persistence.ProviderState) error) Case[ProviderEnv] {
	return Case[ProviderEnv]{Name: name, Why: why, Needs: needs, Check: func(ctx context.Context, e ProviderEnv) error {
		s, err := resumes(e.Provider, "a", "", 0, -1)
		if err := first(err, persist(s, "a", 0, n-1)); err != nil {
			return err
		}
		return check(ctx, e, s)
	}}
}

// sessionCases are about events, by one incarnation.
func sessionCases() Suite[ProviderEnv] {
	type session = persistence.ProviderState
	return Suite[ProviderEnv]{
		begin("F-01 the interval of snapshots is not 0", "the framework divides by it, after the event was written", nil, 0, func(_ context.Context, _ ProviderEnv, s session) error {
			if s.GetSnapshotInterval() == 0 {
				return errors.New("GetSnapshotInterval returns 0")
			}
			return nil
		}),
		begin("F-02 a new actor has no past, and its first event has index 0", "every actor begins so", nil, 1, func(_ context.Context, e ProviderEnv, _ session) error {
			return finds(e.other(), "a", "", 0, 0)
		}),
		begin("F-03 ranges: start is inclusive, end exclusive, end 0 the head", "the framework asks with end 0, others with ranges", nil, 5, func(_ context.Context, _ ProviderEnv, s session) error {
			return first(between(s, 0, 0, 0, 4), between(s, 2, 0, 2, 4), between(s, 0, 2, 0, 1), between(s, 1, 3, 1, 2), between(s, 4, 5, 4, 4))
		}),
		begin("F-04 empty ranges", "some servers refuse them as an error", nil, 5, func(_ context.Context, _ ProviderEnv, s session) error {
			return first(between(s, 3, 3, 0, -1), between(s, 5, 0, 0, -1))
		}),
		begin("F-04 a start beyond the head", "events are missing, and nobody notices", nil, 2, func(_ context.Context, e ProviderEnv, s session) error {
			return want("events from index 4 on, where there are 2", failure(func() { s.GetEvents("a", 4, 0, func(any) {}) }), e.Errors.Ahead)
		}),
		begin("F-05 persisted means stored", "an acknowledged event that is not there is lost money", nil, 0, func(_ context.Context, e ProviderEnv, s session) error {
			other := e.other()
			for i := range 20 {
				if err := first(persist(s, "a", i, i), finds(other, "a", "", 0, i)); err != nil {
					return err
				}
			}
			return nil
		}),
		begin("F-06 an index that is not the next", "the framework counts callbacks, so a wrong index is a sign of lost events", []Feature{Conflicts}, 3, func(_ context.Context, e ProviderEnv, _ session) error {
			for _, index := range []int{0, 2, 4, 100} {
				s, err := resumes(e.Provider, "a", "", 0, 2)
				if err != nil {
					return err
				}
				err = failure(func() { s.PersistEvent("a", index, wrapperspb.String("x")) })
				if err := first(e.Errors.wantConflict(fmt.Sprintf("event at index %d of 3", index), err), finds(e.other(), "a", "", 0, 2)); err != nil {
					return err
				}
			}
			return nil
		}),
		begin("F-07 an event that cannot be encoded", "the actor must hear of it, and can go on", nil, 1, func(_ context.Context, e ProviderEnv, s session) error {
			err := failure(func() { s.PersistEvent("a", 1, wrapperspb.String("\xff")) })
			return first(want("event with text that is not UTF-8", err, e.Errors.Invalid), persist(s, "a", 1, 1), finds(e.other(), "a", "", 0, 1))
		}),
		begin("F-08 messages are copied", "an actor that changes an event later changes its past", nil, 1, func(_ context.Context, e ProviderEnv, s session) error {
			m := wrapperspb.String("1")
			if err := failure(func() { s.PersistEvent("a", 1, m) }); err != nil {
				return err
			}
			m.Value = "changed"
			return finds(e.Provider, "a", "", 0, 1)
		}),
		begin("F-09 names are independent", "one actor must never get the events of another", nil, 3, func(_ context.Context, e ProviderEnv, _ session) error {
			names := []string{"aa", "a/b", "A", "a#0", "ä", "a|b"}
			for i, name := range names {
				s, err := resumes(e.Provider, name, "", 0, -1)
				if err := first(err, persist(s, name, 0, i)); err != nil {
					return err
				}
			}
			for i, name := range names {
				if err := finds(e.other(), name, "", 0, i); err != nil {
					return err
				}
			}
			return finds(e.other(), "a", "", 0, 2)
		}),
		begin("F-10 a panic of the actor passes through a replay", "the supervisor must see it, and the session must be usable again", nil, 3, func(_ context.Context, e ProviderEnv, _ session) error {
			s := e.Provider.GetState()
			own := errors.New("the actor's own")
			err := failure(func() { s.GetEvents("a", 0, 0, func(any) { panic(own) }) })
			if !errors.Is(err, own) {
				return fmt.Errorf("the panic of the callback arrives as %v", err) //nolint:errorlint // it may be nil
			}
			s.Restart()
			var got []string
			if err := failure(func() {
				_, index, _ := s.GetSnapshot("a")
				s.GetEvents("a", index, 0, func(m any) { got = append(got, textOf(m)) })
			}); err != nil || len(got) != 3 {
				return fmt.Errorf("after Restart there are %d events out of 3, %v", len(got), err) //nolint:errorlint // it may be nil
			}
			return persist(s, "a", 3, 3)
		}),
		begin("F-11 an event that is persisted during a replay", "a handler that forgets Recovering() doubles its history at every start", []Feature{Conflicts}, 3, func(_ context.Context, e ProviderEnv, _ session) error {
			s := e.Provider.GetState()
			s.Restart()
			err := failure(func() {
				_, index, _ := s.GetSnapshot("a")
				s.GetEvents("a", index, 0, func(any) { s.PersistEvent("a", index, wrapperspb.String("again")); index++ })
			})
			return first(want("event in the midst of a replay", err, nil), finds(e.other(), "a", "", 0, 2))
		}),
		begin("F-13 an event that is persisted while the snapshot is delivered", "the number is free then, so nothing else would stop it", []Feature{Conflicts}, 3, func(_ context.Context, e ProviderEnv, s session) error {
			if err := snapshot(s, 3); err != nil {
				return err
			}
			s = e.Provider.GetState()
			s.Restart()
			if _, index, ok := s.GetSnapshot("a"); !ok || index != 3 {
				return fmt.Errorf("GetSnapshot returns index %d, %t", index, ok)
			}
			return first(want("event before the replay", persist(s, "a", 3, 3), nil), finds(e.other(), "a", "s3", 0, -1))
		}),
		begin("F-12 a long history", "a provider that reads the first page only loses the newest events", nil, 0, func(_ context.Context, e ProviderEnv, s session) error {
			const n = 15
			for i := range n {
				if err := failure(func() { s.PersistEvent("a", i, wrapperspb.Bytes(make([]byte, 80<<10))) }); err != nil {
					return err
				}
			}
			_, got, err := recovers(e.other(), "a")
			if err != nil || len(got.events) != n {
				return fmt.Errorf("%d events of 80 kB come back out of %d, %v", len(got.events), n, err) //nolint:errorlint // it may be nil
			}
			return persist(s, "a", n, n)
		}),
	}
}

// sessionSnapshots are about snapshots and deletions, by one incarnation.
func sessionSnapshots() Suite[ProviderEnv] {
	type session = persistence.ProviderState
	return Suite[ProviderEnv]{
		begin("F-20 S-27 a snapshot at index S covers the first S events", "one event too many or too few is a wrong state", nil, 5, func(_ context.Context, e ProviderEnv, s session) error {
			return first(snapshot(s, 3), finds(e.other(), "a", "s3", 3, 4), persist(s, "a", 5, 5), finds(e.other(), "a", "s3", 3, 5))
		}),
		begin("F-21 a snapshot of everything", "then nothing is replayed, and numbers go on", nil, 3, func(_ context.Context, e ProviderEnv, s session) error {
			if err := snapshot(s, 3); err != nil {
				return err
			}
			s, err := resumes(e.other(), "a", "s3", 0, -1)
			return first(err, persist(s, "a", 3, 4), finds(e.Provider, "a", "s3", 3, 4))
		}),
		begin("F-22 S-25 a snapshot at index 0", "the framework asks for one after the very first event, and it covers nothing", nil, 1, func(_ context.Context, e ProviderEnv, s session) error {
			return first(snapshot(s, 0), finds(e.other(), "a", "", 0, 0))
		}),
		begin("F-23 the newest snapshot counts", "an old one in its place is slow at best", nil, 6, func(_ context.Context, e ProviderEnv, s session) error {
			return first(snapshot(s, 2), snapshot(s, 5), finds(e.other(), "a", "s5", 5, 5))
		}),
		begin("F-23 S-20 an older snapshot that comes late", "an old one in the place of the newest is slow at best", nil, 6, func(_ context.Context, e ProviderEnv, s session) error {
			return first(snapshot(s, 5), snapshot(s, 2), finds(e.other(), "a", "s5", 5, 5))
		}),
		begin("F-24 a snapshot ahead of the events", "it holds a state that the journal does not", nil, 3, func(_ context.Context, e ProviderEnv, s session) error {
			_ = failure(func() { s.PersistSnapshot("a", 5, wrapperspb.String("s5")) })
			return finds(e.other(), "a", "", 0, 2)
		}),
		begin("F-25 a snapshot is copied", "an actor goes on with the state that it saved", nil, 3, func(_ context.Context, e ProviderEnv, s session) error {
			m := wrapperspb.String("s2")
			if err := failure(func() { s.PersistSnapshot("a", 2, m) }); err != nil {
				return err
			}
			m.Value = "changed"
			return finds(e.Provider, "a", "s2", 2, 2)
		}),
		begin("F-32 S-24 snapshots that expire", "one that is still stored must not count when its time is over, and the events still tell all", []Feature{Expiry}, 5, func(ctx context.Context, e ProviderEnv, s session) error {
			if err := first(snapshot(s, 2), e.Pass(ctx, e.Lifetime/2)); err != nil {
				return err
			}
			return first(snapshot(s, 4), finds(e.other(), "a", "s4", 4, 4), e.Pass(ctx, e.Lifetime*3/4), finds(e.other(), "a", "s4", 4, 4),
				e.Pass(ctx, e.Lifetime), finds(e.other(), "a", "", 0, 4), persist(s, "a", 5, 5), snapshot(s, 6), finds(e.other(), "a", "s6", 0, -1))
		}),
		begin("F-26 S-19 as many snapshots as are to be kept", "nobody else deletes them, and one too few is one too few", []Feature{Pruning}, 12, func(ctx context.Context, e ProviderEnv, s session) error {
			for i := 1; i <= 10; i++ {
				if err := snapshot(s, i); err != nil {
					return err
				}
				got, err := e.Kept(ctx, "a")
				if want := min(i, e.Keep); err != nil || len(got) != want || got[0] != int64(i-want+1) || got[want-1] != int64(i) {
					return fmt.Errorf("after %d saves the snapshots at %d are there, want the newest %d, %v", i, got, want, err) //nolint:errorlint // it may be nil
				}
			}
			return finds(e.other(), "a", "s10", 10, 11)
		}),
		begin("F-27 deletion of events is inclusive, and harms no recovery", "a provider that deletes one too many has lost it", []Feature{Deletion}, 6, func(_ context.Context, e ProviderEnv, s session) error {
			if err := first(snapshot(s, 3), failure(func() { s.DeleteEvents("a", 2) })); err != nil {
				return err
			}
			s, err := resumes(e.other(), "a", "s3", 3, 5)
			return first(err, persist(s, "a", 6, 6), finds(e.Provider, "a", "s3", 3, 6))
		}),
		begin("F-28 A-04 deletion of events that recovery needs", "a provider must not delete the only copy of a state", []Feature{Deletion}, 6, func(_ context.Context, e ProviderEnv, s session) error {
			if err := snapshot(s, 3); err != nil {
				return err
			}
			_ = failure(func() { s.DeleteEvents("a", 3) })
			return finds(e.other(), "a", "s3", 3, 5)
		}),
		begin("F-29 deletion of the last snapshot after events were deleted", "a provider must not delete the only copy of a state", []Feature{Deletion}, 6, func(_ context.Context, e ProviderEnv, s session) error {
			if err := first(snapshot(s, 3), failure(func() { s.DeleteEvents("a", 2) })); err != nil {
				return err
			}
			_ = failure(func() { s.DeleteSnapshots("a", 3) })
			return finds(e.other(), "a", "s3", 3, 5)
		}),
		begin("F-30 deletion of snapshots", "the events still tell all", []Feature{Deletion}, 4, func(_ context.Context, e ProviderEnv, s session) error {
			return first(snapshot(s, 1), snapshot(s, 2), snapshot(s, 3), failure(func() { s.DeleteSnapshots("a", 2) }),
				finds(e.other(), "a", "s3", 3, 3), failure(func() { s.DeleteSnapshots("a", 3) }), finds(e.other(), "a", "", 0, 3))
		}),
		begin("F-31 an index that is deleted is not used again", "a number that is used twice is an event that was changed", []Feature{Deletion, Conflicts}, 4, func(_ context.Context, e ProviderEnv, s session) error {
			if err := first(snapshot(s, 4), failure(func() { s.DeleteEvents("a", 3) })); err != nil {
				return err
			}
			for index := range 4 {
				err := failure(func() { e.other().GetState().PersistEvent("a", index, wrapperspb.String("x")) })
				if err := e.Errors.wantConflict(fmt.Sprintf("event at the deleted index %d", index), err); err != nil {
					return err
				}
			}
			return finds(e.other(), "a", "s4", 0, -1)
		}),
	}
}
