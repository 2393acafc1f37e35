package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

const (
	attemptTime = 3 * time.Second
	avoidTime   = time.Second           // how long a node without an answer is left alone
	repeatPause = 20 * time.Millisecond // on average, before a repeat
)

// client asks accounts through the nodes, like a load balancer. It is safe for
// concurrent use.
type client struct {
	fleet   *fleet
	http    *http.Client
	repeats atomic.Int64
}

func newClient(f *fleet) *client {
	const conns = 256
	return &client{fleet: f, http: &http.Client{
		Timeout:   attemptTime,
		Transport: &http.Transport{MaxIdleConnsPerHost: conns},
	}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// ask sends a command to an account, through one node after another, until it is
// answered. The transaction id in the command makes that harmless.
func (c *client) ask(ctx context.Context, account string, command proto.Message) (proto.Message, error) {
	packed, err := anypb.New(command)
	if err != nil {
		return nil, err
	}
	body, err := proto.Marshal(packed)
	if err != nil {
		return nil, err
	}
	for {
		answer, err := c.try(ctx, c.pick(), account, body)
		if err == nil {
			return answer, nil
		}
		c.repeats.Add(1)
		select {
		case <-time.After(rand.N(2 * repeatPause)):
		case <-ctx.Done():
			return nil, fmt.Errorf("%s has not answered: %w", account, errors.Join(context.Cause(ctx), err))
		}
	}
}

// pick chooses a node that was started, at random; one that is avoided only when
// there is no other.
func (c *client) pick() *member {
	var chosen *member
	now, good, n := time.Now().UnixMilli(), false, 0
	for _, m := range c.fleet.members {
		if m.get() == waiting {
			continue
		}
		well := m.avoided.Load() < now
		if well && !good {
			good, n = true, 0
		}
		if well == good {
			if n++; rand.IntN(n) == 0 {
				chosen = m
			}
		}
	}
	return chosen
}

// errNotStored says that an account could not store its event.
var errNotStored = errors.New("not stored")

// try sends a command through one node.
func (c *client) try(ctx context.Context, m *member, account string, body []byte) (proto.Message, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.Gateway+"/accounts/"+account, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := c.send(req)
	switch {
	case err == nil:
		m.answers.Add(1)
	case errors.Is(err, errConflict):
		m.conflicts.Add(1)
	default:
		m.failures.Add(1)
		if !errors.Is(err, errNotStored) {
			m.avoided.Store(time.Now().Add(avoidTime).UnixMilli())
		}
	}
	return answer, err
}

// errConflict says that another node has stored an event first.
var errConflict = fmt.Errorf("%w: conflict", errNotStored)

func (c *client) send(req *http.Request) (proto.Message, error) {
	answer, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		text := strings.TrimSpace(string(body))
		switch reason := answer.Header.Get(reasonHeader); {
		case strings.EqualFold(reason, "conflict"):
			return nil, fmt.Errorf("%w: %s", errConflict, text)
		case reason != "":
			return nil, fmt.Errorf("%w: %s", errNotStored, text)
		}
		return nil, fmt.Errorf("%s: %s", answer.Status, text)
	}
	var packed anypb.Any
	if err := proto.Unmarshal(body, &packed); err != nil {
		return nil, err
	}
	return packed.UnmarshalNew()
}
