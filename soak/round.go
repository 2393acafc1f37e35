package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

const (
	streams        = 3 // in each round
	states         = 3
	processes      = 3
	roundTime      = 3 * time.Second
	eventsSuffix   = "_events"
	endsWithin     = 20 * time.Second // each operation has limits of a few seconds
	cleanUpTimeout = time.Minute
)

// errStuck says that goroutines are left that do not end.
var errStuck = errors.New("an operation does not end")

// round is a few seconds of trouble on tables of its own, and a judgement.
type round struct {
	seed   uint64
	url    string
	tables [3]string
	tally  *tally
	clock  *clock
	truth  *truth
	gate   *gate
	states []*stateHistory
	pad    int // size of the events
	procs  []*process
	ends   time.Time
}

// process stands for a process: a client, a clock and a provider that can die.
type process struct {
	r    *round
	luck *luck
	skew time.Duration

	mu     sync.Mutex
	faults *dynactortest.Faults
	p      *dynactor.Provider
	o      dynactor.Options
}

// run makes a round of about the given time.
func run(ctx context.Context, url string, seed uint64, took time.Duration, t *tally) error {
	conns := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
	defer conns.CloseIdleConnections()
	r := &round{seed: seed, url: url, tally: t, clock: &clock{}}
	r.truth = &truth{tally: t, streams: map[string]*history{}}
	r.gate = &gate{base: conns, clock: r.clock, truth: r.truth, luck: newLuck(seed, 1), tally: t, hidden: map[slot]string{}, busy: map[string]chan struct{}{}}
	for i, suffix := range []string{eventsSuffix, "_snapshots", "_state"} {
		r.tables[i] = fmt.Sprintf("soak_%d_%d%s", time.Now().UnixNano(), seed, suffix)
	}
	l := newLuck(seed, 2)
	r.pad = []int{0, 0, 100, 12_000}[l.n(4)]
	p, err := r.provider(conns)
	if err != nil {
		return err
	}
	if err := errors.Join(p.EnsureTables(ctx), p.State().EnsureTables(ctx)); err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	r.ends = time.Now().Add(took)
	for i := range processes {
		p, err := r.newProcess(i) //nolint:contextcheck // a delay takes the context of its request
		if err != nil {
			return err
		}
		r.procs = append(r.procs, p)
	}
	var all sync.WaitGroup
	for i := range states {
		r.states = append(r.states, &stateHistory{id: fmt.Sprint("state-", i), tally: t})
	}
	for i, work := range r.cast() {
		all.Go(func() { work(ctx, newLuck(seed, uint64(100+i))) })
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Until(r.ends) + endsWithin):
		stacks := make([]byte, 1<<20)
		t.violation("an operation does not end:\n%s", stacks[:runtime.Stack(stacks, true)])
		return errStuck
	}
	defer r.dropTables(ctx)
	r.gate.settle()
	for _, p := range r.procs {
		p.close(ctx)
	}
	return r.judge(ctx)
}

// cast are all who work in a round, each with luck of its own.
func (r *round) cast() []func(context.Context, *luck) {
	list := []func(context.Context, *luck){r.jump, r.kill}
	for i := range streams {
		id := fmt.Sprint("stream-", i)
		for n := range processes {
			list = append(list, func(ctx context.Context, l *luck) {
				(&writer{r: r, h: r.truth.of(id), proc: r.procs[n], luck: l, name: fmt.Sprint("w", n)}).work(ctx)
			})
		}
		list = append(list,
			func(ctx context.Context, l *luck) { (&appender{r: r, h: r.truth.of(id), luck: l}).work(ctx) },
			func(ctx context.Context, l *luck) { (&reader{r: r, h: r.truth.of(id), luck: l}).work(ctx) },
			func(ctx context.Context, l *luck) { (&deleter{r: r, h: r.truth.of(id), luck: l}).work(ctx) })
	}
	for i := range states {
		for n := range processes {
			list = append(list, func(ctx context.Context, l *luck) {
				(&keeper{r: r, h: r.states[i], proc: r.procs[n], luck: l, client: n}).work(ctx)
			})
		}
	}
	return list
}

