package dynactor

import (
	"fmt"

	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/proto"
)

// Mixin is for embedding in an actor in the place of persistence.Mixin. It adds
// what that lacks, and needs [Using] or clustered.Using. All methods are for the
// actor's own goroutine, and those that persist are for after its recovery.
//
// Persist, PersistAll and PersistEvents return an error for what was refused
// before anything was sent: no event, too many or too large ones, one that cannot
// be encoded, a recovery that has not ended. Nothing is stored then, and the actor
// is as it was. After every other failure they panic with an [*Error], as
// PersistReceive does with all: the actor's state may no longer be the journal's,
// so it must restart.
type Mixin struct {
	persistence.Mixin

	a *activation
}

func (m *Mixin) attach(a *activation) { m.a = a }

// PersistenceID is the id of the actor's stream; empty before the actor has started.
func (m *Mixin) PersistenceID() string {
	if m.a == nil {
		return ""
	}
	return m.a.id
}

// Head is the sequence number of the last event; 0 for none, and before the actor
// has recovered.
func (m *Mixin) Head() int64 {
	if m.a == nil {
		return 0
	}
	return m.a.head()
}

// Persist stores one event with its tags and metadata.
func (m *Mixin) Persist(event Event) error {
	return m.persist("persist event", event)
}

// PersistAll stores 1 to [MaxEvents] events, all or none, in one request. They are
// 400 KB each at most and 4 MB together, by DynamoDB's limits (ErrTooLarge).
func (m *Mixin) PersistAll(events ...proto.Message) error {
	list := make([]Event, len(events))
	for i, e := range events {
		list[i] = Event{Message: e}
	}
	return m.persist("persist events", list...)
}

// PersistEvents is PersistAll for events with tags and metadata.
func (m *Mixin) PersistEvents(events ...Event) error {
	return m.persist("persist events", events...)
}

func (m *Mixin) persist(op string, events ...Event) error {
	if m.a == nil {
		return fail(op, "", noSeq, errNotStarted)
	}
	return m.a.persistAll(op, events)
}

// SaveSnapshot saves the state after the last event, whatever the policy says. Call
// it when all events that were persisted are applied. It never panics. A failure
// is logged and counted, and harms no event. While the actor stops it is refused.
func (m *Mixin) SaveSnapshot(state proto.Message) error {
	const op = "save snapshot"
	switch {
	case m.a == nil:
		return fail(op, "", noSeq, errNotStarted)
	case m.a.stage < live:
		return fail(op, m.a.id, noSeq, ErrRecovering)
	case m.a.head() == 0:
		return fail(op, m.a.id, noSeq, fmt.Errorf("%w: a snapshot of 0 events covers nothing", ErrInvalid))
	}
	return m.a.saveSnapshot(m.a.head(), state)
}

// DeleteEventsTo deletes the events up to number seq, inclusive, which the oldest
// kept snapshot must cover (ErrNoSnapshot). It never panics. The head and the
// numbers stay used; see [Journal.DeleteTo].
func (m *Mixin) DeleteEventsTo(seq int64) error {
	const op = "delete events"
	switch {
	case m.a == nil:
		return fail(op, "", noSeq, errNotStarted)
	case m.a.stage < live:
		return fail(op, m.a.id, noSeq, ErrRecovering)
	case m.a.stage == ended:
		return fail(op, m.a.id, noSeq, errEnded)
	}
	return fail(op, m.a.id, seq, m.a.s.deleteTo(m.a.id, seq))
}

var errNotStarted = fmt.Errorf("%w: the actor has not started, or dynactor.Using is missing", ErrInvalid)
