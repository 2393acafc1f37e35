package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
)

// stateHistory is what happened to one durable state, for porcupine.
type stateHistory struct {
	id    string
	tally *tally

	mu   sync.Mutex
	list []porcupine.Operation
}

type stateInput struct {
	kind     string // load, save, delete
	expected int64
	value    string
}

type stateOutput struct {
	outcome  outcome
	revision int64
	value    string // empty: there is none
}

// register is the state as it should be; the first value is that of no row.
type register struct {
	revision int64
	value    string
}

// step lists what a register can be after an operation that gave an output.
func step(s register, in stateInput, out stateOutput) []register {
	fits := s.revision == in.expected
	next := register{in.expected + 1, in.value}
	switch {
	case in.kind == "load":
		if out.revision == s.revision && out.value == s.value {
			return []register{s}
		}
	case out.outcome == acknowledged:
		if fits && out.revision == next.revision {
			return []register{next}
		}
	case out.outcome == refused: // a conflict
		if !fits {
			return []register{s}
		}
	case fits:
		return []register{s, next}
	default:
		return []register{s}
	}
	return nil
}

var stateModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{register{}} },
	Step: func(state, input, output any) []any {
		var list []any
		in, _ := input.(stateInput)
		out, _ := output.(stateOutput)
		s, _ := state.(register)
		for _, next := range step(s, in, out) {
			list = append(list, next)
		}
		return list
	},
	Equal: func(a, b any) bool { return a == b },
}

const porcupineTimeout = 20 * time.Second

// check judges the history. One that takes too long to judge is counted as such.
func (h *stateHistory) check() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settleUnknown()
	switch porcupine.CheckOperationsTimeout(stateModel.ToModel(), h.list, porcupineTimeout) {
	case porcupine.Illegal:
		h.tally.violation("%s: not linearizable: %s", h.id, h.describe())
	case porcupine.Unknown:
		h.tally.outcome("state histories not judged in time")
	case porcupine.Ok:
		h.tally.outcome("state histories judged")
	}
}

// settleUnknown lets an operation of unknown outcome end when somebody has seen
// a later revision: what has not happened by then never will, since the revision
// that it expects is gone. That keeps the search small.
func (h *stateHistory) settleUnknown() {
	for i, op := range h.list {
		in, out := parts(op)
		if in.kind == "load" || out.outcome != unknown {
			continue
		}
		h.list[i].Return = math.MaxInt64
		for _, other := range h.list {
			_, seen := parts(other)
			if seen.outcome == acknowledged && seen.revision > in.expected && other.Return >= op.Return {
				h.list[i].Return = min(h.list[i].Return, other.Return)
			}
		}
	}
}

func parts(op porcupine.Operation) (stateInput, stateOutput) {
	in, _ := op.Input.(stateInput)
	out, _ := op.Output.(stateOutput)
	return in, out
}

func (h *stateHistory) describe() string {
	const most = 40
	s := fmt.Sprintf("%d operations, the last are", len(h.list))
	for _, op := range h.list[max(0, len(h.list)-most):] {
		in, out := parts(op)
		s += fmt.Sprintf("\n%d-%d client %d: %+v: %+v", op.Call, op.Return, op.ClientId, in, out)
	}
	return s
}

// keeper loads, saves and deletes one state.
type keeper struct {
	r      *round
	h      *stateHistory
	proc   *process
	luck   *luck
	client int

	known  int64
	exists bool
	texts  int
}

func (k *keeper) work(ctx context.Context) {
	for !k.r.over() {
		k.once(ctx)
		k.r.rest(k.luck, 40*time.Millisecond)
	}
}

func (k *keeper) once(ctx context.Context) {
	ctx, cancel := limited(ctx, k.luck)
	defer cancel()
	s := k.proc.provider().State()
	if k.luck.in(3) {
		k.load(ctx, s)
		return
	}
	in := stateInput{kind: "save", expected: k.known}
	call := time.Now()
	var revision int64
	var err error
	if k.exists && k.luck.in(5) {
		in.kind = "delete"
		revision, err = s.Delete(ctx, k.h.id, k.known)
	} else {
		k.texts++
		in.value = fmt.Sprintf("k%d-%d", k.client, k.texts)
		revision, err = s.Save(ctx, k.h.id, k.known, wrapperspb.String(in.value))
	}
	k.r.tally.operation(in.kind + " state")
	out := stateOutput{outcome: k.r.outcome(k.h.id, in.kind+" state", err), revision: revision}
	if err == nil {
		k.known, k.exists = revision, in.kind == "save"
	}
	if out.outcome == refused && !errors.Is(err, dynactor.ErrConflict) {
		return // it did nothing: if it did after all, no load can be explained
	}
	k.h.add(k.client, in, out, call)
	if err != nil {
		k.load(ctx, s)
	}
}

func (k *keeper) load(ctx context.Context, s *dynactor.StateStore) {
	call := time.Now()
	k.r.tally.operation("load state")
	st, err := s.Load(ctx, k.h.id)
	if err != nil {
		k.r.failed(k.h.id, "load state", err)
		return
	}
	out := stateOutput{revision: st.Revision}
	if m, ok := st.Message.(*wrapperspb.StringValue); ok {
		out.value = m.GetValue()
	}
	k.known, k.exists = st.Revision, st.Exists()
	k.h.add(k.client, stateInput{kind: "load"}, out, call)
}

func (h *stateHistory) add(client int, in stateInput, out stateOutput, call time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, porcupine.Operation{
		ClientId: client, Input: in, Call: call.Sub(epoch).Nanoseconds(), Output: out, Return: time.Since(epoch).Nanoseconds(),
	})
}

// epoch is where histories count from, by the monotonic clock.
var epoch = time.Now()
