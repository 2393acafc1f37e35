package dynactor_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/persistence"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// A server need not send a checksum, and the SDK then floods its log.
func TestNetwork_G04_NoChecksum(t *testing.T) {
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
func TestNetwork_G06_ClockSkew(t *testing.T) {
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
func TestNetwork_G07_CredentialsExpire(t *testing.T) {
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
func TestNetwork_G08_DeadlineTellsTheCause(t *testing.T) {
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
func TestNetwork_G09_ConnectionsOfManyActors(t *testing.T) {
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
func TestNetwork_G10_IdleConnectionsAreClosed(t *testing.T) {
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
