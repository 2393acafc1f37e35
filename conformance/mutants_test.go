package conformance_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/dynactor/dynactor/conformance"
)

// mutant is a store that is broken in one way, and the case meant for it.
type mutant struct {
	name string
	by   string // the name of the case
	// check runs the case on the broken store.
	check func(ctx context.Context, t *testing.T) error
}

// on makes a mutant of an environment. The case must be in the suite.
func on[E any](suite conformance.Suite[E], open func(testing.TB) E, name, by string, breakIt func(*E)) mutant {
	i := slices.IndexFunc(suite, func(c conformance.Case[E]) bool { return c.Name == by })
	if i < 0 {
		return mutant{name: name, by: by}
	}
	return mutant{name: name, by: by, check: func(ctx context.Context, t *testing.T) error {
		t.Helper()
		e := open(t)
		breakIt(&e)
		return suite[i].Check(ctx, e)
	}}
}

// A suite that lets a broken store pass proves nothing about a sound one.
func TestMutants(t *testing.T) {
	t.Parallel()
	all := slices.Concat(journalMutants(), appendMutants(), snapshotMutants(), stateMutants(), expiryMutants(), listingMutants(), highMutants(), batchMutants(), providerMutants(), deadMutants(), clientMutants())
	names := map[string]bool{}
	caught := make(chan string, len(all))
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		for _, m := range all {
			if names[m.name] || m.check == nil {
				t.Errorf("mutant %q is doubled, or there is no case %q", m.name, m.by)
				continue
			}
			names[m.name] = true
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				err := m.check(ctx, t)
				if err == nil {
					t.Errorf("mutant %q survives the case %q", m.name, m.by)
					return
				}
				t.Logf("caught by %q: %v", m.by, err)
				caught <- m.name
			})
		}
	})
	t.Cleanup(func() {
		if len(all) < 30 {
			t.Errorf("%d mutants are too few", len(all))
		}
		t.Logf("mutants caught %d of %d", len(caught), len(all))
	})
}
