package dynactortest_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/persistence"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// counter is an actor under test.
type counter struct {
	persistence.Mixin

	sum int64
}

func (c *counter) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *wrapperspb.Int64Value:
		sender := ctx.Sender()
		if !c.Recovering() {
			c.PersistReceive(m)
		}
		c.sum += m.GetValue()
		if sender != nil {
			ctx.Send(sender, c.sum)
		}
	case *persistence.RequestSnapshot:
		c.PersistSnapshot(wrapperspb.UInt64(uint64(c.sum)))
	case *wrapperspb.UInt64Value:
		c.sum = int64(m.GetValue())
	}
}

func ExampleNewMemory() {
	memory := dynactortest.NewMemory()
	system := actor.NewActorSystem()
	defer system.Shutdown()
	props := actor.PropsFromProducer(func() actor.Actor { return &counter{} }, actor.WithReceiverMiddleware(persistence.Using(memory)))
	for range 2 { // it lives twice
		pid, err := system.Root.SpawnNamed(props, "alice")
		if err != nil {
			fmt.Println(err)
			return
		}
		sum, err := system.Root.RequestFuture(pid, wrapperspb.Int64(21), -1).Result()
		fmt.Println(sum, err)
		if err := system.Root.PoisonFuture(pid).Wait(); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(memory.Aliased())
	// Output:
	// 21 <nil>
	// 42 <nil>
	// []
}

// The rest is tested by the suites of package conformance.
func TestMemory_Aliased(t *testing.T) {
	t.Parallel()
	m := dynactortest.NewMemory()
	s := m.GetState()
	first, second, snapshot := wrapperspb.Int64(1), wrapperspb.Int64(2), wrapperspb.UInt64(3)
	s.PersistEvent("a", 0, first)
	s.PersistEvent("a", 1, second)
	s.PersistSnapshot("a", 2, snapshot)
	if got := m.Aliased(); got != nil {
		t.Errorf("nothing was changed, and %q is named", got)
	}
	second.Value, snapshot.Value = 20, 30
	if diff := cmp.Diff([]string{`event 2 of "a"`, `snapshot 2 of "a"`}, m.Aliased()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMemory_ErrorsAreTheLibrarys(t *testing.T) {
	t.Parallel()
	m := dynactortest.NewMemory()
	_, err := m.Journal().Append(t.Context(), "a", 5, wrapperspb.Int64(1))
	e, ok := errors.AsType[*dynactor.Error](err)
	if !ok || !errors.Is(err, dynactor.ErrConflict) || e.Op != "append" || e.ID != "a" || e.Index != 5 {
		t.Errorf("got %#v", err)
	}
}
