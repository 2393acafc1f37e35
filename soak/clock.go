package main

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const (
	deleteDelay   = time.Hour // the shortest that the library accepts
	writeTimeout  = 2 * time.Second
	serverTimeout = 20 * time.Second
	lateLanding   = 200 * time.Millisecond
	halfVisible   = 20 * time.Millisecond
)

// clock is the wall clock of a round. It jumps, so that hours pass in a second.
// Requests are served under mu, so none is served across a jump.
type clock struct {
	mu    sync.RWMutex
	ahead atomic.Int64
}

func (c *clock) read() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// jump goes on by d, once no request is being served.
func (c *clock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead.Add(int64(d))
}

// luck makes the choices of a round or of one of its actors from a seed. It is
// safe for concurrent use.
type luck struct {
	mu  sync.Mutex
	rnd *rand.Rand
}

func newLuck(seed, of uint64) *luck {
	return &luck{rnd: rand.New(rand.NewPCG(seed, of))} //nolint:gosec // choices that can be repeated
}

// n is a number below n.
func (l *luck) n(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rnd.IntN(n)
}

// in is true once in n times.
func (l *luck) in(n int) bool { return l.n(n) == 0 }

func (l *luck) upTo(d time.Duration) time.Duration { return time.Duration(l.n(int(d))) + 1 }
