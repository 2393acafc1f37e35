package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/dynactor/dynactor/dynactortest"
)

// server is the DynamoDB to measure against.
type server struct {
	url    string
	about  string
	inside bool // in this process, so that allocations cannot be told apart
	stop   func()
}

// startServer takes the server at an endpoint, else starts dynoxide where there
// is a binary, else an embedded one.
func startServer(ctx context.Context, endpoint string) (*server, error) {
	if endpoint != "" {
		return &server{url: endpoint, about: "the one at " + endpoint, stop: func() {}}, nil
	}
	if binary := dynoxide(); binary != "" {
		return startDynoxide(ctx, binary)
	}
	embedded := dynactortest.NewEmbedded()
	return &server{
		url: embedded.URL, inside: true, stop: embedded.Close,
		about: "embedded in this process, without pages of 1 MB and capacity figures of its own; its work is part of all times",
	}, nil
}

// dynoxide finds the binary of the emulator; empty for none.
func dynoxide() string {
	if path := os.Getenv("DYNOXIDE"); path != "" {
		return path
	}
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		cache = filepath.Join(home, ".cache")
	}
	path := filepath.Join(cache, "dynactor", "dynoxide", "bin", "dynoxide")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

func startDynoxide(ctx context.Context, binary string) (*server, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, binary, "serve", "--log", "quiet", "--port", strconv.Itoa(port)) //nolint:gosec // the user names it
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("start dynoxide: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // that it was killed is no news
		close(ended)
	}()
	stop := func() {
		cancel()
		<-ended
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := await(ctx, address, ended); err != nil {
		stop()
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	return &server{url: "http://" + address, about: "dynoxide in memory, started for this run: " + binary, stop: stop}, nil
}

func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("find a free port: %s", l.Addr())
	}
	return addr.Port, nil
}

// await returns when a server listens at an address.
func await(ctx context.Context, address string, ended <-chan struct{}) error {
	var dialer net.Dialer
	for range 300 {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			_ = conn.Close()
			return nil
		}
		select {
		case <-ended:
			return errors.New("it ended at once")
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", address, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
	return errors.New("nothing listens at " + address)
}
