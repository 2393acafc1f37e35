package dynactor

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Progress is what an actor has persisted since its last snapshot: since one was
// last saved or asked for, or since the one that it recovered from.
type Progress struct {
	Event  proto.Message // the event that has just been persisted
	Head   int64         // its sequence number
	Events int64         // events since, with this one
	Bytes  int64         // the size of these events as protobuf messages
	// Age is the time since then by the wall clock, or since the actor recovered.
	Age time.Duration
}

func (p *Progress) count(event proto.Message) {
	p.Event = event
	p.Events++
	p.Bytes += int64(proto.Size(event))
}

// SnapshotPolicy tells after each event whether a snapshot is due. The actor is
// asked for it when it has handled the message. It is called by many actors at a
// time.
type SnapshotPolicy func(Progress) bool

// EveryEvents asks for a snapshot after every n events. With n of 0 or less it
// asks for none.
func EveryEvents(n int64) SnapshotPolicy {
	return func(p Progress) bool { return n > 0 && p.Events >= n }
}

// EveryBytes asks for a snapshot when the events since the last one have n bytes
// or more. With n of 0 or less it asks for none.
func EveryBytes(n int64) SnapshotPolicy {
	return func(p Progress) bool { return n > 0 && p.Bytes >= n }
}

// Every asks for a snapshot with the first event that is persisted d or more
// after the last one. With d of 0 or less it asks for none.
func Every(d time.Duration) SnapshotPolicy {
	return func(p Progress) bool { return d > 0 && p.Age >= d }
}

// OnEvents asks for a snapshot after each event of one of these types; only the
// types of the messages count.
func OnEvents(types ...proto.Message) SnapshotPolicy {
	names := make([]protoreflect.FullName, len(types))
	for i, t := range types {
		names[i] = t.ProtoReflect().Descriptor().FullName()
	}
	return func(p Progress) bool { return slices.Contains(names, p.Event.ProtoReflect().Descriptor().FullName()) }
}

// NoSnapshots never asks for a snapshot.
func NoSnapshots() SnapshotPolicy { return func(Progress) bool { return false } }

// AnyOf asks for a snapshot when one of several policies does.
func AnyOf(policies ...SnapshotPolicy) SnapshotPolicy {
	return func(p Progress) bool {
		return slices.ContainsFunc(policies, func(s SnapshotPolicy) bool { return s(p) })
	}
}
