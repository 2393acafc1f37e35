package dynactor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// TestRecoveryInMotion changes the stream, or breaks the way to it, before each
// single request of a recovery in turn. What is recovered must be the state of
// some moment since it began, or a conflict.
func TestRecoveryInMotion(t *testing.T) {
	t.Parallel()

	// How the stream looks before: the recovery's kind, head and snapshot.
	shapes := []struct {
		name     string
		interval int
		head     int
		snapshot int
		page     int // items of a page, 0 for what fits
	}{
		{"snapshot and tail", 5, 12, 10, 0},
		{"snapshot and more than the tail", 2, 14, 3, 3},
		{"no snapshots", 0, 7, 0, 0},
		{"no snapshots, more than a page", 0, 12, 0, 3},
		{"new", 3, 0, 0, 0},
	}
	throttle := func(table func(*journey) string) func(*journey) {
		return func(j *journey) {
			j.db.Faults.Add(dynactortest.Rule{Table: table(j), Times: 4, Do: dynactortest.Throttle()})
		}
	}
	events := func(j *journey) string { return j.db.EventsTable }
	snapshots := func(j *journey) string { return j.db.SnapshotsTable }
	for _, motion := range []struct {
		name    string
		happen  func(*journey)
		deletes bool // so that a recovery may meet a conflict
	}{
		{"append one", func(j *journey) { j.append(1) }, false},
		{"append three at once", func(j *journey) { j.append(3) }, false},
		{"append three, half visible", func(j *journey) { j.append(3); j.hide(j.head-2, j.head); j.hide(j.head - 1) }, false},
		{"append three, begun to be visible", func(j *journey) { j.append(3); j.hide(j.head-1, j.head); j.hide(j.head) }, false},
		{"save a snapshot and prune the others", func(j *journey) { j.save(); j.prune() }, false},
		{"append, save and prune, append", func(j *journey) { j.append(2); j.save(); j.prune(); j.append(1) }, false},
		{"save, prune and delete events", func(j *journey) { j.save(); j.prune(); j.delete() }, true},
		{"append, save, delete and remove, append", func(j *journey) {
			j.append(2)
			j.save()
			j.delete()
			j.prune()
			j.sweep()
			j.append(1)
		}, true},
		{"delete and remove all but the last", func(j *journey) { j.save(); j.delete(); j.sweep(); j.prune() }, true},
		{"throttle events", throttle(events), false},
		{"throttle snapshots", throttle(snapshots), false},
		{"lose the tables", func(j *journey) {
			j.db.Faults.Add(dynactortest.Rule{Times: 4, Do: dynactortest.Answer(400, "ResourceNotFoundException", "no such table")})
		}, false},
		{"lose the name", func(j *journey) { j.db.Faults.Add(dynactortest.Rule{Times: 4, Do: dynactortest.NoSuchHost()}) }, false},
		{"lose answers", func(j *journey) { j.db.Faults.Add(dynactortest.Rule{Times: 2, Do: dynactortest.DropAnswer()}) }, false},
		{"cut answers", func(j *journey) { j.db.Faults.Add(dynactortest.Rule{Times: 2, Do: dynactortest.CutBody(20)}) }, false},
		{"garble answers", func(j *journey) { j.db.Faults.Add(dynactortest.Rule{Times: 2, Do: dynactortest.FlipByte()}) }, false},
		{"throttle while another saves and deletes", func(j *journey) {
			throttle(events)(j)
			j.append(1)
			j.save()
			j.prune()
			j.delete()
			j.sweep()
		}, true},
	} {
		for _, shape := range shapes {
			t.Run(motion.name+"; "+shape.name, func(t *testing.T) {
				t.Parallel()
				j := newJourney(t, shape.interval)
				j.client.page = shape.page
				for k, n := 0, 1; k < n; k++ {
					for at, order := range j.orders(k) {
						j.begin(fmt.Sprintf("%d-%d", k, at), order)
						for i := 0; j.head < shape.head; i++ {
							j.append(min(1+i%4, shape.head-j.head))
						}
						if shape.snapshot > 0 {
							j.saveAt(shape.snapshot)
						}
						before := j.head
						j.client.before = func(i int) {
							if i == k {
								motion.happen(j)
							}
						}
						j.check(before, motion.deletes)
						n = max(n, j.client.served) // also those that the motion brought about
						j.db.Faults.Clear()
						j.client.before = nil
						j.check(j.head, false)
					}
				}
			})
		}
	}

	for _, interval := range []int{3, 0} {
		t.Run(fmt.Sprintf("a stream that never rests, interval %d", interval), func(t *testing.T) {
			t.Parallel()
			j := newJourney(t, interval)
			j.begin("a", nil)
			j.append(5)
			j.save()
			before := j.head
			j.client.before = func(i int) {
				if i < 12 {
					j.append(2)
					j.save()
					j.prune()
					j.delete()
					j.sweep()
				}
			}
			j.check(before, true)
			j.client.before = nil
			j.check(j.head, false)
		})

		t.Run(fmt.Sprintf("a past that is ended meanwhile, interval %d", interval), func(t *testing.T) {
			t.Parallel()
			j := newJourney(t, interval)
			for k := range 6 {
				j.begin(strconv.Itoa(k), nil)
				for range 9 {
					j.append(1)
				}
				j.saveAt(3)
				j.client.before = func(i int) {
					if i == k {
						j.must(j.other.Journal().DeleteAll(t.Context(), j.id))
						j.append(2)
					}
				}
				snapshot, index, got, err := j.recover()
				j.client.before = nil
				old := snapshot == "3" && index == 3 && slices.Equal(got, texts(4, 9))
				fresh := snapshot == "*dynactor.Reset" && index == 9 && (len(got) == 0 || slices.Equal(got, texts(10, 11)))
				if !errors.Is(err, dynactor.ErrConflict) && (err != nil || (!old && !fresh)) {
					t.Errorf("before request %d: snapshot %q at %d and events %v, %v", k, snapshot, index, got, err)
				}
			}
		})
	}
}

