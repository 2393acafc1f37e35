package dynactor_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/persistence"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

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
func TestNetwork_G12_NoAnswer(t *testing.T) {
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
func TestNetwork_G13_SlowTransaction(t *testing.T) {
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
func TestNetwork_G16_FreshSignature(t *testing.T) {
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
