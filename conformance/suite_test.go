package conformance_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/persistence"

	"github.com/dynactor/dynactor/conformance"
	"github.com/dynactor/dynactor/dynactortest"
)

// Example is the shortest test of a provider of the framework: it knows nothing of
// its errors and has no hooks.
func Example() {
	newProvider := func(testing.TB) persistence.Provider { return dynactortest.NewMemory() } // yours

	testMyProvider := func(t *testing.T) { // in a test of your own
		t.Helper()
		conformance.Provider().Run(t, func(tb testing.TB) conformance.ProviderEnv {
			tb.Helper()
			return conformance.ProviderEnv{Provider: newProvider(tb)}
		}, conformance.Features{conformance.Conflicts, conformance.Deletion})
	}
	_ = testMyProvider
}

// Whoever has only a store must get far without hooks and errors.
func TestBareEnvironments(t *testing.T) {
	t.Parallel()
	has := conformance.Features{conformance.Conflicts, conformance.Deletion}
	conformance.Journal().Run(t, func(tb testing.TB) conformance.JournalEnv {
		tb.Helper()
		return conformance.JournalEnv{Store: memoryJournal(tb).Store}
	}, has)
	conformance.Snapshots().Run(t, func(tb testing.TB) conformance.SnapshotEnv {
		tb.Helper()
		return conformance.SnapshotEnv{Store: memorySnapshots(tb).Store}
	}, has)
	conformance.State().Run(t, func(tb testing.TB) conformance.StateEnv {
		tb.Helper()
		return conformance.StateEnv{Store: memoryState(tb).Store}
	}, has)
	conformance.Provider().Run(t, func(tb testing.TB) conformance.ProviderEnv {
		tb.Helper()
		return conformance.ProviderEnv{Provider: memoryProvider(tb).Provider}
	}, has)
}

// A feature that is claimed without its hook is told by name, and so is a panic.
func TestClaims(t *testing.T) {
	t.Parallel()
	claims(t, conformance.Journal(), conformance.JournalEnv{})
	claims(t, conformance.Snapshots(), conformance.SnapshotEnv{})
	claims(t, conformance.State(), conformance.StateEnv{})
	claims(t, conformance.Provider(), conformance.ProviderEnv{})
}

func claims[E any](t *testing.T, suite conformance.Suite[E], empty E) {
	t.Helper()
	for _, c := range suite {
		hooked := slices.ContainsFunc(c.Needs, func(f conformance.Feature) bool {
			if _, state := any(empty).(conformance.StateEnv); f == conformance.Metadata {
				return state
			}
			return !slices.Contains(conformance.Features{conformance.Deletion, conformance.Conflicts, conformance.ApplyFirst, conformance.Purging}, f)
		})
		if !hooked && strings.HasPrefix(c.Name, "F-6") {
			continue // an actor without a provider is waited for
		}
		err := c.Check(t.Context(), empty)
		if err == nil || strings.Contains(err.Error(), "is claimed, but the environment has no ") != hooked {
			t.Errorf("%s, which needs %q, says of nothing: %v", c.Name, c.Needs, err)
		}
	}
}

// The stack of a store that panics in a case is shown.
func TestPanics(t *testing.T) {
	t.Parallel()
	b := &brokenJournal{store: memoryJournal(t).Store}
	b.head = func(context.Context, string) (int64, error) { panic(errors.New("out of order")) }
	c, _ := conformance.Journal().Case("J-11")
	err := c.Check(t.Context(), conformance.JournalEnv{Store: b})
	if err == nil || !strings.Contains(err.Error(), "out of order") || !strings.Contains(err.Error(), "suite_test.go") {
		t.Errorf("got %v", err)
	}
}
