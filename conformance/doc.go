// Package conformance checks stores for Proto.Actor's persistence: event
// journals, snapshot stores, stores of durable state, and whole providers of the
// framework. It knows no database and no provider. A provider is tried as it is:
//
//	func TestMyProvider(t *testing.T) {
//		conformance.Provider().Run(t, func(tb testing.TB) conformance.ProviderEnv {
//			return conformance.ProviderEnv{Provider: newProvider(tb)}
//		}, conformance.Features{conformance.Conflicts})
//	}
//
// Another store fits a small interface of this package by a thin adapter:
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
// own, without data, from the function: a schema, a directory, tables with fresh
// names. Use its testing.TB to clean up. Cases are done in parallel, and one that
// takes more than a minute fails. A suite is a slice: delete from it what your store
// does otherwise on purpose.
//
// # Errors
//
// Fields of [Errors] are your sentinels, as errors.Is finds them. Where a field is
// nil any error will do, so a suite works without them, and sees more with them:
// whether a lost race is told from a write that may have been stored, or a hole
// from what cannot be decoded.
//
// # Trouble and damage
//
// The cases that matter most need trouble: a write whose answer is lost, a read
// that fails, an item that is gone. A store whose environment has the hook
// Trouble or Damage claims the feature [Faults] or [Tampering] and is tried so too.
// Trouble is best made in a wrapper of the client or the database connection that
// the store uses, below its retries:
//
//	func (c *faultyConn) Exec(ctx context.Context, q string, args ...any) error {
//		switch c.trouble.Load() {
//		case conformance.FailWrites:
//			return errRefused
//		case conformance.LoseAll:
//			if c.writes.Add(1) > 1 {
//				return errRefused
//			}
//			return errors.Join(c.Conn.Exec(ctx, q, args...), io.ErrUnexpectedEOF)
//		}
//		return c.Conn.Exec(ctx, q, args...)
//	}
//
// A provider that cannot tell an unknown outcome leaves Errors.Unknown nil.
package conformance
