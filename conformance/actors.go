package conformance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// account is an actor that adds up amounts.
type account struct {
	persistence.Mixin

	total      int64
	applyFirst bool // apply before persisting, which needs more than the framework has
}

// Messages to an account besides an amount, which it persists.
type (
	total struct{} // what is the total?
	burst struct{} // panic
)

func (a *account) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *wrapperspb.UInt64Value: // a snapshot
		a.total = int64(m.GetValue()) //nolint:gosec // it was a total
	case *wrapperspb.Int64Value:
		a.add(ctx, m)
	case *persistence.RequestSnapshot:
		a.PersistSnapshot(wrapperspb.UInt64(uint64(a.total))) //nolint:gosec // totals are small
	case total:
		ctx.Respond(a.total)
	case burst:
		panic(errors.New("as asked")) //nolint:forbidigo // so that the supervisor restarts it
	}
}

func (a *account) add(ctx actor.Context, m *wrapperspb.Int64Value) {
	if a.Recovering() {
		a.total += m.GetValue()
		return
	}
	sender := ctx.Sender() // a snapshot on the way may lose it
	if a.applyFirst {
		a.total += m.GetValue()
		a.PersistReceive(m)
	} else {
		a.PersistReceive(m)
		a.total += m.GetValue()
	}
	if sender != nil {
		ctx.Send(sender, a.total)
	}
}

// house is an actor system with a provider.
type house struct {
	system     *actor.ActorSystem
	provider   persistence.Provider
	using      func(persistence.Provider) actor.ReceiverMiddleware
	applyFirst bool
}

func (e ProviderEnv) house(p persistence.Provider, applyFirst bool) *house {
	h := &house{provider: p, using: e.Using, applyFirst: applyFirst}
	if h.using == nil {
		h.using = func(p persistence.Provider) actor.ReceiverMiddleware { return persistence.Using(p) }
	}
	h.system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	return h
}

func (h *house) spawn() (*actor.PID, error) {
	props := actor.PropsFromProducer(func() actor.Actor { return &account{applyFirst: h.applyFirst} }, actor.WithReceiverMiddleware(h.using(h.provider)))
	pid, err := h.system.Root.SpawnNamed(props, "account")
	if err != nil {
		return nil, fmt.Errorf("spawn: %w", err)
	}
	return pid, nil
}

// ask sends a message and returns the total of the answer.
func (h *house) ask(pid *actor.PID, m any) (int64, error) {
	answer, err := h.system.Root.RequestFuture(pid, m, 10*time.Second).Result()
	if err != nil {
		return 0, fmt.Errorf("the account does not answer %v: %w", m, err)
	}
	n, ok := answer.(int64)
	if !ok {
		return 0, fmt.Errorf("the account answers %v with %v", m, answer)
	}
	return n, nil
}

// pay adds 1 to n to the account, and checks each answer.
func (h *house) pay(pid *actor.PID, before, n int64) error {
	for i := int64(1); i <= n; i++ {
		before += i
		got, err := h.ask(pid, wrapperspb.Int64(i))
		if err != nil {
			return err
		}
		if got != before {
			return fmt.Errorf("the account says %d after a payment of %d, want %d", got, i, before)
		}
	}
	return nil
}

// owns checks the total of an account.
func (h *house) owns(pid *actor.PID, want int64) error {
	got, err := h.ask(pid, total{})
	if err == nil && got != want {
		err = fmt.Errorf("the account has a total of %d, want %d", got, want)
	}
	return err
}

// stop ends an actor and waits until it has ended.
func (h *house) stop(pid *actor.PID) error {
	if err := h.system.Root.PoisonFuture(pid).Wait(); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	return nil
}

// actorCases are about actors of the framework.
func actorCases() Suite[ProviderEnv] {
	return Suite[ProviderEnv]{
		{
			Name: "F-60 an actor that persists before it applies", Why: "this is the order for the framework's own middleware",
			Check: func(_ context.Context, e ProviderEnv) error { return lives(e, false) },
		},
		{
			Name: "F-61 an actor that applies before it persists", Why: "many actors are written so, and a snapshot on the way doubles an event", Needs: []Feature{ApplyFirst},
			Check: func(_ context.Context, e ProviderEnv) error { return lives(e, true) },
		},
		{
			Name: "F-62 an actor that panics", Why: "the supervisor restarts it, and it must find its total again",
			Check: func(_ context.Context, e ProviderEnv) error {
				h := e.house(e.Provider, false)
				defer h.system.Shutdown()
				pid, err := h.spawn()
				if err != nil {
					return err
				}
				sum := int64(0)
				for range 3 {
					if err := h.pay(pid, sum, 4); err != nil {
						return err
					}
					sum += 10
					h.system.Root.Send(pid, burst{})
					if err := h.owns(pid, sum); err != nil {
						return fmt.Errorf("after a restart: %w", err)
					}
				}
				return h.stop(pid)
			},
		},
		{
			Name: "F-63 two incarnations of one actor", Why: "in a split brain the one that loses restarts, and finds what the other did", Needs: []Feature{Processes, Conflicts},
			Check: checkSplitBrain,
		},
		{
			Name: "F-64 an actor whose write fails", Why: "it restarts with what is stored, and serves the next message", Needs: []Feature{Faults},
			Check: checkFailedWrite,
		},
	}
}

// lives lets an actor live three times, each time with a few payments.
func lives(e ProviderEnv, applyFirst bool) error {
	for life := range int64(3) {
		if err := e.live(28*life, applyFirst); err != nil {
			return fmt.Errorf("in life %d: %w", life+1, err)
		}
	}
	return nil
}

// live lets an actor live that should have a total.
func (e ProviderEnv) live(sum int64, applyFirst bool) error {
	h := e.house(e.other(), applyFirst)
	defer h.system.Shutdown()
	pid, err := h.spawn()
	if err != nil {
		return err
	}
	if err := h.owns(pid, sum); err != nil {
		return err
	}
	if err := h.pay(pid, sum, 7); err != nil {
		return err
	}
	return h.stop(pid)
}

func checkSplitBrain(_ context.Context, e ProviderEnv) error {
	var houses []*house
	var pids []*actor.PID
	for _, p := range []persistence.Provider{e.Provider, e.Another()} {
		h := e.house(p, false)
		defer h.system.Shutdown()
		pid, err := h.spawn()
		if err != nil {
			return err
		}
		houses, pids = append(houses, h), append(pids, pid)
	}
	if err := first(houses[0].owns(pids[0], 0), houses[1].owns(pids[1], 0), houses[0].pay(pids[0], 0, 3)); err != nil {
		return err
	}
	houses[1].system.Root.Send(pids[1], wrapperspb.Int64(100)) // it does not know of the payments, so it must fail
	return first(houses[1].owns(pids[1], 6), houses[1].pay(pids[1], 6, 2))
}

func checkFailedWrite(ctx context.Context, e ProviderEnv) error {
	h := e.house(e.Provider, false)
	defer h.system.Shutdown()
	pid, err := h.spawn()
	if err := first(err, h.pay(pid, 0, 3), e.Trouble(ctx, FailWrites)); err != nil {
		return err
	}
	h.system.Root.Send(pid, wrapperspb.Int64(100))
	if err := first(h.owns(pid, 6), e.Trouble(ctx, Calm)); err != nil {
		return err
	}
	return first(h.pay(pid, 6, 2), h.stop(pid))
}
