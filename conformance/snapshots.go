package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// SnapshotStore is what a store of snapshots must be able to do. A snapshot at
// number seq is the state after the first seq events. The one with the highest
// number is the newest, whenever it was saved.
type SnapshotStore interface {
	// Save stores a snapshot, in the place of one with the same number.
	Save(ctx context.Context, id string, seq int64, state proto.Message) error
	// AtOrBefore returns the newest snapshot up to a number, and its number; false
	// says that there is certainly none.
	AtOrBefore(ctx context.Context, id string, seq int64) (state proto.Message, at int64, found bool, err error)
	// List returns the numbers of all snapshots in ascending order.
	List(ctx context.Context, id string) ([]int64, error)
	// Delete removes snapshots. Those that do not exist are no error.
	Delete(ctx context.Context, id string, seqs ...int64) error
	// DeleteTo removes all snapshots up to a number.
	DeleteTo(ctx context.Context, id string, seq int64) error
}

// SnapshotEnv is a store without snapshots, and what goes with it.
type SnapshotEnv struct {
	Store SnapshotStore
	// Another returns the same store as another process has it. For [Processes].
	Another func() SnapshotStore
	Errors  Errors
	Limit   Limit
	// Trouble changes what happens to the requests of Store from now on. For [Faults].
	Trouble func(ctx context.Context, kind Trouble) error
	// Damage harms a stored snapshot. For [Tampering].
	Damage func(ctx context.Context, id string, seq int64, harm Harm) error
	// Lifetime is how long each snapshot lasts after its save, an hour for instance,
	// and Pass lets time pass for all processes. For [Expiry].
	Lifetime time.Duration
	Pass     func(ctx context.Context, d time.Duration) error
}

func (e SnapshotEnv) hooks() hooks {
	return hooks{
		Processes: {e.Another != nil, "Another"},
		Faults:    {e.Trouble != nil, "Trouble"},
		Tampering: {e.Damage != nil, "Damage"},
		Expiry:    {e.Lifetime > 0 && e.Pass != nil, "Lifetime and Pass"},
		Limits:    {e.Limit.Bytes > 0, "Limit with Bytes"},
	}
}

func (e SnapshotEnv) other() SnapshotStore {
	if e.Another == nil {
		return e.Store
	}
	return e.Another()
}

// save saves snapshots whose texts are "s" and their numbers.
func save(ctx context.Context, s SnapshotStore, id string, seqs ...int64) error {
	for _, seq := range seqs {
		if err := saveMessage(ctx, s, id, seq, wrapperspb.String("s"+strconv.FormatInt(seq, 10))); err != nil {
			return err
		}
	}
	return nil
}

func saveMessage(ctx context.Context, s SnapshotStore, id string, seq int64, m proto.Message) error {
	if err := s.Save(ctx, id, seq, m); err != nil {
		return fmt.Errorf("save of %.20q at %d: %w", id, seq, err)
	}
	return nil
}

// newest checks that the newest snapshot up to a number is the one at want, 0 for none.
func newest(ctx context.Context, s SnapshotStore, id string, upTo, want int64) error {
	m, at, found, err := s.AtOrBefore(ctx, id, upTo)
	if err != nil {
		return fmt.Errorf("snapshot of %.20q up to %d: %w", id, upTo, err)
	}
	text := "s" + strconv.FormatInt(want, 10)
	switch {
	case found != (want > 0):
		return fmt.Errorf("snapshot of %.20q up to %d: found is %t, want %t", id, upTo, found, want > 0)
	case found && (at != want || textOf(m) != text):
		return fmt.Errorf("snapshot of %.20q up to %d is %q at %d, want %q at %d", id, upTo, textOf(m), at, text, want)
	}
	return nil
}

