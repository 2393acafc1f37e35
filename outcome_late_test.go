package dynactor_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// mismatch is what a server answers that thinks the token was used for other content.
var mismatch = dynactortest.Answer(http.StatusBadRequest, "IdempotentParameterMismatchException", "by a test")

// readsEvent tells whether a GetItem asks for an event, not for the mark.
func readsEvent(r dynactortest.Request) bool {
	return !strings.Contains(string(r.Body), `{"N":"0"}`)
}

// Servers compare a repeated transaction with the first one, so it must be the same
// to the letter, also where items have many attributes.
func TestOutcomeA13RepeatedTransactions(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	p := openOn(t, db, impatient{db.Client}, dynactor.Options{})
	ready(t, p, db)
	s := shapes[1]
	db.Faults.Add(s.on(1, dynactortest.DropAnswer()))
	meta := map[string]string{"a": "1", "b": "2", "c": "3", "d": "4", "e": "5", "f": "6", "g": "7"}
	const rounds = 200
	for i := range int64(rounds) {
		_, err := p.Journal().AppendEvents(t.Context(), "a", 2*i,
			dynactor.Event{Message: text("x"), Tags: []string{"red", "green", "blue"}, Meta: meta},
			dynactor.Event{Message: text("y"), Tags: []string{"blue", "red", "green"}, Meta: meta})
		if err != nil {
			t.Fatalf("append %d: %v", i, err)
		}
	}
	sent := map[string]int{}
	for _, r := range db.Faults.Requests() {
		if r.Op == s.op {
			sent[string(r.Body)]++
			if r.Err == "IdempotentParameterMismatchException" {
				t.Error(r)
			}
		}
	}
	if len(sent) != rounds || attempts(db, s.op) != 2*rounds {
		t.Errorf("%d different requests in %d attempts, want %d, each sent twice", len(sent), attempts(db, s.op), rounds)
	}
	if n := len(content(t, db, "a")); n != 2*rounds {
		t.Errorf("%d events, want %d", n, 2*rounds)
	}
}

// A transaction's token lives for ten minutes. After that a repeated attempt
// meets its own items.
func TestOutcomeAfterTheTokenHasExpired(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{})
	ready(t, p, db)
	s := shapes[1]
	var first map[string]any
	db.Faults.Add(before(s.op, func() { first = lastRequest(db, s.op).Input() }))
	db.Faults.Add(s.on(1, dynactortest.DropAnswer()))
	db.Faults.Add(s.on(2, dynactortest.Sequence(withOldItems(&first), s.refused())))

	_, err := p.Journal().Append(t.Context(), "a", 0, numbered(1, 3)...)
	if err != nil {
		t.Error(err)
	}
	if n := attempts(db, "GetItem"); n != 1 { // the mark, before the append
		t.Errorf("%d reads, want none after the answer: the item came with it", n)
	}
	if diff := cmp.Diff(texts(1, 3), content(t, db, "a")); diff != "" {
		t.Errorf("stream (-want +got):\n%s", diff)
	}
}

func lastRequest(db *dynactortest.DB, op string) dynactortest.Request {
	var last dynactortest.Request
	for _, r := range db.Faults.Requests() {
		if r.Op == op {
			last = r
		}
	}
	return last
}

// withOldItems puts the items of a transaction into the reasons why it was cancelled.
func withOldItems(sent *map[string]any) dynactortest.Action {
	return dynactortest.EditAnswer(func(_ string, body []byte) []byte {
		var answer map[string]any
		if json.Unmarshal(body, &answer) != nil {
			return body
		}
		puts, _ := (*sent)["TransactItems"].([]any)
		reasons, _ := answer["CancellationReasons"].([]any)
		for i, r := range reasons {
			reason, _ := r.(map[string]any)
			put, _ := puts[i].(map[string]any)
			if reason["Code"] == "ConditionalCheckFailed" {
				reason["Item"] = put["Put"].(map[string]any)["Item"]
			}
		}
		out, _ := json.Marshal(answer)
		return out
	})
}