// outage is how long the outages of TestOutage last. Reports speak of 10 and 20 seconds.
var outage = flag.Duration("outage", 2*time.Second, "how long outages last")

// TestOutage has 200 actors wait for what passes, under the default supervision:
// none is stopped, none loses its queue, and the requests have a limit.
func TestOutage(t *testing.T) {
	t.Parallel()
	const actors = 200

	// Back-off grows to half a second on average, so an actor tries five times in
	// the first second and then twice in each; a recovery has three reads.
	budget := actors * 3 * (6 + 3*int(outage.Seconds()+1))

	setUp := func(t *testing.T, o dynactor.Options) (*dynactor.Provider, *dynactortest.DB, *process) {
		t.Helper()
		db := dynactortest.New(t)
		seed := openOn(t, db, db.Client, dynactor.Options{})
		ready(t, seed, db)
		o.SnapshotInterval = 2
		return openOn(t, db, db.Client, o), db, newProcess(t)
	}
	// heal ends the outage and checks what came meanwhile, and what comes until all have answered.
	heal := func(t *testing.T, db *dynactortest.DB, end func(), answered func()) {
		t.Helper()
		time.Sleep(*outage)
		during := db.Faults.Count("")
		end()
		answered()
		after := db.Faults.Count("") - during
		t.Logf("%d requests during %s, %d after it", during, *outage, after)
		if during > budget {
			t.Errorf("%d requests during the outage, want at most %d", during, budget)
		}
		// Each actor recovers, and writes once; what was in flight fails once more.
		if most := actors * (2*3 + 4); after > most {
			t.Errorf("%d requests after the outage, want at most %d", after, most)
		}
	}
	name := func(i int) string { return "actor-" + strconv.Itoa(i) }

	t.Run("B12 a table that is missing", func(t *testing.T) {
		t.Parallel()
		p, db, w := setUp(t, dynactor.Options{})
		ready(t, p, db)
		for i := range actors {
			fill(t, p.Journal(), name(i), 1)
		}
		db.Faults.Reset()
		db.Faults.Add(dynactortest.Rule{Do: dynactortest.Answer(400, "ResourceNotFoundException", "no such table")})
		for i := range actors {
			w.spawn(p, name(i))
			w.send(name(i), add("2"))
		}
		heal(t, db, db.Faults.Clear, func() {
			for i := range actors {
				w.expect(name(i), get{}, texts(1, 2))
			}
		})
		w.noFailures()
	})

	t.Run("B12 tables that are not there yet", func(t *testing.T) {
		t.Parallel()
		db := dynactortest.New(t)
		client, _ := db.NewClient()
		other := openOn(t, db, client, dynactor.Options{})
		p, w := openOn(t, db, db.Client, dynactor.Options{NoCreateTables: true, SnapshotInterval: 2}), newProcess(t)
		for i := range actors {
			w.spawn(p, name(i))
			w.send(name(i), add("1"))
		}
		heal(t, db, func() {
			if err := other.EnsureTables(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, func() {
			for i := range actors {
				w.expect(name(i), get{}, texts(1, 1))
			}
		})
		w.noFailures()
	})

	t.Run("G15 names that do not resolve, for actors that start", func(t *testing.T) {
		t.Parallel()
		p, db, w := setUp(t, dynactor.Options{})
		db.Faults.Add(dynactortest.Rule{Do: dynactortest.NoSuchHost()})
		for i := range actors {
			w.spawn(p, name(i))
			w.send(name(i), add("1"))
		}
		heal(t, db, db.Faults.Clear, func() {
			for i := range actors {
				w.expect(name(i), get{}, texts(1, 1))
			}
		})
		w.noFailures()
	})

	t.Run("G15 names that do not resolve, for actors at work", func(t *testing.T) {
		t.Parallel()
		p, db, w := setUp(t, dynactor.Options{})
		for i := range actors {
			w.spawn(p, name(i))
		}
		for i := range actors {
			w.expect(name(i), add("1"), texts(1, 1))
		}
		db.Faults.Reset()
		db.Faults.Add(dynactortest.Rule{Do: dynactortest.NoSuchHost()})
		acknowledged := make([]*atomic.Pointer[[]string], actors)
		for i := range actors {
			acknowledged[i] = w.request(name(i), add("2"))
		}
		heal(t, db, db.Faults.Clear, func() {
			for i := range actors {
				w.send(name(i), add("3"))
			}
			for i := range actors {
				got, err := w.system.Root.RequestFuture(w.pid(name(i)), get{}, 2*longest).Result()
				want := []string{"1", "3"} // what was not acknowledged never left
				if acknowledged[i].Load() != nil {
					want = texts(1, 3)
				}
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Errorf("state, %v (-want +got):\n%s", err, diff)
				}
			}
		})
		for i := range actors {
			if _, alive := w.system.ProcessRegistry.GetLocal(name(i)); !alive {
				t.Errorf("%s was stopped", name(i))
			}
		}
	})
}

// journey is a recovery of one stream whose requests are sent one at a time, and
// what another process does with the stream.
type journey struct {
	t      *testing.T
	db     *dynactortest.DB
	client *serial
	p      *dynactor.Provider // recovers
	other  *dynactor.Provider
	later  *dynactor.Provider // for which all deleted events are old
	id     string
	head   int // acknowledged
}

func newJourney(t *testing.T, interval int) *journey {
	t.Helper()
	db := dynactortest.New(t)
	j := &journey{t: t, db: db, client: newSerial(db)}
	o := dynactor.Options{SnapshotInterval: interval}
	client, _ := db.NewClient()
	j.other = openOn(t, db, client, o)
	j.later = openOn(t, db, client, dynactor.Options{Now: func() time.Time { return time.Now().Add(2 * dynactor.DefaultDeleteDelay) }})
	client = dynamodb.New(db.Client.Options(), func(o *dynamodb.Options) { j.client.next, o.HTTPClient = o.HTTPClient, j.client })
	j.p = openOn(t, db, client, o)
	for _, p := range []*dynactor.Provider{j.other, j.later, j.p} {
		j.must(p.EnsureTables(t.Context()))
	}
	return j
}

// begin goes over to another stream, and sets the order of the next first round.
func (j *journey) begin(id string, order []string) {
	j.id, j.head = id, 0
	j.client.reset(order)
}

// orders are those of the first round that differ in which reads come before
// request k.
func (j *journey) orders(k int) [][]string {
	if j.p.GetState().GetSnapshotInterval() == math.MaxInt {
		all := [][]string{{"snapshot", "page"}, {"page", "snapshot"}}
		if k != 1 {
			return all[:1]
		}
		return all
	}
	all := [][]string{{"snapshot", "mark", "end"}, {"mark", "end", "snapshot"}, {"end", "snapshot", "mark"}}
	if k != 1 && k != 2 {
		return all[:1]
	}
	return all
}

func (j *journey) must(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Error(err)
	}
}

