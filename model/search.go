package model

import "hash/maphash"

// machine makes the successors of a state.
type machine struct {
	b    Bounds
	out  [rules]bool
	emit func(step Step, s State, bad string)
}

// next emits each state that can follow.
func (m *machine) next(s *State) {
	for i := range s.w {
		m.act(s, i)
		if s.w[0] == s.w[1] {
			break // what the other can do is the same
		}
	}
	m.land(s)
	m.reveal(s)
	m.sweep(s)
	m.wipe(s)
	m.tick(s)
}

// Result is what a search has found.
type Result struct {
	States int // that differ, two incarnations and labels of operations exchanged
	Depth  int // steps of the longest of the shortest ways to a state
	// Trace is the shortest way to a broken guarantee, one line for each step;
	// nil when all states were searched and none is broken.
	Trace []string
	Bad   string // the guarantee
	Full  bool   // there was room for all states
}

// Search looks at all states within bounds, with some rules left out, in the order
// of their distance from the empty stream. It stops at the first broken guarantee,
// and when there are more than limit states. It is safe for concurrent use.
func Search(b Bounds, limit int, without ...Rule) Result {
	x := search{m: machine{b: b}, table: make([]uint32, 1<<16), seed: maphash.MakeSeed()}
	for _, r := range without {
		x.m.out[r] = true
	}
	x.m.emit = x.found
	root := State{left: b.Operations, wipes: b.Wipes}
	x.add(root.canonical(), 0)
	end := 0 // of the states at the depth under way
	for x.at < len(x.states) && x.bad == "" && len(x.states) <= limit {
		if x.at == end {
			end = len(x.states)
			x.depth++
		}
		s := x.states[x.at]
		x.m.next(&s)
		x.at++
	}
	r := Result{States: len(x.states), Depth: max(x.depth-1, 0), Bad: x.bad, Full: x.at == len(x.states)}
	if x.bad != "" {
		r.Trace = x.trace(root)
	}
	return r
}

// search is breadth-first. States are kept once, in the order in which they were
// found; the table finds them by open addressing and holds their places plus one.
type search struct {
	m      machine
	states []State
	from   []uint32
	table  []uint32
	seed   maphash.Seed

	at    int // the state whose successors are made
	depth int
	bad   string
	last  State // the broken one
}

func (x *search) found(_ Step, s State, bad string) {
	if x.bad != "" {
		return
	}
	s = s.canonical()
	if bad != "" {
		x.bad, x.last = bad, s
		return
	}
	x.add(s, x.at)
}

func (x *search) add(s State, from int) {
	place := x.place(&s)
	if x.table[place] != 0 {
		return
	}
	x.states, x.from = append(x.states, s), append(x.from, uint32(from))
	x.table[place] = uint32(len(x.states))
	if 3*len(x.states) < 2*len(x.table) {
		return
	}
	x.table = make([]uint32, 2*len(x.table))
	for i := range x.states {
		x.table[x.place(&x.states[i])] = uint32(i + 1)
	}
}

// place is where a state is in the table, or would be.
func (x *search) place(s *State) uint64 {
	mask := uint64(len(x.table) - 1)
	for p := maphash.Comparable(x.seed, *s) & mask; ; p = (p + 1) & mask {
		if n := x.table[p]; n == 0 || x.states[n-1] == *s {
			return p
		}
	}
}

// trace goes from the root to the broken state once more and names the steps.
// The states on the way are not exchanged, so each incarnation keeps its name.
func (x *search) trace(s State) []string {
	way := []State{x.last}
	for i := x.at - 1; ; i = int(x.from[i]) {
		way = append(way, x.states[i])
		if i == 0 {
			break
		}
	}
	var lines []string
	for i := len(way) - 2; i >= 0; i-- {
		done := false
		m := machine{b: x.m.b, out: x.m.out}
		m.emit = func(step Step, t State, bad string) {
			if !done && t.canonical() == way[i] && (i > 0) == (bad == "") {
				lines, s, done = append(lines, step.String()), t, true
			}
		}
		here := s
		m.next(&here)
	}
	return lines
}