// lists checks the numbers of all snapshots.
func lists(ctx context.Context, s SnapshotStore, id string, want ...int64) error {
	got, err := s.List(ctx, id)
	if err != nil {
		return fmt.Errorf("list of %.20q: %w", id, err)
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the list of %.20q is %d, want %d", id, got, want)
	}
	return nil
}

// fiveSnapshots is the fixture of many cases: snapshots at 11 to 15.
func fiveSnapshots(ctx context.Context, s SnapshotStore) error {
	return save(ctx, s, "a", 11, 12, 13, 14, 15)
}

// snapshotCase is a case about five snapshots.
func snapshotCase(name, why string, needs []Feature, check func(ctx context.Context, e SnapshotEnv, s SnapshotStore) error) Case[SnapshotEnv] {
	return Case[SnapshotEnv]{Name: name, Why: why, Needs: needs, Check: func(ctx context.Context, e SnapshotEnv) error {
		if err := fiveSnapshots(ctx, e.Store); err != nil {
			return err
		}
		return check(ctx, e, e.Store)
	}}
}

// Snapshots is the suite for stores of snapshots.
func Snapshots() Suite[SnapshotEnv] {
	type store = SnapshotStore
	const stale = "an old snapshot in the place of the newest is slow at best, and lost state where events were deleted"
	return guarded(Suite[SnapshotEnv]{
		{
			Name: "S-01 an unknown id", Why: "every new actor begins so",
			Check: func(ctx context.Context, e SnapshotEnv) error {
				return first(newest(ctx, e.Store, "nobody", math.MaxInt64, 0), lists(ctx, e.Store, "nobody"))
			},
		},
		snapshotCase("S-03 up to a number below all", "recovery to a point in time asks so", nil, func(ctx context.Context, e SnapshotEnv, s store) error {
			return first(newest(ctx, s, "a", 7, 0), newest(ctx, s, "a", 10, 0), newest(ctx, s, "a", 0, 0))
		}),
		snapshotCase("S-04 the newest", stale, nil, func(ctx context.Context, e SnapshotEnv, s store) error {
			return first(newest(ctx, e.other(), "a", math.MaxInt64, 15), lists(ctx, e.other(), "a", 11, 12, 13, 14, 15))
		}),
		snapshotCase("S-05 S-06 up to a number", "recovery to a point in time asks so", nil, func(ctx context.Context, e SnapshotEnv, s store) error {
			return first(newest(ctx, s, "a", 13, 13), newest(ctx, s, "a", 11, 11), newest(ctx, s, "a", 100, 15))
		}),
		snapshotCase("S-07 deletion of one", "the next older one must take its place", []Feature{Deletion}, func(ctx context.Context, e SnapshotEnv, s store) error {
			return first(s.Delete(ctx, "a", 15), newest(ctx, s, "a", math.MaxInt64, 14),
				s.Delete(ctx, "a", 12, 13), lists(ctx, e.other(), "a", 11, 14), newest(ctx, s, "a", 13, 11))
		}),
		snapshotCase("S-08 deletion up to a number", "it must delete these and no other", []Feature{Deletion}, func(ctx context.Context, e SnapshotEnv, s store) error {
			return first(s.DeleteTo(ctx, "a", 13), lists(ctx, e.other(), "a", 14, 15), newest(ctx, s, "a", 13, 0),
				s.DeleteTo(ctx, "a", math.MaxInt64), lists(ctx, s, "a"), newest(ctx, s, "a", math.MaxInt64, 0))
		}),
		snapshotCase("S-10 twice at one number", "an actor that restarts may save again", nil, func(ctx context.Context, e SnapshotEnv, s store) error {
			if err := saveMessage(ctx, s, "a", 15, wrapperspb.String("again")); err != nil {
				return err
			}
			m, at, _, err := e.other().AtOrBefore(ctx, "a", math.MaxInt64)
			if err != nil || at != 15 || textOf(m) != "again" {
				return fmt.Errorf("the second snapshot at 15 comes back as %q at %d, %v", textOf(m), at, err) //nolint:errorlint // it may be nil
			}
			return lists(ctx, s, "a", 11, 12, 13, 14, 15)
		}),
		snapshotCase("S-20 an older one that comes late", stale, nil, func(ctx context.Context, e SnapshotEnv, s store) error {
			return first(save(ctx, e.other(), "a", 9), newest(ctx, s, "a", math.MaxInt64, 15), newest(ctx, s, "a", 10, 9), lists(ctx, s, "a", 9, 11, 12, 13, 14, 15))
		}),
		snapshotCase("S-28 deletion twice, and of nothing", "a deletion that is repeated after a crash must succeed", []Feature{Deletion}, func(ctx context.Context, e SnapshotEnv, s store) error {
			return first(s.Delete(ctx, "a", 15), s.Delete(ctx, "a", 15, 99), s.Delete(ctx, "a"), s.Delete(ctx, "nobody", 1),
				s.DeleteTo(ctx, "a", 12), s.DeleteTo(ctx, "a", 12), s.DeleteTo(ctx, "nobody", 5), lists(ctx, s, "a", 13, 14))
		}),
		snapshotCase("S-14 reads that fail", "an actor that takes a failure for an empty past begins at 0", []Feature{Faults}, func(ctx context.Context, e SnapshotEnv, s store) error {
			if err := e.Trouble(ctx, FailReads); err != nil {
				return err
			}
			_, _, found, err := s.AtOrBefore(ctx, "a", math.MaxInt64)
			if err == nil {
				return fmt.Errorf("reads fail, and the store says found %t and no error", found)
			}
			_, err = s.List(ctx, "a")
			return first(want("list while reads fail", err, nil), e.Trouble(ctx, Calm), newest(ctx, s, "a", math.MaxInt64, 15))
		}),
		snapshotCase("S-21 writes that fail", "what is acknowledged must be stored", []Feature{Faults}, func(ctx context.Context, e SnapshotEnv, s store) error {
			if err := e.Trouble(ctx, FailWrites); err != nil {
				return err
			}
			saved, deleted := save(ctx, s, "a", 16), s.DeleteTo(ctx, "a", 15)
			return first(want("save while writes fail", saved, nil), want("deletion while writes fail", deleted, nil),
				e.Trouble(ctx, Calm), lists(ctx, e.other(), "a", 11, 12, 13, 14, 15))
		}),
		snapshotCase("S-21 a save whose answer is lost", "a save can be repeated without harm", []Feature{Faults}, func(ctx context.Context, e SnapshotEnv, s store) error {
			return first(e.Trouble(ctx, LoseAnswer), save(ctx, s, "a", 16), e.Trouble(ctx, Calm), newest(ctx, e.other(), "a", math.MaxInt64, 16))
		}),
		snapshotCase("S-18 J-53 a batch that is done in part", "what a batch hands back must be sent again", []Feature{Faults, Deletion}, func(ctx context.Context, e SnapshotEnv, s store) error {
			return first(e.Trouble(ctx, HalfBatch), s.Delete(ctx, "a", 11, 12, 13, 14), e.Trouble(ctx, Calm), lists(ctx, e.other(), "a", 15))
		}),
		snapshotCase("S-18 J-53 batches of which nothing is done", "who asks for a deletion must hear that it did not happen", []Feature{Faults, Deletion}, func(ctx context.Context, e SnapshotEnv, s store) error {
			if err := e.Trouble(ctx, StuckBatch); err != nil {
				return err
			}
			err := impatient(ctx, func(ctx context.Context) error { return s.Delete(ctx, "a", 11, 12, 13, 14) })
			if err := e.Trouble(ctx, Calm); err != nil {
				return err
			}
			if err == nil { // it needs no batches
				return lists(ctx, e.other(), "a", 15)
			}
			return first(newest(ctx, e.other(), "a", math.MaxInt64, 15), s.Delete(ctx, "a", 11, 12, 13, 14), lists(ctx, e.other(), "a", 15))
		}),
		snapshotCase("S-26 one that cannot be decoded", "no snapshot and a bad snapshot are two things", []Feature{Tampering}, func(ctx context.Context, e SnapshotEnv, s store) error {
			if err := e.Damage(ctx, "a", 15, Spoil); err != nil {
				return err
			}
			_, _, _, err := s.AtOrBefore(ctx, "a", math.MaxInt64)
			return first(want("load of a bad snapshot", err, e.Errors.Decode), newest(ctx, s, "a", 14, 14), lists(ctx, s, "a", 11, 12, 13, 14, 15))
		}),
		snapshotCase("S-23 one that is too large", "the one before it must stay", []Feature{Limits}, func(ctx context.Context, e SnapshotEnv, s store) error {
			err := s.Save(ctx, "a", 16, wrapperspb.Bytes(make([]byte, e.Limit.Bytes)))
			return first(want("save of too large a state", err, e.Errors.TooLarge), newest(ctx, s, "a", math.MaxInt64, 15))
		}),
		snapshotCase("S-25 one of no events, and of no state", "it stands for nothing", nil, func(ctx context.Context, e SnapshotEnv, s store) error {
			zero, none := save(ctx, s, "a", 0), s.Save(ctx, "a", 16, nil)
			return first(want("save at 0", zero, e.Errors.Invalid), want("save of nil", none, e.Errors.Invalid), lists(ctx, s, "a", 11, 12, 13, 14, 15))
		}),
	}, moreSnapshots())
}

