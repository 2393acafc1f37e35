package dynactor_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// bareEnvironment hides the machine's AWS configuration.
func bareEnvironment(t *testing.T) {
	t.Helper()
	nowhere := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": nowhere, "AWS_SHARED_CREDENTIALS_FILE": nowhere, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
		"AWS_SESSION_TOKEN": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_DYNAMODB": "",
	} {
		t.Setenv(name, value)
	}
}

// front stands before a server and notes what arrives: the credential of each
// request, and the connections that are open.
type front struct {
	*httptest.Server

	mu          sync.Mutex
	credentials []string
	conns       map[net.Conn]bool
	closed      *sync.Cond
	behind      *http.Transport
}

func newFront(t *testing.T, target string) *front {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{conns: map[net.Conn]bool{}, behind: &http.Transport{}}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: f.behind}
	f.closed = sync.NewCond(&f.mu)
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, rest, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
		parts := strings.Split(rest, "/")
		f.mu.Lock()
		f.credentials = append(f.credentials, fmt.Sprintf("%s in %s", parts[0], parts[min(2, len(parts)-1)]))
		f.mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	f.Config.ConnState = func(c net.Conn, s http.ConnState) {
		f.mu.Lock()
		defer f.mu.Unlock()
		switch s { //nolint:exhaustive // only the ends
		case http.StateNew:
			f.conns[c] = true
		case http.StateClosed:
			delete(f.conns, c)
			f.closed.Broadcast()
		}
	}
	f.Start()
	t.Cleanup(f.stop)
	return f
}

func (f *front) stop() {
	f.Close()
	f.behind.CloseIdleConnections()
}

// seen are the credentials seen, each once.
func (f *front) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(f.credentials)))
}

// wire makes a provider by Open on the tables of db.
func wire(t *testing.T, db *dynactortest.DB, o dynactor.Options) *dynactor.Provider {
	t.Helper()
	o.EventsTable, o.SnapshotsTable = db.EventsTable, db.SnapshotsTable
	o.Logger, _ = logged()
	p, err := dynactor.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProvider_NewAndOpenSendNothing(t *testing.T) {
	bareEnvironment(t)
	p, db := open(t, dynactor.Options{})
	p.GetState().Restart()
	p.GetState().GetSnapshotInterval()
	_, _ = p.Journal(), p.Snapshots()
	if n := db.Faults.Count(""); n != 0 {
		t.Errorf("New made %d requests", n)
	}
	f := newFront(t, db.Endpoint)
	t.Setenv("AWS_ENDPOINT_URL", f.URL) // whatever service it might think of
	q := wire(t, db, dynactor.Options{Endpoint: f.URL})
	_, _ = q.Journal(), q.Snapshots()
	q.GetState().Restart()
	if err := q.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := f.seen(); got != nil {
		t.Errorf("Open made requests: %v", got)
	}
}

func TestProvider_Open(t *testing.T) {
	for name, tc := range map[string]struct {
		env     map[string]string
		o       dynactor.Options
		byEnv   bool // the endpoint comes from the environment
		want    string
		refused string
	}{
		"a local endpoint needs neither region nor credentials": {want: "local in us-east-1"},
		"a local endpoint with a region":                        {o: dynactor.Options{Region: "eu-north-1"}, want: "local in eu-north-1"},
		"a local endpoint never sees real credentials": {
			env:  map[string]string{"AWS_ACCESS_KEY_ID": "AKIDREAL", "AWS_SECRET_ACCESS_KEY": "hush", "AWS_REGION": "eu-west-1"},
			want: "local in eu-west-1",
		},
		"L-02 the standard configuration": {
			env:   map[string]string{"AWS_ACCESS_KEY_ID": "AKIDREAL", "AWS_SECRET_ACCESS_KEY": "hush", "AWS_REGION": "eu-west-1"},
			byEnv: true, want: "AKIDREAL in eu-west-1",
		},
		"L-03 a region in the options overrides it": {
			env:   map[string]string{"AWS_ACCESS_KEY_ID": "AKIDREAL", "AWS_SECRET_ACCESS_KEY": "hush", "AWS_REGION": "eu-west-1"},
			byEnv: true, o: dynactor.Options{Region: "eu-north-1"}, want: "AKIDREAL in eu-north-1",
		},
		"no region":              {o: dynactor.Options{Endpoint: "http://dynamodb:8000"}, refused: "no AWS region: set Options.Region or AWS_REGION"},
		"no region, no endpoint": {byEnv: true, refused: "no AWS region: set Options.Region or AWS_REGION"},
	} {
		t.Run(name, func(t *testing.T) {
			bareEnvironment(t)
			db := dynactortest.New(t)
			f := newFront(t, db.Endpoint)
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			switch {
			case tc.byEnv:
				t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", f.URL)
			case tc.o.Endpoint == "":
				tc.o.Endpoint = f.URL
			}
			if tc.refused != "" {
				_, err := dynactor.Open(t.Context(), tc.o)
				if !errors.Is(err, dynactor.ErrInvalid) || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("got %v, want ErrInvalid and %q", err, tc.refused)
				}
				return
			}
			p := wire(t, db, tc.o)
			if _, err := p.Journal().Append(t.Context(), "a", 0, text("x")); err != nil {
				t.Error(err)
			}
			if err := p.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([]string{tc.want}, f.seen()); diff != "" {
				t.Errorf("credentials (-want +got):\n%s", diff)
			}
		})
	}

	t.Run("a configuration that cannot be loaded", func(t *testing.T) {
		bareEnvironment(t)
		t.Setenv("AWS_PROFILE", "no-such-profile")
		_, err := dynactor.Open(t.Context(), dynactor.Options{})
		var e *dynactor.Error
		if !errors.As(err, &e) || e.Op != "open provider" || !strings.Contains(err.Error(), "no-such-profile") {
			t.Errorf("got %v, want an *Error with the SDK's", err)
		}
	})
}

