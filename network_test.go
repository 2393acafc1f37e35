package dynactor_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
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
func TestNetwork_G01_ThrottledWrites(t *testing.T) {
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
