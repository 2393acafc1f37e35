package model

import "fmt"

// Outcome is what the caller of an append is told.
type Outcome uint8

// The outcomes.
const (
	_ Outcome = iota
	Stored
	Conflict
	Failed
	Unknown
)

func (o Outcome) String() string {
	return [...]string{"", "stored", "ErrConflict", "failed, nothing stored", "ErrOutcomeUnknown"}[o]
}

type kind uint8

const (
	stepStart kind = iota
	stepReplay
	stepCrash
	stepSetBack
	stepRead
	stepPage
	stepAppend
	stepAgain
	stepAnswer
	stepNoAnswer
	stepRefused
	stepGiveUp
	stepSave
	stepSaveNever
	stepDrop
	stepRaise
	stepLand
	stepReveal
	stepSweep
	stepDeleteAll
	stepErase
	stepTick
	stepLeap
	stepSuspended
	stepSlept
)

// Step is one step, for a trace.
type Step struct {
	Kind    kind
	Who     uint8 // incarnation, or the operation that lands
	Arg     uint8
	Slot    uint8
	Outcome Outcome
	Head    uint8
}

// String is the step as a line of a trace.
func (t Step) String() string {
	line := t.what()
	switch {
	case t.Outcome != 0:
		line += fmt.Sprintf("; the caller is told: %s", t.Outcome)
	case t.Head != 0:
		line += fmt.Sprintf("; it has everything up to %d", t.Head)
	}
	return line
}

func (t Step) what() string {
	who := string(rune('A' + t.Who))
	switch t.Kind {
	case stepStart:
		return who + " starts to recover"
	case stepReplay:
		return who + " starts to replay the journal"
	case stepCrash:
		return who + " crashes"
	case stepSetBack:
		return who + "'s clock is set back far"
	case stepRead:
		what := map[uint8]string{readSnap: "newest snapshot", readMark: "mark", readEnd: "end"}[t.Arg]
		return fmt.Sprintf("%s reads the %s: %d", who, what, t.Slot)
	case stepPage:
		return fmt.Sprintf("%s reads number %d: %s", who, t.Slot, [...]string{"nothing", "an event"}[t.Arg])
	case stepAppend:
		return fmt.Sprintf("%s appends %d event(s) from number %d", who, t.Arg, t.Slot)
	case stepAgain:
		return fmt.Sprintf("%s makes another attempt for number %d", who, t.Slot)
	case stepAnswer:
		return fmt.Sprintf("%s has the answer for number %d: %s", who, t.Slot, answers[t.Arg])
	case stepNoAnswer:
		return who + " waits in vain for the answer"
	case stepRefused:
		return who + "'s attempt is throttled"
	case stepGiveUp:
		return who + " gives up"
	case stepSave:
		return fmt.Sprintf("%s saves a snapshot at %d", who, t.Slot)
	case stepSaveNever:
		return fmt.Sprintf("%s fails to save a snapshot at %d", who, t.Slot)
	case stepDrop:
		return fmt.Sprintf("%s deletes the snapshot at %d", who, t.Slot)
	case stepRaise:
		return fmt.Sprintf("%s sets the mark to %d", who, t.Slot)
	case stepLand:
		return fmt.Sprintf("an attempt for number %d arrives: %s", t.Slot, answers[t.Arg])
	case stepReveal:
		return "queries show the whole append"
	case stepSweep:
		return fmt.Sprintf("a sweep removes item %d", t.Slot)
	case stepDeleteAll:
		return fmt.Sprintf("DeleteAll at head %d", t.Slot)
	case stepErase:
		return fmt.Sprintf("Erase at head %d", t.Slot)
	case stepTick:
		return "a quarter of DeleteDelay passes"
	case stepLeap:
		return "more than DeleteDelay passes"
	case stepSuspended:
		return fmt.Sprintf("a quarter of DeleteDelay passes while %s's machine is suspended", who)
	case stepSlept:
		return fmt.Sprintf("more than DeleteDelay passes while %s's machine is suspended", who)
	}
	return "?"
}

var answers = [...]string{"none", "stored", "taken by itself", "taken by another"}
