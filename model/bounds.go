package model

// Clock says how time goes by.
type Clock int

// The ways in which time goes by.
const (
	Still Clock = iota // not at all
	Leaps              // by more than any limit at once
	Ticks              // by a quarter of DeleteDelay
)

// Bounds limit a search. What they leave open is searched exhaustively: crashes,
// recoveries, reads and sweeps have no limit.
type Bounds struct {
	Name, Text string

	Slots      uint8 // numbers of the stream, at most 4
	Operations uint8 // appends in all, at most 5
	Group      uint8 // events in an append, 1 or 2
	Tries      uint8 // attempts of an append
	Tail       uint8 // items that the look at the end shows

	Snapshots bool  // snapshots, prunes and deletions
	Wipes     uint8 // calls of DeleteAll or Erase
	Clock     Clock
	Skew      uint8 // ticks by which a writer's clock may be behind, 0 or 1
	SetBack   bool  // a clock may be set back
	Halves    bool  // a query may show half of an append
	Late      bool  // an attempt may land at any time, with a right stamp: the assumption does not hold
	Readers   bool  // the journal is also replayed without an actor
	Parallel  bool  // ranges are read at the same time, so pages come in any order
	Twice     bool  // it is no fault in itself that a number is stored twice
}

// lossy are the same bounds, in which a number that is stored twice is no fault
// until an acknowledged event is lost by it: the trace goes on to that.
func (b Bounds) lossy() Bounds {
	b.Twice = true
	return b
}

// Small bounds that show what a rule is good for.
var (
	tiny = Bounds{
		Name: "tiny", Text: "two slots, repeated attempts",
		Slots: 2, Operations: 3, Group: 1, Tries: 2, Tail: 1, Snapshots: true,
	}
	timed = Bounds{
		Name: "timed", Text: "two slots, single ticks, clocks that differ",
		Slots: 2, Operations: 2, Group: 2, Tries: 1, Tail: 1, Snapshots: true, Clock: Ticks, Skew: 1,
	}
	sleepers = Bounds{
		Name: "sleepers", Text: "two slots, machines that sleep, clocks set back",
		Slots: 2, Operations: 2, Group: 2, Tries: 1, Tail: 1, Snapshots: true, Clock: Leaps, SetBack: true,
	}
	deletions = Bounds{
		Name: "deletions", Text: "three slots, deletions, ranges read at the same time",
		Slots: 3, Operations: 3, Group: 1, Tries: 1, Tail: 1, Snapshots: true, Clock: Leaps, Parallel: true,
	}
	groups = Bounds{
		Name: "groups", Text: "three slots, appends of two, of which a query may show half",
		Slots: 3, Operations: 2, Group: 2, Tries: 1, Tail: 1, Snapshots: true, Clock: Leaps, Halves: true,
	}
	readers = Bounds{
		Name: "readers", Text: "three slots, replays of the journal beside actors",
		Slots: 3, Operations: 2, Group: 2, Tries: 1, Tail: 1, Snapshots: true, Clock: Leaps, Readers: true, Parallel: true,
	}
	late = Bounds{
		Name: "late", Text: "two slots, appends of two, attempts that land at any time",
		Slots: 2, Operations: 3, Group: 2, Tries: 1, Tail: 1, Snapshots: true, Clock: Leaps, Late: true, Twice: true,
	}
	tails = Bounds{
		Name: "tails", Text: "two slots, a look at the end that shows both, attempts that land at any time",
		Slots: 2, Operations: 3, Group: 1, Tries: 1, Tail: 2, Snapshots: true, Clock: Leaps, Late: true, Twice: true,
	}
	resets = Bounds{
		Name: "resets", Text: "two slots, DeleteAll and Erase",
		Slots: 2, Operations: 2, Group: 1, Tries: 1, Tail: 1, Snapshots: true, Wipes: 1, Clock: Leaps,
	}
)

// All are the bounds that a full search exhausts, the largest first.
func All() []Bounds {
	resets, sleepers, deeper := resets, sleepers, late
	resets.Operations, sleepers.Operations = 3, 3
	deeper.Name, deeper.Text = "later", "three slots, two appends of at most two that land at any time"
	deeper.Slots, deeper.Operations = 3, 2
	return []Bounds{timed, deletions, resets, readers, late, sleepers, groups, tiny, deeper, tails}
}
