package conformance

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// StateStore is what a store of durable state must be able to do: it keeps the
// latest value of each id, and changes it by compare-and-set. Revisions of an id
// only rise, over deletions too.
type StateStore interface {
	// Load returns the value of an id, nil for none, and the revision that the next
	// Save expects.
	Load(ctx context.Context, id string) (value proto.Message, revision int64, err error)
	// Save stores a value in the place of what is at the expected revision, 0 for
	// nothing, and returns the new revision, which is the next number.
	Save(ctx context.Context, id string, expected int64, value proto.Message) (revision int64, err error)
	// Delete removes the value at the expected revision, and returns the new one,
	// which stays.
	Delete(ctx context.Context, id string, expected int64) (revision int64, err error)
	// Purge forgets an id whose value was deleted, with its revision. For [Purging].
	Purge(ctx context.Context, id string, expected int64) error
}

// Value is a value with what may go with it.
type Value struct {
	Message proto.Message
	Tags    []string
	Lives   time.Duration // it ends so long after it is saved; zero: never
}

// StateEnv is a store without values, and what goes with it.
type StateEnv struct {
	Store StateStore
	// Another returns the same store as another process has it. For [Processes].
	Another func() StateStore
	Errors  Errors
	Limit   Limit
	// Trouble changes what happens to the requests of Store from now on. For [Faults].
	Trouble func(ctx context.Context, kind Trouble) error
	// SaveValue is Save for a value with tags or an end. For [Metadata] and [Expiry].
	SaveValue func(ctx context.Context, id string, expected int64, v Value) (revision int64, err error)
	// Tags returns the tags of the value of an id. For [Metadata].
	Tags func(ctx context.Context, id string) ([]string, error)
	// Pass lets time pass for all processes. For [Expiry].
	Pass func(ctx context.Context, d time.Duration) error
	// IDs yields the ids that have a value, each once, and perhaps some whose value was
	// deleted, in an order of its own. It begins after an id that it has yielded
	// before, at the first for "". An error is yielded once, at the end. For [Listing].
	IDs func(ctx context.Context, after string) iter.Seq2[string, error]
	// Damage harms the stored value of an id. For [Tampering].
	Damage func(ctx context.Context, id string, harm Harm) error
	// Old makes the deleted state of an id old enough to be purged. Nil where all are. For [Purging].
	Old func(ctx context.Context, id string) error
}

func (e StateEnv) hooks() hooks {
	return hooks{
		Processes: {e.Another != nil, "Another"},
		Faults:    {e.Trouble != nil, "Trouble"},
		Tampering: {e.Damage != nil, "Damage"},
		Metadata:  {e.SaveValue != nil && e.Tags != nil, "SaveValue and Tags"},
		Expiry:    {e.SaveValue != nil && e.Pass != nil, "SaveValue and Pass"},
		Listing:   {e.IDs != nil, "IDs"},
		Limits:    {e.Limit.Bytes > 0, "Limit with Bytes"},
	}
}

func (e StateEnv) other() StateStore {
	if e.Another == nil {
		return e.Store
	}
	return e.Another()
}

// set saves a text and checks the revision that comes back.
func set(ctx context.Context, s StateStore, id string, expected int64, text string) error {
	return setMessage(ctx, s, id, expected, wrapperspb.String(text))
}

func setMessage(ctx context.Context, s StateStore, id string, expected int64, m proto.Message) error {
	rev, err := s.Save(ctx, id, expected, m)
	return moved("save", id, expected, rev, err)
}

// drop deletes "a" at revision 1 and checks the revision that comes back.
func drop(ctx context.Context, s StateStore) error {
	rev, err := s.Delete(ctx, "a", 1)
	return moved("deletion", "a", 1, rev, err)
}

func moved(what, id string, expected, rev int64, err error) error {
	if err != nil {
		return fmt.Errorf("%s of %.20q at revision %d: %w", what, id, expected, err)
	}
	if rev != expected+1 {
		return fmt.Errorf("%s of %.20q at revision %d returns revision %d", what, id, expected, rev)
	}
	return nil
}

// is checks the text, "" for none, and the revision of an id.
func is(ctx context.Context, s StateStore, id, text string, revision int64) error {
	m, rev, err := s.Load(ctx, id)
	if err != nil {
		return fmt.Errorf("load of %.20q: %w", id, err)
	}
	got := ""
	if m != nil {
		got = textOf(m)
	}
	if got != text || (m == nil) != (text == "") || rev != revision {
		return fmt.Errorf("%.20q holds %q at revision %d, want %q at %d", id, got, rev, text, revision)
	}
	return nil
}

