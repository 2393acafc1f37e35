package model

// begin starts a recovery: three reads at once.
func begin(s *State, i int) {
	s.w[i] = writer{phase: recovering, todo: readSnap | readMark | readEnd, must: s.acked}
}

// over begins anew what was deleted under the reader's eyes.
func (m *machine) over(step Step, s State, i int) {
	if replays := s.w[i].flags&reader != 0; replays {
		replay(&s, i)
	} else {
		begin(&s, i)
	}
	m.emit(step, s, "")
}

// replay begins the reading of a journal without an actor.
func replay(s *State, i int) {
	s.w[i] = writer{phase: recovering, todo: readMark | readEnd, must: s.acked, flags: reader}
}

// read carries out one of the reads of a round.
func (s *State) read(i int, part, tail uint8) Step {
	w := &s.w[i]
	w.todo &^= part
	step := Step{Kind: stepRead, Who: uint8(i), Arg: part}
	switch part {
	case readSnap:
		w.snap = newest(s.snaps)
		step.Slot = w.snap
	case readMark:
		w.mark, w.wiped = s.mark, s.reset
		step.Slot = w.mark
	case readEnd:
		for seq := uint8(maxSlots); seq > 0; seq-- {
			op := s.visible(seq)
			if op == 0 {
				continue
			}
			w.end = max(w.end, seq)
			if tail == 0 {
				break
			}
			w.got[seq-1] = op
			tail--
		}
		step.Slot = w.end
	}
	return step
}

// look carries out the reads of a round, in any order.
func (m *machine) look(s *State, i int) {
	for _, part := range []uint8{readSnap, readMark, readEnd} {
		if s.w[i].todo&part == 0 {
			continue
		}
		t := *s
		step := t.read(i, part, m.b.Tail)
		if part == readEnd && m.b.Late && t.old(i) {
			t.w[i].flags |= aged
		}
		if t.w[i].todo != 0 {
			m.emit(step, t, "")
		} else {
			m.fit(step, t, i)
		}
	}
}

// old tells whether an item in hand was stamped longer ago than an attempt may take:
// its slot may have been emptied and filled again since the mark was read.
func (s *State) old(i int) bool {
	for k, op := range s.w[i].got {
		if op != 0 && (s.age[k] > quarter || s.op[op-1].late != 0) {
			return true
		}
	}
	return false
}

// fit judges whether what was read at different moments goes together, and reads
// again what may be only older than the rest.
func (m *machine) fit(step Step, s State, i int) {
	w := &s.w[i]
	if w.flags&reader != 0 {
		w.first, w.delivered, w.phase = w.mark+1, max(w.mark, w.end), fetching
		for k := range w.mark {
			w.got[k] = 0
		}
		m.settle(step, s, i)
		return
	}
	start := w.snap
	if start <= w.wiped && !m.out[RuleReset] {
		start = 0
	}
	covers := start >= w.mark
	if w.wiped > 0 && start <= w.wiped && !m.out[RuleReset] {
		covers = start == 0 && w.mark == w.wiped
	}
	head := max(w.mark, w.end)
	switch {
	case !covers && !m.out[RuleSnapshotCovers]:
		if w.flags&snapAfterMark != 0 {
			m.emit(step, s, "no snapshot is left that covers the deleted events (ErrNoSnapshot)")
			return
		}
		if m.out[RuleSnapshotProof] {
			m.emit(step, s, "ErrNoSnapshot, but there is one")
			return
		}
		w.todo, w.flags = readSnap, snapAfterMark|reread
		m.emit(step, s, "")
	case start > head && !m.out[RuleAhead]:
		if w.flags&endAfterSnap != 0 || m.out[RuleAheadProof] {
			m.emit(step, s, "ErrAhead, but the snapshot is not ahead of the journal")
			return
		}
		w.todo, w.flags = readMark|readEnd, endAfterSnap|reread
		w.mark, w.wiped, w.end, w.got, w.proven = 0, 0, 0, [maxSlots]uint8{}, 0
		m.emit(step, s, "")
	default:
		if start > 0 {
			w.flags |= fromSnap
		} else {
			start = w.wiped
		}
		w.first, w.delivered = start+1, head
		for k := range w.first - 1 {
			w.got[k] = 0
		}
		w.phase = fetching
		m.settle(step, s, i)
	}
}

