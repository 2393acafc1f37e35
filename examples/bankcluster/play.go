package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/examples/bank/bankpb"
)

const (
	// nodes is how many there will be in all: three, and one that joins late.
	nodes = 4
	// progressEvery is how often the play tells how far the load is.
	progressEvery = 5 * time.Second
)

// play is the demonstration: a cluster under load to which things happen, and the
// audit.
type play struct {
	flags  flags
	out    io.Writer
	fleet  *fleet
	client *client
	load   *load
	began  time.Time

	mu    sync.Mutex
	news  []string
	phase string
}

// perform runs the play. The verdict of the audit is nil when it was not made.
func perform(ctx context.Context, f flags, stdout, stderr io.Writer) (*verdict, error) {
	late := fmt.Errorf("the demonstration was not over after %s", f.limit)
	ctx, cancel := context.WithTimeoutCause(ctx, f.limit, late)
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)

	var verbose io.Writer
	logger := slog.New(slog.DiscardHandler)
	if f.verbose {
		verbose = stderr
		logger = slog.New(slog.NewTextHandler(stderr, nil))
	}
	run := strings.ToLower(rand.Text()[:8]) // begins the transaction ids, so that no two runs share one
	if f.store.Endpoint == "" && !f.store.AWS {
		var ready serverReady
		server, err := startProcess(ctx, "store", roleServer, struct{}{}, &ready, verbose)
		if err != nil {
			return nil, err
		}
		defer server.end()
		go func() {
			<-server.ended
			fail(fmt.Errorf("the store has ended: %w%s", errors.Join(server.err, errEnded), server.log))
		}()
		f.store.Endpoint = ready.URL
	}
	fleet, err := newFleet(nodeConfig{Cluster: run, Store: f.store}, nodes, verbose, fail)
	if err != nil {
		return nil, err
	}
	defer fleet.end()
	p := &play{flags: f, out: stdout, began: time.Now(), fleet: fleet, client: newClient(fleet), phase: "start"}
	defer p.client.close()
	p.load = &load{client: p.client, run: run}
	for i := range f.accounts {
		p.load.accounts = append(p.load.accounts, fmt.Sprintf("a%02d", i+1))
	}
	page, err := p.serve(ctx)
	if err != nil {
		return nil, err
	}
	defer page.close()
	p.tell("status page at %s", page.url)

	provider, err := f.store.open(ctx, logger)
	if err != nil {
		return nil, err
	}
	defer provider.close(context.WithoutCancel(ctx))
	v, err := p.act(ctx, provider.Provider)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = errors.Join(cause, err)
	}
	return v, err
}

// act is the play between what comes before and after it.
func (p *play) act(ctx context.Context, provider *dynactor.Provider) (*verdict, error) {
	if err := provider.EnsureTables(ctx); err != nil {
		return nil, err
	}
	before, err := readLedger(ctx, provider.Journal(), p.load.accounts)
	if err != nil {
		return nil, err
	}
	if n, money := before.total(); n > 0 {
		p.tell("the store has %d events of earlier runs, %s in all", n, cents(money))
	}
	if err := p.live(ctx); err != nil {
		return nil, err
	}
	p.becomes("audit")
	now, err := readLedger(ctx, provider.Journal(), p.load.accounts)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	v := audit(before, now, p.load.decisions())
	n, money := now.total()
	p.tell("audit: %d events in the journal, %s in all; %d transactions were refused", n, cents(money), p.load.refused.Load())
	return &v, p.compare(ctx, now)
}

// tell prints a line of progress.
func (p *play) tell(format string, args ...any) {
	line := fmt.Sprintf("%5.1fs  ", time.Since(p.began).Seconds()) + fmt.Sprintf(format, args...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.news = append(p.news, line)
	say(p.out, "%s\n", line)
}

func (p *play) becomes(phase string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase = phase
}

// live runs the load, and what happens meanwhile.
func (p *play) live(ctx context.Context) error {
	first := p.fleet.members[:nodes-1]
	if err := p.startAll(ctx, first); err != nil {
		return err
	}
	p.tell("%d nodes see each other", len(first))
	if err := p.load.open(ctx); err != nil {
		return err
	}
	p.tell("%d accounts opened with %s each", len(p.load.accounts), cents(opening))

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := make(chan struct{})
	worked := make(chan error, 1)
	var telling sync.WaitGroup
	telling.Go(func() { p.progress(stop) })
	go func() {
		err := p.load.work(ctx, p.flags.concurrency, stop)
		if err != nil {
			cancel()
		}
		worked <- err
	}()
	happened := p.happen(ctx, first[0], first[1], first[2], p.fleet.members[nodes-1])
	if happened != nil {
		cancel()
	}
	close(stop)
	err := <-worked
	telling.Wait()
	if happened != nil && !errors.Is(happened, context.Canceled) {
		return happened
	}
	return err
}

// startAll starts nodes, and waits until each sees all.
func (p *play) startAll(ctx context.Context, members []*member) error {
	started := make(chan error, len(members))
	for _, m := range members {
		go func() { started <- p.fleet.start(ctx, m) }()
	}
	var errs []error
	for range members {
		errs = append(errs, <-started)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, watcher := range members {
		for _, watched := range members {
			if err := p.fleet.await(ctx, watcher, watched, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// happen is what happens to the nodes while the load runs.
func (p *play) happen(ctx context.Context, victim, sleeper, witness, late *member) error {
	pace := p.flags.pace
	for _, s := range []struct {
		do   func() error
		news string
		then time.Duration
	}{
		{func() error { return nil }, "load on three nodes", pace},
		{
			func() error { p.fleet.kill(victim); return nil },
			victim.name + " is killed with SIGKILL", 0,
		},
		{
			func() error { return p.fleet.await(ctx, witness, victim, false) },
			witness.name + " has given it up", pace,
		},
		{
			func() error { return p.fleet.pause(sleeper) },
			sleeper.name + " is stopped with SIGSTOP", 0,
		},
		{
			func() error { return p.fleet.await(ctx, witness, sleeper, false) },
			witness.name + " has given it up", pace / 2,
		},
		{
			func() error { return p.fleet.resume(sleeper) },
			sleeper.name + " goes on: accounts live on two nodes now, and both get commands", 2 * pace,
		},
		{
			func() error {
				if err := p.fleet.start(ctx, late); err != nil {
					return err
				}
				return p.fleet.await(ctx, witness, late, true)
			},
			late.name + " joins", pace,
		},
	} {
		p.becomes("load")
		if err := s.do(); err != nil {
			return err
		}
		p.tell("%s", s.news)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(s.then):
		}
	}
	return nil
}

// progress tells every few seconds how far the load is.
func (p *play) progress(stop <-chan struct{}) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			p.tell("%d transactions acknowledged, %d commands sent again, %d conflicts",
				p.load.acknowledged(), p.client.repeats.Load(), p.fleet.conflicts())
		}
	}
}

// compare asks the accounts, of which some have to recover first, for what the
// journal says.
func (p *play) compare(ctx context.Context, l ledger) error {
	p.becomes("compare")
	var wrong []string
	for _, account := range p.load.accounts {
		answer, err := p.client.ask(ctx, account, &bankpb.GetStatus{})
		if err != nil {
			return err
		}
		if s, ok := answer.(*bankpb.Status); !ok || s.GetBalance() != l.balance(account) {
			wrong = append(wrong, fmt.Sprintf("%s says %v, the journal %s", account, answer, cents(l.balance(account))))
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("accounts differ from the journal: %s", strings.Join(wrong, "; "))
	}
	p.tell("all %d accounts agree with the journal", len(p.load.accounts))
	return nil
}
