package conformance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// ProviderEnv is a provider of the framework without data, and what goes with it.
// The framework counts events by an index from 0.
type ProviderEnv struct {
	Provider persistence.Provider
	// Another returns a provider on the same data as another process has it. For [Processes].
	Another func() persistence.Provider
	// Using makes the middleware for actors; nil: the framework's persistence.Using.
	// One that lets actors apply before they persist claims [ApplyFirst].
	Using  func(persistence.Provider) actor.ReceiverMiddleware
	Errors Errors
	// Keep is how many snapshots of an actor the provider keeps, and Kept lists
	// them. For [Pruning].
	Keep int
	Kept func(ctx context.Context, id string) ([]int64, error)
	// Trouble changes what happens to the requests of Provider from now on. For [Faults].
	Trouble func(ctx context.Context, kind Trouble) error
	// Lifetime is how long each snapshot lasts after its save, an hour for instance,
	// and Pass lets time pass for all processes. For [Expiry].
	Lifetime time.Duration
	Pass     func(ctx context.Context, d time.Duration) error
	// Damage harms the event at an index. For [Tampering].
	Damage func(ctx context.Context, id string, index int, harm Harm) error
}

func (e ProviderEnv) hooks() hooks {
	return hooks{
		Processes: {e.Another != nil, "Another"},
		Faults:    {e.Trouble != nil, "Trouble"},
		Tampering: {e.Damage != nil, "Damage"},
		Pruning:   {e.Keep > 0 && e.Kept != nil, "Keep and Kept"},
		Expiry:    {e.Lifetime > 0 && e.Pass != nil, "Lifetime and Pass"},
	}
}

// Provider is the suite for providers of the framework's persistence.
func Provider() Suite[ProviderEnv] {
	return guarded(sessionCases(), sessionSnapshots(), incarnationCases(), sessionTrouble(), actorCases())
}

func (e ProviderEnv) other() persistence.Provider {
	if e.Another == nil {
		return e.Provider
	}
	return e.Another()
}

// failure runs f and returns what it panics with, nil when it returns.
func failure(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(error)
			if !ok {
				e = fmt.Errorf("panic with a %T: %v", r, r)
			}
			err = e
		}
	}()
	f()
	return nil
}

// persist stores events "from" to "to", as the framework does.
func persist(s persistence.ProviderState, id string, from, to int) error {
	for i := from; i <= to; i++ {
		if err := failure(func() { s.PersistEvent(id, i, wrapperspb.String(fmt.Sprint(i))) }); err != nil {
			return fmt.Errorf("event at index %d: %w", i, err)
		}
	}
	return nil
}

// snapshot saves a snapshot of "a" with the text "s" and its index.
func snapshot(s persistence.ProviderState, index int) error {
	if err := failure(func() { s.PersistSnapshot("a", index, wrapperspb.String(fmt.Sprint("s", index))) }); err != nil {
		return fmt.Errorf("snapshot at index %d: %w", index, err)
	}
	return nil
}

// recovery is what a new incarnation gets.
type recovery struct {
	snapshot string
	events   []string
}

// recover lets a session recover, as the framework does, and returns it too.
func recovers(p persistence.Provider, id string) (s persistence.ProviderState, r recovery, err error) {
	err = failure(func() {
		s = p.GetState()
		s.Restart()
		m, index, ok := s.GetSnapshot(id)
		if ok {
			r.snapshot = textOf(m)
			if r.snapshot != fmt.Sprint("s", index) {
				r.snapshot = fmt.Sprintf("%s at index %d", r.snapshot, index)
			}
		} else {
			index = 0
		}
		s.GetEvents(id, index, 0, func(m any) { r.events = append(r.events, textOf(m)) })
	})
	return s, r, err
}

// finds checks what a new incarnation gets: a snapshot, "" for none, and the
// events from one index to another, both inclusive.
func finds(p persistence.Provider, id, snapshot string, from, to int) error {
	_, err := resumes(p, id, snapshot, from, to)
	return err
}

// resumes is finds, and returns the session, which can write.
func resumes(p persistence.Provider, id, snapshot string, from, to int) (persistence.ProviderState, error) {
	s, got, err := recovers(p, id)
	if err != nil {
		return s, fmt.Errorf("recovery of %.20q: %w", id, err)
	}
	want := indices(from, to)
	if got.snapshot != snapshot || !slices.Equal(got.events, want) {
		return s, fmt.Errorf("recovery of %.20q gets snapshot %q and events %s, want %q and %s", id, got.snapshot, brief(got.events), snapshot, brief(want))
	}
	return s, nil
}

// indices are the texts of the events from one index to another, both inclusive.
func indices(from, to int) []string { return texts(int64(from), int64(to)) }

// between checks what events a range of "a" has.
func between(s persistence.ProviderState, start, end, from, to int) error {
	var got []string
	err := failure(func() { s.GetEvents("a", start, end, func(m any) { got = append(got, textOf(m)) }) })
	if err != nil {
		return fmt.Errorf("events from index %d to %d: %w", start, end, err)
	}
	if want := indices(from, to); !slices.Equal(got, want) {
		return fmt.Errorf("events from index %d to %d are %s, want %s", start, end, brief(got), brief(want))
	}
	return nil
}
