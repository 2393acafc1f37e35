package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// window is a case about a range of the five events.
func window(name, why string, from, to, lo, hi int64) Case[JournalEnv] {
	return Case[JournalEnv]{Name: name, Why: why, Check: func(ctx context.Context, e JournalEnv) error {
		if err := five(ctx, e.Store); err != nil {
			return err
		}
		if err := replays(ctx, e.Store, "a", from, to, lo, hi); err != nil {
			return err
		}
		return headIs(ctx, e.Store, "a", 5)
	}}
}

// limited is a case about a reader who stops after some events.
func limited(name, why string, from, to int64, limit int, lo, hi int64) Case[JournalEnv] {
	return Case[JournalEnv]{Name: name, Why: why, Check: func(ctx context.Context, e JournalEnv) error {
		if err := five(ctx, e.Store); err != nil {
			return err
		}
		got, err := collect(ctx, e.Store, "a", from, to, limit)
		return first(err, same("replay that stops", got, "a", lo, hi))
	}}
}

// replayCases are about reading.
func replayCases() Suite[JournalEnv] {
	const (
		bounds = "recovery from a snapshot asks for a part of the history, and must get that part"
		stops  = "a reader that has enough must not get more, and no error"
	)
	return Suite[JournalEnv]{
		window("J-01 all events in order", "every recovery is this", 1, 0, 1, 5),
		window("J-02 from a number on", bounds, 3, 0, 3, 5),
		window("J-03 up to a number", bounds, 1, 3, 1, 3),
		limited("J-04 three and no more", stops, 1, 0, 3, 1, 3),
		window("J-05 a window that cuts an append of many", bounds, 2, 4, 2, 4),
		limited("J-06 two out of a window", stops, 2, 5, 2, 2, 3),
		window("J-07 one event", bounds, 3, 3, 3, 3),
		limited("J-08 one and no more", stops, 1, 0, 1, 1, 1),
		window("J-10 from beyond to", "an empty range is empty, and some servers refuse it as an error", 4, 2, 1, 0),
		window("J-10 from beyond the head", "an actor whose snapshot covers everything asks for this", 6, 0, 1, 0),
		window("J-57 to beyond the head", "the head bounds what is read", 2, 1000, 2, 5),
		{
			Name: "J-11 J-56 an unknown id", Why: "every new actor begins so",
			Check: func(ctx context.Context, e JournalEnv) error {
				return first(replays(ctx, e.Store, "nobody", 1, 0, 1, 0), headIs(ctx, e.Store, "nobody", 0))
			},
		},
		{
			Name: "J-12 J-13 messages come back equal and typed", Why: "an event that changes on its way changes the past",
			Check: checkMessages,
		},
		{
			Name: "J-14 tags and metadata", Why: "readers across streams find events by them", Needs: []Feature{Metadata},
			Check: checkMeta,
		},
		{
			Name: "J-15 more than one page", Why: "a store that reads the first page only loses the newest events",
			Check: func(ctx context.Context, e JournalEnv) error {
				const n, size = 150, 10 << 10
				for i := int64(0); i < n; i += 50 {
					if err := put(ctx, e.Store, "a", i, large(50, size)...); err != nil {
						return err
					}
				}
				got, err := collect(ctx, e.other(), "a", 1, 0, -1)
				if err != nil {
					return err
				}
				if len(got) != n || got[n-1].Seq != n {
					return fmt.Errorf("%d events of 10 kB come back out of %d", len(got), n)
				}
				return headIs(ctx, e.Store, "a", n)
			},
		},
		{
			Name: "J-16 readers stop at every place", Why: "the end of a page must not be the end of a reader's patience, nor the reverse",
			Check: func(ctx context.Context, e JournalEnv) error {
				const n = 12
				if err := fill(ctx, e.Store, n); err != nil {
					return err
				}
				for limit := 1; limit <= n+1; limit++ {
					got, err := collect(ctx, e.Store, "a", 1, 0, limit)
					if err := first(err, same("replay that stops", got, "a", 1, min(int64(limit), n))); err != nil {
						return err
					}
				}
				return nil
			},
		},
		{
			Name: "J-18 what was acknowledged is read at once", Why: "an actor that restarts after a write must see it",
			Check: func(ctx context.Context, e JournalEnv) error {
				other := e.other()
				for i := range int64(50) {
					if err := put(ctx, e.Store, "a", i, numbered(i+1, i+1)...); err != nil {
						return err
					}
					if err := holds(ctx, other, "a", i+1); err != nil {
						return err
					}
				}
				return nil
			},
		},
		{Name: "J-19 ids that look alike", Why: "one actor must never get the events of another", Check: checkIDs},
		{
			Name: "J-20 no id, and one that is too long", Why: "a store must refuse what it cannot keep apart",
			Check: checkBadIDs,
		},
		{
			Name: "J-22 order where numbers get longer", Why: "numbers that are sorted as text put 10 before 9",
			Check: func(ctx context.Context, e JournalEnv) error {
				if err := fill(ctx, e.Store, 1003); err != nil {
					return err
				}
				return first(holds(ctx, e.Store, "a", 1003),
					replays(ctx, e.Store, "a", 9, 10, 9, 10), replays(ctx, e.Store, "a", 99, 100, 99, 100),
					replays(ctx, e.Store, "a", 999, 1000, 999, 1000))
			},
		},
		{
			Name: "J-23 a cancelled context", Why: "an actor system that stops must not wait for a long history",
			Check: checkCancelled,
		},
		{
			Name: "J-25 a hole", Why: "a shorter history is a wrong balance", Needs: []Feature{Tampering},
			Check: func(ctx context.Context, e JournalEnv) error {
				return damaged(ctx, e, Lose, 3, e.Errors.Gap)
			},
		},
		{
			Name: "J-25 an event that cannot be decoded", Why: "to pass over it is to lose it", Needs: []Feature{Tampering},
			Check: func(ctx context.Context, e JournalEnv) error {
				return damaged(ctx, e, Spoil, 3, e.Errors.Decode)
			},
		},
		{
			Name: "J-24 a replay inside a replay", Why: "a reader may ask for another stream while it reads",
			Check: func(ctx context.Context, e JournalEnv) error {
				if err := first(five(ctx, e.Store), put(ctx, e.Store, "b", 0, numbered(1, 2)...)); err != nil {
					return err
				}
				for _, err := range e.Store.Replay(ctx, "a", 1, 0) {
					if err := first(err, replays(ctx, e.Store, "b", 1, 0, 1, 2), replays(ctx, e.Store, "a", 1, 0, 1, 5)); err != nil {
						return err
					}
				}
				return nil
			},
		},
	}
}

