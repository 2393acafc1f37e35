// Package model is a small explicit-state model of the protocol in docs/design.md:
// appends, the fence, deletion and recovery. [Search] goes through all states that
// two incarnations of one actor, a sweeper and the clock can reach within [Bounds],
// and looks for one in which a guarantee is broken. Each rule of the design can be
// left out; the model then shows what it is good for.
//
// Modelled are: reads of a recovery at moments of their own, in any order; attempts
// that land late, twice or never; answers that are lost; clear refusals; crashes at
// any step; appends of two, of which a query may show one; removals of any subset of
// items; snapshots, prunes and deletions beside another incarnation; DeleteAll and
// Erase; clocks that differ, stand still in a suspended machine, or are set back.
//
// In each state that follows an answer or a recovery these must hold:
//
//   - what is acknowledged is the first and only event of its number;
//   - what a caller was told not to be stored is not, and never will be;
//   - as long as attempts land as early as is assumed, no number is stored twice:
//     who reads the table's stream of changes sees each number once;
//   - a recovery gives every event that was acknowledged when it began, each as it
//     was stored, in whole appends, and none that is deleted;
//   - ErrGap, ErrAhead and ErrNoSnapshot do not occur, since nothing is damaged;
//   - a snapshot holds what the journal holds, and nothing that DeleteAll has ended.
//
// Not modelled are: payloads, several events in one item (the format has none),
// the forward read of a recovery without snapshots (its first page is one moment in
// place of three), fallback to older snapshots, and time limits.
//
// world.go is the state, server.go what the tables do, writer.go and recovery.go
// what an incarnation does, rules.go the rules, search.go the search.
package model