// moreSnapshots are cases with data of their own.
func moreSnapshots() Suite[SnapshotEnv] {
	return Suite[SnapshotEnv]{
		{
			Name: "S-11 S-12 large ones come back equal", Why: "a state that changes on its way is a wrong state",
			Check: func(ctx context.Context, e SnapshotEnv) error {
				for i, m := range []proto.Message{wrapperspb.String(strings.Repeat("日本x", 2000)), wrapperspb.Bytes(make([]byte, 100<<10)), wrapperspb.String(""), wrapperspb.Int64(-1)} {
					if err := saveMessage(ctx, e.Store, "a", int64(i)+1, m); err != nil {
						return err
					}
					got, at, found, err := e.other().AtOrBefore(ctx, "a", math.MaxInt64)
					if err != nil || !found || at != int64(i)+1 || !proto.Equal(got, m) {
						return fmt.Errorf("snapshot %d, a %T, comes back as %T at %d, found %t, %v", i+1, m, got, at, found, err) //nolint:errorlint // it may be nil
					}
				}
				return nil
			},
		},
		{
			Name: "S-12 the caller's messages are his", Why: "an actor goes on with the state that it saved",
			Check: func(ctx context.Context, e SnapshotEnv) error {
				m := wrapperspb.String("s1")
				if err := saveMessage(ctx, e.Store, "a", 1, m); err != nil {
					return err
				}
				m.Value = "changed"
				if err := newest(ctx, e.Store, "a", 1, 1); err != nil {
					return fmt.Errorf("after the saver changed his message: %w", err)
				}
				got, _, _, err := e.Store.AtOrBefore(ctx, "a", 1)
				if s, ok := got.(*wrapperspb.StringValue); ok {
					s.Value = "changed"
				}
				return first(err, newest(ctx, e.Store, "a", 1, 1))
			},
		},
		{
			Name: "S-24 snapshots that expire", Why: "one that is still stored must not count when its time is over", Needs: []Feature{Expiry},
			Check: checkSnapshotExpiry,
		},
		{
			Name: "S-17 many", Why: "lists and deletions go over pages and batches", Needs: []Feature{Deletion},
			Check: func(ctx context.Context, e SnapshotEnv) error {
				var all []int64
				for i := range int64(30) {
					all = append(all, i+1)
					if err := saveMessage(ctx, e.Store, "a", i+1, wrapperspb.Bytes(make([]byte, 50<<10))); err != nil {
						return err
					}
				}
				return first(lists(ctx, e.other(), "a", all...), save(ctx, e.Store, "a", 31), newest(ctx, e.Store, "a", math.MaxInt64, 31),
					e.Store.DeleteTo(ctx, "a", 30), lists(ctx, e.other(), "a", 31))
			},
		},
		{
			Name: "S-04 order where numbers get longer", Why: "numbers that are sorted as text put 10 before 9",
			Check: func(ctx context.Context, e SnapshotEnv) error {
				return first(save(ctx, e.Store, "a", 100, 9, 99, 10), newest(ctx, e.Store, "a", math.MaxInt64, 100),
					newest(ctx, e.Store, "a", 99, 99), newest(ctx, e.Store, "a", 50, 10), lists(ctx, e.Store, "a", 9, 10, 99, 100))
			},
		},
		{
			Name: "S-01 ids that look alike", Why: "one actor must never get the state of another",
			Check: func(ctx context.Context, e SnapshotEnv) error {
				ids := []string{"a", "aa", "a#1", "a/b", "A", "a ", "日本", "a|b"}
				for i, id := range ids {
					if err := save(ctx, e.Store, id, int64(i)+1); err != nil {
						return err
					}
				}
				for i, id := range ids {
					if err := first(newest(ctx, e.Store, id, math.MaxInt64, int64(i)+1), lists(ctx, e.Store, id, int64(i)+1)); err != nil {
						return err
					}
				}
				err := e.Store.Save(ctx, "", 1, wrapperspb.String("x"))
				return want("save under an empty id", err, e.Errors.Invalid)
			},
		},
		{
			Name: "S-22 many saves at a time", Why: "the newest wins, whoever comes last",
			Check: func(ctx context.Context, e SnapshotEnv) error {
				const n = 20
				other := e.other()
				errs := make([]error, n)
				var wg sync.WaitGroup
				for i := range int64(n) {
					s := e.Store
					if i%2 == 0 {
						s = other
					}
					wg.Go(func() { errs[i] = caught(func() error { return save(ctx, s, "a", i+1) }) })
				}
				wg.Wait()
				return first(errors.Join(errs...), newest(ctx, e.Store, "a", math.MaxInt64, n))
			},
		},
		{
			Name: "S-22 what was saved is read at once", Why: "an actor that restarts after a save must see it",
			Check: func(ctx context.Context, e SnapshotEnv) error {
				other := e.other()
				for i := range int64(30) {
					if err := first(save(ctx, e.Store, "a", i+1), newest(ctx, other, "a", math.MaxInt64, i+1)); err != nil {
						return err
					}
				}
				return nil
			},
		},
	}
}

func checkSnapshotExpiry(ctx context.Context, e SnapshotEnv) error {
	all, half := int64(math.MaxInt64), e.Lifetime/2
	if err := first(save(ctx, e.Store, "a", 11, 12, 13), e.Pass(ctx, half)); err != nil {
		return err
	}
	if err := first(save(ctx, e.Store, "a", 12, 15), newest(ctx, e.Store, "a", 13, 13), // 12 is renewed
		e.Pass(ctx, half+half/2)); err != nil {
		return err
	}
	return first(newest(ctx, e.Store, "a", all, 15), newest(ctx, e.other(), "a", 14, 12), newest(ctx, e.other(), "a", 11, 0), lists(ctx, e.other(), "a", 12, 15),
		e.Pass(ctx, half), newest(ctx, e.Store, "a", all, 0), newest(ctx, e.other(), "a", 12, 0), lists(ctx, e.Store, "a"),
		save(ctx, e.Store, "a", 14), newest(ctx, e.other(), "a", all, 14), lists(ctx, e.Store, "a", 14))
}
