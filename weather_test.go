package dynactor

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// weather is what happens to all: time goes by, and what was given up lands.
func (w *world) weather() []action {
	var list []action
	for _, d := range []time.Duration{time.Hour, 7 * time.Hour, 13 * time.Hour, 25 * time.Hour} {
		list = append(list, action{1, fmt.Sprintf("%s pass", d), func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.ahead += d
		}})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.limbo {
		list = append(list, action{3 * w.dire, "lands late: " + describe(h), func() { w.land(h) }})
		if w.below(h) {
			list = append(list, action{6 * w.dire, "after a day its numbers are swept, and it lands: " + describe(h), func() { w.haunt(h) }})
		}
	}
	if janitor := w.all[2]; w.asleep != "" && !janitor.isBusy() {
		list = append(list, action{4, "a day passes, and janitor sweeps", func() {
			w.mu.Lock()
			w.ahead += 25 * time.Hour
			w.mu.Unlock()
			janitor.operations()[0].do()
		}})
	}
	if w.asleep != "" {
		return append(list, action{2, w.asleep + " wakes up", func() { w.asleep = "" }})
	}
	for _, in := range w.all {
		if in.name != "janitor" {
			list = append(list, action{w.dire, in.name + " falls asleep", func() { w.asleep = in.name }})
		}
	}
	return list
}

// below tells whether all that a request puts was deleted, and may be swept.
func (w *world) below(h *heldRequest) bool {
	if h.wire.table() == DefaultSnapshotsTable || len(h.wire.puts()) == 0 {
		return false
	}
	for _, it := range h.wire.puts() {
		if wireNumber(it["seq"]) >= w.m.del() {
			return false
		}
	}
	return true
}

// haunt lets a day pass, a sweep remove just the items where a request wants to
// put others, and that request land.
func (w *world) haunt(h *heldRequest) {
	w.mu.Lock()
	w.ahead += 25 * time.Hour
	w.mu.Unlock()
	for _, it := range h.wire.puts() {
		delete(w.m.events, wireNumber(it["seq"]))
	}
	w.land(h)
}

// land lets a request that was given up reach the server, unless the
// assumption forbids it. Below the mark it may come as late as it likes.
func (w *world) land(h *heldRequest) {
	w.mu.Lock()
	w.limbo = slices.DeleteFunc(w.limbo, func(x *heldRequest) bool { return x == h })
	w.mu.Unlock()
	used := true
	for _, it := range h.wire.puts() {
		used = used && wireNumber(it["seq"]) <= w.m.del()
	}
	if w.m.punctual = !w.late(h); w.m.punctual || used {
		w.m.do(h.wire)
	}
}

// haunted is how a part of the schedules begins: a put of A is on its way, B has
// taken its number, and somebody who sleeps has begun to read.
func (w *world) haunted(sleeper string, reads string) {
	for _, what := range []string{
		"A recovers", "", "B recovers", "", "A appends one", "given up for good", "", "B appends two", "", reads,
	} {
		if what == "" {
			w.drain()
			continue
		}
		for _, a := range w.actions(true) {
			if strings.HasPrefix(a.what, what) {
				w.log("%s", a.what)
				a.do()
				break
			}
		}
	}
	w.asleep = sleeper
}
