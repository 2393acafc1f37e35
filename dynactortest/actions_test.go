package dynactortest_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor/dynactortest"
)

func TestActionsLoseRequestsAndAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		do     dynactortest.Action
		failed func(error) bool
		stored []int
	}{
		{"DropAnswer", dynactortest.DropAnswer(), is(syscall.ECONNRESET), []int{1}},
		{"FailAfter 500", dynactortest.FailAfter(500), status(500), []int{1}},
		{"FailAfter 503", dynactortest.FailAfter(503), status(503), []int{1}},
		{"Refuse", dynactortest.Refuse(), is(syscall.ECONNREFUSED), []int{}},
		{"NoSuchHost", dynactortest.NoSuchHost(), noSuchHost, []int{}},
		{"Delay", dynactortest.Delay(time.Millisecond, time.Millisecond), succeeds, []int{1}},
		{"no action", dynactortest.Action{}, succeeds, []int{1}},
		{"empty sequence", dynactortest.Sequence(), succeeds, []int{1}},
		{
			"the first of a sequence sees the answer last",
			dynactortest.Sequence(dynactortest.FailAfter(503), dynactortest.FailAfter(500)), status(503),
			[]int{1},
		},
		{
			"a sequence ends where an action does not go on",
			dynactortest.Sequence(dynactortest.Delay(0, 0), dynactortest.Refuse(), dynactortest.DropAnswer()),
			is(syscall.ECONNREFUSED),
			[]int{},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := newTable(t)
			db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: tt.do})
			if err := put(t.Context(), db, 1, 1); !tt.failed(err) {
				t.Errorf("put returned %v", err)
			}
			if diff := cmp.Diff(tt.stored, stored(t, db)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			if sent := db.Faults.Requests()[0].Sent; sent != (len(tt.stored) > 0) {
				t.Errorf("Sent is %v", sent)
			}
			if units := db.Faults.Usage().WriteUnits; units != float64(len(tt.stored)) {
				t.Errorf("%v write units, want %d", units, len(tt.stored))
			}
		})
	}
}

func TestTheSDKRetriesWhatItShould(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]dynactortest.Action{
		"DropAnswer": dynactortest.DropAnswer(),
		"FailAfter":  dynactortest.FailAfter(500),
		"Refuse":     dynactortest.Refuse(),
		"Throttle":   dynactortest.Throttle(),
		"InProgress": dynactortest.InProgress(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newTable(t)
			db.Faults.Add(dynactortest.Rule{Times: 1, Do: do})
			if _, err := db.Client.Query(t.Context(), queryInput(db)); err != nil {
				t.Error(err)
			}
			if n := db.Faults.Count("Query"); n != 2 {
				t.Errorf("%d requests, want 2", n)
			}
		})
	}
}

func TestDelayWaits(t *testing.T) {
	t.Parallel()
	const wait = 5 * time.Millisecond
	for name, do := range map[string]dynactortest.Action{
		"before": dynactortest.Delay(wait, 0),
		"after":  dynactortest.Delay(0, wait),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newTable(t)
			db.Faults.Add(dynactortest.Rule{Do: do})
			if err := put(t.Context(), db, 1, 1); err != nil {
				t.Fatal(err)
			}
			r := db.Faults.Requests()[0]
			if took := r.End.Sub(r.Start); took < wait {
				t.Errorf("took %v, want at least %v", took, wait)
			}
		})
	}
}

func TestHoldKeepsTheRequestBack(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		hold func(chan<- struct{}, <-chan struct{}) dynactortest.Action
		held []int // what is stored meanwhile
	}{
		{"Hold", dynactortest.Hold, []int{}},
		{"HoldAnswer", dynactortest.HoldAnswer, []int{1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := newTable(t)
			reached, release := make(chan struct{}), make(chan struct{})
			db.Faults.Add(dynactortest.Rule{Do: tt.hold(reached, release)})
			done := make(chan error)
			go func() { done <- put(t.Context(), db, 1, 1) }()
			<-reached
			if diff := cmp.Diff(tt.held, stored(t, db)); diff != "" {
				t.Errorf("stored while held (-want +got):\n%s", diff)
			}
			release <- struct{}{}
			if err := <-done; err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([]int{1}, stored(t, db)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	never := func() chan struct{} { return make(chan struct{}) }
	tests := []struct {
		name   string
		do     dynactortest.Action
		served bool // whether the server acts before the context is done
	}{
		{"Delay before", dynactortest.Delay(time.Hour, 0), false},
		{"Delay after", dynactortest.Delay(0, time.Hour), true},
		{"Hold, nobody looks", dynactortest.Hold(never(), nil), false},
		{"Hold", dynactortest.Hold(nil, never()), false},
		{"HoldAnswer, nobody looks", dynactortest.HoldAnswer(never(), nil), true},
		{"HoldAnswer", dynactortest.HoldAnswer(nil, never()), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := newTable(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			rule := dynactortest.Rule{Do: tt.do}
			want := []int{}
			if tt.served {
				want = []int{1}
				rule.Do = dynactortest.Sequence(tt.do, dynactortest.EditAnswer(func(_ string, body []byte) []byte {
					cancel()
					return body
				}))
			} else {
				rule.Match = func(dynactortest.Request) bool {
					cancel()
					return true
				}
			}
			db.Faults.Add(rule)
			if err := put(ctx, db, 1, 1); !errors.Is(err, context.Canceled) {
				t.Errorf("put returned %v, want context canceled", err)
			}
			if diff := cmp.Diff(want, stored(t, db)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

func succeeds(err error) bool { return err == nil }

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func status(want int) func(error) bool {
	return func(err error) bool {
		var answer *awshttp.ResponseError
		return errors.As(err, &answer) && answer.HTTPStatusCode() == want && http.StatusText(want) != ""
	}
}

func noSuchHost(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}
