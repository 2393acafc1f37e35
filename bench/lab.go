package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// lab is where one case runs: tables of its own, and one client for the library
// and for the yardstick.
type lab struct {
	ops    int // that will be measured
	wire   *wire
	client *dynamodb.Client // through wire
	filler *dynamodb.Client // straight to the server, to prepare tables

	conns  *http.Transport
	prefix string
	tables []string
}

func newLab(srv *server, via func(http.RoundTripper) (http.RoundTripper, error), ops int) (*lab, error) {
	conns := &http.Transport{MaxIdleConns: 64, MaxIdleConnsPerHost: 64, DisableCompression: true}
	var base http.RoundTripper = conns
	if via != nil {
		var err error
		if base, err = via(conns); err != nil {
			return nil, err
		}
	}
	l := &lab{ops: ops, wire: newWire(base), conns: conns, prefix: "bench-" + strings.ToLower(rand.Text()[:8])}
	l.client, l.filler = newClient(srv.url, l.wire), newClient(srv.url, conns)
	return l, nil
}

func newClient(url string, transport http.RoundTripper) *dynamodb.Client {
	cfg := dynactortest.Config(url)
	cfg.HTTPClient = &http.Client{Transport: transport}
	return dynamodb.NewFromConfig(cfg)
}

// store is a provider with tables of its own.
type store struct {
	*dynactor.Provider

	events, snapshots string
}

// store makes tables and a provider on them.
func (l *lab) store(ctx context.Context, o dynactor.Options) (store, error) {
	n := len(l.tables) / 2
	s := store{events: fmt.Sprintf("%s-%d-events", l.prefix, n), snapshots: fmt.Sprintf("%s-%d-snapshots", l.prefix, n)}
	o.EventsTable, o.SnapshotsTable = s.events, s.snapshots
	o.Logger = slog.New(slog.DiscardHandler)
	var err error
	if s.Provider, err = dynactor.New(l.client, o); err != nil {
		return s, fmt.Errorf("make provider: %w", err)
	}
	l.tables = append(l.tables, s.events, s.snapshots)
	if err := s.EnsureTables(ctx); err != nil {
		return s, fmt.Errorf("make tables: %w", err)
	}
	return s, nil
}

// close removes the tables, also after ctx has ended.
func (l *lab) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	for _, t := range l.tables {
		_, _ = l.client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &t}) // a leftover harms nobody
	}
	l.conns.CloseIdleConnections()
}
