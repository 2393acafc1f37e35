package main

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
)

// judge compares what is stored and what everybody saw, when nothing is on its
// way any more.
func (r *round) judge(ctx context.Context) error {
	p, err := r.provider(r.gate)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close(ctx) }()
	for _, h := range r.truth.all() {
		if events := h.events(); len(events) > 0 {
			r.last(ctx, p, h, events)
		}
		h.check()
	}
	for _, h := range r.states {
		h.check()
	}
	return ctx.Err() //nolint:wrapcheck // the end of the whole run
}

func (t *truth) all() []*history {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]*history, 0, len(t.streams))
	for _, h := range t.streams {
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b *history) int { return strings.Compare(a.id, b.id) })
	return list
}

// last reads a stream in every way without trouble, and ends its life.
func (r *round) last(ctx context.Context, p *dynactor.Provider, h *history, events []string) {
	w := &writer{r: r, h: h, proc: &process{p: p}, luck: newLuck(r.seed, 3), name: "last"}
	head := int64(len(events))
	if state, index, err := w.recover(p.GetState()); err != nil || int64(index) != head || state != fold("", events...) {
		r.tally.violation("%s: at the end an actor recovers %s at %d, want %s at %d: %v", h.id, state, index, fold("", events...), head, err)
	}
	if now, err := p.Journal().Head(ctx, h.id); err != nil || now != head {
		r.tally.violation("%s: at the end the head is %d, want %d: %v", h.id, now, head, err)
	}
	reading, cancel := context.WithTimeout(ctx, 3*writeTimeout)
	defer cancel()
	if err := (&reader{r: r, h: h, luck: w.luck}).readWith(reading, p); err != nil {
		r.tally.violation("%s: at the end a replay fails: %v", h.id, err)
	}
	kept, err := p.Snapshots().List(ctx, h.id)
	if err != nil {
		r.tally.violation("%s: at the end: %v", h.id, err)
	}
	for _, seq := range kept {
		snap, found, err := p.Snapshots().AtOrBefore(ctx, h.id, seq)
		m, _ := snap.Message.(*wrapperspb.StringValue)
		if err != nil || !found || snap.Seq != seq || seq > head || m.GetValue() != fold("", events[:seq]...) {
			r.tally.violation("%s: the snapshot at %d is not the fold of the events: %v, %v", h.id, seq, snap, err)
		}
	}
	r.renew(ctx, p, h, head)
}

// renew deletes everything and checks that no number comes again.
func (r *round) renew(ctx context.Context, p *dynactor.Provider, h *history, head int64) {
	if err := p.Journal().DeleteAll(ctx, h.id); err != nil {
		r.tally.violation("%s: delete all: %v", h.id, err)
	}
	r.clock.jump(2 * deleteDelay)
	if _, err := p.Journal().Sweep(ctx, h.id); err != nil {
		r.tally.violation("%s: sweep: %v", h.id, err)
	}
	err := tried(func() {
		s := p.GetState()
		m, index, _ := s.GetSnapshot(h.id)
		if reset, ok := m.(*dynactor.Reset); !ok || reset.Seq != head || int64(index) != head {
			r.tally.violation("%s: after DeleteAll an actor gets %v at %d, want a Reset at %d", h.id, m, index, head)
		}
		s.GetEvents(h.id, index, 0, func(m any) { r.tally.violation("%s: after DeleteAll there is %v", h.id, m) })
		s.PersistEvent(h.id, index, event("new-1", 0))
	})
	h.told(head+1, acknowledged, err, "new-1")
	if err != nil {
		r.tally.violation("%s: a new life fails: %v", h.id, err)
	}
}
