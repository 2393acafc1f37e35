package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// state is how a node stands, as far as the driver has had its hands in it.
type state string

const (
	waiting state = "waiting" // not started yet
	alive   state = "alive"
	killed  state = "killed"
	stopped state = "stopped"
	split   state = "split off" // it lives, but the others take it for dead
)

// member is a node of the cluster, as the driver sees it.
type member struct {
	name    string
	port    int
	process *process
	nodeReady

	mu    sync.Mutex
	state state

	answers   atomic.Int64 // commands that it has answered
	conflicts atomic.Int64 // that failed because another node had stored an event first
	failures  atomic.Int64 // that failed for another cause, or were not answered
	avoided   atomic.Int64 // until when clients avoid it, in Unix ms
}

func (m *member) get() state {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

func (m *member) set(s state) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state = s
}

// fleet is all nodes, those to come as well. The driver alone starts and ends them.
type fleet struct {
	config  nodeConfig
	members []*member
	verbose io.Writer               // for what the nodes print; nil for none
	fail    context.CancelCauseFunc // called when a node ends that should not
	http    *http.Client
}

// newFleet chooses the nodes' ports. The framework wants them all in advance.
func newFleet(config nodeConfig, nodes int, verbose io.Writer, fail context.CancelCauseFunc) (*fleet, error) {
	f := &fleet{
		config: config, verbose: verbose, fail: fail,
		http: &http.Client{Timeout: askTime, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	for i := range nodes {
		port, err := freePort(f.config.Hosts)
		if err != nil {
			return nil, err
		}
		f.config.Hosts = append(f.config.Hosts, net.JoinHostPort(loopback, strconv.Itoa(port)))
		f.members = append(f.members, &member{name: fmt.Sprintf("node %d", i+1), port: port, state: waiting})
	}
	return f, nil
}

// freePort finds a port below those that systems give to connections, so that it
// is still free when the node starts that listens there.
func freePort(taken []string) (int, error) {
	const first, count, tries = 12000, 18000, 100
	for range tries {
		port := first + rand.IntN(count)
		address := net.JoinHostPort(loopback, strconv.Itoa(port))
		l, err := net.ListenTCP("tcp", &net.TCPAddr{Port: port})
		if err != nil || slices.Contains(taken, address) {
			continue
		}
		return port, l.Close()
	}
	return 0, errors.New("there is no free port")
}

// start starts a node.
func (f *fleet) start(ctx context.Context, m *member) error {
	cfg := f.config
	cfg.Port = m.port
	p, err := startProcess(ctx, m.name, roleNode, cfg, &m.nodeReady, f.verbose)
	if err != nil {
		return err
	}
	m.process = p
	m.set(alive)
	go func() {
		<-p.ended
		if m.get() != killed {
			f.fail(fmt.Errorf("%s has ended: %w%s", m.name, errors.Join(p.err, errEnded), p.log))
		}
	}()
	return nil
}

// kill ends a node with SIGKILL.
func (f *fleet) kill(m *member) {
	m.set(killed)
	m.process.end()
}

// pause stops a node with SIGSTOP. It notices nothing.
func (f *fleet) pause(m *member) error {
	m.set(stopped)
	return m.process.signal(syscall.SIGSTOP)
}

// resume lets a paused node go on.
func (f *fleet) resume(m *member) error {
	m.set(split)
	return m.process.signal(syscall.SIGCONT)
}

// end ends all nodes.
func (f *fleet) end() {
	for _, m := range f.members {
		if m.process != nil {
			f.kill(m)
		}
	}
	f.http.CloseIdleConnections()
}

// conflicts counts those of all nodes.
func (f *fleet) conflicts() (n int64) {
	for _, m := range f.members {
		n += m.conflicts.Load()
	}
	return n
}

// await waits until one node sees another in the cluster, or does not any more.
func (f *fleet) await(ctx context.Context, watcher, watched *member, there bool) error {
	const pause = 100 * time.Millisecond
	for {
		ids, err := f.view(ctx, watcher)
		if err == nil && slices.Contains(ids, watched.Member) == there {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to see %s (%t): %w", watcher.name, watched.name, there, context.Cause(ctx))
		}
	}
}

// view asks a node for the members that it sees.
func (f *fleet) view(ctx context.Context, m *member) (ids []string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.Gateway+"/members", nil)
	if err != nil {
		return nil, err
	}
	answer, err := f.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	return ids, json.NewDecoder(answer.Body).Decode(&ids)
}
