package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// reachTime is how long the store may take for its first answer.
const reachTime = 5 * time.Second

// storeConfig says where the journal is. The driver passes it on to the nodes.
type storeConfig struct {
	Endpoint          string // empty with AWS
	AWS               bool
	Region            string
	Events, Snapshots string // tables
	Unsafe            bool   // see overwriting
}

// String is for people.
func (s storeConfig) String() string {
	where := s.Endpoint
	if s.AWS {
		where = "AWS"
	}
	return fmt.Sprintf("%s, tables %s and %s", where, s.Events, s.Snapshots)
}

// journal is a provider with a client of its own.
type journal struct {
	*dynactor.Provider

	conns *http.Transport
}

// close ends the provider and its connections.
func (j journal) close(ctx context.Context) {
	_ = j.Close(ctx) // it says only that requests were under way
	j.conns.CloseIdleConnections()
}

// open makes a provider and sees whether the store answers.
func (s storeConfig) open(ctx context.Context, logger *slog.Logger) (journal, error) {
	cfg := dynactortest.Config(s.Endpoint)
	if s.AWS {
		var err error
		if cfg, err = config.LoadDefaultConfig(ctx, config.WithRegion(s.Region)); err != nil {
			return journal{}, fmt.Errorf("AWS configuration: %w", err)
		}
		if cfg.Region == "" {
			return journal{}, errors.New("AWS configuration: there is no region; set AWS_REGION or use -region")
		}
	} else if s.Region != "" {
		cfg.Region = s.Region
	}
	conns := http.DefaultTransport.(*http.Transport).Clone()
	conns.MaxIdleConns, conns.MaxIdleConnsPerHost = 0, 2*(dynactor.DefaultMaxConcurrentReads+dynactor.DefaultMaxConcurrentWrites)
	cfg.HTTPClient = &http.Client{Transport: conns}
	if s.Unsafe {
		cfg.HTTPClient = &http.Client{Transport: overwriting{conns}}
	}
	client := dynamodb.NewFromConfig(cfg)
	if err := reach(ctx, client, s.Events); err != nil {
		conns.CloseIdleConnections()
		return journal{}, fmt.Errorf("no DynamoDB answers (%s): %w", s, err)
	}
	provider, err := dynactor.New(client, dynactor.Options{
		EventsTable: s.Events, SnapshotsTable: s.Snapshots, SnapshotInterval: snapshotEvery, Logger: logger,
	})
	return journal{provider, conns}, err
}

// reach asks the store anything. The provider itself waits longer for a store
// that does not answer, which suits a service better than a demonstration.
func reach(ctx context.Context, client *dynamodb.Client, table string) error {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	_, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(table)},
		func(o *dynamodb.Options) { o.RetryMaxAttempts = 2 })
	if errors.As(err, new(*types.ResourceNotFoundException)) {
		return nil
	}
	return err
}
