// Command soak works on shared streams and states from many sides, with every
// kind of fault, for as long as one likes, and checks after each round that no
// guarantee of the library was broken.
//
//	go run ./soak -duration 10m                      # on an embedded server
//	go run ./soak -duration 10m -endpoint URL        # on any other
//	go run ./soak -seed 1234 -rounds 1               # the choices of one round again
//
// A round's seed decides what everybody does and which requests meet which
// fault; the order of requests is that of the machine, so it takes some tries to
// see a rare violation again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"github.com/dynactor/dynactor/dynactortest"
)

type settings struct {
	duration time.Duration
	rounds   int
	round    time.Duration
	seed     uint64
	endpoint string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) //nolint:forbidigo // the program begins here
	var s settings
	flag.DurationVar(&s.duration, "duration", time.Minute, "how long new rounds are begun")
	flag.IntVar(&s.rounds, "rounds", 0, "how many rounds at most; 0 for as many as fit")
	flag.DurationVar(&s.round, "round", roundTime, "how long a round goes on")
	flag.Uint64Var(&s.seed, "seed", uint64(rand.Uint32()), "seed of the first round; each further one has the next") //nolint:gosec // no secret
	flag.StringVar(&s.endpoint, "endpoint", "", "URL of a DynamoDB; empty for an embedded one")
	flag.Parse()
	err := soak(ctx, os.Stdout, s)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// soak makes rounds until the time is over or there is a violation.
func soak(ctx context.Context, w io.Writer, s settings) (err error) {
	url := s.endpoint
	if url == "" {
		server := dynactortest.NewEmbedded()
		defer func() {
			if !errors.Is(err, errStuck) { // or closing would wait for it, too
				server.Close()
			}
		}()
		url = server.URL
	}
	_, _ = fmt.Fprintf(w, "soak on %s for %s, seed %d\n", url, s.duration, s.seed)
	t := newTally()
	start := time.Now()
	seed := s.seed
	for n := 1; err == nil && ctx.Err() == nil; n++ {
		err = run(ctx, url, seed, s.round, t)
		operations, faults, violations := t.sums()
		_, _ = fmt.Fprintf(w, "%8s round %d, seed %d: operations %d, faults %d, violations %d\n",
			time.Since(start).Round(time.Second), n, seed, operations, faults, violations)
		if violations > 0 || n == s.rounds || time.Since(start) >= s.duration {
			break
		}
		seed++
	}
	t.print(w)
	operations, faults, violations := t.sums()
	if violations > 0 {
		_, _ = fmt.Fprintf(w, "to see it again: go run ./soak -seed %d -round %s\n", seed, s.round)
		err = errors.Join(err, fmt.Errorf("violations in the round with seed %d", seed))
	}
	_, _ = fmt.Fprintf(w, "operations %d, faults %d, violations %d\n", operations, faults, violations)
	return err
}
