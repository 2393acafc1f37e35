package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/examples/bank/bankpb"
)

// play is the demonstration: a cluster under load to which things happen, and the
// audit.
type play struct {
	flags  flags
	out    io.Writer
	cast   *cast
	teller *teller
	load   *load
	began  time.Time

	mu    sync.Mutex
	news  []string
	phase string
}

// perform runs the play. It returns the verdict of the audit.
func perform(ctx context.Context, f flags, out io.Writer) (v verdict, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.limit)
	defer cancel()
	p := &play{flags: f, out: out, teller: newTeller(), began: time.Now()}
	for i := range f.accounts {
		p.accounts(fmt.Sprintf("a%02d", i+1))
	}
	if p.cast, err = newCast(ctx, f); err != nil {
		return v, err
	}
	defer p.cast.end()
	page, err := p.serve(ctx)
	if err != nil {
		return v, err
	}
	defer page.close()
	p.tell("status page at %s", page.url)

	client, err := openStore(ctx, p.cast.flags)
	if err != nil {
		return v, err
	}
	provider, err := dynactor.New(client, f.options(slog.New(slog.DiscardHandler)))
	if err != nil {
		return v, err
	}
	defer func() { _ = provider.Close(context.WithoutCancel(ctx)) }()
	if err := provider.EnsureTables(ctx); err != nil {
		return v, err
	}
	before, err := readLedger(ctx, provider.Journal(), p.load.accounts)
	if err != nil {
		return v, err
	}
	if before.events > 0 {
		p.tell("the store has %d events of earlier runs, %s in all", before.events, cents(before.total()))
	}
	if err := p.live(ctx); err != nil {
		return v, err
	}
	p.becomes("audit")
	now, err := readLedger(ctx, provider.Journal(), p.load.accounts)
	if err != nil {
		return v, fmt.Errorf("audit: %w", err)
	}
	v = audit(before, now, p.load.acked)
	p.tell("%d events in the journal, %s in all; %d refused, %d commands sent again, %d conflicts between writers",
		now.events, cents(now.total()), p.load.refused.Load(), p.teller.repeated.Load(), p.teller.conflicts.Load())
	wrong, err := p.compare(ctx, now)
	if err != nil {
		return v, fmt.Errorf("%w; the audit said: %s", err, v)
	}
	v.differ = len(wrong)
	v.notes = append(wrong, v.notes...)
	return v, nil
}

func (p *play) accounts(name string) {
	if p.load == nil {
		p.load = &load{teller: p.teller, run: "r" + strconv.FormatUint(rand.Uint64(), 36)}
	}
	p.load.accounts = append(p.load.accounts, name)
}

// tell prints a line of progress.
func (p *play) tell(format string, args ...any) {
	line := fmt.Sprintf("%5.1fs  ", time.Since(p.began).Seconds()) + fmt.Sprintf(format, args...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.news = append(p.news, line)
	_, _ = fmt.Fprintln(p.out, line)
}

func (p *play) becomes(phase string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase = phase
}

// live runs the load, and what happens meanwhile.
func (p *play) live(ctx context.Context) error {
	p.becomes("start")
	var nodes []*node
	for range nodeCount - 1 {
		n, err := p.cast.start()
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		if err := n.sees(ctx, len(nodes)); err != nil {
			return err
		}
		n.becomes("alive")
	}
	p.use(nodes...)
	p.tell("three nodes see each other")
	if err := p.load.open(ctx); err != nil {
		return err
	}
	p.tell("%d accounts opened with %s each", len(p.load.accounts), cents(opening))

	stop, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- p.load.work(ctx, p.flags.workers, stop) }()
	stopProgress := p.progress()
	happened := p.happen(ctx, nodes)
	close(stop)
	worked := <-done
	stopProgress()
	if happened != nil {
		return happened
	}
	return worked
}

// happen is what happens to the nodes while the load runs.
func (p *play) happen(ctx context.Context, nodes []*node) error {
	p.becomes("load")
	victim, sleeper, witness := nodes[0], nodes[1], nodes[2]
	steps := []struct {
		news string
		do   func() error
		then time.Duration
	}{
		{"load on three nodes", func() error { return nil }, p.flags.pace},
		{"node 1 is killed with SIGKILL", func() error {
			defer p.use(sleeper, witness)
			return victim.kill()
		}, p.flags.pace},
		{"node 2 is stopped with SIGSTOP", sleeper.stop, 0},
		{"node 3 has given it up", func() error { return witness.sees(ctx, 1) }, p.flags.pace / 2},
		{"node 2 goes on: two nodes have the same accounts now, and both get commands", sleeper.goOn, 2 * p.flags.pace},
		{"node 4 joins", func() error {
			n, err := p.cast.start()
			if err != nil {
				return err
			}
			if err := witness.sees(ctx, 2); err != nil {
				return err
			}
			n.becomes("alive")
			p.use(sleeper, witness, n)
			return nil
		}, p.flags.pace},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			return err
		}
		p.tell("%s", s.news)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(s.then):
		}
	}
	return nil
}

// use sends commands to these nodes from now on.
func (p *play) use(nodes ...*node) {
	var urls []string
	for _, n := range nodes {
		urls = append(urls, n.url)
	}
	p.teller.use(urls...)
}

// progress tells every few seconds how far the load is. It returns what ends that.
func (p *play) progress() (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				p.tell("%d transactions acknowledged, %d commands sent again, %d conflicts",
					p.load.acknowledged(), p.teller.repeated.Load(), p.teller.conflicts.Load())
			}
		}
	}()
	return func() { close(quit); <-ended }
}

// compare asks the accounts, of which some have to recover first, for what the
// journal says, and returns what differs.
func (p *play) compare(ctx context.Context, l *ledger) (wrong []string, err error) {
	p.becomes("compare")
	p.use(p.cast.all()[2:]...)
	for _, account := range p.load.accounts {
		answer, err := p.teller.ask(ctx, account, &bankpb.GetStatus{})
		if err != nil {
			return nil, err
		}
		if s, ok := answer.(*bankpb.Status); !ok || s.GetBalance() != l.balances[account] {
			wrong = append(wrong, fmt.Sprintf("%s says %v, the journal %s", account, answer, cents(l.balances[account])))
		}
	}
	if len(wrong) == 0 {
		p.tell("all %d accounts agree with the journal", len(p.load.accounts))
	}
	return wrong, nil
}
