package model

// Rule is a rule of the design that can be left out.
type Rule int

// The rules, in the order of docs/design.md.
const (
	RuleCondition Rule = iota
	RuleOwnOperation
	RuleForeignOperation
	RuleUnknown
	RuleAllAttempts
	RuleDeadSession
	RuleFence
	RuleLookBefore
	RuleLookAfter
	RuleSentTime
	RuleWallClock
	RuleSetBack
	RuleClocks
	RuleWithinHead
	RuleMarkRises
	RuleBelowMark
	RuleKeepMarked
	RuleDeleteDelay
	RuleReset
	RuleNoWriterAlive
	RuleSnapshotCovers
	RuleSnapshotProof
	RuleAhead
	RuleAheadProof
	RuleHole
	RuleHoleProof
	RuleWhole
	RuleMarkAtEnd
	RuleAged
	RuleCovered
	RuleKeepNewest
	RuleSavedCounts

	rules // how many there are
)

// Rules are all rules, in the order of docs/design.md.
func Rules() []Rule {
	list := make([]Rule, rules)
	for i := range list {
		list[i] = Rule(i)
	}
	return list
}

// RuleNamed finds a rule by its name.
func RuleNamed(name string) (Rule, bool) {
	for i, r := range catalogue {
		if r.name == name {
			return Rule(i), true
		}
	}
	return 0, false
}

func (r Rule) String() string { return catalogue[r].name }

// Text says what the rule demands.
func (r Rule) Text() string { return catalogue[r].text }

// Shown is the small search in which leaving the rule out breaks a guarantee.
func (r Rule) Shown() Bounds { return catalogue[r].shown }

var catalogue = [rules]struct {
	name, text string
	shown      Bounds
}{
	RuleCondition:        {name: "condition", text: "a put is conditional on its slot being empty", shown: tiny},
	RuleOwnOperation:     {name: "own-operation", text: "a refusal by an item of one's own operation is success", shown: tiny},
	RuleForeignOperation: {name: "foreign-operation", text: "a refusal by an item of another operation is a conflict", shown: tiny},
	RuleUnknown:          {name: "unknown", text: "a write without a deciding answer is of unknown outcome", shown: tiny},
	RuleAllAttempts:      {name: "all-attempts", text: "the outcome is judged over all attempts, not by the last", shown: tiny},
	RuleDeadSession:      {name: "dead-session", text: "after a failed or unknown write the session does nothing more", shown: tiny},
	RuleFence:            {name: "fence", text: "look before an attempt, or after its answer, when half of DeleteDelay has passed", shown: sleepers.lossy()},
	RuleLookBefore:       {name: "look-before", text: "the head is read before an attempt when half of DeleteDelay has passed", shown: sleepers},
	RuleLookAfter:        {name: "look-after", text: "the mark is read after an answer when half of DeleteDelay has passed", shown: late},
	RuleSentTime:         {name: "sent-time", text: "the head is proven as of the sending of the request, not of its answer", shown: sleepers.lossy()},
	RuleWallClock:        {name: "wall-clock", text: "time is counted by the wall clock, which goes on in a suspended machine", shown: sleepers.lossy()},
	RuleSetBack:          {name: "set-back", text: "a clock that was set back by more than is assumed proves nothing", shown: sleepers.lossy()},
	RuleClocks:           {name: "clocks", text: "assumed: a put lands within a quarter of DeleteDelay of its stamp by everyone's clock", shown: timed.lossy()},
	RuleWithinHead:       {name: "within-head", text: "the mark is never raised beyond the head", shown: tiny},
	RuleMarkRises:        {name: "mark-rises", text: "the mark is never lowered", shown: readers},
	RuleBelowMark:        {name: "below-mark", text: "only items of deleted events are removed", shown: deletions},
	RuleKeepMarked:       {name: "keep-marked", text: "the item at the mark stays", shown: deletions},
	RuleDeleteDelay:      {name: "delete-delay", text: "an item is removed only when it is older than DeleteDelay", shown: tiny.lossy()},
	RuleReset:            {name: "reset", text: "snapshots from before DeleteAll do not count", shown: resets},
	RuleNoWriterAlive:    {name: "no-writer-alive", text: "assumed: no writer is alive during DeleteAll and Erase", shown: resets},
	RuleSnapshotCovers:   {name: "snapshot-covers", text: "the snapshot must cover what is deleted", shown: deletions},
	RuleSnapshotProof:    {name: "snapshot-proof", text: "ErrNoSnapshot needs a snapshot that was read after the mark", shown: tiny},
	RuleAhead:            {name: "ahead", text: "a snapshot beyond the head is not used", shown: tiny},
	RuleAheadProof:       {name: "ahead-proof", text: "ErrAhead needs an end that was read after the snapshot", shown: tiny},
	RuleHole:             {name: "hole", text: "an event is delivered only if its number is the next", shown: groups},
	RuleHoleProof:        {name: "hole-proof", text: "ErrGap needs later looks that still show the hole, and a mark that has not passed it", shown: deletions},
	RuleWhole:            {name: "whole", text: "an append of several is shown whole", shown: groups},
	RuleMarkAtEnd:        {name: "mark-at-end", text: "after more than one round of reads the mark is read once more", shown: late},
	RuleAged:             {name: "aged", text: "it is read once more, too, when the look at the end shows an event older than a quarter of DeleteDelay", shown: tails},
	RuleCovered:          {name: "covered", text: "a session deletes only events that its oldest kept snapshot covers", shown: tiny},
	RuleKeepNewest:       {name: "keep-newest", text: "the last usable snapshot is not deleted", shown: tiny},
	RuleSavedCounts:      {name: "saved-counts", text: "only acknowledged saves count as kept snapshots", shown: tiny},
}
