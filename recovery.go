package dynactor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Reset is delivered to a recovering actor in the place of a snapshot when
// [Journal.DeleteAll] or [Journal.Erase] has ended its past: the state at this
// point is empty, and the events that follow start from it. An actor that starts
// out empty can ignore it.
type Reset struct {
	Seq int64 // the head at that time; the next event had the index Seq
}

// recovery is what an actor is to be rebuilt from.
type recovery struct {
	message any   // the snapshot's message or a *Reset; nil for nothing
	start   int64 // how many events it stands for
	h       *history
}

// maxTail bounds the look at the end of a stream in items; a page ends at 1 MB anyway.
const maxTail = 1000

// recover looks for what an actor is to be rebuilt from. A usual recovery is one
// round of reads at the same time: the newest snapshot, the mark, and as many of the
// newest events as come between two snapshots, or the oldest where there are none.
func (p *Provider) recover(ctx context.Context, id string, interval int) (*recovery, error) {
	if err := p.tables.ready(ctx); err != nil {
		return nil, err
	}
	var snap candidate
	var h *history
	err := together(
		func() (err error) { snap, err = p.latest(ctx, id, math.MaxInt64); return err },
		func() (err error) {
			if interval <= 0 {
				h, err = p.journal.openFromStart(ctx, id)
			} else {
				h, err = p.journal.open(ctx, id, int32(min(interval, maxTail-1))+1)
			}
			return err
		},
	)
	if err != nil {
		return nil, err
	}
	// The reads were not one moment. What does not fit together counts only when
	// the one was read after the other; each new read re-arms the opposite check.
	snapAfterMark, endAfterSnap := false, false
	for {
		snap = snap.unlessBefore(h.mark)
		switch {
		case !h.mark.covers(snap.Seq):
			if snapAfterMark {
				return nil, fmt.Errorf("%w: events up to number %d are deleted, the newest snapshot covers %d", ErrNoSnapshot, h.mark.del, snap.Seq)
			}
			if snap, err = p.latest(ctx, id, math.MaxInt64); err != nil {
				return nil, err
			}
			snapAfterMark, endAfterSnap, h.reread = true, false, true
		case snap.Seq > h.head:
			if endAfterSnap {
				return nil, fmt.Errorf("%w: the snapshot covers %d events, the head is %d", ErrAhead, snap.Seq, h.head)
			}
			if h, err = p.journal.open(ctx, id, 1); err != nil {
				return nil, err
			}
			snapAfterMark, endAfterSnap, h.reread = false, true, true
		default:
			return p.recoverFrom(ctx, id, snap, h)
		}
	}
}

// recoverFrom takes a snapshot that fits, or an older one where that is allowed
// and the newest cannot be decoded.
func (p *Provider) recoverFrom(ctx context.Context, id string, snap candidate, h *history) (*recovery, error) {
	broken := snap.broken
	for snap.broken != nil {
		if !p.o.SnapshotFallback {
			return nil, snap.broken
		}
		p.obs.passedOver(ctx, id, snap.Seq, snap.broken)
		var err error
		if snap, err = p.latest(ctx, id, snap.Seq-1); err != nil {
			return nil, err
		}
		snap = snap.unlessBefore(h.mark)
		if !h.mark.covers(snap.Seq) {
			return nil, broken
		}
		h.reread = true
	}
	r := &recovery{start: h.mark.start(snap.Seq), h: h}
	switch {
	case snap.found:
		r.message = snap.Message
	case r.start > 0:
		r.message = &Reset{Seq: r.start}
	}
	h.from(r.start + 1)
	return r, nil
}

// candidate is a snapshot to recover from, or the absence of one.
type candidate struct {
	Snapshot
	found  bool
	broken error // why it cannot be decoded
}

// unlessBefore is no snapshot when the one at hand belongs to a past that
// DeleteAll has ended.
func (c candidate) unlessBefore(m mark) candidate {
	if c.found && c.Seq <= m.reset {
		return candidate{}
	}
	return c
}

// latest reads the newest snapshot that covers at most seq events.
func (p *Provider) latest(ctx context.Context, id string, seq int64) (candidate, error) {
	if seq < 1 {
		return candidate{}, nil
	}
	snap, found, err := p.snapshots.AtOrBefore(ctx, id, seq)
	if found && errors.Is(err, ErrDecode) {
		return candidate{Snapshot: snap, found: true, broken: err}, nil
	}
	return candidate{Snapshot: snap, found: found}, err
}

// patience repeats what fails for a passing cause, with back-off, until
// RecoveryTimeout has gone by without progress. The framework would restart the
// actor without a pause, and stop it at the eleventh failure.
type patience struct {
	p      *Provider
	id     string
	since  time.Time // start of the time without progress
	failed int       // tries in that time
}

func (p *Provider) newPatience(id string) *patience {
	return &patience{p: p, id: id, since: time.Now()}
}

// progress starts the time anew.
func (w *patience) progress() { w.since, w.failed = time.Now(), 0 }

// again tells whether to try again after err, having waited; otherwise it
// returns the error to give up with.
func (w *patience) again(ctx context.Context, err error) error {
	if !passing(err) {
		return err
	}
	w.failed++
	wait := backoff(w.failed)
	if time.Since(w.since)+wait > w.p.o.RecoveryTimeout {
		return err
	}
	if w.failed == 1 {
		w.p.obs.warn(ctx, "recovery waits for a passing failure", "persistence_id", w.id, "error", err)
	}
	if ended := w.p.caller.pause(ctx, wait); ended != nil {
		if e, ok := errors.AsType[*Error](err); ok {
			err = e.Err
		}
		return fmt.Errorf("%w: %w", ended, err)
	}
	return nil
}

// passing tells whether a read that failed may succeed later without anybody's doing.
func passing(err error) bool {
	for _, final := range []error{
		ErrClosed, ErrConflict, ErrGap, ErrAhead, ErrNoSnapshot, ErrDecode, ErrInvalid, ErrUnstableID, ErrRecovering, ErrTooLarge,
		context.Canceled,
	} {
		if errors.Is(err, final) {
			return false
		}
	}
	if errors.Is(err, ErrThrottled) || errors.Is(err, errNotThere) || errors.As(err, new(*types.ResourceNotFoundException)) {
		return true
	}
	if errors.Is(err, ErrSchema) {
		return false
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		return expired(api.ErrorCode()) || !settled(err)
	}
	return true // no answer at all: network, names, time
}
