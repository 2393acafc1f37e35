package dynactor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// TestMany has many actors at once share one provider.
func TestMany(t *testing.T) {
	t.Parallel()

	t.Run("10,000 recoveries at once stay within MaxConcurrentReads", func(t *testing.T) {
		t.Parallel()
		const n, places = 10_000, 64
		db := dynactortest.New(t)
		m := newMeter()
		p := openOn(t, db, m.client(db), dynactor.Options{SnapshotInterval: 3, MaxConcurrentReads: places})
		for i := range 10 { // the others are empty, and the meter knows that
			fill(t, p.Journal(), id(i), 5)
			saveSnapshot(t, p, id(i), 3)
		}
		real := regexp.MustCompile(`"S":"actor-[0-9]"`)
		m.empty = func(r dynactortest.Request) bool { return !real.Match(r.Body) }
		m.reset()
		var wrong atomic.Int64
		each(n, func(i int) {
			snapshot, _, got := recovered(p.GetState(), id(i))
			full := snapshot == "3" && slices.Equal(got, texts(4, 5))
			empty := snapshot == "" && len(got) == 0
			if (i < 10 && !full) || (i >= 10 && !empty) {
				wrong.Add(1)
			}
		})
		if got := wrong.Load(); got != 0 {
			t.Errorf("%d of %d recoveries were wrong", got, n)
		}
		most := m.most()
		for _, table := range []string{db.EventsTable, db.SnapshotsTable} {
			if got := most[table]; got == 0 || got > places {
				t.Errorf("%d requests to %s at once, want 1 to %d", got, table, places)
			}
		}
		t.Logf("at once: %v", most)
	})

	t.Run("reads that wait for each other do not run out of time", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{MaxConcurrentReads: 1, ReadTimeout: 10 * time.Second})
		ready(t, p, db)
		db.Faults.Add(dynactortest.Rule{Do: dynactortest.Delay(300*time.Millisecond, 0)})
		each(36, func(int) { // one after the other for want of places: 10.8 s
			if _, err := p.Snapshots().List(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		})
	})

	t.Run("reads that wait for a place end with the caller's time, or when the provider closes", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{MaxConcurrentReads: 1})
		ready(t, p, db)
		reached, release := make(chan struct{}), make(chan struct{})
		db.Faults.Add(dynactortest.Rule{Do: dynactortest.Hold(reached, release)})
		first := make(chan error, 1)
		go func() { _, err := p.Snapshots().List(t.Context(), "a"); first <- err }()
		<-reached
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := p.Snapshots().List(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the caller's deadline", err)
		}
		second, closed := make(chan error, 1), make(chan error, 1)
		go func() { _, err := p.Snapshots().List(t.Context(), "a"); second <- err }()
		go func() { closed <- p.Close(t.Context()) }()
		if err := <-second; !errors.Is(err, dynactor.ErrClosed) {
			t.Errorf("got %v, want %v", err, dynactor.ErrClosed)
		}
		close(release)
		if err := errors.Join(<-first, <-closed); err != nil {
			t.Error(err)
		}
	})

	t.Run("a table that does not answer holds up no other, and reads hold up no writes", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{
			SnapshotInterval: 3, MaxConcurrentReads: 4, MaxConcurrentWrites: 4,
			ReadTimeout: 4 * longest, // what is held stays so
		})
		fill(t, p.Journal(), "a", 5)
		saveSnapshot(t, p, "a", 3)
		s := p.GetState()
		recovered(s, "a")
		reached, release := make(chan struct{}), make(chan struct{})
		db.Faults.Add(dynactortest.Rule{Op: "Query", Table: db.EventsTable, Do: dynactortest.Hold(reached, release)})
		db.Faults.Add(dynactortest.Rule{Op: "GetItem", Table: db.EventsTable, Do: dynactortest.Hold(reached, release)})
		done := make(chan struct{})
		go func() {
			defer close(done)
			each(20, func(int) { recovered(p.GetState(), "a") })
		}()
		for range 4 { // all places are taken
			<-reached
		}
		ctx, cancel := context.WithTimeout(t.Context(), longest/2)
		defer cancel()
		if snap, found, err := p.Snapshots().Latest(ctx, "a"); err != nil || !found || snap.Seq != 3 {
			t.Errorf("got snapshot %v, %v, %v, want the one at 3", snap, found, err)
		}
		s.PersistEvent("a", 5, text("6"))
		s.PersistSnapshot("a", 6, text("6"))
		go func() {
			for {
				select {
				case <-reached:
				case <-done:
					return
				}
			}
		}()
		close(release)
		<-done
	})

	t.Run("a throttled stream takes no places from others", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 3, MaxConcurrentReads: 2})
		fill(t, p.Journal(), "cool", 5)
		var throttled atomic.Int64
		var cooled atomic.Bool
		db.Faults.Add(dynactortest.Rule{Match: func(r dynactortest.Request) bool {
			hot := strings.Contains(string(r.Body), `"S":"boiling"`) && !cooled.Load()
			if hot {
				throttled.Add(1)
			}
			return hot
		}, Do: dynactortest.Throttle()})
		done := make(chan struct{})
		go func() {
			defer close(done)
			each(50, func(int) { recovered(p.GetState(), "boiling") })
		}()
		eventually(t, "throttling", func() bool { return throttled.Load() > 100 })
		for range 20 {
			if _, _, got := recovered(p.GetState(), "cool"); !slices.Equal(got, texts(1, 5)) {
				t.Errorf("recovered %v, want 1 to 5", got)
			}
		}
		select {
		case <-done:
			t.Error("the throttled recoveries have ended, so this showed nothing")
		default:
		}
		cooled.Store(true)
		<-done
	})

	t.Run("H07 many recover one long stream while a third of the reads is throttled", func(t *testing.T) {
		t.Parallel()
		const n, events, places = 50, 120, 8
		db := dynactortest.New(t)
		m := newMeter()
		m.page = 10 // as if the events were large
		p := openOn(t, db, m.client(db), dynactor.Options{MaxConcurrentReads: places})
		fill(t, p.Journal(), "a", events)
		var reads atomic.Int64
		db.Faults.Add(dynactortest.Rule{Op: "Query", Match: func(dynactortest.Request) bool { return reads.Add(1)%3 == 0 }, Do: dynactortest.Throttle()})
		m.reset()
		each(n, func(int) {
			if _, _, got := recovered(p.GetState(), "a"); !slices.Equal(got, texts(1, events)) {
				t.Errorf("%d events, want %d, or they differ", len(got), events)
			}
		})
		if got := m.most()[db.EventsTable]; got > places {
			t.Errorf("%d requests at once, want at most %d", got, places)
		}
	})

	t.Run("one recovery reads a long stream by a few requests at once", func(t *testing.T) {
		t.Parallel()
		db := dynactortest.New(t)
		m := newMeter()
		m.page = 10
		p := openOn(t, db, m.client(db), dynactor.Options{})
		fill(t, p.Journal(), "a", 300)
		db.Faults.Add(dynactortest.Rule{Op: "Query", Do: dynactortest.Delay(10*time.Millisecond, 0)})
		m.reset()
		if _, _, got := recovered(p.GetState(), "a"); !slices.Equal(got, texts(1, 300)) {
			t.Errorf("%d events, want 300, or they differ", len(got))
		}
		if got := m.most()[db.EventsTable]; got < 2 || got > 4+1 {
			t.Errorf("%d requests at once, want 2 to 5", got)
		}
	})

	t.Run("B05 actors persist, save, delete and recover, and others look", func(t *testing.T) {
		t.Parallel()
		const n, events = 200, 7
		now := &clock{}
		p, _ := open(t, dynactor.Options{SnapshotInterval: 2, KeepSnapshots: 2, DeleteEventsOnSnapshot: true, Now: now.Now})
		w := newProcess(t)
		for i := range n {
			w.spawn(p, id(i))
		}
		ctx, stop := context.WithCancel(t.Context())
		var lookers sync.WaitGroup
		for l := range 4 {
			lookers.Go(func() {
				for i := l; ctx.Err() == nil; i++ {
					j, of := p.Journal(), id(i%n)
					got, err := replayed(ctx, j, of, 0, 0)
					if err == nil && len(got) > 0 {
						first, _ := strconv.Atoi(got[0])
						if !slices.Equal(got, texts(first, first+len(got)-1)) {
							t.Errorf("%s: replayed %v", of, got)
						}
					}
					_, errHead := j.Head(ctx, of)
					_, errList := p.Snapshots().List(ctx, of)
					_, errSweep := j.Sweep(ctx, of)
					for _, err := range []error{err, errHead, errList, errSweep} {
						if err != nil && ctx.Err() == nil && !isConflict(err) {
							t.Errorf("%s: %v", of, err)
						}
					}
				}
			})
		}
		each(n, func(i int) {
			for k := range events {
				got, err := w.system.Root.RequestFuture(w.pid(id(i)), add(strconv.Itoa(k+1)), longest).Result()
				if diff := cmp.Diff(texts(1, k+1), got); diff != "" || err != nil {
					t.Errorf("%s, %v (-want +got):\n%s", id(i), err, diff)
					return
				}
				if k%3 == 2 {
					w.send(id(i), fail{})
				}
			}
		})
		stop()
		lookers.Wait()
		for i := range n {
			w.expect(id(i), get{}, texts(1, events))
		}
	})
}

