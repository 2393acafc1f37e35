package dynactor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

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
