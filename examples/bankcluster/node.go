package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/remote"
)

const (
	loopback = "127.0.0.1"
	// probeTime is how often a node asks the others whether they live. The
	// framework waits two seconds for the answer, then the other is out for ever.
	probeTime = 500 * time.Millisecond
	// askTime is how long a node waits for an account, and an account for the journal.
	askTime = 2 * time.Second
)

// nodeConfig is what the driver tells a node.
type nodeConfig struct {
	Cluster string
	Port    int      // where the others ask whether this node lives
	Hosts   []string // where all nodes are asked that, those to come as well
	Store   storeConfig
}

// nodeReady is what a node reports.
type nodeReady struct {
	Member  string // its id in the cluster, new with each start
	Gateway string // URL
}

// runNode is the role of a member of the cluster. It ends without a goodbye, like
// any process that is killed.
func runNode(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	var cfg nodeConfig
	ctx, err := readConfig(ctx, stdin, &cfg)
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	provider, err := cfg.Store.open(ctx, logger)
	if err != nil {
		return err
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))
	c := cluster.New(system, cluster.Configure(
		cfg.Cluster,
		automanaged.NewWithConfig(probeTime, cfg.Port, cfg.Hosts...),
		disthash.New(),
		remote.Configure(loopback, 0),
		cluster.WithKinds(accountKind(provider.Provider)), //nolint:contextcheck // the framework hands actors no context
		cluster.WithRequestTimeout(askTime),
	))
	c.StartMember()

	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return fmt.Errorf("open the gateway: %w", err)
	}
	server := &http.Server{Handler: gateway(c), ReadHeaderTimeout: askTime}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := reportReady(stdout, nodeReady{system.ID, "http://" + listener.Addr().String()}); err != nil {
		return err
	}
	if err := server.Serve(listener); ctx.Err() == nil {
		return fmt.Errorf("serve the gateway: %w", err)
	}
	return nil
}
