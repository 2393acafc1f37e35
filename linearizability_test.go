package dynactor_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

const (
	histories  = 200
	clients    = 8
	perClient  = 5
	idsOfEach  = 3
	checkLimit = time.Minute
)

// Clients load, save and delete the same few states at random, while answers are
// lost, requests come late and are throttled. What each was told must fit one order
// of all that was done.
func TestState_Linearizable(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	second, faults := db.NewClient()
	stores := []*dynactor.StateStore{
		openOn(t, db, impatient{db.Client}, dynactor.Options{}).State(), openOn(t, db, impatient{second}, dynactor.Options{}).State(),
	}
	for _, s := range stores {
		if err := s.EnsureTables(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	trouble(db.Faults)
	trouble(faults)
	verdicts := map[string]int{}
	for i, h := range record(t, stores, histories) {
		if got := porcupine.CheckOperationsTimeout(stateModel, h, checkLimit); got != porcupine.Ok {
			t.Errorf("history %d is %s:\n%s", i, got, told(h))
		}
		for _, op := range h {
			verdicts[op.Input.(stateInput).kind+" "+op.Output.(stateOutput).verdict]++
		}
	}
	t.Log(verdicts)
	for _, v := range []string{"load ok", "save ok", "save conflict", "save unknown", "delete ok", "delete conflict"} {
		if verdicts[v] == 0 {
			t.Errorf("no %q in all histories, so little is shown: %v", v, verdicts)
		}
	}
}

// With compare-and-set switched off the same histories are found out.
func TestState_LinearizableIsNoticed(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	s := openOn(t, db, blind{db.Client}, dynactor.Options{}).State()
	if err := s.EnsureTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, h := range record(t, []*dynactor.StateStore{s}, 8) {
		if porcupine.CheckOperationsTimeout(stateModel, h, checkLimit) == porcupine.Illegal {
			found++
		}
	}
	if found == 0 {
		t.Error("saves without a condition are not found out")
	}
}

// blind leaves conditions out.
type blind struct{ *dynamodb.Client }

func (b blind) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	blinded := *in
	blinded.ConditionExpression, blinded.ExpressionAttributeNames, blinded.ExpressionAttributeValues = nil, nil, nil
	return b.Client.PutItem(ctx, &blinded, o...)
}

// trouble makes some requests fail, by the id of the call, so that all attempts of
// a call share its fate.
func trouble(f *dynactortest.Faults) {
	fate := func(lo, hi uint32, first bool) func(dynactortest.Request) bool {
		return func(r dynactortest.Request) bool {
			h := fnv.New32a()
			_, _ = h.Write([]byte(r.InvocationID))
			n := h.Sum32() % 100
			return n >= lo && n < hi && (r.Attempt == 1) == first
		}
	}
	internal := dynactortest.Answer(500, "InternalServerError", "by a test")
	late := dynactortest.Delay(3*time.Millisecond, 3*time.Millisecond)
	for _, rule := range []dynactortest.Rule{
		{Op: "PutItem", Match: fate(0, 8, true), Do: dynactortest.DropAnswer()}, // then it goes through
		{Op: "PutItem", Match: fate(8, 11, true), Do: dynactortest.Sequence(late, dynactortest.FailAfter(500))},
		{Op: "PutItem", Match: fate(11, 15, true), Do: dynactortest.DropAnswer()}, // then nobody knows
		{Op: "PutItem", Match: fate(15, 19, true), Do: internal},
		{Op: "PutItem", Match: fate(11, 19, false), Do: denied},
		{Match: fate(19, 23, true), Do: dynactortest.Throttle()},
		{Match: fate(23, 40, true), Do: late},
	} {
		f.Add(rule)
	}
}

type (
	stateInput struct {
		kind, id, value string
		expected        int64
	}
	stateOutput struct {
		verdict, value string
		revision       int64
	}
	stateNow struct {
		value    string
		revision int64
	}
)

// stateModel is what a store of state does, one operation at a time. One with an
// unknown outcome takes effect where its condition holds, at any later time.
var stateModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byID := map[string][]porcupine.Operation{}
		for _, op := range history {
			id := op.Input.(stateInput).id
			byID[id] = append(byID[id], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byID {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return stateNow{} },
	Step: func(state, input, output any) (bool, any) {
		now, in, out := state.(stateNow), input.(stateInput), output.(stateOutput)
		if in.kind == "load" {
			return out.verdict != "ok" || (out.value == now.value && out.revision == now.revision), now
		}
		next := stateNow{value: in.value, revision: in.expected + 1}
		switch out.verdict {
		case "ok":
			return now.revision == in.expected && out.revision == next.revision, next
		case "conflict":
			return now.revision != in.expected && now.revision == out.revision, now
		case "unknown":
			if now.revision == in.expected {
				return true, next
			}
		}
		return true, now
	},
}

// record makes histories, each with ids of its own, several at a time.
func record(t *testing.T, stores []*dynactor.StateStore, n int) [][]porcupine.Operation {
	t.Helper()
	all := make([][]porcupine.Operation, n)
	places := make(chan struct{}, 32)
	var wg sync.WaitGroup
	for i := range n {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			all[i] = recordOne(t, stores, i)
		})
	}
	wg.Wait()
	return all
}

func recordOne(t *testing.T, stores []*dynactor.StateStore, history int) []porcupine.Operation {
	t.Helper()
	var tick atomic.Int64
	var mu sync.Mutex
	var ops []porcupine.Operation
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(history), uint64(c))) //nolint:gosec // chooses operations
			s := stores[c%len(stores)]
			known := map[string]int64{}
			for i := range perClient {
				id := fmt.Sprintf("%d-%d", history, r.IntN(idsOfEach))
				in := stateInput{kind: "save", id: id, value: fmt.Sprintf("%d.%d", c, i), expected: known[id]}
				switch n := r.IntN(10); {
				case n < 3:
					in = stateInput{kind: "load", id: id}
				case n < 5 && known[id] > 0:
					in = stateInput{kind: "delete", id: id, expected: known[id]}
				}
				called := tick.Add(1)
				out := perform(t, s, in)
				returned := tick.Add(1)
				switch out.verdict {
				case "unknown":
					returned = math.MaxInt64
				case "ok", "conflict":
					known[id] = out.revision
				}
				mu.Lock()
				ops = append(ops, porcupine.Operation{ClientId: c, Input: in, Output: out, Call: called, Return: returned})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return ops
}

func perform(t *testing.T, s *dynactor.StateStore, in stateInput) (out stateOutput) {
	t.Helper()
	var err error
	switch in.kind {
	case "load":
		var st dynactor.State
		st, err = s.Load(t.Context(), in.id)
		if st.Exists() {
			out.value = textOf(st.Message)
		}
		out.revision = st.Revision
	case "save":
		out.revision, err = s.Save(t.Context(), in.id, in.expected, text(in.value))
	case "delete":
		out.revision, err = s.Delete(t.Context(), in.id, in.expected)
	}
	out.verdict = "ok"
	conflict, known := errors.AsType[*dynactor.RevisionConflict](err)
	switch {
	case err == nil:
	case errors.Is(err, dynactor.ErrOutcomeUnknown):
		out.verdict = "unknown"
	case known:
		out.verdict, out.revision = "conflict", conflict.Current
	default:
		out.verdict = "failed"
	}
	return out
}

// told is a history in lines.
func told(history []porcupine.Operation) string {
	text := ""
	for _, op := range history {
		text += fmt.Sprintf("%d to %d, client %d: %+v: %+v\n", op.Call, op.Return, op.ClientId, op.Input, op.Output)
	}
	return text
}
