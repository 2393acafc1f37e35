package conformance

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"testing"
	"time"
)

// Feature is what a store may be able to do. Its text completes "the store lacks ...".
type Feature string

// The features that cases need.
const (
	Deletion   Feature = "deletion"                              // of events or snapshots, through the interface
	Processes  Feature = "a second process on the same data"     // the environment's Another
	Faults     Feature = "fault injection"                       // the environment's Trouble
	Tampering  Feature = "stored items that can be damaged"      // the environment's Damage
	Metadata   Feature = "tags and metadata"                     // Tags and Meta of an Event; SaveValue and Tags of a StateEnv
	Limits     Feature = "known limits of size and number"       // the environment's Limit
	Purging    Feature = "removal of the rows of deleted state"  // StateStore.Purge without a wait
	Pruning    Feature = "pruning after a snapshot"              // the environment's Keep
	Conflicts  Feature = "refusal of an index that is taken"     // of two incarnations one wins
	Expiry     Feature = "expiry, and a clock that can be moved" // the environment's Pass
	Listing    Feature = "a list of all ids"                     // the environment's IDs
	StartsHigh Feature = "streams that begin at a high number"   // the environment's StartAt
	ApplyFirst Feature = "middleware for actors that apply before they persist"
)

// Features are those that a store claims.
type Features []Feature

// AllFeatures are all that there are.
func AllFeatures() Features {
	return Features{Deletion, Processes, Faults, Tampering, Metadata, Limits, Purging, Pruning, Conflicts, Expiry, Listing, StartsHigh, ApplyFirst}
}

// Case is one check of a suite. E is the environment that it gets.
type Case[E any] struct {
	// Name begins with the id of the check, and is unique in its suite.
	Name string
	// Why tells what goes wrong for users of a store that fails.
	Why string
	// Needs are the features without which the case cannot be tried.
	Needs []Feature
	// Check returns an error that says what the store did wrong.
	Check func(ctx context.Context, env E) error
}

// hooks tell by feature what its cases need of the environment, and whether it is there.
type hooks map[Feature]struct {
	there bool
	name  string
}

// guarded are cases that fail where a feature is claimed without what it needs, and
// where the store panics.
func guarded[E interface{ hooks() hooks }](parts ...Suite[E]) Suite[E] {
	s := slices.Concat(parts...)
	for i, c := range s {
		s[i].Check = func(ctx context.Context, env E) error {
			for _, f := range c.Needs {
				if h, needed := env.hooks()[f]; needed && !h.there {
					return fmt.Errorf("the feature %q is claimed, but the environment has no %s", f, h.name)
				}
			}
			return caught(func() error { return c.Check(ctx, env) })
		}
	}
	return s
}

// caught makes an error of a panic.
func caught(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return f()
}

// Suite is a table of cases.
type Suite[E any] []Case[E]

// patience is how long a case may take before its context ends: a store that
// hangs fails its case, not the whole run.
const patience = time.Minute

// Run does each case of the suite that the features allow, as a subtest. open
// makes a new environment, with no data in it, for each.
func (s Suite[E]) Run(t *testing.T, open func(tb testing.TB) E, has Features) {
	t.Helper()
	for _, c := range s {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			for _, f := range c.Needs {
				if !slices.Contains(has, f) {
					t.Skipf("the store lacks %s", f)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := c.Check(ctx, open(t)); err != nil {
				t.Errorf("%v\nIt matters: %s", err, c.Why)
			}
		})
	}
}

// Case returns the case whose name begins with the id, and whether there is one.
func (s Suite[E]) Case(id string) (Case[E], bool) {
	i := slices.IndexFunc(s, func(c Case[E]) bool {
		return len(c.Name) >= len(id) && c.Name[:len(id)] == id && (len(c.Name) == len(id) || c.Name[len(id)] == ' ')
	})
	if i < 0 {
		return Case[E]{}, false
	}
	return s[i], true
}
