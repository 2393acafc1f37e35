// Package conformance checks stores for Proto.Actor's persistence: event
// journals, snapshot stores, stores of durable state, and whole providers of the
// framework. It knows no database and no provider: a store fits a small interface
// of this package by a thin adapter.
//
//	func TestMyJournal(t *testing.T) {
//		conformance.Journal().Run(t, func(tb testing.TB) conformance.JournalEnv {
//			return conformance.JournalEnv{Store: adapter{newStore(tb)}}
//		}, conformance.Features{conformance.Deletion})
//	}
//
// [Journal], [Snapshots], [State] and [Provider] are the suites. A [Suite] is a
// table of cases; each has a name that begins with the id of the check, a reason,
// and the features it needs. A case whose feature the store does not claim is
// skipped, and the skip names the feature. Each case gets an environment of its
// own from the factory and is done in parallel with the others.
//
// # Trouble and damage
//
// The cases that matter most need trouble: a write whose answer is lost, a read
// that fails, an item that is gone. A store whose environment has the hook
// Trouble or Damage claims the feature [Faults] or [Tampering] and is tried so too.
package conformance
