package dynactor_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
