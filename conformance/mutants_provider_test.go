package conformance_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/conformance"
	"github.com/dynactor/dynactor/dynactortest"
)

type session = persistence.ProviderState

// brokenProvider is a provider of which some methods of each session are replaced.
type brokenProvider struct {
	m       *dynactortest.Memory
	breakIt func(m *dynactortest.Memory, s session, b *brokenSession)
}

func (p brokenProvider) GetState() session {
	s := p.m.GetState()
	b := &brokenSession{session: s}
	p.breakIt(p.m, s, b)
	return b
}

type brokenSession struct {
	session

	interval        func() int
	getSnapshot     func(id string) (any, int, bool)
	getEvents       func(id string, start, end int, f func(any))
	persistEvent    func(id string, index int, m proto.Message)
	persistSnapshot func(id string, index int, m proto.Message)
	deleteEvents    func(id string, index int)
	deleteSnapshots func(id string, index int)
}

func (b *brokenSession) GetSnapshotInterval() int {
	if b.interval != nil {
		return b.interval()
	}
	return b.session.GetSnapshotInterval()
}

func (b *brokenSession) GetSnapshot(id string) (any, int, bool) {
	if b.getSnapshot != nil {
		return b.getSnapshot(id)
	}
	return b.session.GetSnapshot(id)
}

func (b *brokenSession) GetEvents(id string, start, end int, f func(any)) {
	if b.getEvents != nil {
		b.getEvents(id, start, end, f)
		return
	}
	b.session.GetEvents(id, start, end, f)
}

func (b *brokenSession) PersistEvent(id string, index int, m proto.Message) {
	if b.persistEvent != nil {
		b.persistEvent(id, index, m)
		return
	}
	b.session.PersistEvent(id, index, m)
}

func (b *brokenSession) PersistSnapshot(id string, index int, m proto.Message) {
	if b.persistSnapshot != nil {
		b.persistSnapshot(id, index, m)
		return
	}
	b.session.PersistSnapshot(id, index, m)
}

func (b *brokenSession) DeleteEvents(id string, index int) {
	if b.deleteEvents != nil {
		b.deleteEvents(id, index)
		return
	}
	b.session.DeleteEvents(id, index)
}

func (b *brokenSession) DeleteSnapshots(id string, index int) {
	if b.deleteSnapshots != nil {
		b.deleteSnapshots(id, index)
		return
	}
	b.session.DeleteSnapshots(id, index)
}

// quiet runs f and swallows what it panics with.
func quiet(f func()) {
	defer func() { _ = recover() }()
	f()
}

// badProvider makes a mutant of a provider in memory.
func badProvider(open func(testing.TB) conformance.ProviderEnv, name, by string, breakIt func(m *dynactortest.Memory, s session, b *brokenSession)) mutant {
	return on(conformance.Provider(), open, "provider: "+name, by, func(e *conformance.ProviderEnv) {
		p := brokenProvider{m: e.Provider.(*dynactortest.Memory), breakIt: breakIt}
		e.Provider, e.Another = p, func() persistence.Provider { return p }
	})
}

