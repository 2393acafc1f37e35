package conformance_test

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/conformance"
)

type (
	store = conformance.JournalStore
	event = conformance.Event
)

// brokenJournal is a journal of which some methods are replaced.
type brokenJournal struct {
	store

	append   func(ctx context.Context, id string, expected int64, events []event) (int64, error)
	replay   func(ctx context.Context, id string, from, to int64) iter.Seq2[event, error]
	head     func(ctx context.Context, id string) (int64, error)
	deleteTo func(ctx context.Context, id string, seq int64) error
}

func (b brokenJournal) Append(ctx context.Context, id string, expected int64, events ...event) (int64, error) {
	if b.append != nil {
		return b.append(ctx, id, expected, events)
	}
	return b.store.Append(ctx, id, expected, events...)
}

func (b brokenJournal) Replay(ctx context.Context, id string, from, to int64) iter.Seq2[event, error] {
	if b.replay != nil {
		return b.replay(ctx, id, from, to)
	}
	return b.store.Replay(ctx, id, from, to)
}

func (b brokenJournal) Head(ctx context.Context, id string) (int64, error) {
	if b.head != nil {
		return b.head(ctx, id)
	}
	return b.store.Head(ctx, id)
}

func (b brokenJournal) DeleteTo(ctx context.Context, id string, seq int64) error {
	if b.deleteTo != nil {
		return b.deleteTo(ctx, id, seq)
	}
	return b.store.DeleteTo(ctx, id, seq)
}

// badJournal makes a mutant of the journal in memory.
func badJournal(name, by string, breakIt func(s store, b *brokenJournal)) mutant {
	return on(conformance.Journal(), memoryJournal, name, by, func(e *conformance.JournalEnv) {
		b := &brokenJournal{store: e.Store}
		breakIt(e.Store, b)
		e.Store, e.Another = b, func() store { return b }
	})
}

// edits makes replays yield other events, or another error at their end.
func edits(s store, edit func(id string, events []event, err error) ([]event, error)) func(context.Context, string, int64, int64) iter.Seq2[event, error] {
	return func(ctx context.Context, id string, from, to int64) iter.Seq2[event, error] {
		return func(yield func(event, error) bool) {
			events, err := read(ctx, s, id, from, to)
			events, err = edit(id, events, err)
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				yield(event{}, err)
			}
		}
	}
}

