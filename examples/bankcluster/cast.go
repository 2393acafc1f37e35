package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// node is one process of the cluster, as its driver sees it.
type node struct {
	*process

	url  string
	auto string // address of its health check

	mu    sync.Mutex
	state string // for the status page
}

func (n *node) is() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state
}

func (n *node) becomes(state string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.state = state
}

// cast are the processes of the play.
type cast struct {
	flags  flags
	server *process // of the embedded store, if it is that

	mu    sync.Mutex
	nodes []*node
	ports [][3]int // of all nodes that there will be
}

// nodeCount is how many nodes there will be in all: three, and one that joins late.
const nodeCount = 4

// newCast starts the store, if it is to be embedded.
func newCast(ctx context.Context, f flags) (*cast, error) {
	c := &cast{flags: f}
	free, err := freePorts(3 * nodeCount)
	if err != nil {
		return nil, err
	}
	for i := range nodeCount {
		c.ports = append(c.ports, [3]int(free[3*i:3*i+3]))
	}
	if f.endpoint != "" || f.aws {
		return c, nil
	}
	if c.server, err = startProcess("store", "-role", "server"); err != nil {
		return nil, err
	}
	c.flags.endpoint, err = c.server.firstLine(ctx)
	c.server.watch()
	if err != nil {
		return nil, fmt.Errorf("the embedded store did not start: %w: %s", err, c.server.log)
	}
	return c, nil
}

// freePorts finds ports that nobody listens on.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // not before all are found
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// start starts the next node.
func (c *cast) start() (*node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := len(c.nodes)
	var hosts []string
	for _, p := range c.ports {
		hosts = append(hosts, net.JoinHostPort("127.0.0.1", strconv.Itoa(p[1])))
	}
	p := c.ports[i]
	args := append(c.flags.store(), "-role", "node", "-http-port", strconv.Itoa(p[0]), "-auto-port", strconv.Itoa(p[1]),
		"-remote-port", strconv.Itoa(p[2]), "-hosts", strings.Join(hosts, ","))
	child, err := startProcess(fmt.Sprintf("node %d", i+1), args...)
	if err != nil {
		return nil, err
	}
	child.watch()
	n := &node{process: child, url: "http://127.0.0.1:" + strconv.Itoa(p[0]), auto: hosts[i], state: "starting"}
	c.nodes = append(c.nodes, n)
	return n, nil
}

func (c *cast) all() []*node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*node(nil), c.nodes...)
}

// sees waits until a node sees as many members as it should.
func (n *node) sees(ctx context.Context, members int) error {
	client := &http.Client{Timeout: 2 * time.Second}
	for {
		got, err := n.members(ctx, client)
		if err == nil && got == members {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("it sees %d members", got)
		}
		if n.ended() {
			return fmt.Errorf("%s has ended: %s", n.name, n.log)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not see %d members: %w: %w", n.name, members, ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (n *node) members(ctx context.Context, client *http.Client) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url+"/members", nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	var got int
	_, err = fmt.Fscan(response.Body, &got)
	return got, err
}

// Three things that happen to nodes.
func (n *node) kill() error {
	n.becomes("killed")
	return n.signal(syscall.SIGKILL)
}

func (n *node) stop() error {
	n.becomes("stopped")
	return n.signal(syscall.SIGSTOP)
}

func (n *node) goOn() error {
	n.becomes("split off")
	return n.signal(syscall.SIGCONT)
}

// end ends all processes.
func (c *cast) end() {
	for _, n := range c.all() {
		n.end()
	}
	if c.server != nil {
		c.server.end()
	}
}