// While a transaction with the same token is still under way, its outcome is open.
func TestOutcomeWhileInProgress(t *testing.T) {
	t.Parallel()
	s := shapes[1]
	for _, tt := range []struct {
		name     string
		rule     dynactortest.Rule
		verdict  string
		want     []string
		attempts int
	}{
		{"A12 J-42 twice, then success", dynactortest.Rule{Op: s.op, Times: 2, Do: dynactortest.InProgress()}, "success", texts(1, 3), 3},
		{"for ever", s.from(1, dynactortest.InProgress()), "unknown", nil, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := dynactortest.New(t)
			p := openOn(t, db, impatient{db.Client}, dynactor.Options{})
			ready(t, p, db)
			db.Faults.Add(tt.rule)

			_, err := p.Journal().Append(t.Context(), "a", 0, numbered(1, 3)...)

			if got := verdict(err); got != tt.verdict {
				t.Errorf("told %s, want %s: %v", got, tt.verdict, err)
			}
			tokens := map[string]int{}
			for _, r := range db.Faults.Requests() {
				if r.Op == s.op {
					tokens[r.Token()]++
				}
			}
			if len(tokens) != 1 || tokens[""] > 0 || attempts(db, s.op) != tt.attempts {
				t.Errorf("tokens of the attempts %v, want %d times the same", tokens, tt.attempts)
			}
			if diff := cmp.Diff(tt.want, content(t, db, "a")); diff != "" {
				t.Errorf("stream (-want +got):\n%s", diff)
			}
		})
	}
}

// A write that its caller, or the end of the provider, cuts off.
func TestOutcomeOfACutOffWrite(t *testing.T) {
	t.Parallel()
	for _, s := range shapes {
		appending := func(ctx context.Context, p *dynactor.Provider) <-chan error {
			done := make(chan error, 1)
			go func() {
				_, err := p.Journal().Append(ctx, "a", 0, numbered(1, s.events)...)
				done <- err
			}()
			return done
		}
		check := func(t *testing.T, db *dynactortest.DB, err error, want string, stored bool, is ...error) {
			t.Helper()
			if got := verdict(err); got != want {
				t.Errorf("told %s, want %s: %v", got, want, err)
			}
			for _, target := range is {
				if !errors.Is(err, target) {
					t.Errorf("error does not match %q: %v", target, err)
				}
			}
			var events []string
			if stored {
				events = texts(1, s.events)
			}
			if diff := cmp.Diff(events, content(t, db, "a")); diff != "" {
				t.Errorf("stream (-want +got):\n%s", diff)
			}
		}
		t.Run("cancelled before it starts/"+s.name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			ready(t, p, db)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			check(t, db, <-appending(ctx, p), "failure", false, context.Canceled)
		})
		t.Run("cancelled while it is signed/"+s.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			db := dynactortest.New(t)
			client, faults := db.NewClient(func(o *dynamodb.Options) {
				o.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
					if awsmiddleware.GetOperationName(ctx) == s.op {
						cancel()
					}
					return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
				})
			})
			p := openOn(t, db, client, dynactor.Options{})
			ready(t, outsider(t, db, dynactor.Options{}), db)
			check(t, db, <-appending(ctx, p), "failure", false, context.Canceled)
			if n := faults.Count(s.op); n != 0 {
				t.Errorf("%d attempts were sent", n)
			}
		})
		t.Run("cancelled between attempts/"+s.name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			ready(t, p, db)
			ctx, cancel := context.WithCancel(t.Context())
			db.Faults.Add(dynactortest.Rule{Op: s.op, Match: func(r dynactortest.Request) bool {
				if r.Attempt == 3 {
					cancel()
				}
				return true
			}, Do: dynactortest.Throttle()})
			check(t, db, <-appending(ctx, p), "failure", false, context.Canceled, dynactor.ErrThrottled)
		})
		t.Run("cancelled in flight, not applied/"+s.name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			ready(t, p, db)
			ctx, cancel := context.WithCancel(t.Context())
			reached := make(chan struct{})
			db.Faults.Add(s.from(1, dynactortest.Hold(reached, nil)))
			done := appending(ctx, p)
			<-reached
			cancel()
			check(t, db, <-done, "unknown", false, context.Canceled)
		})
		t.Run("cancelled in flight, applied/"+s.name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			ready(t, p, db)
			ctx, cancel := context.WithCancel(t.Context())
			reached := make(chan struct{})
			db.Faults.Add(s.from(1, dynactortest.HoldAnswer(reached, nil)))
			done := appending(ctx, p)
			<-reached
			cancel()
			check(t, db, <-done, "unknown", true, context.Canceled)
		})
		t.Run("J-44 A07a attempt times out after the write/"+s.name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{WriteTimeout: 6 * time.Second})
			ready(t, p, db)
			db.Faults.Add(s.on(1, dynactortest.HoldAnswer(nil, nil)))
			check(t, db, <-appending(t.Context(), p), "success", true)
		})
		t.Run("time is up after the write/"+s.name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{WriteTimeout: 3 * time.Second})
			ready(t, p, db)
			db.Faults.Add(s.from(1, dynactortest.HoldAnswer(nil, nil)))
			check(t, db, <-appending(t.Context(), p), "unknown", true, context.DeadlineExceeded)
		})
		t.Run("closed in flight/"+s.name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{WriteTimeout: time.Hour}) // which nobody wants to wait for
			ready(t, p, db)
			reached := make(chan struct{})
			db.Faults.Add(s.from(1, dynactortest.Hold(reached, nil)))
			done := appending(t.Context(), p)
			<-reached
			over, cancel := context.WithCancel(t.Context())
			cancel()
			if err := p.Close(over); !errors.Is(err, context.Canceled) {
				t.Errorf("close: %v, want that requests were cancelled", err)
			}
			check(t, db, <-done, "unknown", false, dynactor.ErrClosed)
		})
		t.Run("closed before it starts/"+s.name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			ready(t, p, db)
			if err := p.Close(t.Context()); err != nil {
				t.Error(err)
			}
			check(t, db, <-appending(t.Context(), p), "failure", false, dynactor.ErrClosed)
			if n := attempts(db, ""); n != 0 {
				t.Errorf("%d requests after the end", n)
			}
		})
		t.Run("time is up while it waits for a place/"+s.name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{MaxConcurrentWrites: 1, WriteTimeout: time.Hour})
			ready(t, p, db)
			reached, release := make(chan struct{}), make(chan struct{})
			db.Faults.Add(dynactortest.Rule{Op: s.op, Times: 1, Do: dynactortest.Hold(reached, release)})
			busy := make(chan error, 1)
			go func() {
				_, err := p.Journal().Append(t.Context(), "busy", 0, numbered(1, s.events)...)
				busy <- err
			}()
			<-reached
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			check(t, db, <-appending(ctx, p), "failure", false, context.DeadlineExceeded)
			if n := attempts(db, s.op); n != 1 {
				t.Errorf("%d writes were sent, want only the first", n)
			}
			close(release)
			if err := <-busy; err != nil {
				t.Error(err)
			}
		})
	}
}

