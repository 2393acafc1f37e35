package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// refuses appends where it must fail, with a conflict.
func refuses(ctx context.Context, e JournalEnv, expected int64, events ...Event) error {
	_, err := e.other().Append(ctx, "a", expected, events...)
	return e.Errors.wantConflict(fmt.Sprintf("append of %d events after %d", len(events), expected), err)
}

// appendCases are about writing, by one writer at a time.
func appendCases() Suite[JournalEnv] {
	const whole = "half an append is half a money transfer"
	return Suite[JournalEnv]{
		{
			Name: "J-26 J-36 the first event", Why: "the first number must not be taken by anything else",
			Check: func(ctx context.Context, e JournalEnv) error {
				return first(put(ctx, e.Store, "a", 0, text("1")), holds(ctx, e.other(), "a", 1))
			},
		},
		{
			Name: "J-27 an append of many that meets an event", Why: whole,
			Check: func(ctx context.Context, e JournalEnv) error {
				if err := five(ctx, e.Store); err != nil {
					return err
				}
				for expected := int64(2); expected < 5; expected++ { // the last of them alone is free
					if err := refuses(ctx, e, expected, text("x"), text("y"), text("z"), text("z")); err != nil {
						return err
					}
				}
				return holds(ctx, e.Store, "a", 5)
			},
		},
		{
			Name: "J-28 J-29 an event that cannot be encoded", Why: "it must not take others with it, nor a number",
			Check: func(ctx context.Context, e JournalEnv) error {
				if err := put(ctx, e.Store, "a", 0, text("1")); err != nil {
					return err
				}
				_, err := e.Store.Append(ctx, "a", 1, text("x"), Event{Message: wrapperspb.String("\xff")}, text("y"))
				if err := want("append of text that is not UTF-8", err, e.Errors.Invalid); err != nil {
					return err
				}
				_, err = e.Store.Append(ctx, "a", 1, Event{})
				if err := want("append of nil", err, e.Errors.Invalid); err != nil {
					return err
				}
				return first(put(ctx, e.Store, "a", 1, text("2")), holds(ctx, e.Store, "a", 2))
			},
		},
		{
			Name: "J-31 a number that is taken", Why: "the loser of two writers must hear of it, and what is stored stay as it is",
			Check: func(ctx context.Context, e JournalEnv) error {
				if err := five(ctx, e.Store); err != nil {
					return err
				}
				for expected := range int64(5) {
					if err := refuses(ctx, e, expected, text("x")); err != nil {
						return err
					}
				}
				return holds(ctx, e.Store, "a", 5)
			},
		},
		{
			Name: "J-31 the same content by another writer", Why: "equal bytes prove nothing: two deposits of 10 are 20",
			Check: func(ctx context.Context, e JournalEnv) error {
				return first(put(ctx, e.Store, "a", 0, text("1")), refuses(ctx, e, 0, text("1")), holds(ctx, e.Store, "a", 1))
			},
		},
		{
			Name: "J-21 high numbers", Why: "numbers that lose a digit, or are sorted as text, change the order of the past", Needs: []Feature{StartsHigh},
			Check: checkHigh,
		},
		{
			Name: "J-34 a gap", Why: "a hole makes the stream unreadable",
			Check: func(ctx context.Context, e JournalEnv) error {
				return first(refuses(ctx, e, 1, text("x")), put(ctx, e.Store, "a", 0, text("1")),
					refuses(ctx, e, 2, text("x")), refuses(ctx, e, 1000, text("x")), holds(ctx, e.Store, "a", 1))
			},
		},
		{
			Name: "J-30 nothing to append", Why: "an empty append that succeeds hides a bug",
			Check: func(ctx context.Context, e JournalEnv) error {
				_, err := e.Store.Append(ctx, "a", 0)
				return first(want("append of no events", err, e.Errors.Invalid), headIs(ctx, e.Store, "a", 0))
			},
		},
		{
			Name: "J-37 as many events as one append takes, and one more", Why: whole, Needs: []Feature{Limits},
			Check: func(ctx context.Context, e JournalEnv) error {
				n := int64(e.Limit.Events)
				if err := put(ctx, e.Store, "a", 0, numbered(1, n)...); err != nil {
					return err
				}
				_, err := e.Store.Append(ctx, "a", n, numbered(1, n+1)...)
				return first(want("append of too many events", err, e.Errors.TooLarge), holds(ctx, e.Store, "a", n))
			},
		},
		{
			Name: "J-38 events that are too large together", Why: whole, Needs: []Feature{Limits},
			Check: func(ctx context.Context, e JournalEnv) error {
				if e.Limit.Together == 0 {
					return nil
				}
				n := e.Limit.Events
				_, err := e.Store.Append(ctx, "a", 0, large(n, e.Limit.Together/n)...)
				return first(want("append of events that are too large together", err, e.Errors.TooLarge),
					headIs(ctx, e.Store, "a", 0), put(ctx, e.Store, "a", 0, text("1")), holds(ctx, e.Store, "a", 1))
			},
		},
		{
			Name: "J-39 an event that is too large", Why: "the actor must be able to go on", Needs: []Feature{Limits},
			Check: func(ctx context.Context, e JournalEnv) error {
				if err := put(ctx, e.Store, "a", 0, text("1")); err != nil {
					return err
				}
				_, err := e.Store.Append(ctx, "a", 1, large(1, e.Limit.Bytes)...)
				if err := want("append of an event that is too large", err, e.Errors.TooLarge); err != nil {
					return err
				}
				_, err = e.Store.Append(ctx, "a", 1, append(numbered(2, 2), large(1, e.Limit.Bytes)...)...)
				return first(want("append of two, one too large", err, e.Errors.TooLarge),
					put(ctx, e.Store, "a", 1, text("2")), holds(ctx, e.Store, "a", 2))
			},
		},
		{
			Name: "J-46 acknowledgements in order", Why: "an acknowledged event stands before all that come later",
			Check: func(ctx context.Context, e JournalEnv) error {
				head := int64(0)
				for i := range int64(30) { // of one, two and three events
					next := head + i%3 + 1
					if err := put(ctx, e.Store, "a", head, numbered(head+1, next)...); err != nil {
						return err
					}
					head = next
				}
				return holds(ctx, e.other(), "a", head)
			},
		},
		{
			Name: "J-50 empty payloads and repeated tags", Why: "databases differ over what is empty",
			Check: func(ctx context.Context, e JournalEnv) error {
				err := put(ctx, e.Store, "a", 0, text(""), Event{Message: wrapperspb.Bytes(nil), Tags: []string{}, Meta: map[string]string{}})
				if err != nil {
					return err
				}
				got, err := collect(ctx, e.Store, "a", 1, 0, -1)
				if err != nil {
					return err
				}
				if len(got) != 2 || !proto.Equal(got[0].Message, wrapperspb.String("")) || !proto.Equal(got[1].Message, wrapperspb.Bytes(nil)) {
					return fmt.Errorf("empty messages come back as %v", got)
				}
				return nil
			},
		},
		{
			Name: "J-50 the caller's messages are his", Why: "a store that keeps a pointer shows changes that nobody persisted",
			Check: checkAliasing,
		},
		{
			Name: "J-54 J-55 many events", Why: "a store that slows down or stops with length is no journal",
			Check: func(ctx context.Context, e JournalEnv) error {
				if err := fill(ctx, e.Store, 150); err != nil {
					return err
				}
				for i := int64(150); i < 200; i++ {
					if err := put(ctx, e.Store, "a", i, numbered(i+1, i+1)...); err != nil {
						return err
					}
				}
				return holds(ctx, e.other(), "a", 200)
			},
		},
	}
}

