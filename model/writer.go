package model

// act are the steps of an incarnation outside of its recovery.
func (m *machine) act(s *State, i int) {
	w := &s.w[i]
	switch w.phase {
	case idle:
		t := *s
		begin(&t, i)
		m.emit(Step{Kind: stepStart, Who: uint8(i)}, t, "")
		if m.b.Readers {
			t := *s
			replay(&t, i)
			m.emit(Step{Kind: stepReplay, Who: uint8(i)}, t, "")
		}
		return
	case recovering:
		m.look(s, i)
	case fetching:
		m.fetch(s, i)
	case checking:
		m.check(s, i)
	case live:
		m.start(s, i)
		if m.b.Snapshots {
			m.keep(s, i)
		}
	case fencing:
		m.fence(s, i)
	case resting:
		m.again(s, i)
	case waiting:
		m.wait(s, i)
	}
	t := *s
	t.w[i] = writer{}
	m.emit(Step{Kind: stepCrash, Who: uint8(i)}, t, "")
	if m.b.SetBack && w.phase >= live {
		t := *s
		t.w[i].proven = half + 1
		if m.out[RuleSetBack] {
			t.w[i].proven = 0
		}
		m.emit(Step{Kind: stepSetBack, Who: uint8(i)}, t, "")
	}
}

// start begins an append of one event or two after the head.
func (m *machine) start(s *State, i int) {
	head := s.w[i].head
	for n := uint8(1); n <= m.b.Group && head+n <= m.b.Slots && s.left > 0; n++ {
		for behind := uint8(0); behind <= m.b.Skew; behind++ {
			t := *s
			op := uint8(1)
			for t.op[op-1].first != 0 {
				op++
			}
			t.left--
			t.op[op-1] = operation{first: head + 1, n: n, behind: behind}
			w := &t.w[i]
			w.op, w.tries = op, m.b.Tries
			m.attempt(Step{Kind: stepAppend, Who: uint8(i), Arg: n, Slot: head + 1}, t, i)
		}
	}
}

// stale tells whether the head was proven too long ago.
func (w *writer) stale() bool { return w.proven > half }

// attempt sends an attempt, after the look before it where one is due. One that is
// held up before it leaves is no other than one that is long on its way.
func (m *machine) attempt(step Step, s State, i int) {
	w := &s.w[i]
	if w.stale() && !m.out[RuleLookBefore] && !m.out[RuleFence] {
		w.phase, w.todo, w.look = fencing, readMark|readEnd, 0
	} else {
		launch(&s, i)
	}
	m.emit(step, s, "")
}

// again sends another attempt, or gives up.
func (m *machine) again(s *State, i int) {
	if w := &s.w[i]; w.tries > 0 {
		m.attempt(Step{Kind: stepAgain, Who: uint8(i), Slot: s.op[w.op-1].first}, *s, i)
	}
	m.giveUp(Step{Kind: stepGiveUp, Who: uint8(i)}, *s, i)
}

func launch(s *State, i int) {
	w := &s.w[i]
	w.phase, w.answer = waiting, noAnswer
	w.tries--
	w.sent = max(w.sent, 1)
	s.op[w.op-1].flying++
}

// fence reads the mark and the end, each at a moment of its own.
func (m *machine) fence(s *State, i int) {
	for _, part := range []uint8{readMark, readEnd} {
		if s.w[i].todo&part == 0 {
			continue
		}
		t := *s
		step := t.read(i, part, 0)
		w := &t.w[i]
		if w.todo != 0 {
			m.emit(step, t, "")
			continue
		}
		op, first := w.op, t.op[w.op-1].first
		if t.half(t.op[op-1]) {
			continue
		}
		head := max(w.mark, w.end)
		w.forget()
		switch slot := t.slot[first-1]; {
		case head == first-1:
			w.proven, w.look = w.look, 0
			if m.out[RuleSentTime] {
				w.proven = 0
			}
			launch(&t, i)
			m.emit(step, t, "")
		case slot == 0 && w.unsettled != 0:
			m.end(step, t, i, Unknown)
		case slot == op:
			m.judge(step, t, i, taken)
		case slot == 0 || w.sent == 0:
			m.end(step, t, i, Conflict)
		default:
			m.judge(step, t, i, foreign)
		}
	}
}

// wait is for the answer, which may come, be lost, or be a clear refusal.
func (m *machine) wait(s *State, i int) {
	w := &s.w[i]
	step := Step{Kind: stepAnswer, Who: uint8(i), Slot: s.op[w.op-1].first, Arg: w.answer}
	if w.answer != noAnswer && !s.half(s.op[w.op-1]) {
		m.judge(step, *s, i, w.answer)
	}
	t := *s
	t.w[i].answer, t.w[i].unsettled = noAnswer, 1
	m.rest(Step{Kind: stepNoAnswer, Who: uint8(i)}, t, i)
	if w.answer == noAnswer && s.op[w.op-1].flying > 0 {
		t := *s
		t.op[w.op-1].flying--
		m.rest(Step{Kind: stepRefused, Who: uint8(i)}, t, i)
	}
}