func (r *round) over() bool { return !time.Now().Before(r.ends) }

// rest waits for at most d, and not beyond the end.
func (r *round) rest(l *luck, d time.Duration) {
	time.Sleep(min(l.upTo(d), max(0, time.Until(r.ends))))
}

// jump lets hours pass.
func (r *round) jump(_ context.Context, l *luck) {
	for !r.over() {
		r.rest(l, 300*time.Millisecond)
		r.clock.jump([]time.Duration{time.Minute, 20 * time.Minute, 35 * time.Minute, 61 * time.Minute, 2 * time.Hour}[l.n(5)])
		r.tally.fault("clock jumps")
	}
}

// kill ends processes: their providers are closed while they work.
func (r *round) kill(ctx context.Context, l *luck) {
	for !r.over() {
		r.rest(l, time.Second)
		if r.over() {
			return
		}
		patience := []time.Duration{0, 10 * time.Millisecond, time.Second}[l.n(3)]
		closing, cancel := context.WithTimeout(ctx, patience)
		if err := r.procs[l.n(processes)].restart(closing); err != nil {
			r.tally.violation("a process does not start again: %v", err)
		}
		cancel()
		r.tally.fault("process killed")
	}
}

func (r *round) options() dynactor.Options {
	return dynactor.Options{
		EventsTable: r.tables[0], SnapshotsTable: r.tables[1], StateTables: []string{r.tables[2]},
		DeleteDelay: deleteDelay, WriteTimeout: writeTimeout, ReadTimeout: writeTimeout, RecoveryTimeout: 2 * writeTimeout,
		Now: r.clock.read, Logger: slog.New(slog.DiscardHandler),
	}
}

// provider is one without the faults of a process.
func (r *round) provider(base http.RoundTripper) (*dynactor.Provider, error) {
	p, err := dynactor.New(r.client(base), r.options())
	if err != nil {
		return nil, fmt.Errorf("make a provider: %w", err)
	}
	return p, nil
}

func (r *round) client(base http.RoundTripper) *dynamodb.Client {
	cfg := dynactortest.Config(r.url)
	cfg.HTTPClient = &http.Client{Transport: base}
	return dynamodb.NewFromConfig(cfg)
}

func (r *round) newProcess(i int) (*process, error) {
	p := &process{r: r, luck: newLuck(r.seed, uint64(10+i)), skew: time.Duration(i-1) * 2 * time.Minute}
	p.o = r.options()
	p.o.Now = func() time.Time { return r.clock.read().Add(p.skew) }
	p.o.KeepSnapshots = 1 + p.luck.n(3)
	p.o.SnapshotInterval = []int{0, 4, 20}[p.luck.n(3)]
	p.o.DeleteEventsOnSnapshot = i != 1
	p.o.MaxConcurrentReads = 1 + p.luck.n(8)
	return p, p.start()
}

func (p *process) start() error {
	p.faults = dynactortest.NewFaults(p.r.gate)
	trouble(p.faults, p.r.gate, p.luck)
	made, err := dynactor.New(p.r.client(p.faults), p.o)
	if err != nil {
		return fmt.Errorf("make a provider: %w", err)
	}
	p.p = made
	return nil
}

func (p *process) provider() *dynactor.Provider {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.p
}

// restart closes the provider, with a patience, and makes a new one.
func (p *process) restart(ctx context.Context) error {
	old := p.provider()
	p.mu.Lock()
	err := p.start() //nolint:contextcheck // a delay takes the context of its request
	p.mu.Unlock()
	_ = old.Close(ctx) // that it could not wait is the idea
	return err
}

func (p *process) close(ctx context.Context) { _ = p.provider().Close(ctx) }

func (r *round) dropTables(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	client := r.client(r.gate.base)
	for _, table := range r.tables {
		_, _ = client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(table)}) // it may not exist
	}
}