func read(ctx context.Context, s store, id string, from, to int64) (events []event, err error) {
	for e, err := range s.Replay(ctx, id, from, to) {
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
	return events, nil
}

// passing makes replays go on after an error of a kind.
func passing(s store, kind error) func(context.Context, string, int64, int64) iter.Seq2[event, error] {
	return func(ctx context.Context, id string, from, to int64) iter.Seq2[event, error] {
		return func(yield func(event, error) bool) {
			for {
				events, err := read(ctx, s, id, from, to)
				for _, e := range events {
					if from = e.Seq; !yield(e, nil) {
						return
					}
				}
				if !errors.Is(err, kind) {
					return
				}
				from += 2
			}
		}
	}
}

// journalMutants are wrong about reading and deleting.
func journalMutants() []mutant {
	return []mutant{
		badJournal("end is exclusive", "J-03 up to a number", func(s store, b *brokenJournal) {
			b.replay = func(ctx context.Context, id string, from, to int64) iter.Seq2[event, error] {
				return s.Replay(ctx, id, from, max(to-1, 0))
			}
		}),
		badJournal("start is exclusive", "J-02 from a number on", func(s store, b *brokenJournal) {
			b.replay = func(ctx context.Context, id string, from, to int64) iter.Seq2[event, error] {
				return s.Replay(ctx, id, from+1, to)
			}
		}),
		badJournal("end is not looked at", "J-05 a window that cuts an append of many", func(s store, b *brokenJournal) {
			b.replay = func(ctx context.Context, id string, from, _ int64) iter.Seq2[event, error] {
				return s.Replay(ctx, id, from, 0)
			}
		}),
		badJournal("drops the last page", "J-15 more than one page", func(s store, b *brokenJournal) {
			b.replay = edits(s, func(_ string, events []event, err error) ([]event, error) { return events[:min(len(events), 100)], err })
		}),
		badJournal("reads a page twice", "J-15 more than one page", func(s store, b *brokenJournal) {
			b.replay = edits(s, func(_ string, events []event, err error) ([]event, error) {
				return slices.Concat(events[:min(len(events), 100)], events[min(len(events), 99):]), err
			})
		}),
		badJournal("sorts numbers as text", "J-22 order where numbers get longer", func(s store, b *brokenJournal) {
			b.replay = edits(s, func(_ string, events []event, err error) ([]event, error) {
				slices.SortFunc(events, func(x, y event) int {
					return strings.Compare(strconv.FormatInt(x.Seq, 10), strconv.FormatInt(y.Seq, 10))
				})
				return events, err
			})
		}),
		badJournal("passes over what cannot be decoded", "J-25 an event that cannot be decoded", func(s store, b *brokenJournal) { b.replay = passing(s, dynactor.ErrDecode) }),
		badJournal("passes over a hole", "J-25 a hole", func(s store, b *brokenJournal) { b.replay = passing(s, dynactor.ErrGap) }),
		badJournal("ends where a hole begins", "J-25 a hole", func(s store, b *brokenJournal) {
			b.replay = edits(s, func(_ string, events []event, _ error) ([]event, error) { return events, nil })
		}),
		badJournal("takes a failed read for an empty stream", "J-30 reads that fail", func(s store, b *brokenJournal) {
			b.replay = edits(s, func(_ string, events []event, err error) ([]event, error) {
				if errors.Is(err, dynactor.ErrThrottled) {
					err = nil
				}
				return events, err
			})
		}),
		badJournal("takes a failed read of the head for none", "J-30 reads that fail", func(s store, b *brokenJournal) {
			b.head = func(ctx context.Context, id string) (int64, error) {
				head, _ := s.Head(ctx, id)
				return head, nil
			}
		}),
		badJournal("reads without consistency", "J-18 what was acknowledged is read at once", func(s store, b *brokenJournal) {
			var seen sync.Map // id: the head at the last look
			b.replay = edits(s, func(id string, events []event, err error) ([]event, error) {
				last, _ := seen.Swap(id, len(events))
				n, _ := last.(int)
				return events[:min(len(events), n)], err
			})
		}),
		badJournal("goes on after a cancellation", "J-23 a cancelled context", func(s store, b *brokenJournal) {
			b.replay = func(ctx context.Context, id string, from, to int64) iter.Seq2[event, error] {
				return s.Replay(context.WithoutCancel(ctx), id, from, to)
			}
		}),
		badJournal("ends silently after a cancellation", "J-23 a cancelled context", func(s store, b *brokenJournal) {
			b.replay = func(ctx context.Context, id string, from, to int64) iter.Seq2[event, error] {
				return func(yield func(event, error) bool) {
					for e, err := range s.Replay(ctx, id, from, to) {
						if err != nil || !yield(e, nil) {
							return
						}
					}
				}
			}
		}),
		badJournal("does not delete", "J-58 the first three", func(_ store, b *brokenJournal) {
			b.deleteTo = func(context.Context, string, int64) error { return nil }
		}),
		badJournal("deletes one too few", "J-58 the first three", func(s store, b *brokenJournal) {
			b.deleteTo = func(ctx context.Context, id string, seq int64) error { return s.DeleteTo(ctx, id, seq-1) }
		}),
		badJournal("deletes one too many", "J-58 the first three", func(s store, b *brokenJournal) {
			b.deleteTo = func(ctx context.Context, id string, seq int64) error {
				return s.DeleteTo(ctx, id, min(seq, math.MaxInt64-1)+1)
			}
		}),
		badJournal("deletes the first batch only", "J-71 many events", func(s store, b *brokenJournal) {
			b.deleteTo = func(ctx context.Context, id string, seq int64) error { return s.DeleteTo(ctx, id, min(seq, 100)) }
		}),
		badJournal("delivers below the mark", "J-65 a range that begins at the last deleted", func(s store, b *brokenJournal) { marks(s, b, true, false) }),
		badJournal("lowers the mark", "J-60 less than before", func(s store, b *brokenJournal) { marks(s, b, false, false) }),
		badJournal("deletes what comes later", "J-62 beyond the head", func(s store, b *brokenJournal) { marks(s, b, false, true) }),
		badJournal("hides a deletion that failed", "J-70 a deletion that fails", func(s store, b *brokenJournal) {
			b.deleteTo = func(ctx context.Context, id string, seq int64) error {
				_ = s.DeleteTo(ctx, id, seq)
				return nil
			}
		}),
		badJournal("lets the head fall", "J-61 all of them", func(s store, b *brokenJournal) {
			b.head = func(ctx context.Context, id string) (int64, error) {
				events, err := read(ctx, s, id, 1, 0)
				if len(events) == 0 {
					return 0, err
				}
				return events[len(events)-1].Seq, err
			}
		}),
		badJournal("reuses numbers after a deletion", "J-64 numbers go on after a deletion of all", func(s store, b *brokenJournal) {
			life := atomic.Int64{} // a deletion of all begins a new stream
			in := func(id string) string { return id + strings.Repeat("'", int(life.Load())) }
			b.append = func(ctx context.Context, id string, expected int64, events []event) (int64, error) {
				return s.Append(ctx, in(id), expected, events...)
			}
			b.deleteTo = func(ctx context.Context, id string, seq int64) error {
				if head, err := s.Head(ctx, in(id)); err != nil || seq < head {
					return err
				}
				life.Add(1)
				return nil
			}
			b.head = func(ctx context.Context, id string) (int64, error) { return s.Head(ctx, in(id)) }
			b.replay = func(ctx context.Context, id string, from, to int64) iter.Seq2[event, error] {
				return s.Replay(ctx, in(id), from, to)
			}
		}),
	}
}

// marks deletes by a mark of its own, and never really. A mark is not looked at
// by reads that begin at or below it, and may lie beyond the head.
func marks(s store, b *brokenJournal, ignored, beyond bool) {
	var mu sync.Mutex
	del := map[string]int64{}
	b.deleteTo = func(ctx context.Context, id string, seq int64) error {
		head, err := s.Head(ctx, id)
		if !beyond {
			seq = min(seq, head)
		}
		mu.Lock()
		defer mu.Unlock()
		del[id] = seq
		return err
	}
	b.replay = func(ctx context.Context, id string, from, to int64) iter.Seq2[event, error] {
		mu.Lock()
		defer mu.Unlock()
		if !ignored || from == 1 {
			from = max(from, del[id]+1)
		}
		if to > 0 && from > to {
			return func(func(event, error) bool) {}
		}
		return s.Replay(ctx, id, from, to)
	}
}
