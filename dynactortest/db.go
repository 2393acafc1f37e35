package dynactortest

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/logging"
)

// DB is a DynamoDB for one test: a server, a client with a fault layer, and
// table names that no other test uses. It makes no tables. It is safe for
// concurrent use.
type DB struct {
	// Endpoint is the server's URL.
	Endpoint string
	// Ring is "embedded" or "emulator".
	Ring string
	// Client talks to the server through Faults.
	Client *dynamodb.Client
	// Faults is the fault layer of Client.
	Faults *Faults

	// EventsTable, SnapshotsTable and StateTable are fresh names. Tables made
	// under them are deleted when the test ends.
	EventsTable, SnapshotsTable, StateTable string

	tb testing.TB
}

// New gives a test a DynamoDB. The package comment says which server that is.
// The test fails when there is none. Tables made under the fresh names are
// deleted when the test ends.
func New(tb testing.TB) *DB {
	tb.Helper()
	ring, endpoint := server(tb)
	suffix := strings.ToLower(rand.Text()[:10])
	name := func(kind string) string { return kind + "-" + safeName(tb.Name()) + "-" + suffix }
	d := &DB{
		Endpoint:       endpoint,
		Ring:           ring,
		EventsTable:    name("events"),
		SnapshotsTable: name("snapshots"),
		StateTable:     name("state"),
		tb:             tb,
	}
	tb.Cleanup(d.deleteTables)
	d.Client, d.Faults = d.NewClient()
	return d
}

// NewClient returns a second client of the same server with a fault layer of
// its own, as a second process would have. optFns change its options. Its
// connections are closed when the test ends.
func (d *DB) NewClient(optFns ...func(*dynamodb.Options)) (*dynamodb.Client, *Faults) {
	conns := newTransport()
	d.tb.Cleanup(conns.CloseIdleConnections)
	var base http.RoundTripper = conns
	if d.Ring == ringEmbedded {
		base = newLimits(&describing{base: conns, turn: sharedDescribing})
	}
	faults := NewFaults(base)
	cfg := Config(d.Endpoint)
	cfg.HTTPClient = &http.Client{Transport: faults}
	return dynamodb.NewFromConfig(cfg, optFns...), faults
}

// Config is an SDK configuration for a local server: a fixed region,
// made-up credentials, no log output, and the endpoint.
func Config(endpoint string) aws.Config {
	return aws.Config{
		Region:       "us-east-1",
		BaseEndpoint: aws.String(endpoint),
		Credentials:  credentials.NewStaticCredentialsProvider("dynactor", "dynactor", ""),
		Logger:       logging.Nop{},
	}
}

func newTransport() *http.Transport {
	return &http.Transport{
		MaxIdleConns:        1024,
		MaxIdleConnsPerHost: 1024,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true,
	}
}

// deleteTables runs after the test, when its context is done and rules may
// still be in force, so it has a context and a client of its own.
func (d *DB) deleteTables() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.tb.Context()), 30*time.Second)
	defer cancel()
	conns := newTransport()
	defer conns.CloseIdleConnections()
	cfg := Config(d.Endpoint)
	cfg.HTTPClient = &http.Client{Transport: conns}
	client := dynamodb.NewFromConfig(cfg)
	for _, table := range []string{d.EventsTable, d.SnapshotsTable, d.StateTable} {
		_, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &table})
		var missing *types.ResourceNotFoundException
		if err != nil && !errors.As(err, &missing) {
			d.tb.Logf("delete table %s: %v", table, err)
		}
	}
}

// safeName keeps what DynamoDB allows in a table name, at a length that leaves
// room for what is put around it.
func safeName(name string) string {
	const most = 100
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		default:
			return '_'
		}
	}, name)
	return safe[:min(len(safe), most)]
}