// rest is the time between two attempts, or the end after the last.
func (m *machine) rest(step Step, s State, i int) {
	if s.w[i].tries == 0 {
		m.giveUp(step, s, i)
		return
	}
	s.w[i].phase = resting
	m.emit(step, s, "")
}

// giveUp is the end of an append without a deciding answer.
func (m *machine) giveUp(step Step, s State, i int) {
	outcome := Failed
	if s.w[i].unsettled != 0 && !m.out[RuleUnknown] {
		outcome = Unknown
	}
	if m.out[RuleAllAttempts] && s.w[i].tries > 0 {
		outcome = Failed // the last attempt never left
	}
	m.end(step, s, i, outcome)
}

// judge decides by an answer, and looks back when it came late.
func (m *machine) judge(step Step, s State, i int, answer uint8) {
	w := &s.w[i]
	success := answer == stored || (answer == taken && !m.out[RuleOwnOperation]) || (answer == foreign && m.out[RuleForeignOperation])
	switch {
	case w.stale() && s.mark >= s.op[w.op-1].first && !m.out[RuleLookAfter] && !m.out[RuleFence]:
		m.end(step, s, i, Unknown)
	case success:
		m.end(step, s, i, Stored)
	default:
		m.end(step, s, i, Conflict)
	}
}

// end tells the caller, and compares with what is true.
func (m *machine) end(step Step, s State, i int, outcome Outcome) {
	w := &s.w[i]
	o := &s.op[w.op-1]
	step.Outcome = outcome
	bad := ""
	switch outcome {
	case Stored:
		for seq := o.first; seq <= o.last(); seq++ {
			if s.truth[seq-1] != w.op || (s.slot[seq-1] != w.op && seq > s.mark) {
				bad = "an event is acknowledged, but its number belongs to another"
			}
		}
		s.acked = max(s.acked, o.last())
		w.head, w.proven = o.last(), min(w.proven, w.sent-1)
		if m.out[RuleSentTime] {
			w.proven = 0
		}
		w.phase = live
		w.written()
		m.emit(step, s, bad)
		return
	case Conflict, Failed:
		o.denied = 1
		for seq := o.first; seq <= o.last(); seq++ {
			if s.truth[seq-1] == w.op {
				bad = "the caller is told that an event is not stored, but it is"
			}
		}
	case Unknown:
	}
	if m.out[RuleDeadSession] {
		w.phase, w.astray = live, 1
		w.written()
	} else {
		*w = writer{}
	}
	m.emit(step, s, bad)
}

// keep saves and deletes snapshots, and deletes events.
func (m *machine) keep(s *State, i int) {
	w := &s.w[i]
	if w.head > w.base && w.saved < w.head { // when the answer is lost, less can follow
		t := *s
		t.snaps |= 1 << w.head
		t.w[i].saved = w.head
		bad := ""
		switch {
		case w.astray != 0:
			bad = "a snapshot holds an event that the journal does not hold at its number"
		case w.base < s.reset && w.head > s.reset:
			bad = "a snapshot brings back the state that DeleteAll has ended"
		}
		m.emit(Step{Kind: stepSave, Who: uint8(i), Slot: w.head}, t, bad)
		if m.out[RuleSavedCounts] {
			t := *s
			t.w[i].saved = w.head
			m.emit(Step{Kind: stepSaveNever, Who: uint8(i), Slot: w.head}, t, "")
		}
	}
	for seq := uint8(1); seq <= m.b.Slots; seq++ {
		if s.snaps&(1<<seq) != 0 && (seq < w.saved || (seq == w.saved && m.out[RuleKeepNewest])) {
			t := *s
			t.snaps &^= 1 << seq
			m.emit(Step{Kind: stepDrop, Who: uint8(i), Slot: seq}, t, "")
		}
	}
	to := []uint8{w.saved}
	if m.out[RuleCovered] {
		to = append(to, w.head)
	}
	if m.out[RuleWithinHead] && w.saved > 0 {
		to = append(to, w.head+1)
	}
	for _, seq := range to {
		if seq > s.mark || (m.out[RuleMarkRises] && seq < s.mark && seq > 0) {
			t := *s
			t.mark = seq
			m.emit(Step{Kind: stepRaise, Who: uint8(i), Slot: seq}, t, "")
		}
	}
}
