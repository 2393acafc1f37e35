package dynactor_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynactor/dynactor"
)

// TestForeign_Groups spoils one event of an append of three, after one of one:
// nothing of the append is delivered, by whatever it was spoiled.
func TestForeign_Groups(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{})
	ready(t, p, db)
	for name, tc := range map[string]struct {
		seq   string
		spoil func(map[string]types.AttributeValue) map[string]types.AttributeValue
		want  error
		index int64
	}{
		"its second is of an unknown type": {"3", func(it map[string]types.AttributeValue) map[string]types.AttributeValue {
			return with(it, "type", &types.AttributeValueMemberS{Value: "bank.v1.Unknown"})
		}, dynactor.ErrDecode, 2},
		"its last has bytes that are no message": {"4", func(it map[string]types.AttributeValue) map[string]types.AttributeValue {
			return with(it, "data", &types.AttributeValueMemberB{Value: []byte{0xff}})
		}, dynactor.ErrDecode, 3},
		"its second is an event of its own": {"3", func(it map[string]types.AttributeValue) map[string]types.AttributeValue {
			return with(it, "last", nil)
		}, dynactor.ErrGap, 2},
		"its second is of another append": {"3", func(it map[string]types.AttributeValue) map[string]types.AttributeValue {
			return with(it, "op", &types.AttributeValueMemberS{Value: "1234567890123456789012"})
		}, dynactor.ErrGap, 2},
		"its last ends another append": {"4", func(it map[string]types.AttributeValue) map[string]types.AttributeValue {
			return with(it, "last", &types.AttributeValueMemberN{Value: "5"})
		}, dynactor.ErrGap, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := t.Name()
			fill(t, p.Journal(), id, 1)
			if _, err := p.Journal().Append(t.Context(), id, 1, numbered(2, 4)...); err != nil {
				t.Fatal(err)
			}
			for _, it := range stream(t, db, id) {
				if it["seq"].(*types.AttributeValueMemberN).Value == tc.seq {
					putItem(t, db, db.EventsTable, tc.spoil(it))
				}
			}
			got, err := replayed(t.Context(), p.Journal(), id, 1, 0)
			var delivered []string
			panicked := caught(func() {
				p.GetState().GetEvents(id, 0, 0, func(m any) { delivered = append(delivered, textOf(m)) })
			})
			for what, err := range map[string]error{"replay": err, "session": panicked} {
				e, ok := errors.AsType[*dynactor.Error](err)
				if !ok || !errors.Is(e, tc.want) || e.Index != tc.index {
					t.Errorf("%s: got %v, want %v of index %d", what, err, tc.want, tc.index)
				}
			}
			for what, got := range map[string][]string{"replay": got, "session": delivered} {
				if !slices.Equal(got, texts(1, 1)) {
					t.Errorf("%s: delivered %q, want only event 1", what, got)
				}
			}
		})
	}
}
