package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dynactor/dynactor"
)

// anyProvider is that of one of the processes, another each time.
func (r *round) anyProvider(l *luck) *dynactor.Provider { return r.procs[l.n(processes)].provider() }

// appender appends several events at a time to the head that it believes in.
type appender struct {
	r     *round
	h     *history
	luck  *luck
	texts int
}

func (a *appender) work(ctx context.Context) {
	head := int64(0)
	for !a.r.over() {
		texts := make([]string, 1+a.luck.n(4))
		for i := range texts {
			a.texts++
			texts[i] = fmt.Sprintf("a-%d", a.texts)
		}
		head = a.append(ctx, head, texts)
		a.r.rest(a.luck, 60*time.Millisecond)
	}
}

func (a *appender) append(ctx context.Context, head int64, texts []string) int64 {
	ctx, cancel := limited(ctx, a.luck)
	defer cancel()
	a.r.tally.operation("append")
	j := a.r.anyProvider(a.luck).Journal()
	b := a.h.bounds()
	if a.luck.in(2) {
		head = a.look(ctx, j, b, head)
	}
	now, err := j.Append(ctx, a.h.id, head, messages(texts, a.r.pad)...)
	a.h.told(head+1, a.r.outcome(a.h.id, "append", err), err, texts...)
	if err == nil {
		return now
	}
	return a.look(ctx, j, b, head)
}

// look reads the head; when that fails it stays what it was.
func (a *appender) look(ctx context.Context, j *dynactor.Journal, b bounds, head int64) int64 {
	a.r.tally.operation("head")
	now, err := j.Head(ctx, a.h.id)
	if err != nil {
		a.r.failed(a.h.id, "head", err)
		return head
	}
	a.h.sawHead(b, "Head", now)
	return now
}

// reader replays, from the beginning or from anywhere.
type reader struct {
	r    *round
	h    *history
	luck *luck
}

func (d *reader) work(ctx context.Context) {
	for !d.r.over() {
		d.read(ctx)
		d.r.rest(d.luck, 60*time.Millisecond)
	}
}

func (d *reader) read(ctx context.Context) {
	ctx, cancel := limited(ctx, d.luck)
	defer cancel()
	_ = d.readWith(ctx, d.r.anyProvider(d.luck))
}

func (d *reader) readWith(ctx context.Context, p *dynactor.Provider) error {
	d.r.tally.operation("replay")
	b := d.h.bounds()
	seen := sight{who: "replay", end: true}
	for e, err := range p.Journal().Replay(ctx, d.h.id, 1, 0) {
		if err != nil {
			d.r.failed(d.h.id, "replay", err)
			return err
		}
		if len(seen.texts) == 0 {
			seen.after = e.Seq - 1
		}
		if want := seen.after + int64(len(seen.texts)) + 1; e.Seq != want {
			d.r.tally.violation("%s: replay has %d in the place of %d", d.h.id, e.Seq, want)
			return nil
		}
		seen.texts = append(seen.texts, textFrom(e.Message))
	}
	if len(seen.texts) == 0 {
		return nil // all is deleted, or there is nothing yet
	}
	d.h.saw(b, seen)
	return nil
}

// deleter deletes what the oldest snapshot covers, and sweeps.
type deleter struct {
	r    *round
	h    *history
	luck *luck
}

func (d *deleter) work(ctx context.Context) {
	for !d.r.over() {
		d.r.rest(d.luck, 150*time.Millisecond)
		d.delete(ctx)
	}
}

func (d *deleter) delete(ctx context.Context) {
	ctx, cancel := limited(ctx, d.luck)
	defer cancel()
	p := d.r.anyProvider(d.luck)
	if d.luck.in(2) {
		d.r.tally.operation("list snapshots")
		kept, err := p.Snapshots().List(ctx, d.h.id)
		if err != nil {
			d.r.failed(d.h.id, "list snapshots", err)
			return
		}
		if len(kept) > 0 {
			d.r.tally.operation("delete to")
			if err := p.Journal().DeleteTo(ctx, d.h.id, kept[0]); err != nil {
				d.r.failed(d.h.id, "delete to", err)
				return
			}
			d.h.deleted(kept[0])
		}
	}
	d.r.tally.operation("sweep")
	removed, err := p.Journal().Sweep(ctx, d.h.id)
	if err != nil {
		d.r.failed(d.h.id, "sweep", err)
	}
	if removed > 0 {
		d.r.tally.outcome("sweep: removed items")
	}
}
