// Command cart is a shop whose carts are actors with durable state on DynamoDB: they
// outlast the actor system, two activations of one do not overwrite each other, and
// a forgotten cart expires.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
	"github.com/dynactor/dynactor/examples/cart/cartpb"
)

func main() {
	endpoint := flag.String("endpoint", "", "`URL` of a DynamoDB Local, LocalStack or the like; by default one is embedded")
	table := flag.String("table", "dynactor_cart", "`name` of the table of carts")
	flag.Parse()
	if *endpoint == "" {
		server := dynactortest.NewEmbedded()
		defer server.Close()
		*endpoint = server.URL
	}
	if err := run(context.Background(), *endpoint, *table, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cart:", err)
		os.Exit(1)
	}
}

// answerTime is how long an answer may take: more than a write may.
const answerTime = 2 * dynactor.DefaultWriteTimeout

// shop is one process with carts.
type shop struct {
	system *actor.ActorSystem
	props  *actor.Props
	pids   map[string]*actor.PID
}

// run is the demonstration.
func run(ctx context.Context, endpoint, table string, out io.Writer) error {
	var ahead atomic.Int64 // how far the clock of this demonstration is ahead
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	quiet := slog.New(slog.DiscardHandler)
	p, err := dynactor.Open(ctx, dynactor.Options{Endpoint: endpoint, StateTables: []string{table}, Now: now, Logger: quiet})
	if err != nil {
		return err
	}
	if err := p.State().EnsureTables(ctx); err != nil {
		return err
	}
	var failed error
	open := func() *shop { //nolint:contextcheck // an actor has no context
		return &shop{
			system: actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet })),
			props:  cartProps(p, now), pids: map[string]*actor.PID{},
		}
	}
	tell := func(what string, s *shop, id string, command any) {
		if failed != nil {
			return
		}
		var answer string
		if answer, failed = s.ask(id, command); failed == nil {
			_, failed = fmt.Fprintf(out, "%-44s %s\n", what, answer)
		}
	}

	first := open()
	for _, id := range []string{"alice", "bob"} { // an earlier run may have left something
		if _, err := first.ask(id, &cartpb.Order{}); err != nil {
			return err
		}
	}
	tell("alice takes two apples", first, "alice", &cartpb.Put{Article: "apples", Pieces: 2})
	tell("alice takes a pear", first, "alice", &cartpb.Put{Article: "pears", Pieces: 1})
	first.close()

	second, third := open(), open()
	tell("another process knows the cart", second, "alice", &cartpb.Show{})
	tell("and a third one", third, "alice", &cartpb.Show{})
	tell("alice takes a third apple, there", third, "alice", &cartpb.Put{Article: "apples", Pieces: 3})
	tell("a cart that is behind overwrites nothing", second, "alice", &cartpb.Put{Article: "pears", Pieces: 9})
	tell("but loads what is there", second, "alice", &cartpb.Show{})
	tell("alice orders", second, "alice", &cartpb.Order{})
	tell("her cart is empty", second, "alice", &cartpb.Show{})

	tell("bob takes a melon", second, "bob", &cartpb.Put{Article: "melons", Pieces: 1})
	second.close()
	third.close()
	ahead.Store(int64(lifetime + time.Minute))
	fourth := open()
	tell("half an hour later his cart has expired", fourth, "bob", &cartpb.Show{})
	tell("and he may begin again", fourth, "bob", &cartpb.Put{Article: "plums", Pieces: 7})
	fourth.close()
	if err := p.Close(ctx); failed == nil {
		failed = err
	}
	return failed
}

// ask starts the cart where it does not run yet, and shows its answer.
func (s *shop) ask(id string, command any) (string, error) {
	pid := s.pids[id]
	if pid == nil {
		var err error
		if pid, err = s.system.Root.SpawnNamed(s.props, "cart/"+id); err != nil {
			return "", err
		}
		s.pids[id] = pid
	}
	answer, err := s.system.Root.RequestFuture(pid, command, answerTime).Result()
	if err != nil {
		return "", err
	}
	switch a := answer.(type) {
	case *cartpb.Cart:
		return show(a), nil
	case *dynactor.PersistenceFailure:
		return "refused: " + a.GetCode(), nil
	}
	return "", fmt.Errorf("unexpected answer %T", answer)
}

func show(c *cartpb.Cart) string {
	var parts []string
	for article, pieces := range c.GetPieces() {
		parts = append(parts, fmt.Sprintf("%d %s", pieces, article))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func (s *shop) close() { s.system.Shutdown() }
