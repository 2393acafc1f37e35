package dynactor_test

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
)

type (
	// do is a message that a member handles by running it.
	do func(*member, actor.Context)
	// pay is persisted and applied, in the order of the house, and answered with Respond.
	pay string
)

// member is an actor whose state is the list of its events.
type member struct {
	dynactor.Mixin

	h     *house
	state []string
}

func (m *member) Receive(ctx actor.Context) {
	if hook := m.h.hook; hook != nil {
		hook(m, ctx)
	}
	switch message := ctx.Message().(type) {
	case *persistence.RequestSnapshot:
		m.h.note("RequestSnapshot")
		m.PersistSnapshot(m.list())
	case *structpb.ListValue:
		for _, v := range message.GetValues() {
			m.state = append(m.state, v.GetStringValue())
		}
	case *wrapperspb.StringValue:
		m.state = append(m.state, message.GetValue())
	case pay:
		if m.h.applyFirst {
			m.state = append(m.state, string(message))
		}
		m.PersistReceive(text(string(message)))
		if !m.h.applyFirst {
			m.state = append(m.state, string(message))
		}
		ctx.Respond(append([]string(nil), m.state...))
	case get:
		ctx.Respond(append([]string(nil), m.state...))
	case do:
		message(m, ctx)
	case fail:
		panic("as asked")
	}
}

// list is the state as a message.
func (m *member) list() *structpb.ListValue {
	list := &structpb.ListValue{}
	for _, s := range m.state {
		list.Values = append(list.Values, structpb.NewStringValue(s))
	}
	return list
}

// house is a process whose actors are members.
type house struct {
	*process

	applyFirst bool
	hook       func(*member, actor.Context) // before each message
}

func newHouse(t *testing.T) *house {
	t.Helper()
	return &house{process: newProcess(t)}
}

// using starts a member.
func (h *house) using(p *dynactor.Provider, id string, o dynactor.UsingOptions) {
	h.t.Helper()
	h.spawnProps(id, actor.PropsFromProducer(func() actor.Actor { return &member{h: h} }, actor.WithReceiverMiddleware(dynactor.Using(p, o))))
}

// run makes a member do something and waits until it has done it. What f panics
// with goes on to the supervisor.
func (h *house) run(id string, f func(*member, actor.Context)) {
	h.t.Helper()
	done := make(chan struct{})
	h.send(id, do(func(m *member, ctx actor.Context) {
		defer close(done)
		f(m, ctx)
	}))
	<-done
}

// ask sends a request and returns whatever comes back.
func (h *house) ask(id string, message any) any {
	h.t.Helper()
	got, err := h.system.Root.RequestFuture(h.pid(id), message, longest).Result()
	if err != nil {
		h.t.Fatalf("%v: %v", message, err)
	}
	return got
}