// TestNothingIsLeftBehind runs alone, since it counts what the process has.
func TestNothingIsLeftBehind(t *testing.T) { //nolint:paralleltest // it counts goroutines
	db := dynactortest.New(t)
	before := goleak.IgnoreCurrent()
	p, err := dynactor.Open(t.Context(), dynactor.Options{
		Endpoint: db.Endpoint, EventsTable: db.EventsTable, SnapshotsTable: db.SnapshotsTable,
		SnapshotInterval: 3, KeepSnapshots: 1, DeleteEventsOnSnapshot: true, MaxConcurrentReads: 16,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		fill(t, p.Journal(), id(i), 12)
	}
	round := func() {
		each(40, func(i int) {
			s := p.GetState()
			recovered(s, id(i%20))
			s.GetEvents(id(i%20), 0, 10, func(any) {})
			_ = caught(func() { s.PersistEvent(id(i%20), 0, text("refused")) })
			_, _ = replayed(t.Context(), p.Journal(), id(i%20), 0, 0)
			ctx, cancel := context.WithCancel(t.Context())
			for _, err := range p.Journal().Replay(ctx, id(i%20), 0, 0) {
				if err != nil {
					t.Error(err)
				}
				break // while pages are read ahead
			}
			cancel()
		})
	}
	round()
	start := heap()
	for range 5 {
		round()
	}
	if grown := heap() - start; grown > 4<<20 {
		t.Errorf("200 recoveries left %d KB behind", grown>>10)
	}
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, append(dynactortest.IgnoreServer(), before)...)
}

