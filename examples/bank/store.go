package main

import (
	"context"
	"errors"
	"fmt"
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

// store is the DynamoDB that the bank uses, seen through a layer that counts
// requests and what they cost.
type store struct {
	name   string // for people
	client *dynamodb.Client
	meter  *dynactortest.Faults
	close  func()
}

// openStore chooses the store by the flags and sees whether it answers.
func openStore(ctx context.Context, f flags) (*store, error) {
	conns := http.DefaultTransport.(*http.Transport).Clone()
	conns.MaxIdleConns, conns.MaxIdleConnsPerHost = 0, 2*(dynactor.DefaultMaxConcurrentReads+dynactor.DefaultMaxConcurrentWrites)
	s := &store{close: conns.CloseIdleConnections}
	var cfg aws.Config
	switch {
	case f.aws:
		var err error
		if cfg, err = config.LoadDefaultConfig(ctx, config.WithRegion(f.region)); err != nil {
			return nil, fmt.Errorf("AWS configuration: %w", err)
		}
		if cfg.Region == "" {
			return nil, errors.New("AWS configuration: there is no region; set AWS_REGION or use -region")
		}
		s.name = "AWS, " + cfg.Region
	case f.endpoint != "":
		cfg = dynactortest.Config(f.endpoint)
		s.name = f.endpoint
	default:
		embedded := dynactortest.NewEmbedded()
		s.close = func() {
			conns.CloseIdleConnections()
			embedded.Close()
		}
		cfg = dynactortest.Config(embedded.URL)
		s.name = "embedded"
	}
	if f.region != "" {
		cfg.Region = f.region
	}
	s.meter = dynactortest.NewFaults(conns)
	cfg.HTTPClient = &http.Client{Transport: s.meter}
	s.client = dynamodb.NewFromConfig(cfg)
	if err := s.reach(ctx, f.events); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// reach asks the store anything. The provider itself waits longer for a store
// that does not answer, which suits a service better than a demonstration.
func (s *store) reach(ctx context.Context, table string) error {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	_, err := s.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table},
		func(o *dynamodb.Options) { o.RetryMaxAttempts = 2 })
	if err != nil && !errors.As(err, new(*types.ResourceNotFoundException)) {
		return fmt.Errorf("no DynamoDB answers (%s): %w", s.name, err)
	}
	return nil
}