func (j *journey) append(n int) {
	j.t.Helper()
	_, err := j.other.Journal().Append(j.t.Context(), j.id, int64(j.head), numbered(j.head+1, j.head+n)...)
	j.must(err)
	j.head += n
}

func (j *journey) save() {
	if j.head > 0 {
		j.saveAt(j.head)
	}
}

func (j *journey) saveAt(seq int) { j.t.Helper(); saveSnapshot(j.t, j.other, j.id, seq) }

func (j *journey) prune() {
	j.t.Helper()
	j.must(j.other.Snapshots().DeleteTo(j.t.Context(), j.id, int64(j.head)-1))
}

func (j *journey) delete() {
	j.t.Helper()
	j.must(j.other.Journal().DeleteTo(j.t.Context(), j.id, int64(j.head)))
}

// sweep removes the items of deleted events as if their time had come.
func (j *journey) sweep() {
	j.t.Helper()
	_, err := j.later.Journal().Sweep(j.t.Context(), j.id)
	j.must(err)
}

// hide keeps events from the next read that would show one.
func (j *journey) hide(seqs ...int) {
	j.db.Faults.Add(dynactortest.Rule{Op: "Query", Table: j.db.EventsTable, Times: 1, Do: dynactortest.HideItems(func(it map[string]any) bool {
		seq, _ := it["seq"].(map[string]any)
		n, err := strconv.Atoi(fmt.Sprint(seq["N"]))
		return err == nil && slices.Contains(seqs, n)
	})})
}