// fetch reads what is not in hand: one item at a moment, the next one, or any of
// them where ranges are read at the same time.
func (m *machine) fetch(s *State, i int) {
	w := &s.w[i]
	for seq := w.first; seq <= w.delivered; seq++ {
		if w.got[seq-1] != 0 {
			continue
		}
		t := *s
		t.w[i].flags |= reread
		m.page(t, i, seq)
		if !m.b.Parallel {
			return
		}
	}
}

// page reads one item. An absent one is looked for again, when a half shown
// append has become whole.
func (m *machine) page(s State, i int, seq uint8) {
	w := &s.w[i]
	step := Step{Kind: stepPage, Who: uint8(i), Slot: seq}
	op := s.visible(seq)
	step.Arg = min(op, 1)
	switch {
	case op != 0:
		w.got[seq-1] = op
		m.settle(step, s, i)
	case m.out[RuleHole]:
		w.got[seq-1] = skipped
		m.settle(step, s, i)
	case m.out[RuleHoleProof]:
		m.emit(step, s, "ErrGap, but nothing is missing")
	case s.slot[seq-1] != 0:
		// The same look after the append is shown whole.
	default:
		m.gap(step, s, i)
	}
}

// gap is a hole that later looks still show: an error, unless the mark has passed it.
func (m *machine) gap(step Step, s State, i int) {
	if s.mark >= s.w[i].first {
		m.over(step, s, i)
		return
	}
	m.emit(step, s, "an event is missing (ErrGap)")
}

// settle ends the reading when everything up to the end of the last append is in hand.
func (m *machine) settle(step Step, s State, i int) {
	w := &s.w[i]
	for seq := w.first; seq <= w.delivered; seq++ {
		op := w.got[seq-1]
		if op == 0 {
			m.emit(step, s, "")
			return
		}
		if op == skipped {
			continue
		}
		o := s.op[op-1]
		if !m.out[RuleWhole] {
			w.delivered = max(w.delivered, o.last())
		}
		if seq > w.first && seq > o.first && w.got[seq-2] != op && w.got[seq-2] != skipped {
			m.gap(step, s, i) // another item in the place of one of the append
			return
		}
	}
	if (w.flags&reread != 0 && !m.out[RuleMarkAtEnd]) || (w.flags&aged != 0 && !m.out[RuleAged]) {
		w.phase = checking
		m.emit(step, s, "")
		return
	}
	m.recovered(step, s, i)
}

// check reads the mark once more, when the reads were more than one round.
func (m *machine) check(s *State, i int) {
	t := *s
	step := Step{Kind: stepRead, Who: uint8(i), Arg: readMark, Slot: s.mark}
	if t.mark >= t.w[i].first {
		m.over(step, t, i)
		return
	}
	m.recovered(step, t, i)
}

// recovered compares what the actor was given with what is true.
func (m *machine) recovered(step Step, s State, i int) {
	w := &s.w[i]
	start, head := w.first-1, w.delivered
	step.Head = head
	bad := ""
	if w.flags&fromSnap != 0 && start <= w.wiped {
		bad = "a snapshot from before DeleteAll is used"
	}
	for seq := w.first; seq <= head; seq++ {
		switch op := w.got[seq-1]; {
		case op == skipped:
			bad = "an event is left out of a recovery"
		case op != s.truth[seq-1]:
			bad = "an event is shown in the place of another"
		}
	}
	switch {
	case bad != "":
	case w.first <= min(w.mark, head):
		bad = "a deleted event is shown"
	case start > head:
		bad = "the state is ahead of the head that the session believes in"
	case head < w.must:
		bad = "an acknowledged event is missing from a recovery"
	case head > start && s.at(head).last() > head:
		bad = "half of an append is shown"
	case head > start && s.at(w.first).first < w.first:
		bad = "half of an append is shown"
	}
	if w.flags&reader != 0 {
		*w = writer{}
		m.emit(step, s, bad)
		return
	}
	base := w.wiped
	w.forget()
	w.phase, w.head, w.base = live, head, base
	if m.out[RuleSentTime] {
		w.proven = 0
	}
	m.emit(step, s, bad)
}

// at is the operation to which a number belongs.
func (s *State) at(seq uint8) operation {
	if op := s.truth[seq-1]; op != 0 {
		return s.op[op-1]
	}
	return operation{first: seq, n: 1} // never used
}