// providerMutants are wrong about the framework's contract.
func providerMutants() []mutant {
	type memory = dynactortest.Memory
	bad := func(name, by string, breakIt func(m *memory, s session, b *brokenSession)) mutant {
		return badProvider(memoryProvider, name, by, breakIt)
	}
	ctx := context.Background()
	return []mutant{
		bad("interval 0", "F-01 the interval of snapshots is not 0", func(_ *memory, _ session, b *brokenSession) {
			b.interval = func() int { return 0 }
		}),
		bad("end is inclusive", "F-03 ranges: start is inclusive, end exclusive, end 0 the head", func(_ *memory, s session, b *brokenSession) {
			b.getEvents = func(id string, start, end int, f func(any)) {
				if end > 0 {
					end++
				}
				s.GetEvents(id, start, end, f)
			}
		}),
		bad("takes any index for the next", "F-06 an index that is not the next", func(m *memory, _ session, b *brokenSession) {
			b.persistEvent = func(id string, _ int, e proto.Message) {
				head, _ := m.Journal().Head(ctx, id)
				_, _ = m.Journal().Append(ctx, id, head, e)
			}
		}),
		bad("goes on after a lost race", "F-41 an incarnation that lost goes on to fail", func(_ *memory, s session, b *brokenSession) {
			lost := false
			b.persistEvent = func(id string, index int, e proto.Message) {
				if lost {
					s.Restart()
				}
				lost = true
				s.PersistEvent(id, index, e)
				lost = false
			}
		}),
		bad("takes a conflict for its own retry", "F-42 the same event by two incarnations", func(m *memory, s session, b *brokenSession) {
			b.persistEvent = func(id string, index int, e proto.Message) {
				for old, err := range m.Journal().Replay(ctx, id, int64(index)+1, int64(index)+1) {
					if err == nil && proto.Equal(old.Message, e) {
						return
					}
				}
				s.PersistEvent(id, index, e)
			}
		}),
		bad("swallows a write that failed", "F-50 writes that fail", func(_ *memory, s session, b *brokenSession) {
			b.persistEvent = func(id string, index int, e proto.Message) { quiet(func() { s.PersistEvent(id, index, e) }) }
		}),
		bad("calls an unknown outcome a conflict", "F-52 a write of which no answer comes", func(_ *memory, s session, b *brokenSession) {
			b.persistEvent = func(id string, index int, e proto.Message) {
				defer func() {
					if err, ok := recover().(error); ok {
						panic(errors.Join(err, dynactor.ErrConflict))
					}
				}()
				s.PersistEvent(id, index, e)
			}
		}),
		bad("writes on after an unknown outcome", "F-52 a write of which no answer comes", func(_ *memory, s session, b *brokenSession) {
			stored := -1
			b.persistEvent = func(id string, index int, e proto.Message) {
				if index > stored {
					stored = index
					s.PersistEvent(id, index, e)
				}
			}
		}),
		bad("takes a failed read for no past", "F-53 S-14 reads that fail", func(_ *memory, s session, b *brokenSession) {
			b.getSnapshot = func(id string) (m any, index int, ok bool) {
				quiet(func() { m, index, ok = s.GetSnapshot(id) })
				return m, index, ok
			}
			b.getEvents = func(id string, start, end int, f func(any)) { quiet(func() { s.GetEvents(id, start, end, f) }) }
		}),
		bad("replays up to a hole", "F-55 J-25 an event is missing", func(_ *memory, s session, b *brokenSession) {
			b.getEvents = func(id string, start, end int, f func(any)) { quiet(func() { s.GetEvents(id, start, end, f) }) }
		}),
		bad("replays up to what cannot be decoded", "F-56 an event cannot be decoded", func(_ *memory, s session, b *brokenSession) {
			b.getEvents = func(id string, start, end int, f func(any)) { quiet(func() { s.GetEvents(id, start, end, f) }) }
		}),
		bad("swallows the actor's panic", "F-10 a panic of the actor passes through a replay", func(_ *memory, s session, b *brokenSession) {
			b.getEvents = func(id string, start, end int, f func(any)) {
				s.GetEvents(id, start, end, func(m any) { quiet(func() { f(m) }) })
			}
		}),
		bad("writes in the midst of a replay", "F-11 an event that is persisted during a replay", func(m *memory, _ session, b *brokenSession) {
			b.persistEvent = func(id string, _ int, e proto.Message) {
				head, _ := m.Journal().Head(ctx, id)
				_, _ = m.Journal().Append(ctx, id, head, e)
			}
		}),
		bad("writes while the snapshot is delivered", "F-13 an event that is persisted while the snapshot is delivered", func(m *memory, _ session, b *brokenSession) {
			b.persistEvent = func(id string, index int, e proto.Message) { _, _ = m.Journal().Append(ctx, id, int64(index), e) }
		}),
		bad("an actor that dies of its snapshot", "F-54 a snapshot that cannot be saved", func(m *memory, _ session, b *brokenSession) {
			b.persistSnapshot = func(id string, index int, state proto.Message) {
				if err := m.Snapshots().Save(ctx, id, int64(index), state); err != nil {
					panic(err)
				}
			}
		}),
		bad("saves a snapshot ahead of the journal", "F-24 a snapshot ahead of the events", func(m *memory, _ session, b *brokenSession) {
			b.persistSnapshot = func(id string, index int, state proto.Message) {
				_ = m.Snapshots().Save(ctx, id, int64(index), state)
			}
		}),
		bad("a snapshot covers one event more", "F-20 S-27 a snapshot at index S covers the first S events", func(_ *memory, s session, b *brokenSession) {
			b.persistSnapshot = func(id string, index int, state proto.Message) { s.PersistSnapshot(id, index+1, state) }
		}),
		bad("a snapshot covers one event less", "F-20 S-27 a snapshot at index S covers the first S events", func(_ *memory, s session, b *brokenSession) {
			b.persistSnapshot = func(id string, index int, state proto.Message) { s.PersistSnapshot(id, index-1, state) }
		}),
		bad("a snapshot of nothing", "F-22 S-25 a snapshot at index 0", func(_ *memory, s session, b *brokenSession) {
			b.persistSnapshot = func(id string, index int, state proto.Message) { s.PersistSnapshot(id, max(index, 1), state) }
		}),
		bad("returns a stale snapshot", "F-23 the newest snapshot counts", func(m *memory, s session, b *brokenSession) {
			b.getSnapshot = func(id string) (any, int, bool) {
				_, _, _ = s.GetSnapshot(id)
				list, _ := m.Snapshots().List(ctx, id)
				if len(list) == 0 {
					return nil, 0, false
				}
				old, found, _ := m.Snapshots().AtOrBefore(ctx, id, list[0])
				return old.Message, int(old.Seq), found
			}
		}),
		bad("keeps one snapshot too few", "F-26 S-19 as many snapshots as are to be kept", func(m *memory, s session, b *brokenSession) {
			b.persistSnapshot = func(id string, index int, state proto.Message) {
				s.PersistSnapshot(id, index, state)
				if list, _ := m.Snapshots().List(ctx, id); len(list) > 2 {
					_ = m.Snapshots().Delete(ctx, id, list[0])
				}
			}
		}),
		bad("keeps all snapshots", "F-26 S-19 as many snapshots as are to be kept", func(m *memory, _ session, b *brokenSession) {
			b.persistSnapshot = func(id string, index int, state proto.Message) {
				_ = m.Snapshots().Save(ctx, id, int64(index), state)
			}
		}),
		bad("deletes one event too many", "F-27 deletion of events is inclusive, and harms no recovery", func(m *memory, _ session, b *brokenSession) {
			b.deleteEvents = func(id string, index int) { _ = m.Journal().DeleteTo(ctx, id, int64(index)+2) }
		}),
		bad("deletes events that recovery needs", "F-28 A-04 deletion of events that recovery needs", func(m *memory, _ session, b *brokenSession) {
			b.deleteEvents = func(id string, index int) { _ = m.Journal().DeleteTo(ctx, id, int64(index)+1) }
		}),
		bad("deletes the last snapshot", "F-29 deletion of the last snapshot after events were deleted", func(m *memory, _ session, b *brokenSession) {
			b.deleteSnapshots = func(id string, _ int) { _ = m.Snapshots().DeleteTo(ctx, id, math.MaxInt64) }
		}),
		bad("forgets what it has when it restarts", "F-62 an actor that panics", func(m *memory, s session, b *brokenSession) {
			b.getEvents = func(id string, start, end int, f func(any)) {
				head, _ := m.Journal().Head(ctx, id)
				n := start
				s.GetEvents(id, start, end, func(e any) {
					if n++; n < int(head) {
						f(e)
					}
				})
			}
		}),
		bad("replays behind the snapshot from the beginning", "F-60 an actor that persists before it applies", func(_ *memory, s session, b *brokenSession) {
			b.getEvents = func(id string, _, end int, f func(any)) { s.GetEvents(id, 0, end, f) }
		}),
	}
}
