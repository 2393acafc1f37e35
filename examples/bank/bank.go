package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/examples/bank/bankpb"
)

// A command that is not answered in time is sent again, which its transaction id
// makes harmless. The time is longer than the provider's for one write, so that a
// slow write is still answered.
const (
	defaultPatience = dynactor.DefaultWriteTimeout + 5*time.Second
	tries           = 3
)

// errNoAnswer says that an account did not answer: nobody knows whether the
// command was carried out. Repeating it is safe.
var errNoAnswer = errors.New("no answer")

// bank is an actor system whose accounts are persistent. It is safe for
// concurrent use.
type bank struct {
	system   *actor.ActorSystem
	provider *dynactor.Provider
	accounts map[string]*actor.PID
	patience time.Duration // how long one try of a command waits
}

// openBank starts an actor system with the named accounts. Each recovers from
// the store before it handles its first command.
func openBank(ctx context.Context, client dynactor.Client, o dynactor.Options, names []string) (*bank, error) {
	provider, err := dynactor.New(client, o)
	if err != nil {
		return nil, err
	}
	// The first event would do it, too; here a failure has somebody to tell.
	if err := provider.EnsureTables(ctx); err != nil {
		return nil, errors.Join(err, provider.Close(ctx))
	}
	b := &bank{
		system:   actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return o.Logger })),
		provider: provider,
		accounts: map[string]*actor.PID{},
		patience: defaultPatience,
	}
	props := accountProps(provider)
	for _, name := range names {
		// The name is the persistence id, so it must be the same at every start:
		// SpawnNamed, never Spawn.
		pid, err := b.system.Root.SpawnNamed(props, name)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open %s: %w", name, err), b.stop(ctx))
		}
		b.accounts[name] = pid
	}
	return b, nil
}

// ask sends a command to an account until it is answered. The answer is a
// Receipt, a Refusal or a Status.
func (b *bank) ask(ctx context.Context, name string, command proto.Message) (proto.Message, error) {
	pid := b.accounts[name]
	if pid == nil {
		return nil, fmt.Errorf("there is no %s", name)
	}
	for n := 1; ; n++ {
		answer, err := wait(ctx, b.system.Root.RequestFuture(pid, command, b.patience))
		switch {
		case err == nil:
			return answer, nil
		case !errors.Is(err, actor.ErrTimeout) || n == tries:
			return nil, fmt.Errorf("%w from %s: %w", errNoAnswer, name, err)
		}
	}
}

// wait waits for a future, but not longer than ctx lasts. What it starts ends
// with the future, which has a limit of its own.
func wait(ctx context.Context, f *actor.Future) (proto.Message, error) {
	type outcome struct {
		answer any
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		answer, err := f.Result()
		done <- outcome{answer, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return nil, o.err
		}
		answer, ok := o.answer.(proto.Message)
		if !ok {
			return nil, fmt.Errorf("the answer is a %T", o.answer)
		}
		return answer, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// transfer moves money from one account to another. credit is nil when the debit
// was refused. After an error either leg may have been done or not: the same
// transfer again does what is left of it, and answers like the first time.
func (b *bank) transfer(ctx context.Context, tx, from, to string, amount int64) (debit, credit proto.Message, err error) {
	if from == to || b.accounts[to] == nil {
		return nil, nil, fmt.Errorf("no transfer from %s to %s", from, to)
	}
	// The debit goes first: money may be under way, but never in two places.
	debit, err = b.ask(ctx, from, &bankpb.Debit{TxId: tx, To: to, Amount: amount})
	if err != nil {
		return nil, nil, err
	}
	if _, done := debit.(*bankpb.Receipt); !done {
		return debit, nil, nil
	}
	credit, err = b.ask(ctx, to, &bankpb.Credit{TxId: tx, From: from, Amount: amount})
	return debit, credit, err
}

// status asks an account how it stands.
func (b *bank) status(ctx context.Context, name string) (*bankpb.Status, error) {
	answer, err := b.ask(ctx, name, &bankpb.GetStatus{})
	if err != nil {
		return nil, err
	}
	s, ok := answer.(*bankpb.Status)
	if !ok {
		return nil, fmt.Errorf("%s answered with a %T", name, answer)
	}
	return s, nil
}

// stop lets the accounts finish what they have received, stops them, then the
// actor system and the provider. What is still in flight when ctx ends is cancelled.
func (b *bank) stop(ctx context.Context) error {
	futures := make([]*actor.Future, 0, len(b.accounts))
	for _, pid := range b.accounts {
		futures = append(futures, b.system.Root.PoisonFuture(pid))
	}
	stopped := make(chan error, 1)
	go func() {
		var errs []error
		for _, f := range futures {
			errs = append(errs, f.Wait())
		}
		stopped <- errors.Join(errs...)
	}()
	var err error
	select {
	case err = <-stopped:
	case <-ctx.Done():
		err = ctx.Err()
	}
	b.system.Shutdown()
	return errors.Join(err, b.provider.Close(ctx))
}
