package main

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor/examples/bank/bankpb"
)

func TestSettle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change int64
		answer proto.Message
		done   bool
		bad    bool
	}{
		{name: "receipt", change: -100, answer: receipt("1", 0), done: true},
		{name: "refusal", change: -101, answer: refusal("1", bankpb.Reason_REASON_OVERDRAFT, 100)},
		{name: "wrong balance", change: 5, answer: receipt("1", 104), bad: true},
		{name: "wrong transaction", change: 5, answer: receipt("2", 105), bad: true},
		{name: "overdrawn", change: -101, answer: receipt("1", -1), bad: true},
		{name: "refused without need", change: -100, answer: refusal("1", bankpb.Reason_REASON_OVERDRAFT, 100), bad: true},
		{name: "another reason", change: -101, answer: refusal("1", bankpb.Reason_REASON_INVALID, 100), bad: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := &book{name: "a", balance: 100, events: 1}
			done, err := leg{book: b, command: deposit("1", 1), change: c.change}.settle("1", c.answer)
			if done != c.done || (err != nil) != c.bad {
				t.Errorf("got %t, %v", done, err)
			}
			if entered := b.events == 2 && b.balance == 100+c.change && b.last != nil; entered != c.done {
				t.Errorf("book: %d after %d events", b.balance, b.events)
			}
		})
	}
}
