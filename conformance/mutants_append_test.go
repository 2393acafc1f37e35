package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/conformance"
)

// judging replaces the answer of an append.
func judging(s store, judge func(ctx context.Context, id string, expected int64, events []event, head int64, err error) (int64, error)) func(context.Context, string, int64, []event) (int64, error) {
	return func(ctx context.Context, id string, expected int64, events []event) (int64, error) {
		head, err := s.Append(ctx, id, expected, events...)
		return judge(ctx, id, expected, events, head, err)
	}
}

// retrying makes a mutant that hears of lost answers and does something after them.
func retrying(name, by string, kind conformance.Trouble, again func(s store, ctx context.Context, id string, expected int64, events []event, head int64) (int64, error)) mutant {
	return on(conformance.Journal(), memoryJournal, name, by, func(e *conformance.JournalEnv) {
		var armed atomic.Bool
		inner, s := e.Trouble, e.Store
		e.Trouble = func(ctx context.Context, k conformance.Trouble) error {
			armed.Store(k == kind)
			return inner(ctx, k)
		}
		b := &brokenJournal{store: s}
		b.append = judging(s, func(ctx context.Context, id string, expected int64, events []event, head int64, err error) (int64, error) {
			if err == nil && armed.Swap(false) {
				return again(s, ctx, id, expected, events, head)
			}
			return head, err
		})
		e.Store, e.Another = b, func() store { return b }
	})
}

