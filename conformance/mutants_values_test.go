package conformance_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/conformance"
	"github.com/dynactor/dynactor/dynactortest"
)

// badState makes a mutant of the environment of states in memory.
func badState(name, by string, breakIt func(e *conformance.StateEnv)) mutant {
	return on(conformance.State(), memoryState, "state: "+name, by, breakIt)
}

// expiryMutants are wrong about time, and about tags.
func expiryMutants() []mutant {
	type (
		ctxt  = context.Context
		value = conformance.Value
	)
	const ends, expire = "D-23 a value that ends", "S-24 snapshots that expire"
	// bad makes a mutant of a store of snapshots that do not expire by themselves.
	bad := func(name string, breakIt func(lasting, ending conformance.SnapshotStore, b *brokenSnapshots)) mutant {
		return on(conformance.Snapshots(), memorySnapshots, "snapshots: "+name, expire, func(e *conformance.SnapshotEnv) {
			lasting := snapshots{dynactortest.NewMemory().Snapshots()}
			b := &brokenSnapshots{SnapshotStore: lasting}
			breakIt(lasting, e.Store, b)
			e.Store, e.Another = b, func() conformance.SnapshotStore { return b }
		})
	}
	return []mutant{
		bad("loads what has expired, and lists it", func(_, _ conformance.SnapshotStore, _ *brokenSnapshots) {}),
		bad("lists what has expired", func(lasting, ending conformance.SnapshotStore, b *brokenSnapshots) {
			b.save = func(ctx ctxt, id string, seq int64, state proto.Message) error {
				return errors.Join(lasting.Save(ctx, id, seq, state), ending.Save(ctx, id, seq, state))
			}
			b.load = ending.AtOrBefore
		}),
		bad("finds no older one when the newest has expired", func(lasting, ending conformance.SnapshotStore, b *brokenSnapshots) {
			b.SnapshotStore = ending
			b.save = func(ctx ctxt, id string, seq int64, state proto.Message) error {
				return errors.Join(lasting.Save(ctx, id, seq, state), ending.Save(ctx, id, seq, state))
			}
			b.load = func(ctx ctxt, id string, seq int64) (proto.Message, int64, bool, error) {
				m, at, found, err := ending.AtOrBefore(ctx, id, seq)
				if _, newest, _, _ := lasting.AtOrBefore(ctx, id, seq); newest != at {
					return nil, 0, false, err
				}
				return m, at, found, err
			}
		}),
		bad("does not renew what is saved again", func(_, ending conformance.SnapshotStore, b *brokenSnapshots) {
			b.SnapshotStore = ending
			b.save = func(ctx ctxt, id string, seq int64, state proto.Message) error {
				if _, at, _, _ := ending.AtOrBefore(ctx, id, seq); at == seq {
					return nil
				}
				return ending.Save(ctx, id, seq, state)
			}
		}),
		badState("does not look at the end", ends, func(e *conformance.StateEnv) {
			save := e.SaveValue
			e.SaveValue = func(ctx ctxt, id string, expected int64, v value) (int64, error) {
				v.Lives = 0
				return save(ctx, id, expected, v)
			}
		}),
		badState("ends too early", ends, func(e *conformance.StateEnv) {
			save := e.SaveValue
			e.SaveValue = func(ctx ctxt, id string, expected int64, v value) (int64, error) {
				v.Lives /= 60 // minutes for hours
				return save(ctx, id, expected, v)
			}
		}),
		badState("forgets the revision of what has ended", ends, func(e *conformance.StateEnv) {
			b := &brokenState{StateStore: e.Store}
			b.load = func(ctx ctxt, id string) (proto.Message, int64, error) {
				m, rev, err := b.StateStore.Load(ctx, id)
				if m == nil {
					rev = 0
				}
				return m, rev, err
			}
			e.Store, e.Another = b, func() conformance.StateStore { return b }
		}),
		badState("creates over what has ended", ends, func(e *conformance.StateEnv) {
			b := &brokenState{StateStore: e.Store}
			b.save = func(ctx ctxt, id string, expected int64, v proto.Message) (int64, error) {
				if old, rev, err := b.StateStore.Load(ctx, id); err == nil && expected == 0 && old == nil {
					expected = rev
				}
				return b.StateStore.Save(ctx, id, expected, v)
			}
			e.Store, e.Another = b, func() conformance.StateStore { return b }
		}),
		badState("does not delete what has ended", "D-23 a value that ends and is deleted", func(e *conformance.StateEnv) {
			b := &brokenState{StateStore: e.Store}
			b.remove = func(ctx ctxt, id string, expected int64) (int64, error) {
				if old, _, err := b.StateStore.Load(ctx, id); err == nil && old == nil {
					return 0, dynactor.ErrConflict
				}
				return b.StateStore.Delete(ctx, id, expected)
			}
			e.Store, e.Another = b, func() conformance.StateStore { return b }
		}),
		badState("keeps old tags", "D-22 tags are replaced with the value", func(e *conformance.StateEnv) {
			load, save := e.Tags, e.SaveValue
			e.SaveValue = func(ctx ctxt, id string, expected int64, v value) (int64, error) {
				old, err := load(ctx, id)
				v.Tags = slices.Concat(v.Tags, old)
				rev, saved := save(ctx, id, expected, v)
				return rev, errors.Join(err, saved)
			}
		}),
		badState("finds tags by a part of them", "D-22 tags are replaced with the value", func(e *conformance.StateEnv) {
			load := e.Tags
			e.Tags = func(ctx ctxt, id string) ([]string, error) {
				list, err := load(ctx, id)
				var parts []string
				for _, tag := range list {
					parts = append(parts, strings.FieldsFunc(tag, func(r rune) bool { return r == '#' || r == ' ' })...)
				}
				return parts, err
			}
		}),
	}
}