// large are events of a size.
func large(n, size int) []Event {
	list := make([]Event, n)
	for i := range list {
		list[i] = Event{Message: wrapperspb.Bytes(make([]byte, size))}
	}
	return list
}

func checkMessages(ctx context.Context, e JournalEnv) error {
	nested, err := structpb.NewStruct(map[string]any{"a": []any{1.5, "x", nil, map[string]any{"b": true}}, "": "ключ"})
	if err != nil {
		return err //nolint:wrapcheck // a bug of this test
	}
	sent := []proto.Message{
		wrapperspb.String("日本\x00"), wrapperspb.Int64(-1 << 63), wrapperspb.Double(0.1), wrapperspb.Bool(true),
		wrapperspb.Bytes([]byte{0, 255, 10}), nested, wrapperspb.String(""), &structpb.Struct{},
	}
	for i, m := range sent {
		if err := put(ctx, e.Store, "a", int64(i), Event{Message: proto.Clone(m)}); err != nil {
			return err
		}
	}
	got, err := collect(ctx, e.other(), "a", 1, 0, -1)
	if err != nil {
		return err
	}
	if len(got) != len(sent) {
		return fmt.Errorf("%d events come back out of %d", len(got), len(sent))
	}
	for i, m := range sent {
		if !proto.Equal(m, got[i].Message) || got[i].ID != "a" || got[i].Seq != int64(i)+1 {
			return fmt.Errorf("event %d is %T %v of %q, number %d; want %T %v of \"a\"", i+1, got[i].Message, got[i].Message, got[i].ID, got[i].Seq, m, m)
		}
	}
	return nil
}