func TestProvider_SecretsStayOutOfErrors(t *testing.T) {
	bareEnvironment(t)
	secrets := map[string]string{"AWS_SECRET_ACCESS_KEY": "hush-key", "AWS_SESSION_TOKEN": "hush-token"}
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDREAL")
	for k, v := range secrets {
		t.Setenv(k, v)
	}
	errs := map[string]error{}
	_, errs["no region"] = dynactor.Open(t.Context(), dynactor.Options{})
	for name, endpoint := range map[string]string{
		"no URL": "bob:hush-password@127.0.0.1:8000", "another scheme": "ftp://bob:hush-password@127.0.0.1", "unparsable": "http://bob:hush-password@[",
	} {
		_, errs[name] = dynactor.Open(t.Context(), dynactor.Options{Region: "eu-west-1", Endpoint: endpoint})
	}
	for name, endpoint := range map[string]string{
		"refused, local": "http://bob:hush-password@127.0.0.1:1", "refused": "http://bob:hush-password@127.0.0.1.nip.invalid:1",
	} {
		logger, lines := logged()
		p, err := dynactor.Open(t.Context(), dynactor.Options{Region: "eu-west-1", Endpoint: endpoint, ReadTimeout: 200e6, Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		errs[name] = p.EnsureTables(t.Context())
		errs[name+", logged"] = errors.New(strings.Join(lines(), "\n"))
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for name, err := range errs {
		if err == nil {
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: a secret is in %v", name, err)
		}
	}
}

// A redirect would take the session token to another host.
func TestProvider_OpenFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	elsewhere := newFront(t, "http://127.0.0.1:1")
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusFound))
	t.Cleanup(server.Close)
	p, err := dynactor.Open(t.Context(), dynactor.Options{Endpoint: server.URL, ReadTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.EnsureTables(t.Context()); err == nil {
		t.Error("no error")
	}
	if got := elsewhere.seen(); got != nil {
		t.Errorf("a request went to %v", got)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestProvider_Close(t *testing.T) {
	t.Parallel()

	t.Run("waits for what is in flight, and refuses what is new", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		reached, release := make(chan struct{}), make(chan struct{})
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Do: dynactortest.Hold(reached, release)})
		appended, closed := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := p.Journal().Append(t.Context(), "a", 0, text("x"))
			appended <- err
		}()
		<-reached
		go func() { closed <- p.Close(t.Context()) }()
		for {
			_, err := p.Journal().Head(t.Context(), "a")
			if errors.Is(err, dynactor.ErrClosed) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		select {
		case err := <-closed:
			t.Errorf("Close returned %v while a request was held", err)
		default:
		}
		close(release)
		if err := <-appended; err != nil {
			t.Errorf("the append in flight: %v", err)
		}
		if err := <-closed; err != nil {
			t.Errorf("Close: %v", err)
		}
	})

	t.Run("cancels what is in flight when its time is up", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		reached := make(chan struct{})
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Do: dynactortest.Hold(reached, nil)})
		db.Faults.Add(dynactortest.Rule{Op: "Query", Match: func(r dynactortest.Request) bool {
			return strings.Contains(string(r.Body), `"reader"`)
		}, Do: dynactortest.Hold(reached, nil)})
		wrote, read := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := p.Journal().Append(t.Context(), "writer", 0, text("x"))
			wrote <- err
		}()
		go func() {
			_, err := p.Journal().Head(t.Context(), "reader")
			read <- err
		}()
		<-reached
		<-reached
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Close(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "requests were cancelled") {
			t.Errorf("Close: got %v, want that requests were cancelled", err)
		}
		if err := <-wrote; !errors.Is(err, dynactor.ErrOutcomeUnknown) || !errors.Is(err, dynactor.ErrClosed) {
			t.Errorf("the write: got %v, want ErrOutcomeUnknown and ErrClosed", err)
		}
		if err := <-read; !errors.Is(err, dynactor.ErrClosed) || errors.Is(err, dynactor.ErrOutcomeUnknown) {
			t.Errorf("the read: got %v, want ErrClosed only", err)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Errorf("Close again: %v", err)
		}
	})

	t.Run("ends a recovery that waits", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{NoCreateTables: true})
		missed := make(chan struct{}, 100)
		db.Faults.Add(dynactortest.Rule{Op: "DescribeTable", Do: dynactortest.EditAnswer(func(_ string, b []byte) []byte {
			missed <- struct{}{}
			return b
		})})
		done := make(chan *dynactor.Error, 1)
		go func() { done <- caught(func() { recovered(p.GetState(), "a") }) }()
		<-missed
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, dynactor.ErrClosed) {
			t.Errorf("the recovery: got %v, want ErrClosed", err)
		}
	})

	t.Run("many at once", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		for _, err := range atOnce(8, func(int) error { return p.Close(t.Context()) }) {
			if err != nil {
				t.Error(err)
			}
		}
	})

	t.Run("L-05 leaves the client alone that it was given", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		q := openOn(t, db, db.Client, dynactor.Options{})
		if _, err := q.Journal().Append(t.Context(), "a", 0, text("x")); err != nil {
			t.Errorf("another provider on the same client: %v", err)
		}
	})
}

