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
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"
)

// How long the client waits for an answer of a node, and before it asks again.
const (
	askPatience = grainPatience + time.Second
	askPause    = 20 * time.Millisecond
)

// teller sends commands to the bank, by any of its nodes. It is safe for
// concurrent use.
type teller struct {
	http *http.Client

	mu    sync.Mutex
	nodes []string // URLs of the nodes that take commands

	repeated  atomic.Int64 // commands that were sent again
	conflicts atomic.Int64 // writes that met another writer's
}

func newTeller() *teller {
	conns := http.DefaultTransport.(*http.Transport).Clone()
	conns.MaxIdleConnsPerHost = 100
	return &teller{http: &http.Client{Transport: conns, Timeout: askPatience}}
}

// use sets the nodes that take commands.
func (t *teller) use(urls ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.nodes = urls
}

func (t *teller) node() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.nodes) == 0 {
		return ""
	}
	return t.nodes[rand.IntN(len(t.nodes))]
}

// ask sends a command until it is answered. All commands can be repeated.
func (t *teller) ask(ctx context.Context, account string, command proto.Message) (proto.Message, error) {
	body, err := marshalAny(command)
	if err != nil {
		return nil, err
	}
	for {
		answer, err := t.try(ctx, account, body)
		if err == nil {
			return answer, nil
		}
		if strings.Contains(err.Error(), "conflict") {
			t.conflicts.Add(1)
		}
		t.repeated.Add(1)
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), fmt.Errorf("the last answer: %w", err))
		case <-time.After(askPause):
		}
	}
}

func (t *teller) try(ctx context.Context, account string, body []byte) (proto.Message, error) {
	node := t.node()
	if node == "" {
		return nil, errors.New("no node takes commands")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, node+"/ask/"+account, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := t.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		return nil, fmt.Errorf("%s: %s", response.Status, text)
	}
	return readAny(response.Body)
}