// appendMutants are wrong about writing.
func appendMutants() []mutant {
	type ctxt = context.Context
	return []mutant{
		badJournal("overwrites", "J-31 a number that is taken", func(s store, b *brokenJournal) {
			var over sync.Map // event by id and number
			key := func(id string, seq int64) string { return fmt.Sprint(id, "/", seq) }
			b.append = judging(s, func(_ ctxt, id string, expected int64, events []event, head int64, err error) (int64, error) {
				if !errors.Is(err, dynactor.ErrConflict) {
					return head, err
				}
				for i, e := range events {
					over.Store(key(id, expected+int64(i)+1), e.Message)
				}
				return expected + int64(len(events)), nil
			})
			b.replay = edits(s, func(id string, events []event, err error) ([]event, error) {
				for i, e := range events {
					if m, ok := over.Load(key(id, e.Seq)); ok {
						events[i].Message = m.(proto.Message)
					}
				}
				return events, err
			})
		}),
		badJournal("drops the loser's event without a word", "J-33 two writers race for a number", func(s store, b *brokenJournal) {
			b.append = judging(s, func(_ ctxt, _ string, expected int64, events []event, head int64, err error) (int64, error) {
				if errors.Is(err, dynactor.ErrConflict) {
					return expected + int64(len(events)), nil
				}
				return head, err
			})
		}),
		badJournal("takes a conflict for its own retry", "J-31 the same content by another writer", func(s store, b *brokenJournal) {
			b.append = judging(s, func(ctx ctxt, id string, expected int64, events []event, head int64, err error) (int64, error) {
				old, _ := read(ctx, s, id, expected+1, expected+1)
				if errors.Is(err, dynactor.ErrConflict) && len(old) == 1 && proto.Equal(old[0].Message, events[0].Message) {
					return expected + int64(len(events)), nil
				}
				return head, err
			})
		}),
		badJournal("says conflict and stores at the head", "J-31 a number that is taken", func(s store, b *brokenJournal) {
			b.append = judging(s, func(ctx ctxt, id string, _ int64, events []event, head int64, err error) (int64, error) {
				if errors.Is(err, dynactor.ErrConflict) {
					_, _ = s.Append(ctx, id, head, events...)
				}
				return head, err
			})
		}),
		badJournal("reads the head and then writes", "J-33 two writers race for a number", func(s store, b *brokenJournal) {
			var both atomic.Int64
			b.append = func(ctx ctxt, id string, expected int64, events []event) (int64, error) {
				if head, err := s.Head(ctx, id); err != nil || head != expected {
					return head, errors.Join(dynactor.ErrConflict, err)
				}
				both.Add(1)
				for end := time.Now().Add(100 * time.Millisecond); both.Load()%2 == 1 && time.Now().Before(end); {
					runtime.Gosched() // the other has read, too
				}
				head, err := s.Append(ctx, id, expected, events...)
				if errors.Is(err, dynactor.ErrConflict) {
					return s.Append(ctx, id, head, events...)
				}
				return head, err
			}
		}),
		badJournal("calls an unknown outcome a failure", "J-30 a write of which no answer comes", func(s store, b *brokenJournal) {
			b.append = unknownAs(s, func(int64) (int64, error) { return 0, dynactor.ErrThrottled })
		}),
		badJournal("calls an unknown outcome a conflict", "J-30 a write of which no answer comes", func(s store, b *brokenJournal) {
			b.append = unknownAs(s, func(int64) (int64, error) { return 0, dynactor.ErrConflict })
		}),
		badJournal("calls an unknown outcome a success", "J-30 an append of many of which no answer comes", func(s store, b *brokenJournal) {
			b.append = unknownAs(s, func(end int64) (int64, error) { return end, nil })
		}),
		badJournal("acknowledges what was not written", "J-30 writes that fail", func(s store, b *brokenJournal) {
			b.append = judging(s, func(_ ctxt, _ string, expected int64, events []event, head int64, err error) (int64, error) {
				if errors.Is(err, dynactor.ErrThrottled) {
					return expected + int64(len(events)), nil
				}
				return head, err
			})
		}),
		badJournal("acknowledges before writing", "J-26 J-36 the first event", func(s store, b *brokenJournal) {
			var late func()
			b.append = func(ctx ctxt, id string, expected int64, events []event) (int64, error) {
				if late != nil {
					late()
				}
				late = func() { _, _ = s.Append(ctx, id, expected, events...) }
				return expected + int64(len(events)), nil
			}
		}),
		retrying("takes its own retry for a conflict", "J-44 J-32 a write whose answer is lost", conformance.LoseAnswer, func(s store, ctx ctxt, id string, expected int64, events []event, _ int64) (int64, error) {
			return s.Append(ctx, id, expected, events...)
		}),
		retrying("stores its own retry once more", "J-44 J-32 a write whose answer is lost", conformance.LoseAnswer, func(s store, ctx ctxt, id string, _ int64, events []event, head int64) (int64, error) {
			_, err := s.Append(ctx, id, head, events...)
			return head, err
		}),
		retrying("gives up when the same write is under way", "J-42 writes of many that seem to be under way", conformance.InProgress, func(store, ctxt, string, int64, []event, int64) (int64, error) {
			return 0, dynactor.ErrThrottled
		}),
		retrying("stores what is under way once more", "J-42 writes of many that seem to be under way", conformance.InProgress, func(s store, ctx ctxt, id string, _ int64, events []event, head int64) (int64, error) {
			_, err := s.Append(ctx, id, head, events...)
			return head, err
		}),
		retrying("gives up when it is throttled", "J-41 J-43 writes that are throttled for a while", conformance.Throttle, func(store, ctxt, string, int64, []event, int64) (int64, error) {
			return 0, dynactor.ErrThrottled
		}),
		badJournal("swaps two events", "J-01 all events in order", func(s store, b *brokenJournal) {
			b.append = func(ctx ctxt, id string, expected int64, events []event) (int64, error) {
				events = slices.Clone(events)
				slices.Reverse(events)
				return s.Append(ctx, id, expected, events...)
			}
		}),
		badJournal("shows half a transaction", "J-27 readers never see half of an append", func(s store, b *brokenJournal) {
			var reads, waits atomic.Int64
			b.append = func(ctx ctxt, id string, expected int64, events []event) (head int64, err error) {
				for i, e := range events {
					if head, err = s.Append(ctx, id, expected+int64(i), e); err != nil {
						return head, err
					}
					before := reads.Load()
					for end := time.Now().Add(100 * time.Millisecond); reads.Load() < before+2 && time.Now().Before(end) && waits.Load() < 4; {
						runtime.Gosched() // a reader comes by
					}
					waits.Add(1)
				}
				return head, nil
			}
			b.replay = func(ctx ctxt, id string, from, to int64) iter.Seq2[event, error] {
				reads.Add(1)
				return s.Replay(ctx, id, from, to)
			}
		}),
		badJournal("stores the rest of an append that conflicts", "J-27 an append of many that meets an event", func(s store, b *brokenJournal) {
			b.append = judging(s, func(ctx ctxt, id string, expected int64, events []event, head int64, err error) (int64, error) {
				if rest := head - expected; errors.Is(err, dynactor.ErrConflict) && rest > 0 && rest < int64(len(events)) {
					_, _ = s.Append(ctx, id, head, events[rest:]...)
				}
				return head, err
			})
		}),
		badJournal("stores the neighbours of a bad event", "J-28 J-29 an event that cannot be encoded", func(s store, b *brokenJournal) {
			b.append = judging(s, func(ctx ctxt, id string, expected int64, events []event, head int64, err error) (int64, error) {
				if errors.Is(err, dynactor.ErrInvalid) && len(events) > 1 {
					_, _ = s.Append(ctx, id, expected, events[0])
				}
				return head, err
			})
		}),
		badJournal("closes a gap by itself", "J-34 a gap", func(s store, b *brokenJournal) {
			b.append = judging(s, func(ctx ctxt, id string, expected int64, events []event, head int64, err error) (int64, error) {
				if errors.Is(err, dynactor.ErrConflict) && expected > head {
					return s.Append(ctx, id, head, events...)
				}
				return head, err
			})
		}),
		badJournal("cuts an append that is too long", "J-37 as many events as one append takes, and one more", func(s store, b *brokenJournal) {
			b.append = func(ctx ctxt, id string, expected int64, events []event) (int64, error) {
				return s.Append(ctx, id, expected, events[:min(len(events), dynactor.MaxEvents)]...)
			}
		}),
		badJournal("leaves out what is too large", "J-39 an event that is too large", func(s store, b *brokenJournal) {
			b.append = judging(s, func(_ ctxt, _ string, expected int64, events []event, head int64, err error) (int64, error) {
				if errors.Is(err, dynactor.ErrTooLarge) {
					return expected + int64(len(events)), nil
				}
				return head, err
			})
		}),
		badJournal("keeps the caller's message", "J-50 the caller's messages are his", func(s store, b *brokenJournal) {
			var kept sync.Map
			b.append = func(ctx ctxt, id string, expected int64, events []event) (int64, error) {
				kept.Store(expected+1, events[0].Message)
				return s.Append(ctx, id, expected, events...)
			}
			b.replay = edits(s, func(_ string, events []event, err error) ([]event, error) {
				for i, e := range events {
					m, _ := kept.Load(e.Seq)
					events[i].Message = m.(proto.Message)
				}
				return events, err
			})
		}),
		badJournal("drops tags and metadata", "J-14 tags and metadata", func(s store, b *brokenJournal) {
			b.append = func(ctx ctxt, id string, expected int64, events []event) (int64, error) {
				var bare []event
				for _, e := range events {
					bare = append(bare, event{Message: e.Message})
				}
				return s.Append(ctx, id, expected, bare...)
			}
		}),
		badJournal("ids without case", "J-19 ids that look alike", func(s store, b *brokenJournal) {
			b.append = func(ctx ctxt, id string, expected int64, events []event) (int64, error) {
				return s.Append(ctx, strings.ToLower(id), expected, events...)
			}
		}),
		badJournal("takes an empty id", "J-20 no id, and one that is too long", func(s store, b *brokenJournal) {
			b.append = func(ctx ctxt, id string, expected int64, events []event) (int64, error) {
				return s.Append(ctx, id[:min(len(id), 1000)]+".", expected, events...)
			}
		}),
	}
}

// unknownAs tells something else where the outcome is unknown.
func unknownAs(s store, tell func(end int64) (int64, error)) func(context.Context, string, int64, []event) (int64, error) {
	return judging(s, func(_ context.Context, _ string, expected int64, events []event, head int64, err error) (int64, error) {
		if errors.Is(err, dynactor.ErrOutcomeUnknown) {
			return tell(expected + int64(len(events)))
		}
		return head, err
	})
}
