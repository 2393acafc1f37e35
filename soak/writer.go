package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
)

// writer is an actor: incarnation after incarnation it recovers, persists, saves
// snapshots and is abandoned, through a session as the framework uses one.
type writer struct {
	r     *round
	h     *history
	proc  *process
	luck  *luck
	name  string
	texts int
}

// fold is the state after some more events.
func fold(state string, texts ...string) string {
	for _, t := range texts {
		sum := sha256.Sum256([]byte(state + "," + t))
		state = hex.EncodeToString(sum[:8])
	}
	return state
}

func (w *writer) work(context.Context) {
	for !w.r.over() {
		w.live()
		w.r.rest(w.luck, 20*time.Millisecond)
	}
}

// live is one incarnation.
func (w *writer) live() {
	s := w.proc.provider().GetState()
	s.Restart()
	state, index, err := w.recover(s)
	if err != nil {
		return
	}
	for range w.luck.n(16) {
		if w.r.over() {
			return
		}
		w.texts++
		text := fmt.Sprintf("%s-%d", w.name, w.texts)
		err := w.persist(s, index, text)
		if err != nil {
			w.die(s, index, err)
			return
		}
		state, index = fold(state, text), index+1
		if w.luck.in(4) {
			w.r.tally.operation("save snapshot")
			if err := tried(func() { s.PersistSnapshot(w.h.id, index, wrapperspb.String(state)) }); err != nil {
				w.r.tally.violation("%s: a snapshot failed its actor: %v", w.h.id, err)
			}
		}
		switch w.luck.n(24) {
		case 0:
			w.r.rest(w.luck, 600*time.Millisecond) // sleeps, while hours pass
		case 1:
			w.deleteEvents(s, index)
		case 2:
			w.r.tally.fault("session abandoned")
			return
		}
	}
}

// recover does what the framework does.
func (w *writer) recover(s persistence.ProviderState) (state string, index int, err error) {
	b := w.h.bounds()
	seen := sight{who: "recovery of " + w.name, end: true}
	err = tried(func() {
		snapshot, at, ok := s.GetSnapshot(w.h.id)
		if ok {
			if m, is := snapshot.(*wrapperspb.StringValue); is {
				seen.state = m.GetValue()
			} else {
				w.r.tally.violation("%s: the snapshot is a %T", w.h.id, snapshot)
			}
		}
		seen.after = int64(at)
		s.GetEvents(w.h.id, at, 0, func(m any) { seen.texts = append(seen.texts, textFrom(m)) })
	})
	w.r.tally.operation("recover")
	if err != nil {
		w.r.failed(w.h.id, "recover", err)
		return "", 0, err
	}
	w.h.saw(b, seen)
	return fold(seen.state, seen.texts...), int(seen.after) + len(seen.texts), nil
}

func (w *writer) persist(s persistence.ProviderState, index int, text string) error {
	w.r.tally.operation("persist")
	err := tried(func() { s.PersistEvent(w.h.id, index, event(text, w.r.pad)) })
	w.h.told(int64(index)+1, w.r.outcome(w.h.id, "persist", err), err, text)
	return err
}

// die sometimes tries to go on after a failure, which a session must not allow.
func (w *writer) die(s persistence.ProviderState, index int, cause error) {
	for range w.luck.n(3) {
		w.texts++
		text := fmt.Sprintf("%s-%d", w.name, w.texts)
		if err := w.persist(s, index, text); !errors.Is(err, cause) {
			w.r.tally.violation("%s: after %v the session goes on: %v", w.h.id, cause, err)
		}
		s.PersistSnapshot(w.h.id, index, wrapperspb.String("of a dead session"))
	}
}

// deleteEvents asks for what may be refused: the session knows better.
func (w *writer) deleteEvents(s persistence.ProviderState, index int) {
	w.r.tally.operation("delete events")
	err := tried(func() { s.DeleteEvents(w.h.id, max(0, index-1-w.luck.n(8))) })
	if err != nil && !errors.Is(err, dynactor.ErrNoSnapshot) {
		w.r.failed(w.h.id, "delete events", err)
	}
}

// tried turns a session's panic into an error.
func tried(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			failure, ok := r.(*dynactor.Error)
			if !ok {
				panic(r) //nolint:forbidigo // not the library's
			}
			err = failure
		}
	}()
	f()
	return nil
}

// outcome is what a writer was told.
func (r *round) outcome(id, op string, err error) outcome {
	switch {
	case err == nil:
		return acknowledged
	case errors.Is(err, dynactor.ErrOutcomeUnknown):
		r.tally.outcome(op + ": unknown")
		return unknown
	}
	if errors.Is(err, dynactor.ErrConflict) {
		r.tally.outcome(op + ": conflict")
	}
	r.failed(id, op, err)
	return refused
}

// failed accepts the failures that trouble explains. None of it damages data, so
// what speaks of damage is a violation.
func (r *round) failed(id, op string, err error) {
	r.tally.outcome(op + ": failed")
	for _, damage := range []error{
		dynactor.ErrGap, dynactor.ErrAhead, dynactor.ErrNoSnapshot, dynactor.ErrDecode, dynactor.ErrInvalid,
		dynactor.ErrTooLarge, dynactor.ErrUnstableID, dynactor.ErrRecovering, dynactor.ErrSchema,
	} {
		if errors.Is(err, damage) {
			r.tally.violation("%s: %s: %v", id, op, err)
		}
	}
}

// messages are events of an append.
func messages(texts []string, pad int) []proto.Message {
	list := make([]proto.Message, len(texts))
	for i, t := range texts {
		list[i] = event(t, pad)
	}
	return list
}

// limited is a context that sometimes ends in the midst of an operation.
func limited(ctx context.Context, l *luck) (context.Context, context.CancelFunc) {
	if l.in(20) {
		return context.WithTimeout(ctx, l.upTo(30*time.Millisecond))
	}
	return context.WithCancel(ctx)
}
