package dynactor_test

import (
	"fmt"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/dynactor/dynactor"
)

type (
	// keep is saved and then answered with "kept" and the revision.
	keep string
	// drop is a deletion.
	drop struct{}
	// keeperDo is run by a keeper.
	keeperDo func(*keeper, actor.Context)
)

// keeper is an actor whose state is one text.
type keeper struct {
	dynactor.StateMixin

	w     *keepers
	value string
}

func (k *keeper) Receive(ctx actor.Context) {
	if hook := k.w.hook; hook != nil {
		hook(k, ctx)
	}
	switch m := ctx.Message().(type) {
	case *dynactor.StateLoaded:
		k.w.note(fmt.Sprint("loaded ", m.Revision))
		k.value = ""
		if m.Exists() {
			k.value = textOf(m.Message)
		}
	case keep:
		if err := k.SaveState(text(string(m))); err != nil {
			ctx.Respond(err)
			return
		}
		k.value = string(m)
		ctx.Respond([]string{k.value, fmt.Sprint(k.Revision())})
	case drop:
		if err := k.DeleteState(); err != nil {
			ctx.Respond(err)
			return
		}
		k.value = ""
		ctx.Respond([]string{k.value, fmt.Sprint(k.Revision())})
	case get:
		ctx.Respond([]string{k.value, fmt.Sprint(k.Revision())})
	case keeperDo:
		m(k, ctx)
	case fail:
		panic("as asked")
	}
}

// keepers is a process whose actors are keepers.
type keepers struct {
	*house

	hook func(*keeper, actor.Context) // before each message
}

func newKeepers(t *testing.T) *keepers {
	t.Helper()
	return &keepers{house: newHouse(t)}
}

func (w *keepers) keeper(p *dynactor.Provider, id string, o dynactor.UsingStateOptions) {
	w.t.Helper()
	w.spawnProps(id, actor.PropsFromProducer(func() actor.Actor { return &keeper{w: w} }, actor.WithReceiverMiddleware(dynactor.UsingState(p, o))))
}

// runKeeper makes a keeper do something and waits until it has done it.
func (w *keepers) runKeeper(id string, f func(*keeper, actor.Context)) {
	w.t.Helper()
	done := make(chan struct{})
	w.send(id, keeperDo(func(k *keeper, ctx actor.Context) {
		defer close(done)
		f(k, ctx)
	}))
	<-done
}

func at(value string, revision int) []string { return []string{value, fmt.Sprint(revision)} }
