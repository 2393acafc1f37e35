package dynactortest

import "slices"

// Rule says which requests meet which action. The rules of a layer are tried in
// the order they were added; the first that matches and has budget left acts,
// alone.
type Rule struct {
	// Op is the name of the operation, like "PutItem". Empty means any.
	Op string
	// Table is a table that the request names. Empty means any.
	Table string
	// Match looks at the request as it arrived. Nil means any.
	Match func(Request) bool
	// Skip is how many matching requests the rule lets go by first.
	Skip int
	// Times is how many matching requests it acts on after that. Zero means
	// all.
	Times int
	// Do is what happens. The zero Action does nothing.
	Do Action
}

// activeRule is a rule with what happened to it so far.
type activeRule struct {
	Rule

	seen int // matching requests
}

// Add adds a rule after those in force.
func (f *Faults) Add(rule Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, &activeRule{Rule: rule})
}

// Clear removes all rules. Requests that an action holds stay held.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// actionFor finds the rule for r and takes one from its budget. Match runs
// without the lock, so it may use the layer.
func (f *Faults) actionFor(r Request) (Action, bool) {
	f.mu.Lock()
	rules := slices.Clone(f.rules)
	f.mu.Unlock()
	for _, rule := range rules {
		if rule.matches(r) && f.take(rule) {
			return rule.Do, true
		}
	}
	return Action{}, false
}

func (r *activeRule) matches(req Request) bool {
	return (r.Op == "" || r.Op == req.Op) &&
		(r.Table == "" || slices.Contains(decodeInput(req.Body).tables(), r.Table)) &&
		(r.Match == nil || r.Match(req))
}

// take counts a match and says whether the rule acts on it.
func (f *Faults) take(r *activeRule) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.seen++
	return r.seen > r.Skip && (r.Times == 0 || r.seen <= r.Skip+r.Times)
}
