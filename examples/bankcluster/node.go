package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// How long a node waits for an account, and how often nodes look at each other.
const (
	grainPatience = 3 * time.Second
	lookEvery     = 500 * time.Millisecond
)

// runNode is a process of the cluster. It takes commands for accounts by HTTP at
// /ask, as a bank's web servers would, and hands them to whichever node has the
// account. It ends when its standard input does, which its driver holds.
func runNode(ctx context.Context, f flags) error {
	client, err := openStore(ctx, f)
	if err != nil {
		return err
	}
	quiet := slog.New(slog.DiscardHandler)
	provider, err := dynactor.New(client, f.options(quiet))
	if err != nil {
		return err
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
	hosts := strings.Split(f.hosts, ",")
	c := cluster.New(system, cluster.Configure("bank",
		automanaged.NewWithConfig(lookEvery, f.autoPort, hosts...), disthash.New(),
		remote.Configure("127.0.0.1", f.remotePort), cluster.WithKinds(accountKind(provider)),
		cluster.WithRequestTimeout(grainPatience)))
	c.StartMember()

	mux := http.NewServeMux()
	mux.HandleFunc("GET /members", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(c.MemberList.Length())
	})
	mux.HandleFunc("POST /ask/{account}", func(w http.ResponseWriter, r *http.Request) { serveAsk(c, w, r) })
	server := &http.Server{Addr: net.JoinHostPort("127.0.0.1", fmt.Sprint(f.httpPort)), Handler: mux, ReadHeaderTimeout: time.Second}
	return server.ListenAndServe()
}

// serveAsk hands a command to an account and its answer back. Whatever goes wrong
// is 503: nobody knows what became of the command, and repeating it is safe.
func serveAsk(c *cluster.Cluster, w http.ResponseWriter, r *http.Request) {
	command, err := readAny(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := c.Request(r.PathValue("account"), kind, command, cluster.WithRetryCount(1))
	var reply proto.Message
	switch a := answer.(type) {
	case *cluster.GrainErrorResponse:
		err = errors.New(a.GetReason())
	case proto.Message:
		reply = a
	default:
		err = errors.Join(err, fmt.Errorf("the answer is a %T", a))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	data, err := marshalAny(reply)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(data)
}

func marshalAny(m proto.Message) ([]byte, error) {
	a, err := anypb.New(m)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(a)
}

func readAny(r io.Reader) (proto.Message, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var a anypb.Any
	if err := proto.Unmarshal(data, &a); err != nil {
		return nil, err
	}
	return a.UnmarshalNew()
}

// options are the provider's, the same in all processes.
func (f flags) options(log *slog.Logger) dynactor.Options {
	return dynactor.Options{EventsTable: f.events, SnapshotsTable: f.snapshots, Logger: log, SnapshotInterval: 50}
}

// openStore makes a client for the store that the flags name.
func openStore(ctx context.Context, f flags) (*dynamodb.Client, error) {
	cfg := dynactortest.Config(f.endpoint)
	if f.aws {
		var err error
		if cfg, err = config.LoadDefaultConfig(ctx, config.WithRegion(f.region)); err != nil {
			return nil, fmt.Errorf("AWS configuration: %w", err)
		}
		if cfg.Region == "" {
			return nil, errors.New("AWS configuration: there is no region; set AWS_REGION or use -region")
		}
	}
	conns := http.DefaultTransport.(*http.Transport).Clone()
	conns.MaxIdleConns, conns.MaxIdleConnsPerHost = 0, 2*(dynactor.DefaultMaxConcurrentReads+dynactor.DefaultMaxConcurrentWrites)
	cfg.HTTPClient = &http.Client{Transport: conns}
	if f.unsafeOverwrite {
		cfg.HTTPClient = &http.Client{Transport: overwriting{conns}}
	}
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if f.endpoint != "" {
			o.BaseEndpoint = aws.String(f.endpoint)
		}
	}), nil
}