func checkAliasing(ctx context.Context, e JournalEnv) error {
	m := wrapperspb.String("1")
	tags, meta := []string{"x"}, map[string]string{"k": "v"}
	if err := put(ctx, e.Store, "a", 0, Event{Message: m, Tags: tags, Meta: meta}); err != nil {
		return err
	}
	if m.GetValue() != "1" || tags[0] != "x" || meta["k"] != "v" {
		return errors.New("append changes what it is given")
	}
	m.Value = "changed"
	if err := holds(ctx, e.Store, "a", 1); err != nil {
		return fmt.Errorf("after the caller changed his message: %w", err)
	}
	got, err := collect(ctx, e.Store, "a", 1, 0, -1)
	if err != nil {
		return err
	}
	if s, ok := got[0].Message.(*wrapperspb.StringValue); ok {
		s.Value = "changed"
	}
	if err := holds(ctx, e.Store, "a", 1); err != nil {
		return fmt.Errorf("after the reader changed his message: %w", err)
	}
	return nil
}

// checkHigh appends to streams that begin below numbers at which something ends: 32
// bits, the integers of floating point, a number of digits, the limit.
func checkHigh(ctx context.Context, e JournalEnv) error {
	last := e.Limit.Seq
	if last == 0 {
		last = math.MaxInt64 - 1
	}
	for i, after := range []int64{1<<31 - 3, 1<<32 - 3, 1e12 - 3, 1<<53 - 3, 1e18 - 3, last - 5} {
		if after > last-5 {
			continue
		}
		id := fmt.Sprint("a", i)
		if err := first(e.StartAt(ctx, id, after), headIs(ctx, e.Store, id, after),
			put(ctx, e.Store, id, after, numbered(after+1, after+1)...), put(ctx, e.other(), id, after+1, numbered(after+2, after+5)...)); err != nil {
			return err
		}
		if err := first(headIs(ctx, e.other(), id, after+5), replays(ctx, e.other(), id, 1, 0, after+1, after+5),
			replays(ctx, e.Store, id, after+3, after+4, after+3, after+4), replays(ctx, e.Store, id, after+5, 0, after+5, after+5)); err != nil {
			return err
		}
		_, err := e.Store.Append(ctx, id, after+4, text("x"))
		if err := e.Errors.wantConflict(fmt.Sprintf("append of an event after %d of %d", after+4, after+5), err); err != nil {
			return err
		}
	}
	return nil
}