// recover recovers once.
func (j *journey) recover() (snapshot string, index int, got []string, err error) {
	s := j.p.GetState()
	fixed := false
	e := caught(func() {
		m, i, ok := s.GetSnapshot(j.id)
		if fixed, index = true, i; ok {
			snapshot = textOf(m)
		}
		s.GetEvents(j.id, i, 0, func(e any) { got = append(got, textOf(e)) })
	})
	switch {
	case e == nil:
		return snapshot, index, got, nil
	case !fixed:
		return "", 0, nil, fmt.Errorf("before anything was delivered: %s", e) //nolint:errorlint // never to be taken for a conflict
	default:
		return snapshot, index, got, e
	}
}

// check recovers, and compares with what was acknowledged before and meanwhile.
func (j *journey) check(before int, mayConflict bool) {
	j.t.Helper()
	snapshot, index, got, err := j.recover()
	wrong := ""
	switch {
	case err != nil && (!mayConflict || !errors.Is(err, dynactor.ErrConflict)):
		wrong = "an error"
	case err != nil:
		if !slices.Equal(got, texts(index+1, index+len(got))) {
			wrong = "events out of order before the conflict"
		}
	case (snapshot == "") != (index == 0) || (index > 0 && snapshot != strconv.Itoa(index)):
		wrong = "a snapshot with another's index"
	case !slices.Equal(got, texts(index+1, index+len(got))):
		wrong = "events out of order"
	case index+len(got) < before || index+len(got) > j.head:
		wrong = fmt.Sprintf("a state that never was: %d events, between %d and %d were acknowledged", index+len(got), before, j.head)
	}
	if wrong != "" {
		j.t.Errorf("%s: %s; snapshot %q at %d, events %v, error %v; reads: %v", j.id, wrong, snapshot, index, got, err, j.client.log)
	}
}

// serial is an HTTP client that sends one request at a time: those of the first
// round in a given order, once they have all come, and then as they come.
type serial struct {
	db     *dynactortest.DB
	next   dynamodb.HTTPClient
	before func(i int) // called before request number i, from 0, is sent
	page   int         // items of a page of events, as if they were large; 0 for what fits

	mu      sync.Mutex
	changed *sync.Cond
	order   []string // kinds of the first round
	arrived int
	busy    bool
	served  int
	log     []string
}

func newSerial(db *dynactortest.DB) *serial {
	s := &serial{db: db}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// reset begins a new count.
func (s *serial) reset(order []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order, s.arrived, s.served, s.log = order, 0, 0, nil
}

func (s *serial) Do(req *http.Request) (*http.Response, error) {
	r := requestOf(req)
	k := kind(s.db, r)
	if err := s.enter(req.Context(), k); err != nil {
		return nil, err
	}
	defer s.leave()
	if s.before != nil {
		s.before(s.served)
	}
	resend(req, r, s.page)
	return s.next.Do(req)
}

func (s *serial) enter(ctx context.Context, k string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})()
	s.arrived++
	s.changed.Broadcast()
	for s.busy || (s.served < len(s.order) && (s.arrived < len(s.order) || k != s.order[s.served])) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.changed.Wait()
	}
	s.busy = true
	s.log = append(s.log, k)
	return nil
}

func (s *serial) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	s.served++
	s.changed.Broadcast()
}

// requestOf is what the fault layer would record. It reads the body.
func requestOf(req *http.Request) dynactortest.Request {
	_, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	r := dynactortest.Request{Op: op}
	r.Body, _ = io.ReadAll(req.Body)
	r.Table, _ = r.Input()["TableName"].(string)
	return r
}

// resend makes a request ready to be sent after requestOf. A read of a page of
// events is limited to so many, unless that is 0, as if they were large.
func resend(req *http.Request, r dynactortest.Request, page int) {
	if in := r.Input(); r.Op == "Query" && in["Limit"] == nil && page > 0 {
		in["Limit"] = page
		r.Body, _ = json.Marshal(in)
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(r.Body)), int64(len(r.Body))
}
