// Package dynactor stores the events, snapshots and durable state of Proto.Actor
// actors in Amazon DynamoDB.
//
// A [Provider] is a persistence.Provider: give it to [Using] and embed [Mixin] in
// the actor, or give it to the framework's persistence.Using and embed
// persistence.Mixin. [Open] makes one from the standard AWS
// configuration, [New] from a DynamoDB client of yours; neither sends a request.
//
// # Concepts
//
// A persistence id names one stream of events, by default the actor's name. It
// must stay the same over restarts, so names that the framework generates are
// refused with [ErrUnstableID].
//
// Events are numbered. The framework counts from 0 and calls it an index;
// storage and [Journal] count from 1 and call it a sequence number:
// seq = index + 1. The head of a stream is the highest sequence number ever
// used; 0 for a stream that has none. Numbers are never used twice, not even
// after a deletion.
//
// A snapshot at S holds the state after the first S events. Recovery loads the
// newest snapshot and replays the events from index S.
//
// Deleting events raises the stream's mark: events at or below it are gone at
// once, their items are removed later, when no writer can be in flight that
// still believes the numbers to be free.
//
// Where no history is needed, a [StateStore] keeps one value for each id, and
// [StateMixin] with [UsingState] is the actor's side of it. A value is at a
// revision, which each save and deletion raises by one, and a save names the
// revision that it expects.
//
// A session is what the framework sees of one actor incarnation. It knows its
// position in the stream, refuses to write while it replays, and after a failed
// write refuses to go on: the actor restarts, recovers from the journal, and
// the journal decides.
//
// # Actors
//
// [Using] wraps the framework's persistence.Using and does what that cannot: an
// id other than the actor's name, a request for a snapshot that comes when the
// message has been handled, an answer to the caller whose write failed. With
// [Mixin] an actor also stores several events in one request, with tags and metadata, and
// gets an error for what was refused before anything was sent. Package clustered has
// the same for virtual actors.
//
// # Errors
//
// Every failure is an [*Error] that tells the operation, the persistence id, the
// index and the cause, and matches one of the package's sentinels, an error of
// the AWS SDK, or both. Methods of
// [Journal] and [SnapshotStore] return it. The framework's seam has no error
// returns, so a session panics with it, and the actor's supervisor sees it as the
// reason of the failure.
package dynactor