// After a write that failed, or whose outcome is unknown, a session writes
// nothing until it has recovered; then it stands where the journal says.
func TestOutcomeA21SessionIsDeadUntilRestart(t *testing.T) {
	t.Parallel()
	one := shapes[0]
	for _, tt := range []struct {
		name    string
		rules   []dynactortest.Rule
		foreign bool
		verdict string
		want    []string
	}{
		{name: "unknown, was applied", rules: []dynactortest.Rule{one.from(1, dynactortest.DropAnswer())}, verdict: "unknown", want: texts(1, 3)},
		{name: "unknown, was not applied", rules: []dynactortest.Rule{one.from(1, dynactortest.Answer(500, "InternalServerError", ""))}, verdict: "unknown", want: texts(1, 2)},
		{name: "failed", rules: []dynactortest.Rule{one.from(1, dynactortest.Throttle())}, verdict: "failure", want: texts(1, 2)},
		{name: "conflict", foreign: true, verdict: "conflict", want: []string{"1", "2", "other"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := dynactortest.New(t)
			p := openOn(t, db, impatient{db.Client}, dynactor.Options{SnapshotInterval: 2})
			fill(t, p.Journal(), "a", 2)
			s := p.GetState()
			recovered(s, "a")
			if tt.foreign {
				if _, err := p.Journal().Append(t.Context(), "a", 2, text("other")); err != nil {
					t.Fatal(err)
				}
			}
			for _, r := range tt.rules {
				db.Faults.Add(r)
			}
			first := caught(func() { s.PersistEvent("a", 2, text("3")) })
			if got := verdict(first); got != tt.verdict {
				t.Fatalf("told %s, want %s: %v", got, tt.verdict, first)
			}

			db.Faults.Clear()
			db.Faults.Reset()
			for name, write := range map[string]func(){
				"the same event":   func() { s.PersistEvent("a", 2, text("3")) },
				"the next event":   func() { s.PersistEvent("a", 3, text("4")) },
				"delete events":    func() { s.DeleteEvents("a", 0) },
				"delete snapshots": func() { s.DeleteSnapshots("a", 1) },
			} {
				if got := caught(write); got != first {
					t.Errorf("%s: %v, want the first error: %v", name, got, first)
				}
			}
			s.PersistSnapshot("a", 2, text("state"))
			if n := attempts(db, ""); n != 0 {
				t.Errorf("a dead session has sent %v", db.Faults.Requests())
			}

			_, _, events := recovered(s, "a")
			if diff := cmp.Diff(tt.want, events); diff != "" {
				t.Errorf("recovered (-want +got):\n%s", diff)
			}
			if err := caught(func() { s.PersistEvent("a", len(tt.want), text("next")) }); err != nil {
				t.Errorf("after the recovery: %v", err)
			}
			if diff := cmp.Diff(append(slices.Clone(tt.want), "next"), content(t, db, "a")); diff != "" {
				t.Errorf("stream (-want +got):\n%s", diff)
			}
		})
	}
}