// heap is how much memory is in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // for what finalizers free
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func id(i int) string { return fmt.Sprintf("actor-%d", i) }

func isConflict(err error) bool { return errors.Is(err, dynactor.ErrConflict) }

// each calls f for 0 to n-1, all at once, and waits.
func each(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// meter is an HTTP client that notes how many requests there are at once.
type meter struct {
	next dynamodb.HTTPClient
	page int // items of a page of events, 0 for what fits
	// empty tells which reads find nothing, so that the server need not be asked.
	empty func(dynactortest.Request) bool

	mu      sync.Mutex
	now     map[string]int // by table
	highest map[string]int
}

func newMeter() *meter { return &meter{now: map[string]int{}, highest: map[string]int{}} }

// client is a client of the database through the meter.
func (m *meter) client(db *dynactortest.DB) *dynamodb.Client {
	return dynamodb.New(db.Client.Options(), func(o *dynamodb.Options) { m.next, o.HTTPClient = o.HTTPClient, m })
}

func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.highest)
}

func (m *meter) most() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.highest)
}

func (m *meter) Do(req *http.Request) (*http.Response, error) {
	r := requestOf(req)
	resend(req, r, m.page)
	m.count(r.Table, 1)
	defer m.count(r.Table, -1)
	if m.empty != nil && m.empty(r) {
		runtime.Gosched()
		body := map[string]string{"GetItem": `{}`, "Query": `{"Items":[],"Count":0,"ScannedCount":0}`}[r.Op]
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
			Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req,
		}, nil
	}
	return m.next.Do(req)
}

func (m *meter) count(table string, by int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now[table] += by
	m.highest[table] = max(m.highest[table], m.now[table])
}
