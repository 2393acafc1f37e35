package conformance_test

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor/dynactortest"
)

// deadMutants are sessions that outlive what they must not outlive, or the reverse.
func deadMutants() []mutant {
	type memory = dynactortest.Memory
	// lives is a session that forgets what has happened to it.
	lives := func(_ *memory, s session, b *brokenSession) {
		b.persistEvent = func(id string, index int, e proto.Message) {
			defer func() {
				if err := recover(); err != nil {
					s.Restart()
					panic(err)
				}
			}()
			s.PersistEvent(id, index, e)
		}
	}
	saves := func(m *memory, _ session, b *brokenSession) {
		b.persistSnapshot = func(id string, index int, state proto.Message) {
			if head, _ := m.Journal().Head(context.Background(), id); int64(index) <= head {
				_ = m.Snapshots().Save(context.Background(), id, int64(index), state)
			}
		}
	}
	// stays is a session that does not come back to life.
	stays := func(_ *memory, s session, b *brokenSession) {
		var end any
		b.persistEvent = func(id string, index int, e proto.Message) {
			defer func() {
				if err := recover(); err != nil {
					end = err
					panic(err)
				}
			}()
			if end != nil {
				panic(end)
			}
			s.PersistEvent(id, index, e)
		}
	}
	at := dynactortest.NewMemory().Snapshots() // they do not expire
	const failed, unknown = "F-58 an incarnation whose write failed", "F-58 an incarnation whose write may be stored"
	return []mutant{
		badProvider(memoryProvider, "goes on after a write that failed", failed, lives),
		badProvider(memoryProvider, "goes on after a write that may be stored", unknown, lives),
		badProvider(memoryProvider, "saves a snapshot after a write that failed", failed, saves),
		badProvider(memoryProvider, "saves a snapshot after a write that may be stored", unknown, saves),
		badProvider(memoryProvider, "does not recover from a write that failed", failed, stays),
		badProvider(expiringProvider, "loads a snapshot that has expired", "F-32 S-24 snapshots that expire", func(_ *memory, _ session, b *brokenSession) {
			b.persistSnapshot = func(id string, index int, state proto.Message) {
				_ = at.Save(context.Background(), id, int64(index), state)
			}
			b.getSnapshot = func(id string) (any, int, bool) {
				snap, found, _ := at.Latest(context.Background(), id)
				return snap.Message, int(snap.Seq), found
			}
		}),
	}
}
