package model

import (
	"bytes"
	"cmp"
	"slices"
)

// Sizes that a state has room for.
const (
	maxSlots = 4
	maxOps   = 5
	writers  = 2
)

// Time in ticks. DeleteDelay is the smallest number whose half and quarter are
// whole, so that each limit is met exactly, one tick before, and one after.
const (
	deleteDelay = 4
	half        = deleteDelay / 2
	quarter     = deleteDelay / 4
)

// State is everything at one moment: what the tables hold, what is on its way,
// what two incarnations know. Numbers of slots count from 1, 0 is none; ages are
// in ticks and stop at the first value beyond the last limit that asks for them.
type State struct {
	slot   [maxSlots]uint8 // operation whose item is in the slot
	age    [maxSlots]uint8 // of the item, by its time stamp and the sweeper's clock
	hidden uint8           // bits of slots that a query does not show yet
	mark   uint8
	reset  uint8
	snaps  uint8 // bits of snapshots: bit S

	truth [maxSlots]uint8 // operation that was the first in the slot: what the stream is
	acked uint8           // highest number ever acknowledged
	left  uint8           // operations that may still begin
	wipes uint8           // DeleteAll calls that may still be made

	op [maxOps]operation
	w  [writers]writer
}

// operation is one append with all its attempts; first is 0 where there is none.
type operation struct {
	first, n uint8
	flying   uint8 // attempts on their way
	stamp    uint8 // age of the time stamp by the writer's clock
	behind   uint8 // 1: the writer's clock is behind the others
	denied   uint8 // 1: the caller was told that nothing was stored
	late     uint8 // 1: more time than is assumed has passed while it was under way
}

func (o operation) last() uint8 { return o.first + o.n - 1 }

// phase is what an incarnation is doing.
const (
	idle       uint8 = iota // dead, or not started
	recovering              // the first round of reads, or one of its repetitions
	fetching                // what lies between the snapshot and the tail
	checking                // the mark once more
	live
	fencing // the head is read again before an attempt
	waiting // for the answer to an attempt
	resting // between two attempts
)

// What a round of reads has still to read.
const (
	readSnap uint8 = 1 << iota
	readMark
	readEnd
)

// What a recovery has been through.
const (
	snapAfterMark uint8 = 1 << iota
	endAfterSnap
	reread
	fromSnap
	reader // it is no actor's recovery, but a replay of the journal
	aged   // the look at the end showed an event that is older than attempts may be
)

// Answers to an attempt.
const (
	noAnswer uint8 = iota
	stored
	taken // by ours, or by another operation: the item tells
	foreign
)

// skipped stands for an item that was left out of a delivery.
const skipped = 0xff

// writer is one incarnation of the actor with its session.
type writer struct {
	phase  uint8
	head   uint8
	base   uint8 // the reset that its state started from
	proven uint8 // age of the proof of the head
	saved  uint8 // newest snapshot of its own that counts as saved
	astray uint8 // 1: the state holds an event whose persist did not succeed

	op        uint8
	tries     uint8 // attempts that are left
	sent      uint8 // age of the first attempt plus one, 0 for none
	unsettled uint8 // 1: an attempt may have been carried out, and no answer said so
	answer    uint8
	look      uint8 // age of the fence's reads

	todo             uint8
	flags            uint8
	snap, mark       uint8 // as read
	wiped            uint8 // the reset as read
	end              uint8 // highest number seen
	must             uint8 // highest number acknowledged when the recovery began
	got              [maxSlots]uint8
	first, delivered uint8 // where the delivery begins, and its end as far as known
}

// forget clears what only a round of reads needs.
func (w *writer) forget() {
	w.todo, w.flags, w.snap, w.mark, w.wiped, w.end, w.must, w.first, w.delivered = 0, 0, 0, 0, 0, 0, 0, 0, 0
	w.got = [maxSlots]uint8{}
}

// written clears what only an append needs.
func (w *writer) written() {
	w.op, w.tries, w.sent, w.unsettled, w.answer, w.look = 0, 0, 0, 0, 0, 0
}

// visible is the item that a query shows in a slot.
func (s *State) visible(seq uint8) uint8 {
	if s.hidden&(1<<seq) != 0 {
		return 0
	}
	return s.slot[seq-1]
}

// newest is the highest bit that is set.
func newest(bits uint8) uint8 {
	n := uint8(0)
	for bits > 1 {
		bits >>= 1
		n++
	}
	return n
}

// canonical is the one state that stands for all that differ from s only in which
// incarnation is called A, or in the labels of operations.
func (s State) canonical() State {
	a, b := s.w[0].key(), s.w[1].key()
	if bytes.Compare(a[:], b[:]) < 0 {
		s.w[0], s.w[1] = s.w[1], s.w[0]
	}
	var label [maxOps + 1]uint8
	var ops [maxOps]operation
	used := uint8(0)
	name := func(op *uint8) {
		if *op == 0 || *op == skipped {
			return
		}
		if label[*op] == 0 {
			ops[used] = s.op[*op-1]
			used++
			label[*op] = used
		}
		*op = label[*op]
	}
	for i := range s.truth {
		name(&s.truth[i])
		name(&s.slot[i])
	}
	for i := range s.w {
		name(&s.w[i].op)
		for k := range s.w[i].got {
			name(&s.w[i].got[k])
		}
	}
	from := used // the rest is known by its attempts alone
	for i, o := range s.op {
		if label[i+1] == 0 && o.flying > 0 {
			ops[used] = o
			used++
		}
	}
	slices.SortFunc(ops[from:used], func(a, b operation) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.n, b.n), cmp.Compare(a.flying, b.flying),
			cmp.Compare(a.stamp, b.stamp), cmp.Compare(a.behind, b.behind), cmp.Compare(a.denied, b.denied), cmp.Compare(a.late, b.late))
	})
	for i := range ops {
		if ops[i].flying == 0 && !s.writing(uint8(i)+1) {
			ops[i].stamp, ops[i].behind = 0, 0
			ops[i].denied = 0 // it was looked at when the caller was told
		}
	}
	s.op = ops
	return s
}

// writing tells whether an incarnation is still at an operation.
func (s *State) writing(op uint8) bool {
	return s.w[0].op == op || s.w[1].op == op
}

// key orders two incarnations without regard to the labels of operations.
func (w writer) key() [22]uint8 {
	var read uint8
	for i, op := range w.got {
		if op != 0 {
			read |= 1 << i
		}
	}
	return [22]uint8{
		w.phase, w.head, w.base, w.proven, w.saved, w.astray, w.tries, w.sent, w.unsettled, w.answer, w.look,
		w.todo, w.flags, w.snap, w.mark, w.wiped, w.end, w.must, read, w.first, w.delivered, min(w.op, 1),
	}
}
