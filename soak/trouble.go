package main

import (
	"net/http"
	"time"

	"github.com/dynactor/dynactor/dynactortest"
)

// trouble makes the faults of one process: what happens between it and the gate.
func trouble(f *dynactortest.Faults, g *gate, l *luck) {
	hidden := dynactortest.HideItems(func(it map[string]any) bool { return g.hides(it) })
	f.Add(dynactortest.Rule{Op: "Query", Match: func(dynactortest.Request) bool { return g.hidesAny() }, Do: hidden})
	const wait = 60 * time.Millisecond
	for _, kind := range []struct {
		name string
		in   int // once in so many requests
		op   string
		do   dynactortest.Action
	}{
		{"answer dropped", 40, "", dynactortest.DropAnswer()},
		{"500 after the request was served", 60, "", dynactortest.FailAfter(http.StatusInternalServerError)},
		{"503 after the request was served", 100, "", dynactortest.FailAfter(http.StatusServiceUnavailable)},
		{"500", 80, "", dynactortest.Answer(http.StatusInternalServerError, "InternalServerError", "no")},
		{"delayed", 40, "", dynactortest.Delay(wait/2, wait)},
		{"held for longer than the limit", 1500, "", dynactortest.Delay(0, writeTimeout+time.Second)},
		{"throttled", 40, "", dynactortest.Throttle()},
		{"conflict with a transaction", 40, "PutItem", dynactortest.Conflict()},
		{"transaction in progress", 30, "TransactWriteItems", dynactortest.InProgress()},
		{"transaction cancelled for a conflict", 30, "TransactWriteItems", dynactortest.CancelTransaction("TransactionConflict", "None")},
		{"batch refused whole", 20, "BatchWriteItem", dynactortest.Unprocessed(0)},
		{"half a batch", 4, "BatchWriteItem", dynactortest.Unprocessed(2)},
		{"body cut", 60, "", dynactortest.CutBody(20)},
		{"no body", 120, "", dynactortest.CutBody(0)},
		{"byte flipped", 60, "", dynactortest.FlipByte()},
		{"empty page", 12, "Query", dynactortest.EmptyPage()},
		{"old item stripped", 4, "PutItem", dynactortest.StripOldItem()},
		{"old items stripped", 4, "TransactWriteItems", dynactortest.StripOldItem()},
		{"connection refused", 60, "", dynactortest.Refuse()},
		{"no such host", 150, "", dynactortest.NoSuchHost()},
		{"credentials expired", 150, "", dynactortest.Answer(http.StatusBadRequest, "ExpiredTokenException", "expired")},
		{"access denied", 400, "", dynactortest.Answer(http.StatusBadRequest, "AccessDeniedException", "no")},
	} {
		f.Add(dynactortest.Rule{Op: kind.op, Do: kind.do, Match: func(dynactortest.Request) bool {
			if g.isCalm() || !l.in(kind.in) {
				return false
			}
			g.tally.fault(kind.name)
			return true
		}})
	}
}
