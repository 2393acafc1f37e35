package conformance_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/conformance"
)

// brokenSnapshots is a store of snapshots of which some methods are replaced.
type brokenSnapshots struct {
	conformance.SnapshotStore

	save     func(ctx context.Context, id string, seq int64, state proto.Message) error
	load     func(ctx context.Context, id string, seq int64) (proto.Message, int64, bool, error)
	remove   func(ctx context.Context, id string, seqs []int64) error
	deleteTo func(ctx context.Context, id string, seq int64) error
}

func (b brokenSnapshots) Save(ctx context.Context, id string, seq int64, state proto.Message) error {
	if b.save != nil {
		return b.save(ctx, id, seq, state)
	}
	return b.SnapshotStore.Save(ctx, id, seq, state)
}

func (b brokenSnapshots) AtOrBefore(ctx context.Context, id string, seq int64) (proto.Message, int64, bool, error) {
	if b.load != nil {
		return b.load(ctx, id, seq)
	}
	return b.SnapshotStore.AtOrBefore(ctx, id, seq)
}

func (b brokenSnapshots) Delete(ctx context.Context, id string, seqs ...int64) error {
	if b.remove != nil {
		return b.remove(ctx, id, seqs)
	}
	return b.SnapshotStore.Delete(ctx, id, seqs...)
}

func (b brokenSnapshots) DeleteTo(ctx context.Context, id string, seq int64) error {
	if b.deleteTo != nil {
		return b.deleteTo(ctx, id, seq)
	}
	return b.SnapshotStore.DeleteTo(ctx, id, seq)
}

// snapshotMutants are wrong about snapshots.
func snapshotMutants() []mutant {
	type (
		ctxt  = context.Context
		inner = conformance.SnapshotStore
	)
	bad := func(name, by string, breakIt func(s inner, b *brokenSnapshots)) mutant {
		return on(conformance.Snapshots(), memorySnapshots, "snapshots: "+name, by, func(e *conformance.SnapshotEnv) {
			b := &brokenSnapshots{SnapshotStore: e.Store}
			breakIt(e.Store, b)
			e.Store, e.Another = b, func() conformance.SnapshotStore { return b }
		})
	}
	// at loads the snapshot that is chosen from the list.
	at := func(s inner, choose func(list []int64) int64) func(ctxt, string, int64) (proto.Message, int64, bool, error) {
		return func(ctx ctxt, id string, seq int64) (proto.Message, int64, bool, error) {
			list, err := s.List(ctx, id)
			if err != nil || len(list) == 0 {
				return nil, 0, false, err
			}
			return s.AtOrBefore(ctx, id, min(seq, choose(list)))
		}
	}
	return []mutant{
		bad("returns the oldest snapshot", "S-04 the newest", func(s inner, b *brokenSnapshots) {
			b.load = at(s, func(list []int64) int64 { return list[0] })
		}),
		bad("returns the one before the newest", "S-22 what was saved is read at once", func(s inner, b *brokenSnapshots) {
			b.load = at(s, func(list []int64) int64 { return list[max(len(list)-2, 0)] })
		}),
		bad("returns the snapshot that was saved last", "S-20 an older one that comes late", func(s inner, b *brokenSnapshots) {
			var last atomic.Int64
			b.save = func(ctx ctxt, id string, seq int64, state proto.Message) error {
				last.Store(seq)
				return s.Save(ctx, id, seq, state)
			}
			b.load = at(s, func([]int64) int64 { return last.Load() })
		}),
		bad("does not look at the upper bound", "S-05 S-06 up to a number", func(s inner, b *brokenSnapshots) {
			b.load = func(ctx ctxt, id string, _ int64) (proto.Message, int64, bool, error) {
				return s.AtOrBefore(ctx, id, math.MaxInt64)
			}
		}),
		bad("takes a failed read for none", "S-14 reads that fail", func(s inner, b *brokenSnapshots) {
			b.load = func(ctx ctxt, id string, seq int64) (proto.Message, int64, bool, error) {
				m, n, found, err := s.AtOrBefore(ctx, id, seq)
				return m, n, found && err == nil, nil
			}
		}),
		bad("takes a bad snapshot for none", "S-26 one that cannot be decoded", func(s inner, b *brokenSnapshots) {
			b.load = func(ctx ctxt, id string, seq int64) (proto.Message, int64, bool, error) {
				m, n, found, err := s.AtOrBefore(ctx, id, seq)
				if errors.Is(err, dynactor.ErrDecode) {
					return nil, 0, false, nil
				}
				return m, n, found, err
			}
		}),
		bad("keeps the first of two at one number", "S-10 twice at one number", func(s inner, b *brokenSnapshots) {
			b.save = func(ctx ctxt, id string, seq int64, state proto.Message) error {
				if _, n, found, err := s.AtOrBefore(ctx, id, seq); err == nil && found && n == seq {
					return nil
				}
				return s.Save(ctx, id, seq, state)
			}
		}),
		bad("says nothing of a save that failed", "S-21 writes that fail", func(s inner, b *brokenSnapshots) {
			b.save = func(ctx ctxt, id string, seq int64, state proto.Message) error {
				if err := s.Save(ctx, id, seq, state); !errors.Is(err, dynactor.ErrThrottled) {
					return err
				}
				return nil
			}
		}),
		bad("forgets what a batch hands back", "S-18 J-53 a batch that is done in part", func(s inner, b *brokenSnapshots) {
			b.remove = func(ctx ctxt, id string, seqs []int64) error { return s.Delete(ctx, id, seqs[:min(len(seqs), 1)]...) }
		}),
		bad("deletes up to a number, exclusive", "S-08 deletion up to a number", func(s inner, b *brokenSnapshots) {
			b.deleteTo = func(ctx ctxt, id string, seq int64) error { return s.DeleteTo(ctx, id, seq-1) }
		}),
		bad("deletes the first batch only", "S-17 many", func(s inner, b *brokenSnapshots) {
			b.deleteTo = func(ctx ctxt, id string, seq int64) error { return s.DeleteTo(ctx, id, min(seq, 25)) }
		}),
		bad("keeps the saver's message", "S-12 the caller's messages are his", func(s inner, b *brokenSnapshots) {
			var kept proto.Message
			b.save = func(ctx ctxt, id string, seq int64, state proto.Message) error {
				kept = state
				return s.Save(ctx, id, seq, state)
			}
			b.load = func(ctx ctxt, id string, seq int64) (proto.Message, int64, bool, error) {
				_, n, found, err := s.AtOrBefore(ctx, id, seq)
				return kept, n, found, err
			}
		}),
		bad("saves what covers nothing", "S-25 one of no events, and of no state", func(s inner, b *brokenSnapshots) {
			b.save = func(ctx ctxt, id string, seq int64, state proto.Message) error {
				return s.Save(ctx, id, max(seq, 1), state)
			}
		}),
	}
}