// Every public method refuses to work after Close, whether or not the tables were
// checked before.
func TestProvider_AfterClose(t *testing.T) {
	t.Parallel()
	for name, used := range map[string]bool{"used before": true, "never used": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			living := p.GetState()
			if used {
				ready(t, p, db)
				recovered(living, "a")
			}
			if err := p.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			db.Faults.Reset()
			refused := calls(t.Context(), p, living, "a")
			refused["Provider.VerifyTables"] = func() error { return p.VerifyTables(t.Context()) }
			refused["StateStore.EnsureTables"] = func() error { return p.State().EnsureTables(t.Context()) }
			refused["StateStore.IDs"] = func() error {
				for _, err := range p.State().IDs(t.Context(), "") {
					return err
				}
				return nil
			}
			if !used {
				refused["Provider.EnsureTables"] = func() error { return p.EnsureTables(t.Context()) }
			}
			for method, call := range refused {
				err := call()
				if e, ok := errors.AsType[*dynactor.Error](err); !ok || !errors.Is(e, dynactor.ErrClosed) {
					t.Errorf("%s: got %v, want ErrClosed", method, err)
				}
			}
			living.PersistSnapshot("a", 1, text("x")) // logs, and does not panic
			if n := db.Faults.Count(""); n != 0 {
				t.Errorf("%d requests after Close", n)
			}

			var missing []string
			for kind, v := range map[string]reflect.Type{
				"Provider": reflect.TypeFor[*dynactor.Provider](), "Journal": reflect.TypeFor[*dynactor.Journal](),
				"SnapshotStore": reflect.TypeFor[dynactor.SnapshotStore](), "StateStore": reflect.TypeFor[*dynactor.StateStore](),
			} {
				for i := range v.NumMethod() {
					missing = append(missing, kind+"."+v.Method(i).Name)
				}
			}
			harmless := []string{"Provider.Close", "Provider.EnsureTables", "Provider.GetState", "Provider.Journal", "Provider.Snapshots", "Provider.State"}
			missing = slices.DeleteFunc(missing, func(m string) bool {
				return slices.Contains(harmless, m) || slices.Contains(slices.Collect(maps.Keys(refused)), m)
			})
			if len(missing) > 0 {
				t.Errorf("methods without a case here: %v", missing)
			}
		})
	}
}

// L-04: nothing of a provider made by Open is left after Close.
func TestProvider_L04_NothingIsLeft(t *testing.T) { //nolint:paralleltest // looks at all goroutines of the process
	bareEnvironment(t)
	db := dynactortest.New(t)
	before := append(dynactortest.IgnoreServer(), goleak.IgnoreCurrent())
	f := newFront(t, db.Endpoint)

	p := wire(t, db, dynactor.Options{Endpoint: f.URL})
	j := p.Journal()
	errs := atOnce(16, func(i int) error {
		id := fmt.Sprint("actor-", i)
		if _, err := j.Append(t.Context(), id, 0, numbered(1, 3)...); err != nil {
			return err
		}
		for _, err := range j.Replay(t.Context(), id, 1, 0) {
			return err // the consumer has enough after one
		}
		return nil
	})
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	f.mu.Lock()
	if len(f.conns) == 0 {
		t.Error("no connection was kept, so there is nothing to see here")
	}
	f.mu.Unlock()
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	f.mu.Lock()
	for len(f.conns) > 0 {
		f.closed.Wait()
	}
	f.mu.Unlock()
	f.stop()
	goleak.VerifyNone(t, before...)
}
