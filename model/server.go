package model

// land carries out attempts that are on their way: at any moment, in any order,
// once, twice or, in the runs where it comes too late, never.
func (m *machine) land(s *State) {
	for i, o := range s.op {
		if o.flying == 0 || !m.inTime(o) || s.half(o) {
			continue
		}
		op := uint8(i) + 1
		waits := -1
		for k := range s.w {
			if s.w[k].phase == waiting && s.w[k].op == op && s.w[k].answer == noAnswer {
				waits = k
			}
		}
		for _, hide := range m.halves(s, o) {
			t := *s
			t.op[i].flying--
			answer, bad := m.put(&t, op, hide)
			if waits < 0 || o.flying > 1 { // nobody waits for this one any more
				m.emit(Step{Kind: stepLand, Who: op, Arg: answer, Slot: o.first}, t, bad)
			}
			if waits >= 0 {
				t.w[waits].answer = answer
				m.emit(Step{Kind: stepLand, Who: op, Arg: answer, Slot: o.first}, t, bad)
			}
		}
	}
}

// half tells whether queries show only a part of what is at an operation's numbers.
// Whoever knows more than a query, by an answer or by a single item, has it later.
func (s *State) half(o operation) bool {
	for seq := o.first; seq <= o.last(); seq++ {
		if s.hidden&(1<<seq) != 0 {
			return true
		}
	}
	return o.first > 1 && s.hidden&(1<<(o.first-1)) != 0
}

// inTime tells whether an attempt can still land.
func (m *machine) inTime(o operation) bool {
	return m.b.Late || o.stamp+m.behind(o) <= quarter
}

func (m *machine) behind(o operation) uint8 {
	if m.out[RuleClocks] {
		return 0 // it lands soon after its stamp by the writer's clock
	}
	return o.behind * quarter
}

// halves are the ways in which a query may miss a part of an append of two that lands.
func (m *machine) halves(s *State, o operation) []uint8 {
	if !m.b.Halves || o.n < 2 || s.slot[o.first-1] != 0 || s.slot[o.first] != 0 {
		return []uint8{0}
	}
	return []uint8{0, 1 << o.first, 1 << (o.first + 1)}
}

// put is the conditional write.
func (m *machine) put(s *State, op, hide uint8) (answer uint8, bad string) {
	o := s.op[op-1]
	if !m.out[RuleCondition] {
		for seq := o.first; seq <= o.last(); seq++ {
			switch s.slot[seq-1] {
			case 0:
			case op:
				return taken, ""
			default:
				return foreign, ""
			}
		}
	}
	for seq := o.first; seq <= o.last(); seq++ {
		if s.truth[seq-1] == 0 {
			s.truth[seq-1] = op
			if o.denied != 0 {
				bad = "an event is stored after its caller was told that it is not"
			}
		} else if s.slot[seq-1] == 0 && !m.b.Twice && bad == "" {
			bad = "a number is stored once more after it was emptied"
		}
		s.slot[seq-1], s.age[seq-1] = op, m.landed(o)
	}
	s.hidden |= hide
	return stored, bad
}

// landed is the age with which an item appears.
func (m *machine) landed(o operation) uint8 {
	switch {
	case m.out[RuleClocks] && o.behind != 0:
		return deleteDelay + 1
	case m.b.Late:
		return 0
	}
	return o.stamp + m.behind(o)
}

// reveal ends the time in which a query shows half of an append.
func (m *machine) reveal(s *State) {
	if s.hidden != 0 {
		t := *s
		t.hidden = 0
		m.emit(Step{Kind: stepReveal}, t, "")
	}
}

// sweep removes any item that may be removed. A removal may be late and meet
// another item than the one it was meant for, which is then below the mark, too.
func (m *machine) sweep(s *State) {
	for i := range s.slot {
		seq := uint8(i) + 1
		old := s.age[i] > deleteDelay || s.slot[i] != s.truth[i] || m.out[RuleDeleteDelay]
		below := seq < s.mark || (m.out[RuleKeepMarked] && seq == s.mark) || m.out[RuleBelowMark]
		if s.slot[i] == 0 || !old || !below {
			continue
		}
		t := *s
		t.remove(seq)
		m.emit(Step{Kind: stepSweep, Slot: seq}, t, "")
	}
}

func (s *State) remove(seq uint8) {
	s.slot[seq-1], s.age[seq-1] = 0, 0
	s.hidden &^= 1 << seq
}

// wipe is DeleteAll, and Erase, which also removes the items at once. That no
// writer is alive, nor a request of one on its way, is what their caller promises.
func (m *machine) wipe(s *State) {
	if s.wipes == 0 {
		return
	}
	if !m.out[RuleNoWriterAlive] {
		for _, w := range s.w {
			if w.phase != idle {
				return
			}
		}
		for _, o := range s.op {
			if o.flying > 0 && m.inTime(o) {
				return
			}
		}
	}
	t := *s
	t.hidden = 0
	t.wipes--
	head := t.mark
	for seq := uint8(1); seq <= maxSlots; seq++ {
		if t.slot[seq-1] != 0 {
			head = max(head, seq)
		}
	}
	t.mark, t.reset = head, head
	m.emit(Step{Kind: stepDeleteAll, Slot: head}, t, "")
	for seq := uint8(1); seq <= head; seq++ {
		t.remove(seq)
	}
	m.emit(Step{Kind: stepErase, Slot: head}, t, "")
}

// tick lets time go by, one tick or more than any limit at once.
func (m *machine) tick(s *State) {
	n, passes, sleeps := 1, stepTick, stepSuspended
	switch m.b.Clock {
	case Still:
		return
	case Leaps:
		n, passes, sleeps = deleteDelay+1, stepLeap, stepSlept
	case Ticks:
	}
	for suspended := writers; suspended >= 0; suspended-- {
		if suspended < writers && !m.out[RuleWallClock] {
			return
		}
		step := Step{Kind: sleeps, Who: uint8(suspended)}
		if suspended == writers {
			step = Step{Kind: passes}
		}
		t := *s
		for range n {
			m.older(&t, suspended)
		}
		m.emit(step, t, "")
	}
}

// older is one tick; the clock of the suspended incarnation does not notice.
func (m *machine) older(s *State, suspended int) {
	for i := range s.slot {
		if s.slot[i] != 0 {
			s.age[i] = min(s.age[i]+1, deleteDelay+1)
		}
	}
	for i := range s.op {
		o := &s.op[i]
		if o.first == 0 {
			continue
		}
		o.stamp = min(o.stamp+1, quarter+1)
		if m.b.Late {
			o.stamp = 0
			if m.b.Tail > 1 && (o.flying > 0 || s.writing(uint8(i)+1)) {
				o.late = 1
			}
		} else if !m.inTime(*o) {
			o.flying = 0
		}
	}
	for i := range s.w {
		w := &s.w[i]
		if i == suspended || w.phase == idle {
			continue
		}
		w.proven = min(w.proven+1, half+1)
		if w.sent > 0 {
			w.sent = min(w.sent+1, half+2)
		}
		if w.phase == fencing {
			w.look = min(w.look+1, half+1)
		}
	}
}