// brokenState is a store of durable state of which some methods are replaced.
type brokenState struct {
	conformance.StateStore

	load   func(ctx context.Context, id string) (proto.Message, int64, error)
	save   func(ctx context.Context, id string, expected int64, value proto.Message) (int64, error)
	remove func(ctx context.Context, id string, expected int64) (int64, error)
	purge  func(ctx context.Context, id string, expected int64) error
}

func (b brokenState) Load(ctx context.Context, id string) (proto.Message, int64, error) {
	if b.load != nil {
		return b.load(ctx, id)
	}
	return b.StateStore.Load(ctx, id)
}

func (b brokenState) Save(ctx context.Context, id string, expected int64, value proto.Message) (int64, error) {
	if b.save != nil {
		return b.save(ctx, id, expected, value)
	}
	return b.StateStore.Save(ctx, id, expected, value)
}

func (b brokenState) Delete(ctx context.Context, id string, expected int64) (int64, error) {
	if b.remove != nil {
		return b.remove(ctx, id, expected)
	}
	return b.StateStore.Delete(ctx, id, expected)
}

func (b brokenState) Purge(ctx context.Context, id string, expected int64) error {
	if b.purge != nil {
		return b.purge(ctx, id, expected)
	}
	return b.StateStore.Purge(ctx, id, expected)
}

