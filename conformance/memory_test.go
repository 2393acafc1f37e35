package conformance_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/asynkron/protoactor-go/persistence"

	"github.com/dynactor/dynactor/conformance"
	"github.com/dynactor/dynactor/dynactortest"
)

// trouble is the hook of a memory.
func trouble(m *dynactortest.Memory) func(context.Context, conformance.Trouble) error {
	return func(_ context.Context, kind conformance.Trouble) error {
		m.Meet(map[conformance.Trouble]dynactortest.Mishap{
			conformance.LoseAll: dynactortest.AnswersLost, conformance.FailWrites: dynactortest.WritesFail, conformance.FailReads: dynactortest.ReadsFail,
		}[kind])
		return nil
	}
}

// damage is the hook of a memory, for numbers.
func damage(m *dynactortest.Memory) func(context.Context, string, int64, conformance.Harm) error {
	return func(_ context.Context, id string, seq int64, harm conformance.Harm) error {
		if harm == conformance.Lose {
			m.Lose(id, seq)
		} else {
			m.Spoil(id, seq)
		}
		return nil
	}
}

func memoryJournal(testing.TB) conformance.JournalEnv {
	m := dynactortest.NewMemory()
	return conformance.JournalEnv{
		Store: journal{m.Journal()}, Another: func() conformance.JournalStore { return journal{m.Journal()} },
		Errors: ours, Limit: limits, Trouble: trouble(m), Damage: damage(m),
		StartAt: func(_ context.Context, id string, seq int64) error { m.StartAt(id, seq); return nil },
	}
}

func memorySnapshots(testing.TB) conformance.SnapshotEnv {
	c := new(sundial)
	m := &dynactortest.Memory{SnapshotTTL: lifetime, Now: c.now}
	return conformance.SnapshotEnv{
		Store: snapshots{m.Snapshots()}, Another: func() conformance.SnapshotStore { return snapshots{m.Snapshots()} },
		Errors: ours, Limit: limits, Trouble: trouble(m), Damage: damage(m), Lifetime: m.SnapshotTTL, Pass: c.pass,
	}
}

func memoryState(testing.TB) conformance.StateEnv {
	c := new(sundial)
	m := &dynactortest.Memory{Now: c.now}
	return conformance.StateEnv{
		Store: m.State(), Another: func() conformance.StateStore { return m.State() },
		Errors: ours, Limit: limits, Trouble: trouble(m),
		Damage: func(ctx context.Context, id string, harm conformance.Harm) error {
			st, err := m.State().LoadState(ctx, id)
			if err != nil {
				return err
			}
			return damage(m)(ctx, id, st.Revision, harm)
		},
		Pass: c.pass, SaveValue: saveValue(m.State(), c.now), Tags: tags(m.State().LoadState), IDs: ids(m.State()),
	}
}

func memoryProvider(testing.TB) conformance.ProviderEnv {
	return memoryOf(&dynactortest.Memory{SnapshotInterval: 3, KeepSnapshots: 3}, new(sundial))
}

// expiringProvider is a provider whose snapshots expire, which deletes no events.
func expiringProvider(testing.TB) conformance.ProviderEnv {
	return memoryOf(&dynactortest.Memory{SnapshotInterval: 3, KeepSnapshots: 3, SnapshotTTL: lifetime}, new(sundial))
}

func memoryOf(m *dynactortest.Memory, c *sundial) conformance.ProviderEnv {
	m.Now = c.now
	return conformance.ProviderEnv{
		Provider: m, Another: func() persistence.Provider { return m }, Errors: ours, Trouble: trouble(m),
		Keep: 3, Kept: m.Snapshots().List, Lifetime: m.SnapshotTTL, Pass: c.pass,
		Damage: func(ctx context.Context, id string, index int, harm conformance.Harm) error {
			return damage(m)(ctx, id, int64(index)+1, harm)
		},
	}
}

// without are all features but some.
func without(lacks ...conformance.Feature) conformance.Features {
	return slices.DeleteFunc(conformance.AllFeatures(), func(f conformance.Feature) bool { return slices.Contains(lacks, f) })
}

func TestMemory(t *testing.T) {
	t.Parallel()
	t.Run("journal", func(t *testing.T) {
		t.Parallel()
		conformance.Journal().Run(t, memoryJournal, conformance.AllFeatures())
	})
	t.Run("snapshots", func(t *testing.T) {
		t.Parallel()
		conformance.Snapshots().Run(t, memorySnapshots, conformance.AllFeatures())
	})
	t.Run("state", func(t *testing.T) {
		t.Parallel()
		conformance.State().Run(t, memoryState, conformance.AllFeatures())
	})
	t.Run("provider", func(t *testing.T) {
		t.Parallel()
		// The library's own middleware is for its own provider.
		conformance.Provider().Run(t, memoryProvider, without(conformance.ApplyFirst, conformance.Expiry))
	})
	t.Run("provider whose snapshots expire", func(t *testing.T) {
		t.Parallel()
		conformance.Provider().Run(t, expiringProvider, without(conformance.ApplyFirst, conformance.Deletion))
	})
}

// Every suite's names are unique and begin with the id of a check, and every case says why.
func TestSuites(t *testing.T) {
	t.Parallel()
	checkNames(t, "Journal", conformance.Journal(), 65)
	checkNames(t, "Snapshots", conformance.Snapshots(), 24)
	checkNames(t, "State", conformance.State(), 24)
	checkNames(t, "Provider", conformance.Provider(), 45)
}

func checkNames[E any](t *testing.T, name string, suite conformance.Suite[E], least int) {
	t.Helper()
	if len(suite) < least {
		t.Errorf("%s has %d cases", name, len(suite))
	}
	seen := map[string]bool{}
	for _, c := range suite {
		if seen[c.Name] || c.Why == "" || c.Check == nil || len(c.Name) < 6 || c.Name[1] != '-' {
			t.Errorf("%s: case %q is doubled or incomplete", name, c.Name)
		}
		seen[c.Name] = true
	}
	if _, found := suite.Case("none"); found || math.MaxInt < least {
		t.Errorf("%s has a case that it does not have", name)
	}
}