// listingMutants are wrong about the list of all ids.
func listingMutants() []mutant {
	type ids = func(ctx context.Context, after string) iter.Seq2[string, error]
	const all, meanwhile, fails = "D-25 all ids", "D-25 all ids while others write", "D-25 a list that fails"
	bad := func(name, by string, breakIt func(list ids) ids) mutant {
		return badState(name, by, func(e *conformance.StateEnv) { e.IDs = breakIt(e.IDs) })
	}
	whole := func(list ids, ctx context.Context) (got []string) {
		for id, err := range list(ctx, "") {
			if err != nil {
				return got
			}
			got = append(got, id)
		}
		return got
	}
	return []mutant{
		bad("lists the first page only", all, func(list ids) ids {
			return func(ctx context.Context, after string) iter.Seq2[string, error] {
				return func(yield func(string, error) bool) {
					n := 0
					for id, err := range list(ctx, after) {
						if n++; n > 25 || !yield(id, err) {
							return
						}
					}
				}
			}
		}),
		bad("begins at the place, not after it", all, func(list ids) ids {
			return func(ctx context.Context, after string) iter.Seq2[string, error] {
				return func(yield func(string, error) bool) {
					if after != "" && !yield(after, nil) {
						return
					}
					list(ctx, after)(yield)
				}
			}
		}),
		bad("lists in another order each time", all, func(list ids) ids {
			calls := 0
			return func(ctx context.Context, after string) iter.Seq2[string, error] {
				got := whole(list, ctx)
				calls++
				slices.SortFunc(got, func(a, b string) int { return strings.Compare(b, a) * (calls%2*2 - 1) })
				return func(yield func(string, error) bool) {
					for _, id := range got[slices.Index(got, after)+1:] {
						if !yield(id, nil) {
							return
						}
					}
				}
			}
		}),
		bad("counts places", meanwhile, func(list ids) ids {
			return func(ctx context.Context, after string) iter.Seq2[string, error] {
				return func(yield func(string, error) bool) {
					for at := slices.Index(whole(list, ctx), after) + 1; ; at++ {
						got := whole(list, ctx)
						if at >= len(got) || !yield(got[at], nil) {
							return
						}
					}
				}
			}
		}),
		bad("takes a list that fails for the end", fails, func(list ids) ids {
			return func(ctx context.Context, after string) iter.Seq2[string, error] {
				return func(yield func(string, error) bool) {
					for id, err := range list(ctx, after) {
						if err != nil || !yield(id, nil) {
							return
						}
					}
				}
			}
		}),
		badState("lists what was written last at the end", meanwhile, func(e *conformance.StateEnv) {
			var order []string
			b := &brokenState{StateStore: e.Store}
			b.save = func(ctx context.Context, id string, expected int64, v proto.Message) (int64, error) {
				order = append(slices.DeleteFunc(slices.Clone(order), func(other string) bool { return other == id }), id)
				return b.StateStore.Save(ctx, id, expected, v)
			}
			e.Store, e.Another = b, func() conformance.StateStore { return b }
			e.IDs = func(_ context.Context, after string) iter.Seq2[string, error] {
				return func(yield func(string, error) bool) {
					for at := slices.Index(order, after) + 1; at < len(order); at = slices.Index(order, after) + 1 {
						if after = order[at]; !yield(after, nil) {
							return
						}
					}
				}
			}
		}),
	}
}