// stateMutants are wrong about durable state.
func stateMutants() []mutant {
	type (
		ctxt  = context.Context
		inner = conformance.StateStore
	)
	bad := func(name, by string, breakIt func(s inner, b *brokenState)) mutant {
		return on(conformance.State(), memoryState, "state: "+name, by, func(e *conformance.StateEnv) {
			b := &brokenState{StateStore: e.Store}
			breakIt(e.Store, b)
			e.Store, e.Another = b, func() conformance.StateStore { return b }
		})
	}
	return []mutant{
		bad("the last writer wins", "D-07 D-08 D-13 other revisions", func(s inner, b *brokenState) {
			b.save = func(ctx ctxt, id string, expected int64, value proto.Message) (int64, error) {
				_, rev, err := s.Load(ctx, id)
				if err == nil {
					_, err = s.Save(ctx, id, rev, value)
				}
				return expected + 1, err
			}
		}),
		bad("reads the revision and then writes", "D-11 D-12 two writers race", func(s inner, b *brokenState) {
			b.save = func(ctx ctxt, id string, expected int64, value proto.Message) (int64, error) {
				rev, err := s.Save(ctx, id, expected, value)
				if errors.Is(err, dynactor.ErrConflict) {
					return expected + 1, nil
				}
				return rev, err
			}
		}),
		bad("equal values are its own retry", "D-08 the same value by another writer", func(s inner, b *brokenState) {
			b.save = func(ctx ctxt, id string, expected int64, value proto.Message) (int64, error) {
				rev, err := s.Save(ctx, id, expected, value)
				if old, _, _ := s.Load(ctx, id); errors.Is(err, dynactor.ErrConflict) && proto.Equal(old, value) {
					return expected + 1, nil
				}
				return rev, err
			}
		}),
		bad("returns the old revision", "D-02 D-03 D-20 values and their revisions", func(s inner, b *brokenState) {
			b.save = func(ctx ctxt, id string, expected int64, value proto.Message) (int64, error) {
				rev, err := s.Save(ctx, id, expected, value)
				return rev - 1, err
			}
		}),
		bad("forgets the revision of what it deletes", "D-04 D-16 deletion", func(s inner, b *brokenState) {
			b.remove = func(ctx ctxt, id string, expected int64) (int64, error) {
				rev, err := s.Delete(ctx, id, expected)
				if err == nil {
					err = s.Purge(ctx, id, rev)
				}
				return rev, err
			}
		}),
		bad("creates over what was deleted", "D-06 D-14 after a deletion revisions go on", func(s inner, b *brokenState) {
			b.save = func(ctx ctxt, id string, expected int64, value proto.Message) (int64, error) {
				if old, rev, err := s.Load(ctx, id); err == nil && expected == 0 && old == nil && rev > 0 {
					return s.Save(ctx, id, rev, value)
				}
				return s.Save(ctx, id, expected, value)
			}
		}),
		bad("deletes at any revision", "D-07 D-08 D-13 other revisions", func(s inner, b *brokenState) {
			b.remove = func(ctx ctxt, id string, _ int64) (int64, error) {
				_, rev, err := s.Load(ctx, id)
				if err != nil || rev == 0 {
					return 0, errors.Join(dynactor.ErrConflict, err)
				}
				return s.Delete(ctx, id, rev)
			}
		}),
		bad("deletes what is not there", "D-17 deletion of an unknown id", func(s inner, b *brokenState) {
			b.remove = func(ctx ctxt, id string, expected int64) (int64, error) {
				rev, err := s.Delete(ctx, id, expected)
				if _, now, _ := s.Load(ctx, id); now == 0 {
					return expected + 1, nil
				}
				return rev, err
			}
		}),
		bad("reads without consistency", "D-18 what was saved is read at once", func(s inner, b *brokenState) {
			var last sync.Map
			b.load = func(ctx ctxt, id string) (proto.Message, int64, error) {
				type row struct {
					m   proto.Message
					rev int64
				}
				m, rev, err := s.Load(ctx, id)
				old, ok := last.Swap(id, row{m, rev})
				if !ok {
					return m, rev, err
				}
				return old.(row).m, old.(row).rev, err
			}
		}),
		bad("takes a failed read for none", "D-18 reads that fail", func(s inner, b *brokenState) {
			b.load = func(ctx ctxt, id string) (proto.Message, int64, error) {
				m, rev, _ := s.Load(ctx, id)
				return m, rev, nil
			}
		}),
		bad("calls an unknown outcome a conflict", "D-19 a save of which no answer comes", func(s inner, b *brokenState) {
			b.save = func(ctx ctxt, id string, expected int64, value proto.Message) (int64, error) {
				rev, err := s.Save(ctx, id, expected, value)
				if errors.Is(err, dynactor.ErrOutcomeUnknown) {
					err = dynactor.ErrConflict
				}
				return rev, err
			}
		}),
		bad("acknowledges what was not written", "D-08 writes that fail", func(s inner, b *brokenState) {
			b.save = func(ctx ctxt, id string, expected int64, value proto.Message) (int64, error) {
				rev, err := s.Save(ctx, id, expected, value)
				if errors.Is(err, dynactor.ErrThrottled) {
					return expected + 1, nil
				}
				return rev, err
			}
		}),
		bad("takes a bad value for none", "D-24 a value that cannot be decoded", func(s inner, b *brokenState) {
			b.load = func(ctx ctxt, id string) (proto.Message, int64, error) {
				m, rev, err := s.Load(ctx, id)
				if errors.Is(err, dynactor.ErrDecode) {
					return nil, rev, nil
				}
				return m, rev, err
			}
		}),
		bad("purges what has a value", "D-16 purge", func(s inner, b *brokenState) {
			b.purge = func(ctx ctxt, id string, expected int64) error {
				if rev, err := s.Delete(ctx, id, expected); err == nil {
					return s.Purge(ctx, id, rev)
				}
				return s.Purge(ctx, id, expected)
			}
		}),
		bad("keeps the saver's message", "D-09 the caller's messages are his", func(s inner, b *brokenState) {
			var kept proto.Message
			b.save = func(ctx ctxt, id string, expected int64, value proto.Message) (int64, error) {
				kept = value
				return s.Save(ctx, id, expected, value)
			}
			b.load = func(ctx ctxt, id string) (proto.Message, int64, error) {
				_, rev, err := s.Load(ctx, id)
				return kept, rev, err
			}
		}),
	}
}