func checkMeta(ctx context.Context, e JournalEnv) error {
	sent := []Event{
		{Message: wrapperspb.String("1"), Tags: []string{"blue", "blue#green", "дом"}, Meta: map[string]string{"who": "alice", "why": ""}},
		text("2"),
		{Message: wrapperspb.String("3"), Tags: []string{"x"}},
	}
	if err := first(put(ctx, e.Store, "a", 0, sent[0]), put(ctx, e.Store, "a", 1, sent[1:]...)); err != nil {
		return err
	}
	got, err := collect(ctx, e.other(), "a", 1, 0, -1)
	if err := first(err, same("replay", got, "a", 1, 3)); err != nil {
		return err
	}
	for i, g := range got {
		tags := slices.Sorted(slices.Values(g.Tags))
		if !slices.Equal(tags, slices.Sorted(slices.Values(sent[i].Tags))) {
			return fmt.Errorf("event %d has the tags %q, want %q", i+1, g.Tags, sent[i].Tags)
		}
		if fmt.Sprint(g.Meta) != fmt.Sprint(sent[i].Meta) {
			return fmt.Errorf("event %d has the metadata %v, want %v", i+1, g.Meta, sent[i].Meta)
		}
	}
	return nil
}

func checkIDs(ctx context.Context, e JournalEnv) error {
	ids := []string{"a", "aa", "a#1", "a#", "a/b", "a|b", "a b", "A", "a-1", "a.", "a$", "äöü", "日本語", "a\u0301", "á", "1", "01", "%", "a%2Fb"}
	if e.Limit.ID > 0 {
		ids = append(ids, strings.Repeat("m", e.Limit.ID), strings.Repeat("m", e.Limit.ID-1))
	}
	for i, id := range ids {
		if err := put(ctx, e.Store, id, 0, numbered(1, int64(i%3)+1)...); err != nil {
			return err
		}
	}
	for i, id := range ids {
		if err := holds(ctx, e.Store, id, int64(i%3)+1); err != nil {
			return err
		}
	}
	return nil
}

func checkBadIDs(ctx context.Context, e JournalEnv) error {
	bad := []string{""}
	if e.Limit.ID > 0 {
		bad = append(bad, strings.Repeat("x", e.Limit.ID+1))
	}
	for _, id := range bad {
		what := fmt.Sprintf("with an id of %d bytes, ", len(id))
		_, err := e.Store.Append(ctx, id, 0, text("1"))
		if err := want(what+"append", err, e.Errors.Invalid); err != nil {
			return err
		}
		_, err = e.Store.Head(ctx, id)
		if err := want(what+"head", err, e.Errors.Invalid); err != nil {
			return err
		}
		_, err = collect(ctx, e.Store, id, 1, 0, -1)
		if err := want(what+"replay", err, e.Errors.Invalid); err != nil {
			return err
		}
	}
	return nil
}

func checkCancelled(ctx context.Context, e JournalEnv) error {
	if err := fill(ctx, e.Store, 100); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := 0
	for _, err := range e.Store.Replay(ctx, "a", 1, 0) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				return fmt.Errorf("a cancelled replay ends with %w", err)
			}
			return nil
		}
		if seen++; seen > 1 {
			return errors.New("events are yielded after the context was cancelled")
		}
		cancel()
	}
	return errors.New("a cancelled replay ends as if it were complete")
}

// damaged harms one of five events and wants an error in its place.
func damaged(ctx context.Context, e JournalEnv, harm Harm, seq int64, kind error) error {
	if err := five(ctx, e.Store); err != nil {
		return err
	}
	if err := e.Damage(ctx, "a", seq, harm); err != nil {
		return err
	}
	got, err := collect(ctx, e.Store, "a", 1, 0, -1)
	if err := want("replay over a damaged event", err, kind); err != nil {
		return err
	}
	if int64(len(got)) >= seq {
		return fmt.Errorf("%d events were yielded, of which number %d is damaged", len(got), seq)
	}
	if err := same("replay before the damage", got, "a", 1, int64(len(got))); err != nil {
		return err
	}
	return headIs(ctx, e.Store, "a", 5)
}
