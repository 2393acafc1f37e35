package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// truth is what the server did in a round, and what everybody was told.
type truth struct {
	tally *tally

	mu      sync.Mutex
	streams map[string]*history
}

func (t *truth) of(id string) *history {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.streams[id]
	if h == nil {
		h = &history{id: id, tally: t.tally, first: map[int64]put{}, where: map[string]int64{}, fate: map[string]fate{}}
		t.streams[id] = h
	}
	return h
}

// history is one stream.
type history struct {
	id    string
	tally *tally

	mu    sync.Mutex
	first map[int64]put    // what was stored first at each number
	where map[string]int64 // where a text was stored first
	fate  map[string]fate  // by text: what its writer was told
	seen  []sight
	acked int64 // every read that begins now must reach it
	gone  int64 // no read that begins now may show it
	del   int64 // nobody has asked to delete more
}

type outcome int

const (
	acknowledged outcome = iota
	unknown
	refused
)

// fate is what the writer of an event was told.
type fate struct {
	outcome outcome
	seq     int64
	err     error
}

// sight is what somebody read, to be compared when all is known.
type sight struct {
	who   string
	after int64  // the first event has the number after+1
	state string // the state before it, by a snapshot; empty for none
	texts []string
	end   bool // it reached the head
}

// landed notes an event that the server has stored. A number that is below the
// mark may be filled again, unseen; the first text of each number is the stream.
func (h *history) landed(p put) {
	p.text = name(p.text)
	h.mu.Lock()
	defer h.mu.Unlock()
	if was, ok := h.first[p.seq]; ok {
		if was.text != p.text && p.seq > h.del {
			h.tally.violation("%s: number %d was used for %s and again for %s", h.id, p.seq, was.text, p.text)
		}
		return
	}
	h.first[p.seq] = p
	if at, ok := h.where[p.text]; ok {
		h.tally.violation("%s: %s was stored at %d and again at %d", h.id, p.text, at, p.seq)
	}
	h.where[p.text] = p.seq
}

func (h *history) has(seq int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.first[seq]
	return ok
}

// told notes what a writer was told about events from a number on.
func (h *history) told(seq int64, o outcome, err error, texts ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, text := range texts {
		h.fate[text] = fate{outcome: o, seq: seq + int64(i), err: err}
	}
	if o == acknowledged {
		h.acked = max(h.acked, seq-1+int64(len(texts)))
	}
}

func (h *history) asked(del int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.del = max(h.del, del)
}

// deleted notes that a deletion was acknowledged.
func (h *history) deleted(to int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone = max(h.gone, to)
}

// bounds are what a read that begins now must keep.
type bounds struct{ acked, gone int64 }

func (h *history) bounds() bounds {
	h.mu.Lock()
	defer h.mu.Unlock()
	return bounds{h.acked, min(h.gone, h.del)}
}

// saw notes a complete read that began when b held.
func (h *history) saw(b bounds, s sight) {
	h.mu.Lock()
	defer h.mu.Unlock()
	head := s.after + int64(len(s.texts))
	switch {
	case s.end && head < b.acked:
		h.tally.violation("%s: %s ends at %d, but %d was acknowledged before it began", h.id, s.who, head, b.acked)
	case s.after < b.gone && s.state == "" && len(s.texts) > 0:
		h.tally.violation("%s: %s begins with %d, but %d was deleted before it began", h.id, s.who, s.after+1, b.gone)
	case s.after > h.del && s.state == "":
		h.tally.violation("%s: %s begins with %d, but no more than %d was ever deleted", h.id, s.who, s.after+1, h.del)
	}
	h.seen = append(h.seen, s)
}

func (h *history) sawHead(b bounds, who string, head int64) {
	if head < b.acked {
		h.tally.violation("%s: %s says that the head is %d, but %d was acknowledged before", h.id, who, head, b.acked)
	}
}

// events are the stream as the server has stored it.
func (h *history) events() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.contiguous()
}

func (h *history) contiguous() (events []string) {
	for seq := int64(1); ; seq++ {
		p, ok := h.first[seq]
		if !ok {
			return events
		}
		events = append(events, p.text)
	}
}

// check compares everything at the end of a round, when nothing is on its way.
func (h *history) check() {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := h.contiguous()
	if len(events) != len(h.first) {
		h.tally.violation("%s: nothing was ever stored at %d, but %d numbers were used", h.id, len(events)+1, len(h.first))
	}
	ends := map[int64]bool{0: true}
	for _, p := range h.first {
		ends[p.last] = true
	}
	for text, f := range h.fate {
		h.checkFate(text, f)
	}
	for _, s := range h.seen {
		h.checkSight(events, ends, s)
	}
}

func (h *history) checkFate(text string, f fate) {
	at, stored := h.where[text]
	switch {
	case f.outcome == acknowledged && at != f.seq:
		h.tally.violation("%s: %s was acknowledged at %d, where the stream has %q", h.id, text, f.seq, h.first[f.seq].text)
	case f.outcome == unknown && stored && at != f.seq:
		h.tally.violation("%s: %s, of unknown outcome at %d, is at %d", h.id, text, f.seq, at)
	case f.outcome == refused && stored:
		h.tally.violation("%s: %s is at %d, but its writer was told: %v", h.id, text, at, f.err)
	}
}

func (h *history) checkSight(events []string, ends map[int64]bool, s sight) {
	to := s.after + int64(len(s.texts))
	switch {
	case to > int64(len(events)):
		h.tally.violation("%s: %s reached %d, the stream has %d events", h.id, s.who, to, len(events))
	case s.state != "" && s.state != fold("", events[:s.after]...):
		h.tally.violation("%s: %s got a snapshot at %d that is not the fold of the events", h.id, s.who, s.after)
	case !slices.Equal(s.texts, events[s.after:to]):
		h.tally.violation("%s: %s read from %d:\n%v\nthe stream has\n%v", h.id, s.who, s.after+1, s.texts, events[s.after:to])
	case s.end && !ends[to] && len(s.texts) > 0:
		h.tally.violation("%s: %s ends at %d, in the midst of an append", h.id, s.who, to)
	}
}

// event is the message of a text, padded so that a change shows.
func event(text string, size int) proto.Message {
	return wrapperspb.String(text + "|" + strings.Repeat(text+".", size/(len(text)+1)))
}

// textFrom is the text of a message that was read, with a note when it changed.
func textFrom(m any) string {
	s, ok := m.(*wrapperspb.StringValue)
	if !ok {
		return fmt.Sprintf("a %T", m)
	}
	text, pad, _ := strings.Cut(s.GetValue(), "|")
	if strings.ReplaceAll(pad, text+".", "") != "" {
		return "changed: " + text
	}
	return strings.Clone(text)
}

// name is the text without its padding.
func name(s string) string {
	text, _, _ := strings.Cut(s, "|")
	return strings.Clone(text)
}
