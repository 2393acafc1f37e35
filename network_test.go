package dynactor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/persistence"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/logging"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// Many actors live through a time in which nothing gets through.
func TestNetworkOutage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		actors int
		do     dynactortest.Action
	}{
		{"G01 throttled", 200, dynactortest.Throttle()},
		{"G15 no such host", 50, dynactortest.NoSuchHost()},
		{"G02 connections reset", 50, dynactortest.Answer(500, "InternalServerError", "by a test")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{WriteTimeout: time.Minute, ReadTimeout: time.Minute})
			ready(t, p, db)
			db.Faults.Add(dynactortest.Rule{Times: 10 * tt.actors, Do: tt.do})
			errs := make([]error, tt.actors)
			var running sync.WaitGroup
			for i := range errs {
				running.Go(func() {
					id, s := fmt.Sprint("actor-", i), p.GetState()
					if err := caught(func() {
						recovered(s, id)
						s.PersistEvent(id, 0, text("1"))
						s.PersistEvent(id, 1, text("2"))
					}); err != nil {
						errs[i] = err
					}
				})
			}
			running.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Error(err)
			}
			for i := range 5 {
				if diff := cmp.Diff(texts(1, 2), content(t, db, fmt.Sprint("actor-", i*tt.actors/5))); diff != "" {
					t.Errorf("stream (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// While writes are throttled, an actor that has recovered waits in its write.
func TestNetworkG01ThrottledWrites(t *testing.T) {
	t.Parallel()
	const actors = 200
	p, db := open(t, dynactor.Options{WriteTimeout: time.Minute})
	ready(t, p, db)
	sessions := make([]interface {
		PersistEvent(string, int, proto.Message)
	}, actors)
	for i := range sessions {
		s := p.GetState()
		recovered(s, fmt.Sprint("actor-", i))
		sessions[i] = s
	}
	db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 10 * actors, Do: dynactortest.Throttle()})
	errs := make([]error, actors)
	var running sync.WaitGroup
	for i, s := range sessions {
		running.Go(func() {
			if err := caught(func() { s.PersistEvent(fmt.Sprint("actor-", i), 0, text("1")) }); err != nil {
				errs[i] = err
			}
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// What happens to a read on its way is not the reader's business.
func TestNetworkReads(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		do   dynactortest.Action
	}{
		{"G02 reset after the request", dynactortest.DropAnswer()},
		{"G02 500", dynactortest.FailAfter(500)},
		{"G02 connection refused", dynactortest.Refuse()},
		{"G03 cut at once", dynactortest.CutBody(0)},
		{"G03 cut in the middle", dynactortest.CutBody(150)},
		{"G05 flipped byte", dynactortest.FlipByte()},
		{"G07 credentials expired", dynactortest.Answer(400, "ExpiredTokenException", "by a test")},
		{"throttled", dynactortest.Throttle()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, db := fixture(t)
			for _, op := range []string{"Query", "GetItem"} {
				db.Faults.Add(dynactortest.Rule{Op: op, Match: func(r dynactortest.Request) bool { return r.Attempt == 1 }, Do: tt.do})
			}
			got, err := replayed(t.Context(), p.Journal(), "a", 1, 0)
			if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(texts(1, 5), got); diff != "" {
				t.Errorf("replayed (-want +got):\n%s", diff)
			}
			for _, r := range db.Faults.Requests() {
				if r.Attempt > 2 {
					t.Errorf("%v, want no third attempt", r)
				}
			}
		})
	}
	t.Run("G03 second page cut after 200 KB", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		var want []string
		for i := range 7 {
			want = append(want, fmt.Sprint(i, strings.Repeat("x", 220<<10)))
			if _, err := p.Journal().Append(t.Context(), "a", int64(i), text(want[i])); err != nil {
				t.Fatal(err)
			}
		}
		db.Faults.Reset()
		// The look at the end, the first page, and then the ranges.
		db.Faults.Add(dynactortest.Rule{Op: "Query", Skip: 2, Times: 1, Do: dynactortest.CutBody(200 << 10)})
		got, err := replayed(t.Context(), p.Journal(), "a", 1, 0)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error("replayed something else")
		}
		again := 0
		for _, r := range db.Faults.Requests() {
			if r.Attempt > 1 {
				again++
			}
		}
		if again != 1 {
			t.Errorf("%d requests were repeated, want 1", again)
		}
	})
	t.Run("G05 every answer garbled", func(t *testing.T) {
		t.Parallel()
		_, db := fixture(t)
		p := openOn(t, db, db.Client, dynactor.Options{ReadTimeout: time.Second})
		if err := p.EnsureTables(t.Context()); err != nil {
			t.Fatal(err)
		}
		db.Faults.Add(dynactortest.Rule{Op: "Query", Do: dynactortest.FlipByte()})
		got, err := replayed(t.Context(), p.Journal(), "a", 1, 0)
		if err == nil || len(got) > 0 {
			t.Errorf("replayed %v, %v, want an error", got, err)
		}
	})
}

// exchanger is an HTTP client between the SDK and a client of the database.
type exchanger func(next dynamodb.HTTPClient, r *http.Request) (*http.Response, error)

// through makes a client whose requests go through x, and its fault layer.
func through(db *dynactortest.DB, x exchanger, more ...func(*dynamodb.Options)) (*dynamodb.Client, *dynactortest.Faults) {
	return db.NewClient(append(more, func(o *dynamodb.Options) {
		o.HTTPClient = doer{x, o.HTTPClient}
	})...)
}

type doer struct {
	x    exchanger
	next dynamodb.HTTPClient
}

func (d doer) Do(r *http.Request) (*http.Response, error) { return d.x(d.next, r) }

// refusal is an error answer.
func refusal(r *http.Request, code string) *http.Response {
	body := fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"by a test"}`, code)
	return &http.Response{
		StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

// lines collects what the SDK logs.
type lines struct {
	mu   sync.Mutex
	list []string
}

func (l *lines) Logf(_ logging.Classification, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, fmt.Sprintf(format, args...))
}

// A server need not send a checksum, and the SDK then floods its log.
func TestNetworkG04NoChecksum(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	var log lines
	client, faults := through(db, func(next dynamodb.HTTPClient, r *http.Request) (*http.Response, error) {
		resp, err := next.Do(r)
		if err == nil {
			resp.Header.Del("X-Amz-Crc32")
		}
		return resp, err
	}, func(o *dynamodb.Options) { o.Logger = &log })
	p := openOn(t, db, client, dynactor.Options{SnapshotInterval: 2})
	s := p.GetState()
	recovered(s, "a")
	for i := range 6 {
		s.PersistEvent("a", i, text(fmt.Sprint(i+1)))
	}
	s.PersistSnapshot("a", 4, text("state"))
	snapshot, index, events := recovered(s, "a")
	if snapshot != "state" || index != 4 {
		t.Errorf("recovered %q at %d", snapshot, index)
	}
	if diff := cmp.Diff(texts(5, 6), events); diff != "" {
		t.Errorf("recovered (-want +got):\n%s", diff)
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	if len(log.list) > 0 {
		t.Errorf("%d lines logged for %d requests, such as: %s", len(log.list), faults.Count(""), log.list[0])
	}
}

// The SDK learns the difference between the clocks from an answer, and forgets it
// when the clocks agree again.
func TestNetworkG06ClockSkew(t *testing.T) {
	t.Parallel()
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			db := dynactortest.New(t)
			ready(t, outsider(t, db, dynactor.Options{}), db)
			var skew atomic.Int64
			var refused atomic.Int64
			client, _ := through(db, func(next dynamodb.HTTPClient, r *http.Request) (*http.Response, error) {
				theirs := time.Now().Add(time.Duration(skew.Load()))
				signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
				if err != nil {
					return nil, err
				}
				resp := refusal(r, "InvalidSignatureException")
				if signed.Sub(theirs).Abs() < 10*time.Minute {
					if resp, err = next.Do(r); err != nil {
						return nil, err
					}
				} else {
					refused.Add(1)
				}
				resp.Header.Set("Date", theirs.UTC().Format(http.TimeFormat))
				return resp, nil
			})
			j := openOn(t, db, client, dynactor.Options{}).Journal()
			head := int64(0)
			for _, minutes := range []time.Duration{20, 20, 0, -20, 0, 0} {
				skew.Store(int64(minutes * time.Minute))
				next, err := j.Append(t.Context(), "a", head, numbered(int(head)+1, int(head)+s.events)...)
				if err != nil {
					t.Fatalf("clocks %s apart: %v", minutes*time.Minute, err)
				}
				head = next
			}
			if refused.Load() == 0 {
				t.Error("no signature was refused")
			}
			if diff := cmp.Diff(texts(1, int(head)), content(t, db, "a")); diff != "" {
				t.Errorf("stream (-want +got):\n%s", diff)
			}
		})
	}
}

// The next attempt is signed with what the credentials provider then has.
func TestNetworkG07CredentialsExpire(t *testing.T) {
	t.Parallel()
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			db := dynactortest.New(t)
			ready(t, outsider(t, db, dynactor.Options{}), db)
			var expired atomic.Bool
			provider := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				key := "old"
				if expired.Load() {
					key = "new"
				}
				return aws.Credentials{AccessKeyID: key, SecretAccessKey: "secret"}, nil
			})
			client, faults := through(db, func(next dynamodb.HTTPClient, r *http.Request) (*http.Response, error) {
				if strings.HasSuffix(r.Header.Get("X-Amz-Target"), s.op) && strings.Contains(r.Header.Get("Authorization"), "Credential=old/") {
					expired.Store(true)
					return refusal(r, "ExpiredTokenException"), nil
				}
				return next.Do(r)
			}, func(o *dynamodb.Options) { o.Credentials = provider })
			p := openOn(t, db, client, dynactor.Options{})
			if _, err := p.Journal().Append(t.Context(), "a", 0, numbered(1, s.events)...); err != nil {
				t.Error(err)
			}
			if !expired.Load() {
				t.Error("the old credentials were not used")
			}
			if n := faults.Count(s.op); n != 1 {
				t.Errorf("%d writes reached the server, want 1", n)
			}
			if diff := cmp.Diff(texts(1, s.events), content(t, db, "a")); diff != "" {
				t.Errorf("stream (-want +got):\n%s", diff)
			}
		})
	}
}

// The end of the time does not hide what used it up.
func TestNetworkG08DeadlineTellsTheCause(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, op string
		do       func(context.Context, *dynactor.Provider) error
	}{
		{"append of one", "PutItem", func(ctx context.Context, p *dynactor.Provider) error {
			_, err := p.Journal().Append(ctx, "a", 5, text("6"))
			return err
		}},
		{"append of many", "TransactWriteItems", func(ctx context.Context, p *dynactor.Provider) error {
			_, err := p.Journal().Append(ctx, "a", 5, numbered(6, 8)...)
			return err
		}},
		{"head before an append", "GetItem", func(ctx context.Context, p *dynactor.Provider) error {
			_, err := p.Journal().Append(ctx, "a", 5, text("6"))
			return err
		}},
		{"replay", "Query", func(ctx context.Context, p *dynactor.Provider) error {
			_, err := replayed(ctx, p.Journal(), "a", 1, 0)
			return err
		}},
		{"raise the mark", "UpdateItem", func(ctx context.Context, p *dynactor.Provider) error {
			return p.Journal().DeleteTo(ctx, "a", 1)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, db := fixture(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			ctx, stop := context.WithTimeout(ctx, 2*time.Second)
			defer stop()
			db.Faults.Add(dynactortest.Rule{Op: tt.op, Do: dynactortest.Throttle()})
			err := tt.do(ctx, p)
			for _, target := range []error{context.DeadlineExceeded, dynactor.ErrThrottled} {
				if !errors.Is(err, target) {
					t.Errorf("error does not match %q: %v", target, err)
				}
			}
			if !errors.As(err, new(*types.ProvisionedThroughputExceededException)) {
				t.Errorf("the SDK's error is not in the chain: %v", err)
			}
			if errors.Is(err, dynactor.ErrOutcomeUnknown) {
				t.Errorf("what was only throttled is not unknown: %v", err)
			}
			if want := fmt.Sprintf("(%d attempts)", db.Faults.Count(tt.op)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error does not tell %s: %v", want, err)
			}
		})
	}
}

// G09: connections are kept, for as many actors as write at a time.
func TestNetworkG09ConnectionsOfManyActors(t *testing.T) {
	t.Parallel()
	const actors, events = 100, 5
	db := dynactortest.New(t)
	ready(t, outsider(t, db, dynactor.Options{}), db)
	to, err := url.Parse(db.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	behind := &http.Transport{MaxIdleConnsPerHost: actors}
	defer behind.CloseIdleConnections()
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: behind}
	var mu sync.Mutex
	writing, all := 0, make(chan struct{})
	var made atomic.Int64
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "PutItem") {
			// Writes are answered when all actors are waiting for one.
			mu.Lock()
			writing++
			mine := all
			if writing == actors {
				writing, all = 0, make(chan struct{})
				close(mine)
			}
			mu.Unlock()
			select {
			case <-mine:
			case <-r.Context().Done():
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	front.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			made.Add(1)
		}
	}
	front.Start()
	defer front.Close()
	p := wire(t, db, dynactor.Options{Endpoint: front.URL, WriteTimeout: time.Minute})
	sessions := make([]persistence.ProviderState, actors)
	for i := range sessions {
		sessions[i] = p.GetState()
	}
	for n := range events { // after each, all connections are idle
		for _, err := range atOnce(actors, func(i int) error {
			if err := caught(func() { sessions[i].PersistEvent(fmt.Sprint("actor-", i), n, text("x")) }); err != nil {
				return err
			}
			return nil
		}) {
			if err != nil {
				t.Error(err)
			}
		}
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	// A look at the head, before the first write, is two requests at the same time.
	if n := made.Load(); n > 2*actors {
		t.Errorf("%d connections for %d actors and %d requests", n, actors, actors*(2+events))
	}
}

// G10: a server closes connections that are idle, at the very moment at which
// they may be used again.
func TestNetworkG10IdleConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	to, err := url.Parse(db.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	behind := &http.Transport{}
	defer behind.CloseIdleConnections()
	var closed atomic.Int64
	front := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: behind,
	})
	front.Config.ConnState = func(c net.Conn, s http.ConnState) {
		if s == http.StateIdle {
			closed.Add(1)
			_ = c.Close()
		}
	}
	front.Start()
	defer front.Close()
	p := wire(t, db, dynactor.Options{Endpoint: front.URL})
	s := p.GetState()
	var want []string
	for i := range 30 {
		s.PersistEvent("a", i, text(fmt.Sprint(i)))
		want = append(want, fmt.Sprint(i))
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if closed.Load() < 30 {
		t.Errorf("only %d connections were closed", closed.Load())
	}
	if diff := cmp.Diff(want, content(t, db, "a")); diff != "" {
		t.Errorf("stream (-want +got):\n%s", diff)
	}
}

// everyCall are all methods that send something.
func everyCall(p *dynactor.Provider, id string) map[string]func(context.Context) error {
	j, snapshots := p.Journal(), p.Snapshots()
	inSession := func(f func(persistence.ProviderState)) func(context.Context) error {
		return func(context.Context) error {
			if err := caught(func() { f(p.GetState()) }); err != nil {
				return err
			}
			return nil
		}
	}
	return map[string]func(context.Context) error{
		"Append": func(ctx context.Context) error { _, err := j.Append(ctx, id, 0, text("x")); return err },
		"AppendEvents": func(ctx context.Context) error {
			_, err := j.AppendEvents(ctx, id, 0, dynactor.Event{Message: text("x")}, dynactor.Event{Message: text("y")})
			return err
		},
		"Head":               func(ctx context.Context) error { _, err := j.Head(ctx, id); return err },
		"Replay":             func(ctx context.Context) error { _, err := replayed(ctx, j, id, 1, 0); return err },
		"DeleteTo":           func(ctx context.Context) error { return j.DeleteTo(ctx, id, 1) },
		"DeleteAll":          func(ctx context.Context) error { return j.DeleteAll(ctx, id) },
		"Sweep":              func(ctx context.Context) error { _, err := j.Sweep(ctx, id); return err },
		"Erase":              func(ctx context.Context) error { return j.Erase(ctx, id) },
		"Save":               func(ctx context.Context) error { return snapshots.Save(ctx, id, 1, text("x")) },
		"Latest":             func(ctx context.Context) error { _, _, err := snapshots.Latest(ctx, id); return err },
		"AtOrBefore":         func(ctx context.Context) error { _, _, err := snapshots.AtOrBefore(ctx, id, 1); return err },
		"List":               func(ctx context.Context) error { _, err := snapshots.List(ctx, id); return err },
		"Delete":             func(ctx context.Context) error { return snapshots.Delete(ctx, id, 1) },
		"Snapshots.DeleteTo": func(ctx context.Context) error { return snapshots.DeleteTo(ctx, id, 1) },
		"VerifyTables":       func(ctx context.Context) error { return p.VerifyTables(ctx) },
		"GetSnapshot":        inSession(func(s persistence.ProviderState) { s.GetSnapshot(id) }),
		"GetEvents":          inSession(func(s persistence.ProviderState) { s.GetEvents(id, 0, 0, func(any) {}) }),
		"PersistEvent":       inSession(func(s persistence.ProviderState) { s.PersistEvent(id, 0, text("x")) }),
		"PersistSnapshot":    inSession(func(s persistence.ProviderState) { s.PersistSnapshot(id, 1, text("x")) }),
		"DeleteEvents":       inSession(func(s persistence.ProviderState) { s.DeleteEvents(id, 1) }),
		"DeleteSnapshots":    inSession(func(s persistence.ProviderState) { s.DeleteSnapshots(id, 1) }),
	}
}

// A server that takes requests and never answers stops nobody for longer than
// the time limits, whatever the caller's context, and no other actor.
func TestNetworkG12NoAnswer(t *testing.T) {
	t.Parallel()
	const limit = 400 * time.Millisecond
	o := dynactor.Options{ReadTimeout: limit, WriteTimeout: limit, RecoveryTimeout: limit, TableTimeout: limit}
	check := func(t *testing.T, name string, do func(context.Context) error) {
		t.Helper()
		start := time.Now()
		err := do(t.Context())
		if err == nil && name != "PersistSnapshot" { // whose failure is only logged
			t.Errorf("%s: no error", name)
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && name != "PersistEvent" {
			t.Errorf("%s: %v, want that the time is up", name, err)
		}
		if d := time.Since(start); d > 30*limit {
			t.Errorf("%s took %s", name, d)
		}
	}
	t.Run("from the first request on", func(t *testing.T) {
		t.Parallel()
		silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = silent.Close() }() // connections wait in its queue
		o := o
		o.Endpoint = "http://" + silent.Addr().String()
		p := wire(t, dynactortest.New(t), o)
		all := everyCall(p, "a")
		all["EnsureTables"] = p.EnsureTables
		var running sync.WaitGroup
		for name, do := range all {
			running.Go(func() { check(t, name, do) })
		}
		running.Wait()
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("after a good start", func(t *testing.T) {
		t.Parallel()
		db := dynactortest.New(t)
		good := outsider(t, db, dynactor.Options{})
		if _, err := good.Journal().Append(t.Context(), "a", 0, text("1")); err != nil {
			t.Fatal(err)
		}
		p := openOn(t, db, db.Client, o)
		eventually(t, "the tables", func() bool { return p.EnsureTables(t.Context()) == nil })
		db.Faults.Add(dynactortest.Rule{Do: dynactortest.Hold(nil, nil), Match: func(r dynactortest.Request) bool {
			return about("a")(r) || r.Op == "DescribeTable"
		}})
		var running sync.WaitGroup
		for name, do := range everyCall(p, "a") {
			running.Go(func() { check(t, name, do) })
		}
		running.Wait()
		eventually(t, "other actors to work", func() bool {
			_, err := p.Journal().Head(t.Context(), "b")
			return err == nil
		})
	})
}

// G13: a transaction may take its time.
func TestNetworkG13SlowTransaction(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{})
	ready(t, p, db)
	db.Faults.Add(dynactortest.Rule{Op: "TransactWriteItems", Do: dynactortest.Delay(time.Second, time.Second)})
	if head, err := p.Journal().Append(t.Context(), "a", 0, numbered(1, 100)...); head != 100 || err != nil {
		t.Errorf("head %d, %v", head, err)
	}
	if n := db.Faults.Count("TransactWriteItems"); n != 1 {
		t.Errorf("%d attempts, want 1", n)
	}
}

// G16: each attempt is signed with the time at which it is sent.
func TestNetworkG16FreshSignature(t *testing.T) {
	t.Parallel()
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			db := dynactortest.New(t)
			ready(t, outsider(t, db, dynactor.Options{}), db)
			var mu sync.Mutex
			var dates, bodies []string
			client, faults := through(db, func(next dynamodb.HTTPClient, r *http.Request) (*http.Response, error) {
				if strings.HasSuffix(r.Header.Get("X-Amz-Target"), s.op) {
					body, err := io.ReadAll(r.Body)
					if err != nil {
						return nil, err
					}
					r.Body = io.NopCloser(bytes.NewReader(body))
					mu.Lock()
					dates, bodies = append(dates, r.Header.Get("X-Amz-Date")), append(bodies, string(body))
					mu.Unlock()
				}
				return next.Do(r)
			})
			// A date has whole seconds.
			faults.Add(dynactortest.Rule{Op: s.op, Times: 2, Do: dynactortest.Sequence(dynactortest.Delay(0, 1100*time.Millisecond), dynactortest.Throttle())})
			p := openOn(t, db, client, dynactor.Options{})
			if _, err := p.Journal().Append(t.Context(), "a", 0, numbered(1, s.events)...); err != nil {
				t.Error(err)
			}
			if len(dates) != 3 || !slices.IsSorted(dates) || len(slices.Compact(slices.Clone(dates))) != 3 {
				t.Errorf("attempts are dated %v, want three different times", dates)
			}
			if len(slices.Compact(bodies)) != 1 {
				t.Errorf("the attempts differ: %v", bodies)
			}
		})
	}
}

// A request whose host has no address has not left, whichever way the transport
// says so.
func TestNetworkNeverLeft(t *testing.T) {
	t.Parallel()
	cause := &net.DNSError{Err: "no such host", Name: "nowhere", IsNotFound: true}
	for name, failure := range map[string]error{
		"name": cause,
		"dial": &net.OpError{Op: "dial", Net: "tcp", Err: cause},
		"url":  &url.Error{Op: "Post", URL: "http://nowhere", Err: cause},
	} {
		for _, s := range shapes {
			t.Run(name+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				db := dynactortest.New(t)
				ready(t, outsider(t, db, dynactor.Options{}), db)
				client, _ := through(db, func(next dynamodb.HTTPClient, r *http.Request) (*http.Response, error) {
					if strings.HasSuffix(r.Header.Get("X-Amz-Target"), s.op) {
						return nil, failure
					}
					return next.Do(r)
				})
				_, err := openOn(t, db, client, dynactor.Options{}).Journal().Append(t.Context(), "a", 0, numbered(1, s.events)...)
				if verdict(err) != "failure" || !errors.Is(err, cause) {
					t.Errorf("told %v, want a failure for want of an address", err)
				}
			})
		}
	}
}

// plain is a client that is not the SDK's: it knows nothing of option functions.
type plain struct {
	dynactor.Client

	put      func(context.Context, *dynamodb.PutItemInput) error
	transact func(*dynamodb.TransactWriteItemsInput) error
}

func (c plain) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if !strings.HasPrefix(*in.TableName, "events") || c.put == nil {
		return c.Client.PutItem(ctx, in, opts...)
	}
	return &dynamodb.PutItemOutput{}, c.put(ctx, in)
}

func (c plain) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return &dynamodb.TransactWriteItemsOutput{}, c.transact(in)
}

// The attempts of a client that is not the SDK's cannot be seen, so only what is
// in the slot counts.
func TestNetworkPlainClient(t *testing.T) {
	t.Parallel()
	foreign := map[string]types.AttributeValue{"op": &types.AttributeValueMemberS{Value: "other"}}
	for _, tt := range []struct {
		name    string
		store   bool // the put is carried out
		answer  func(in *dynamodb.PutItemInput) error
		verdict string
		is      error
	}{
		{"success", true, func(*dynamodb.PutItemInput) error { return nil }, "success", nil},
		{"an error of its own", true, func(*dynamodb.PutItemInput) error { return io.ErrUnexpectedEOF }, "unknown", io.ErrUnexpectedEOF},
		{
			"throttled, perhaps after an earlier attempt", true,
			func(*dynamodb.PutItemInput) error { return &types.ProvisionedThroughputExceededException{} },
			"unknown", dynactor.ErrThrottled,
		},
		{
			"refused connection, perhaps after an earlier attempt", true,
			func(*dynamodb.PutItemInput) error { return &net.OpError{Op: "dial", Err: io.EOF} },
			"unknown", nil,
		},
		{
			"own item", true,
			func(in *dynamodb.PutItemInput) error { return &types.ConditionalCheckFailedException{Item: in.Item} },
			"success", nil,
		},
		{
			"own item, left out", true,
			func(*dynamodb.PutItemInput) error { return &types.ConditionalCheckFailedException{} },
			"success", nil,
		},
		{
			"foreign item", false,
			func(*dynamodb.PutItemInput) error { return &types.ConditionalCheckFailedException{Item: foreign} },
			"conflict", nil,
		},
		{
			"item without an operation id", false,
			func(in *dynamodb.PutItemInput) error {
				return &types.ConditionalCheckFailedException{Item: map[string]types.AttributeValue{"pid": in.Item["pid"]}}
			},
			"conflict", nil,
		},
		{
			"no item", false,
			func(*dynamodb.PutItemInput) error { return &types.ConditionalCheckFailedException{} },
			"unknown", nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := dynactortest.New(t)
			ready(t, outsider(t, db, dynactor.Options{}), db)
			p := openOn(t, db, plain{Client: db.Client, put: func(_ context.Context, in *dynamodb.PutItemInput) error {
				if tt.store {
					if _, err := db.Client.PutItem(t.Context(), in); err != nil { //nolint:contextcheck // the context of the call goes on
						t.Error(err)
					}
				}
				return tt.answer(in)
			}}, dynactor.Options{})
			_, err := p.Journal().Append(t.Context(), "a", 0, text("1"))
			if got := verdict(err); got != tt.verdict {
				t.Errorf("told %s, want %s: %v", got, tt.verdict, err)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error does not match %q: %v", tt.is, err)
			}
		})
	}
}

// A client's error need not tell that the caller's time was up.
func TestNetworkPlainClientCancelled(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	p := openOn(t, db, plain{Client: db.Client, put: func(inner context.Context, _ *dynamodb.PutItemInput) error {
		cancel()
		<-inner.Done()
		return io.ErrClosedPipe
	}}, dynactor.Options{})
	ready(t, outsider(t, db, dynactor.Options{}), db)
	_, err := p.Journal().Append(ctx, "a", 0, text("1"))
	for _, target := range []error{dynactor.ErrOutcomeUnknown, context.Canceled, io.ErrClosedPipe} {
		if !errors.Is(err, target) {
			t.Errorf("error does not match %q: %v", target, err)
		}
	}
}

// hiding is a wrapper around the SDK's client that does not pass the library's
// options on, so that the SDK makes its own attempts and reports the last.
type hiding struct{ dynactor.Client }

func (c hiding) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return c.Client.PutItem(ctx, in)
}

func (c hiding) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return c.Client.TransactWriteItems(ctx, in)
}

func TestNetworkHiddenAttempts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		later   dynactortest.Action // what the second attempt and all later ones meet
		verdict string
	}{
		{"then throttled", dynactortest.Throttle(), "unknown"},
		{"then connections refused", dynactortest.Refuse(), "unknown"},
		{"then access denied", dynactortest.Answer(400, "AccessDeniedException", "by a test"), "unknown"},
		{"then nothing", dynactortest.Action{}, "success"},
	} {
		for _, s := range shapes {
			t.Run("first answer lost, "+tt.name+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				db := dynactortest.New(t)
				ready(t, outsider(t, db, dynactor.Options{}), db)
				p := openOn(t, db, hiding{db.Client}, dynactor.Options{})
				db.Faults.Add(s.on(1, dynactortest.DropAnswer()))
				db.Faults.Add(s.from(2, tt.later))
				_, err := p.Journal().Append(t.Context(), "a", 0, numbered(1, s.events)...)
				if got := verdict(err); got != tt.verdict {
					t.Errorf("told %s, want %s: %v", got, tt.verdict, err)
				}
				if diff := cmp.Diff(texts(1, s.events), content(t, db, "a")); diff != "" {
					t.Errorf("stream (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// G14: the reasons why a transaction was cancelled may be incomplete.
func TestNetworkG14IncompleteReasons(t *testing.T) {
	t.Parallel()
	foreign := map[string]types.AttributeValue{"op": &types.AttributeValueMemberS{Value: "other"}}
	code := func(code string, item map[string]types.AttributeValue) types.CancellationReason {
		return types.CancellationReason{Code: &code, Item: item}
	}
	for _, tt := range []struct {
		name    string
		reasons []types.CancellationReason
		verdict string
		says    string
	}{
		{"none", nil, "unknown", "cancelled by a test"},
		{"empty", []types.CancellationReason{}, "unknown", "cancelled by a test"},
		{"one of three", []types.CancellationReason{code("ConditionalCheckFailed", foreign)}, "conflict", "other"},
		{"five of three", []types.CancellationReason{{}, {}, {}, {}, code("ConditionalCheckFailed", foreign)}, "unknown", "cancelled by a test"},
		{"no codes", []types.CancellationReason{{}, {}, {}}, "unknown", "cancelled by a test"},
		{"no code with an item", []types.CancellationReason{{Item: foreign}}, "unknown", "cancelled by a test"},
		{"second with an item", []types.CancellationReason{code("ConditionalCheckFailed", nil), code("ConditionalCheckFailed", foreign)}, "conflict", "other"},
		{
			"a message",
			[]types.CancellationReason{{}, {Code: aws.String("ValidationError"), Message: aws.String("odd key")}},
			"unknown", "item 2 of 2: ValidationError: odd key",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := dynactortest.New(t)
			p := openOn(t, db, plain{Client: db.Client, transact: func(*dynamodb.TransactWriteItemsInput) error {
				return &types.TransactionCanceledException{Message: aws.String("cancelled by a test"), CancellationReasons: tt.reasons}
			}}, dynactor.Options{})
			ready(t, p, db)
			_, err := p.Journal().Append(t.Context(), "a", 0, numbered(1, 3)...)
			if got := verdict(err); got != tt.verdict {
				t.Errorf("told %s, want %s: %v", got, tt.verdict, err)
			}
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error does not tell %q: %v", tt.says, err)
			}
		})
	}
}
