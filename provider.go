package dynactor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/asynkron/protoactor-go/persistence"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Provider stores the events and snapshots of Proto.Actor actors in DynamoDB.
// Give one to persistence.Using, for all actors of a process. It is safe for
// concurrent use.
//
// The tables are checked, and created where that is wanted, by the first
// operation that needs them; a failure of that is the failure of the operation,
// and the next one tries again.
type Provider struct {
	o         Options
	caller    *caller
	tables    *tables
	journal   *Journal
	snapshots *dynamoSnapshots
	state     *StateStore
	obs       *observer
	owned     *http.Transport // connections of a client made by Open
}

var _ persistence.Provider = (*Provider)(nil)

// New makes a provider on a client of yours. It sends no request. All options
// that are not acceptable are named in one error, which matches [ErrInvalid].
//
// The client's own retry settings are not used: every call carries the
// provider's. Its HTTP client must not send a request again by itself, since an
// attempt that nobody sees cannot be judged. Give it an HTTP client that keeps as many idle connections as the
// provider makes concurrent requests, or connections are made anew all the time;
// [Open] does that for you.
func New(client Client, o Options) (*Provider, error) {
	errs := o.problems()
	if client == nil || client == Client((*dynamodb.Client)(nil)) {
		errs = append(errs, errors.New("client is nil"))
	}
	if o.Region != "" || o.Endpoint != "" {
		errs = append(errs, errors.New("options Region and Endpoint are for Open; a client given to New has its own"))
	}
	if err := invalidOptions("new provider", errs); err != nil {
		return nil, err
	}
	return newProvider(client, o.withDefaults())
}

// maxIdle bounds the connections kept for later, whatever MaxConcurrent... says.
const maxIdle = 10_000

// Open makes a provider together with its client, from the standard AWS
// configuration: environment, shared files, instance or container role.
// [Options.Region] and [Options.Endpoint] override it. A loopback endpoint needs
// neither region nor credentials. Open reads configuration files, but sends no
// request to DynamoDB.
func Open(ctx context.Context, o Options) (*Provider, error) {
	errs := o.problems()
	if o.Endpoint != "" && !isURL(o.Endpoint) {
		// It may hold a password, so it is not shown.
		errs = append(errs, errors.New("endpoint is not an http or https URL such as http://localhost:8000"))
	}
	if err := invalidOptions("open provider", errs); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	idle := 2 * (min(o.MaxConcurrentReads, maxIdle) + min(o.MaxConcurrentWrites, maxIdle))
	httpClient := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = idle, idle
	})
	load := []func(*config.LoadOptions) error{config.WithHTTPClient(httpClient)}
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	if isLoopback(o.Endpoint) {
		// A local server takes any credentials; one wants some.
		load = append(load, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider("local", "local", "")))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fail("open provider", "", noSeq, err)
	}
	if cfg.Region == "" && isLoopback(o.Endpoint) {
		cfg.Region = "us-east-1"
	}
	if cfg.Region == "" {
		return nil, fail("open provider", "", noSeq,
			fmt.Errorf("%w: no AWS region: set Options.Region or AWS_REGION", ErrInvalid))
	}
	var owned *http.Transport
	client := dynamodb.NewFromConfig(cfg, func(d *dynamodb.Options) {
		if o.Endpoint != "" {
			d.BaseEndpoint = aws.String(o.Endpoint)
		}
		// The SDK's client gives away only copies of its transport, so its
		// connections could not be closed.
		if b, ok := d.HTTPClient.(*awshttp.BuildableClient); ok {
			owned = b.GetTransport()
			d.HTTPClient = &http.Client{Transport: owned, CheckRedirect: noRedirect}
		}
	})
	p, err := newProvider(client, o)
	if err != nil {
		return nil, err
	}
	p.owned = owned
	return p, nil
}

// newProvider wires the parts together. The options are valid and complete.
func newProvider(client Client, o Options) (*Provider, error) {
	obs, err := newObserver(o)
	if err != nil {
		return nil, fail("new provider", "", noSeq, err)
	}
	codec := newCodec(o)
	l := newLayout(o.EventsTable, o.SnapshotsTable, o.Attributes)
	calls := newCaller(client, o)
	tabs := newTables(calls, l, o, obs,
		table{name: o.EventsTable, sorted: true},
		table{name: o.SnapshotsTable, sorted: true, expires: true, wanted: o.SnapshotTTL > 0})
	state := &StateStore{o: o, caller: calls, layout: l, codec: codec, tables: map[string]*tables{}}
	for _, name := range o.StateTables {
		state.tables[name] = newTables(calls, l, o, obs, table{name: name, expires: true, wanted: true})
	}
	journal := &Journal{o: o, caller: calls, tables: tabs, layout: l, codec: codec}
	return &Provider{
		o: o, caller: calls, tables: tabs, obs: obs, journal: journal, state: state,
		snapshots: &dynamoSnapshots{o: o, caller: calls, tables: tabs, layout: l, codec: codec},
	}, nil
}

// noRedirect keeps requests, which carry a session token, from going elsewhere.
// DynamoDB does not redirect.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// isURL tells whether an endpoint is one that an HTTP client can reach.
func isURL(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

// isLoopback tells whether an endpoint is on this machine.
func isLoopback(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	host := u.Hostname()
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// GetState gives one actor incarnation its session. The framework calls it.
// A session can also be used directly, by one goroutine at a time.
func (p *Provider) GetState() persistence.ProviderState { return newSession(p) }

// Journal gives access to the event streams without actors.
func (p *Provider) Journal() *Journal { return p.journal }

// Snapshots gives access to the snapshots without actors.
func (p *Provider) Snapshots() SnapshotStore { return p.snapshots }

// State gives access to durable state without actors.
func (p *Provider) State() *StateStore { return p.state }

// EnsureTables does now what the first operation would do: check the tables
// and, unless [Options.NoCreateTables] is set, create them and wait until they
// are usable. Calling it again costs nothing. It is about events and snapshots; for
// state see [StateStore.EnsureTables].
func (p *Provider) EnsureTables(ctx context.Context) error {
	return fail("ensure tables", "", noSeq, p.tables.ready(ctx))
}

// VerifyTables reads how the tables are made and names everything that is not
// as this provider needs it: missing or inactive tables, keys, format and layout,
// expiry, replicas in other regions. A table of state may be missing, since it is
// made when it is first used. It changes nothing. The error matches [ErrSchema].
func (p *Provider) VerifyTables(ctx context.Context) error {
	problems, err := p.tables.verify(ctx, false)
	for _, name := range p.o.StateTables {
		if err == nil {
			var more []error
			more, err = p.state.tables[name].verify(ctx, true)
			problems = append(problems, more...)
		}
	}
	if err == nil && len(problems) > 0 {
		err = fmt.Errorf("%w: %w", ErrSchema, errors.Join(problems...))
	}
	return fail("verify tables", "", noSeq, err)
}

// Close refuses new operations with [ErrClosed], waits until those in flight
// have ended, and when ctx ends first, cancels them: a write that is cancelled so
// ends with [ErrOutcomeUnknown]. It closes the connections of a client made by
// [Open] and leaves one given to [New] alone. Calling it again waits again.
func (p *Provider) Close(ctx context.Context) error {
	err := p.caller.close(ctx)
	if p.owned != nil {
		p.owned.CloseIdleConnections()
	}
	return fail("close", "", noSeq, err)
}