// stale wants saves and deletions of "a" at these revisions to be conflicts.
func (e StateEnv) stale(ctx context.Context, revisions ...int64) error {
	for _, r := range revisions {
		_, err := e.other().Save(ctx, "a", r, wrapperspb.String("x"))
		if err := e.Errors.wantConflict(fmt.Sprintf("save at revision %d", r), err); err != nil {
			return err
		}
		if r == 0 {
			continue
		}
		_, err = e.other().Delete(ctx, "a", r)
		if err := e.Errors.wantConflict(fmt.Sprintf("deletion at revision %d", r), err); err != nil {
			return err
		}
	}
	return nil
}

// State is the suite for stores of durable state.
func State() Suite[StateEnv] {
	return guarded(stateCases(), valueCases(), listingCases(), stateTrouble())
}

func stateCases() Suite[StateEnv] {
	const lost = "of two who change one value, the second must hear of the first"
	return Suite[StateEnv]{
		{
			Name: "D-01 an unknown id", Why: "every new value begins so",
			Check: func(ctx context.Context, e StateEnv) error { return is(ctx, e.Store, "nobody", "", 0) },
		},
		{
			Name: "D-02 D-03 D-20 values and their revisions", Why: "a revision that is off by one refuses the next save, or permits one too many",
			Check: func(ctx context.Context, e StateEnv) error {
				for i := range int64(5) {
					text := strconv.FormatInt(i, 10)
					if err := first(set(ctx, e.Store, "a", i, text), is(ctx, e.other(), "a", text, i+1)); err != nil {
						return err
					}
				}
				return nil
			},
		},
		{
			Name: "D-04 D-16 deletion", Why: "a value is gone, its revision is not", Needs: []Feature{Deletion},
			Check: func(ctx context.Context, e StateEnv) error {
				return first(set(ctx, e.Store, "a", 0, "1"), drop(ctx, e.Store), is(ctx, e.other(), "a", "", 2))
			},
		},
		{
			Name: "D-05 ids are independent", Why: "one actor must never get the state of another",
			Check: func(ctx context.Context, e StateEnv) error {
				ids := []string{"a", "aa", "a#1", "a/b", "A", "a ", "日本", "a|b"}
				for i, id := range ids {
					for r := range int64(i) + 1 {
						if err := set(ctx, e.Store, id, r, id); err != nil {
							return err
						}
					}
				}
				for i, id := range ids {
					if err := is(ctx, e.Store, id, id, int64(i)+1); err != nil {
						return err
					}
				}
				_, err := e.Store.Save(ctx, "", 0, wrapperspb.String("x"))
				return want("save under an empty id", err, e.Errors.Invalid)
			},
		},
		{
			Name: "D-06 D-14 after a deletion revisions go on", Why: "a writer who slept over the deletion must not bring the old value back", Needs: []Feature{Deletion},
			Check: func(ctx context.Context, e StateEnv) error {
				return first(set(ctx, e.Store, "a", 0, "1"), drop(ctx, e.Store), e.stale(ctx, 0, 1, 3),
					set(ctx, e.other(), "a", 2, "3"), is(ctx, e.Store, "a", "3", 3))
			},
		},
		{
			Name: "D-07 D-08 D-13 other revisions", Why: lost,
			Check: func(ctx context.Context, e StateEnv) error {
				return first(e.stale(ctx, 1, 7), is(ctx, e.Store, "a", "", 0), set(ctx, e.Store, "a", 0, "1"),
					set(ctx, e.Store, "a", 1, "2"), e.stale(ctx, 0, 1, 3, 4), is(ctx, e.Store, "a", "2", 2))
			},
		},
		{
			Name: "D-08 the same value by another writer", Why: "equal bytes prove nothing: two who add 1 must end at 2",
			Check: func(ctx context.Context, e StateEnv) error {
				if err := set(ctx, e.Store, "a", 0, "1"); err != nil {
					return err
				}
				_, err := e.other().Save(ctx, "a", 0, wrapperspb.String("1"))
				return first(e.Errors.wantConflict("the second save", err), is(ctx, e.Store, "a", "1", 1))
			},
		},
		{
			Name: "D-09 values come back equal", Why: "a value that changes on its way is a wrong value",
			Check: func(ctx context.Context, e StateEnv) error {
				for i, m := range []proto.Message{wrapperspb.String("日本\x00"), wrapperspb.Bytes(make([]byte, 100<<10)), wrapperspb.String(""), wrapperspb.Int64(-1)} {
					if err := setMessage(ctx, e.Store, "a", int64(i), m); err != nil {
						return err
					}
					got, rev, err := e.other().Load(ctx, "a")
					if err != nil || rev != int64(i)+1 || !proto.Equal(got, m) {
						return fmt.Errorf("value %d, a %T, comes back as %T at %d, %v", i+1, m, got, rev, err) //nolint:errorlint // it may be nil
					}
				}
				return nil
			},
		},
		{
			Name: "D-09 the caller's messages are his", Why: "a store that keeps a pointer shows changes that nobody saved",
			Check: func(ctx context.Context, e StateEnv) error {
				m := wrapperspb.String("1")
				if err := setMessage(ctx, e.Store, "a", 0, m); err != nil {
					return err
				}
				m.Value = "changed"
				return is(ctx, e.Store, "a", "1", 1)
			},
		},
		{
			Name: "D-11 D-12 two writers race", Why: lost, Needs: []Feature{Processes},
			Check: checkStateRace,
		},
		{
			Name: "D-17 deletion of an unknown id", Why: "who deletes a value has seen it", Needs: []Feature{Deletion},
			Check: func(ctx context.Context, e StateEnv) error {
				_, err := e.Store.Delete(ctx, "nobody", 1)
				if err := e.Errors.wantConflict("deletion", err); err != nil {
					return err
				}
				_, err = e.Store.Delete(ctx, "nobody", 0)
				return first(want("deletion at revision 0", err, e.Errors.Invalid), is(ctx, e.Store, "nobody", "", 0))
			},
		},
		{
			Name: "D-18 what was saved is read at once", Why: "an actor that restarts after a save must see it",
			Check: func(ctx context.Context, e StateEnv) error {
				other := e.other()
				for i := range int64(30) {
					text := strconv.FormatInt(i, 10)
					if err := first(set(ctx, e.Store, "a", i, text), is(ctx, other, "a", text, i+1)); err != nil {
						return err
					}
				}
				return nil
			},
		},
		{
			Name: "D-21 a value that is too large, and none", Why: "the one before it must stay", Needs: []Feature{Limits},
			Check: func(ctx context.Context, e StateEnv) error {
				if err := set(ctx, e.Store, "a", 0, "1"); err != nil {
					return err
				}
				_, large := e.Store.Save(ctx, "a", 1, wrapperspb.Bytes(make([]byte, e.Limit.Bytes)))
				_, none := e.Store.Save(ctx, "a", 1, nil)
				return first(want("save of too large a value", large, e.Errors.TooLarge), want("save of nil", none, e.Errors.Invalid), is(ctx, e.Store, "a", "1", 1))
			},
		},
		{
			Name: "D-16 purge", Why: "only what was deleted may be forgotten", Needs: []Feature{Purging, Deletion},
			Check: func(ctx context.Context, e StateEnv) error {
				if err := set(ctx, e.Store, "a", 0, "1"); err != nil {
					return err
				}
				live := e.Store.Purge(ctx, "a", 1)
				if err := first(want("purge of a value", live, e.Errors.Invalid), drop(ctx, e.Store)); err != nil {
					return err
				}
				if e.Old != nil {
					if err := e.Old(ctx, "a"); err != nil {
						return err
					}
				}
				stale := e.Store.Purge(ctx, "a", 1)
				return first(e.Errors.wantConflict("purge at another revision", stale), is(ctx, e.Store, "a", "", 2),
					e.Store.Purge(ctx, "a", 2), e.Store.Purge(ctx, "a", 2), is(ctx, e.other(), "a", "", 0), set(ctx, e.Store, "a", 0, "1"))
			},
		},
		{
			Name: "D-24 a value that cannot be decoded", Why: "no value and a bad value are two things", Needs: []Feature{Tampering},
			Check: func(ctx context.Context, e StateEnv) error {
				if err := first(set(ctx, e.Store, "a", 0, "1"), e.Damage(ctx, "a", Spoil)); err != nil {
					return err
				}
				_, _, err := e.Store.Load(ctx, "a")
				return want("load of a bad value", err, e.Errors.Decode)
			},
		},
	}
}

func checkStateRace(ctx context.Context, e StateEnv) error {
	writers := []StateStore{e.Store, e.Another()}
	for rev := range int64(rounds) {
		errs := make([]error, len(writers))
		var wg sync.WaitGroup
		for w, s := range writers {
			wg.Go(func() { errs[w] = caught(func() error { return set(ctx, s, "a", rev, strconv.Itoa(w)) }) })
		}
		wg.Wait()
		winner := 0
		if errs[0] != nil {
			winner = 1
		}
		if errs[winner] != nil {
			return fmt.Errorf("both writers lose: %w; %w", errs[0], errs[1])
		}
		if err := first(e.Errors.wantConflict("the second of two writers", errs[1-winner]), is(ctx, e.Store, "a", strconv.Itoa(winner), rev+1)); err != nil {
			return err
		}
	}
	return nil
}
