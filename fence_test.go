package dynactor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/asynkron/protoactor-go/persistence"
	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// Half of the default DeleteDelay, and a little more and less of it.
const (
	half     = dynactor.DefaultDeleteDelay / 2
	overHalf = half + time.Minute
	almost   = half - time.Minute
)

// asked tells what was asked of the events table since the last Reset: "head" is the
// pair of reads that shows it, "mark" the read of the mark alone, "put" a write.
func asked(db *dynactortest.DB) []string {
	var list []string
	requests := db.Faults.Requests()
	for i := 0; i < len(requests); i++ {
		switch r := requests[i]; r.Op {
		case "PutItem", "TransactWriteItems":
			list = append(list, "put")
		case "GetItem", "Query":
			if i+1 < len(requests) && requests[i+1].Op != r.Op && (requests[i+1].Op == "GetItem" || requests[i+1].Op == "Query") {
				list = append(list, "head")
				i++
			} else {
				list = append(list, map[string]string{"GetItem": "mark", "Query": "query"}[r.Op])
			}
		default:
			list = append(list, r.Op)
		}
	}
	return list
}

// fenced is a stream of 5 events, a provider whose clock a test sets, and another
// process with the same clock. WriteTimeout is longer than any test takes.
func fenced(t *testing.T) (p *dynactor.Provider, other *dynactor.Journal, db *dynactortest.DB, now *clock) {
	t.Helper()
	now = &clock{}
	o := dynactor.Options{Now: now.Now, WriteTimeout: 5 * time.Minute}
	p, db = open(t, o)
	fill(t, p.Journal(), "a", 5)
	db.Faults.Reset()
	return p, outsider(t, db, o).Journal(), db, now
}

// A clock that was set back tells nothing about how long ago the head was proven.
func TestFenceClockSetBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		by   time.Duration
		want []string
	}{
		{"by less than a quarter of DeleteDelay", half/2 - time.Minute, []string{"put", "put"}},
		{"by more", half/2 + time.Minute, []string{"head", "put", "put"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, _, db, now := fenced(t)
			s := p.GetState()
			recovered(s, "a")
			now.Advance(-tt.by)
			db.Faults.Reset()
			s.PersistEvent("a", 5, text("6"))
			s.PersistEvent("a", 6, text("7"))
			if got := asked(db); !slices.Equal(got, tt.want) {
				t.Errorf("asked %q, want %q", got, tt.want)
			}
		})
	}
}

// Between the reads of a recovery the slots of old events may be emptied, and filled
// by a put that is later than anything. So the mark is read once more after them.
func TestRecovery_LooksAgainAfterOldEvents(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]int{half/2 - time.Minute: 0, half/2 + time.Minute: 1} {
		p, other, db, now := fenced(t)
		now.Advance(age)
		db.Faults.Reset()
		if _, _, got := recovered(p.GetState(), "a"); !slices.Equal(got, texts(1, 5)) {
			t.Errorf("recovered %q", got)
		}
		if n := db.Faults.Count("GetItem"); n != want {
			t.Errorf("events %s old: %d looks at the mark, want %d", age, n, want)
		}
		if want == 0 {
			continue
		}
		// Deleted between the reads and the look: what was delivered is no longer so.
		db.Faults.Add(dynactortest.Rule{Op: "GetItem", Times: 1, Match: func(dynactortest.Request) bool {
			if err := other.DeleteTo(t.Context(), "a", 3); err != nil {
				t.Error(err)
			}
			return true
		}, Do: dynactortest.Delay(0, 0)})
		isError(t, caught(func() { recovered(p.GetState(), "a") }), dynactor.ErrConflict)
	}
}

// The rules of the fence, one by one, for a writer that read the head when it
// started. In time it makes no read but that one.
func TestFence(t *testing.T) {
	t.Parallel()
	type world struct {
		other *dynactor.Journal
		db    *dynactortest.DB
		now   *clock
		s     shape
		t     *testing.T
	}
	// moved is what another process does: it appends 6 to 9, and deletes up to n.
	moved := func(w world, n int64) {
		w.t.Helper()
		for i := range 4 {
			if _, err := w.other.Append(w.t.Context(), "a", int64(5+i), text("other")); err != nil {
				w.t.Error(err)
			}
		}
		if n > 0 {
			if err := w.other.DeleteTo(w.t.Context(), "a", n); err != nil {
				w.t.Error(err)
			}
		}
	}
	// while makes something happen when the n-th attempt of op is on its way.
	while := func(w world, op string, n int, f func(), do dynactortest.Action) {
		w.db.Faults.Add(dynactortest.Rule{Op: op, Times: 1, Match: func(r dynactortest.Request) bool {
			if r.Attempt != n || f == nil {
				return false
			}
			if op == "Query" { // both reads of the head have begun, in time
				eventually(w.t, "the other read", func() bool { return attempts(w.db, "GetItem") > 0 })
			}
			f()
			f = nil
			return true
		}, Do: do})
	}
	for _, tt := range []struct {
		name    string
		given   func(world)
		wire    []string
		verdict string
	}{
		{
			name: "in time: one request", given: func(world) {},
			wire: []string{"head", "put"}, verdict: "success",
		},
		{
			name: "before an attempt: almost half has passed", verdict: "success",
			given: func(w world) { while(w, "Query", 1, func() { w.now.Advance(almost) }, dynactortest.Action{}) },
			wire:  []string{"head", "put"},
		},
		{
			name: "before an attempt: more than half has passed", verdict: "success",
			given: func(w world) { while(w, "Query", 1, func() { w.now.Advance(overHalf) }, dynactortest.Action{}) },
			wire:  []string{"head", "head", "put"},
		},
		{
			name: "before an attempt: the head is another", verdict: "conflict",
			given: func(w world) {
				answered := func(_ string, body []byte) []byte { w.now.Advance(overHalf); moved(w, 0); return body }
				while(w, "Query", 1, func() {}, dynactortest.EditAnswer(answered))
			},
			wire: []string{"head", "head", "mark"},
		},
		{
			name: "before an attempt: the head cannot be read", verdict: "failure",
			given: func(w world) {
				while(w, "Query", 1, func() { w.now.Advance(overHalf) }, dynactortest.Action{})
				w.db.Faults.Add(dynactortest.Rule{Op: "Query", Do: dynactortest.Answer(400, "AccessDeniedException", "by a test")})
			},
			wire: []string{"head", "head"},
		},
		{
			name: "before a later attempt", verdict: "success",
			given: func(w world) {
				while(w, "Query", 1, func() { w.now.Advance(almost) }, dynactortest.Action{})
				while(w, w.s.op, 1, func() { w.now.Advance(2 * time.Minute) }, dynactortest.Throttle())
			},
			wire: []string{"head", "put", "head", "put"},
		},
		{
			name: "before a later attempt: taken by ourselves", verdict: "success",
			given: func(w world) {
				while(w, "Query", 1, func() { w.now.Advance(almost) }, dynactortest.Action{})
				while(w, w.s.op, 1, func() { w.now.Advance(2 * time.Minute) }, dynactortest.DropAnswer())
			},
			// the head is not the expected one; the item in the slot; the answer came late
			wire: []string{"head", "put", "head", "mark", "mark"},
		},
		{
			name: "after the answer: almost half has passed", verdict: "success",
			given: func(w world) { while(w, w.s.op, 1, func() { w.now.Advance(almost) }, dynactortest.Action{}) },
			wire:  []string{"head", "put"},
		},
		{
			name: "after the answer: success", verdict: "success",
			given: func(w world) { while(w, w.s.op, 1, func() { w.now.Advance(overHalf) }, dynactortest.Action{}) },
			wire:  []string{"head", "put", "mark"},
		},
		{
			name: "after the answer: a foreign item", verdict: "conflict",
			given: func(w world) {
				while(w, w.s.op, 1, func() { w.now.Advance(overHalf); moved(w, 5) }, dynactortest.Action{})
			},
		},
		{
			name: "after the answer: a foreign item that is deleted", verdict: "unknown",
			given: func(w world) {
				while(w, w.s.op, 1, func() { w.now.Advance(overHalf); moved(w, 6) }, dynactortest.Action{})
			},
		},
		{
			name: "after the answer: a foreign item that is deleted, in time", verdict: "conflict",
			given: func(w world) {
				while(w, w.s.op, 1, func() { w.now.Advance(almost); moved(w, 6) }, dynactortest.Action{})
			},
		},
		{
			name: "after the answer: the mark cannot be read", verdict: "unknown",
			given: func(w world) {
				while(w, w.s.op, 1, func() {
					w.now.Advance(overHalf)
					w.db.Faults.Add(dynactortest.Rule{Op: "GetItem", Do: dynactortest.Answer(400, "AccessDeniedException", "by a test")})
				}, dynactortest.Action{})
			},
			wire: []string{"head", "put", "mark"},
		},
		{
			name: "no answer: nothing is looked up", verdict: "unknown",
			given: func(w world) {
				while(w, w.s.op, 1, func() { w.now.Advance(overHalf) }, dynactortest.DropAnswer())
			},
			wire: []string{"head", "put"}, // and WriteTimeout has passed on the wall clock
		},
	} {
		for _, s := range shapes {
			t.Run(tt.name+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				p, other, db, now := fenced(t)
				tt.given(world{other: other, db: db, now: now, s: s, t: t})

				_, err := p.Journal().Append(t.Context(), "a", 5, numbered(6, 5+s.events)...)

				if got := verdict(err); got != tt.verdict {
					t.Errorf("told %s, want %s: %v", got, tt.verdict, err)
				}
				if diff := cmp.Diff(tt.wire, asked(db)); tt.wire != nil && diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// A writer that is stopped before its put reaches the server, and woken after its
// numbers were used by others, deleted and swept.
func TestFenceSleepingWriter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		used    int           // events that others append meanwhile
		asleep  time.Duration // until they sweep
		apart   time.Duration // how far the clock of the one that sweeps is ahead
		swept   int
		verdict string
	}{
		{name: "its slots are empty again", used: 4, asleep: 25 * time.Hour, swept: 8, verdict: "unknown"},
		{name: "its first slot is the mark's", used: 1, asleep: 25 * time.Hour, swept: 5, verdict: "unknown"},
		{name: "its slots are deleted and not swept", used: 4, asleep: 23 * time.Hour, swept: 0, verdict: "unknown"},
		{name: "it slept briefly", used: 4, asleep: time.Hour, swept: 0, verdict: "conflict"},
		{name: "clocks an hour apart, the sweeper's ahead", used: 4, asleep: 23*time.Hour + time.Minute, apart: time.Hour, swept: 8, verdict: "unknown"},
		{name: "clocks an hour apart, the sweeper's behind", used: 4, asleep: 25*time.Hour + time.Minute, apart: -time.Hour, swept: 8, verdict: "unknown"},
	} {
		for _, s := range append(slices.Clone(shapes), shape{"session", "PutItem", 1}) {
			t.Run(tt.name+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				db := dynactortest.New(t)
				now, apart := &clock{}, &clock{}
				apart.Advance(tt.apart)
				p := openOn(t, db, db.Client, dynactor.Options{Now: now.Now, WriteTimeout: 5 * time.Minute})
				other := outsider(t, db, dynactor.Options{Now: now.Now}).Journal()
				sweeper := outsider(t, db, dynactor.Options{Now: apart.Now}).Journal()
				fill(t, other, "a", 5)
				write := func() error {
					_, err := p.Journal().Append(t.Context(), "a", 5, mineOnly(s.events)...)
					return err
				}
				if s.name == "session" {
					session := p.GetState()
					recovered(session, "a")
					write = func() error {
						if err := caught(func() { session.PersistEvent("a", 5, text("mine")) }); err != nil {
							return err
						}
						return nil
					}
				}
				reached, release := make(chan struct{}), make(chan struct{})
				wake := sync.OnceFunc(func() { close(release) })
				defer wake()
				db.Faults.Add(dynactortest.Rule{Op: s.op, Table: db.EventsTable, Match: writesEvent, Times: 1, Do: dynactortest.Hold(reached, release)})
				done := make(chan error, 1)
				go func() { done <- write() }()
				<-reached

				for i := range tt.used {
					if _, err := other.Append(t.Context(), "a", int64(5+i), text("other")); err != nil {
						t.Fatal(err)
					}
				}
				if err := sweeper.DeleteTo(t.Context(), "a", int64(5+tt.used)); err != nil {
					t.Fatal(err)
				}
				now.Advance(tt.asleep)
				apart.Advance(tt.asleep)
				if n, err := sweeper.Sweep(t.Context(), "a"); n != tt.swept || err != nil {
					t.Fatalf("swept %d, %v", n, err)
				}
				wake()

				err := <-done
				if got := verdict(err); got != tt.verdict {
					t.Errorf("told %s, want %s: %v", got, tt.verdict, err)
				}
				// What landed late is not delivered, and disturbs nobody.
				if diff := cmp.Diff([]string(nil), content(t, db, "a")); diff != "" {
					t.Errorf("stream (-want +got):\n%s", diff)
				}
				if _, err := other.Append(t.Context(), "a", int64(5+tt.used), text("next")); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff([]string{"next"}, content(t, db, "a")); diff != "" {
					t.Errorf("stream (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// mineOnly are n messages with the text "mine".
func mineOnly(n int) []proto.Message { return slices.Repeat([]proto.Message{text("mine")}, n) }

// writesEvent tells whether a request is no write of a table's own item.
func writesEvent(r dynactortest.Request) bool {
	return !strings.Contains(string(r.Body), "__dynactor__")
}

// A session's head is certain as of the time at which the request that proved it
// was sent, not when its answer came.
func TestFenceSessionProof(t *testing.T) {
	t.Parallel()
	const step = 7 * time.Hour // less than half of DeleteDelay; two are more
	for _, tt := range []struct {
		name  string
		o     dynactor.Options
		given func(s persistence.ProviderState, db *dynactortest.DB, now *clock, queries func(n int))
		wire  []string
	}{
		{
			name:  "recovered just now",
			given: func(persistence.ProviderState, *dynactortest.DB, *clock, func(int)) {},
			wire:  []string{"put"},
		},
		{
			name:  "recovered a step ago",
			given: func(_ persistence.ProviderState, _ *dynactortest.DB, now *clock, _ func(int)) { now.Advance(step) },
			wire:  []string{"put"},
		},
		{
			name:  "recovered two steps ago",
			given: func(_ persistence.ProviderState, _ *dynactortest.DB, now *clock, _ func(int)) { now.Advance(2 * step) },
			wire:  []string{"head", "put"},
		},
		{
			name: "an append was acknowledged a step ago",
			given: func(s persistence.ProviderState, _ *dynactortest.DB, now *clock, _ func(int)) {
				now.Advance(step)
				s.PersistEvent("a", 5, text("6"))
				now.Advance(step)
			},
			wire: []string{"put"},
		},
		{
			name: "the answer to an append took a step",
			given: func(s persistence.ProviderState, db *dynactortest.DB, now *clock, _ func(int)) {
				db.Faults.Add(before("PutItem", func() { now.Advance(step) }))
				s.PersistEvent("a", 5, text("6"))
				now.Advance(step)
			},
			wire: []string{"head", "put"},
		},
		{
			name: "an append went on after its first attempt, for a step",
			o:    dynactor.Options{WriteTimeout: step, DeleteDelay: 8 * step},
			given: func(s persistence.ProviderState, db *dynactortest.DB, now *clock, _ func(int)) {
				now.Advance(time.Hour)
				db.Faults.Add(before("PutItem", func() { now.Advance(step - time.Hour) }))
				db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: dynactortest.Throttle()})
				s.PersistEvent("a", 5, text("6"))
				now.Advance(3*step + 2*time.Hour) // more than four steps since the first attempt, less since the second
			},
			wire: []string{"head", "put"},
		},
		{
			name: "the answer to the recovery took a step",
			given: func(s persistence.ProviderState, db *dynactortest.DB, now *clock, queries func(int)) {
				db.Faults.Reset()
				db.Faults.Add(before("Query", func() {
					queries(2)
					now.Advance(step)
				}))
				recovered(s, "a")
				now.Advance(step)
			},
			wire: []string{"head", "put"},
		},
		{
			name: "the answer to the recovery took a step, with snapshots", o: dynactor.Options{SnapshotInterval: 2},
			given: func(s persistence.ProviderState, db *dynactortest.DB, now *clock, queries func(int)) {
				db.Faults.Reset()
				db.Faults.Add(before("GetItem", func() {
					queries(2)
					now.Advance(step)
				}))
				recovered(s, "a")
				now.Advance(step)
			},
			wire: []string{"head", "put"},
		},
		{
			name: "the look at the head took a while, and the answer to the append",
			o:    dynactor.Options{WriteTimeout: step, DeleteDelay: 8 * step},
			given: func(_ persistence.ProviderState, db *dynactortest.DB, now *clock, queries func(int)) {
				now.Advance(4*step + time.Hour)
				db.Faults.Add(before("GetItem", func() {
					queries(1)
					now.Advance(5 * time.Hour)
				}))
				db.Faults.Add(before("PutItem", func() { now.Advance(24 * time.Hour) }))
			},
			wire: []string{"head", "put", "mark"},
		},
		{
			name: "the look at the head took two steps",
			given: func(s persistence.ProviderState, db *dynactortest.DB, now *clock, queries func(int)) {
				now.Advance(2 * step)
				db.Faults.Add(before("GetItem", func() {
					queries(1)
					now.Advance(2 * step)
				}))
			},
			wire: []string{"head"}, // and WriteTimeout has passed on the wall clock
		},
		{
			name: "the look of a session that did not recover took a step",
			given: func(s persistence.ProviderState, db *dynactortest.DB, now *clock, queries func(int)) {
				s.Restart()
				db.Faults.Add(before("GetItem", func() {
					queries(1)
					now.Advance(step)
				}))
				db.Faults.Add(before("PutItem", func() { now.Advance(step) }))
			},
			wire: []string{"head", "put", "mark"},
		},
		{
			name:  "a session that did not recover looks once",
			given: func(s persistence.ProviderState, _ *dynactortest.DB, _ *clock, _ func(int)) { s.Restart() },
			wire:  []string{"head", "put"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			now := &clock{}
			tt.o.Now = now.Now
			if tt.o.WriteTimeout == 0 {
				tt.o.WriteTimeout = 5 * time.Minute
			}
			p, db := open(t, tt.o)
			fill(t, p.Journal(), "a", 5)
			s := p.GetState()
			recovered(s, "a")
			tt.given(s, db, now, func(n int) {
				eventually(t, "the other reads", func() bool { return attempts(db, "Query") == n })
			})
			next, err := outsider(t, db, dynactor.Options{}).Journal().Head(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			db.Faults.Reset()
			told := caught(func() { s.PersistEvent("a", int(next), text("next")) })
			if !slices.Contains(tt.wire, "put") {
				if told == nil || !errors.Is(told, context.DeadlineExceeded) {
					t.Errorf("told %v, want that the time is up", told)
				}
			} else if told != nil {
				t.Errorf("told %v", told)
			}
			if diff := cmp.Diff(tt.wire, asked(db)); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// In a suspended machine the wall clock goes on and the monotonic clock, by which
// contexts end, stands still.
func TestFenceSuspendedMachine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		asleep  time.Duration
		first   dynactortest.Action // what the first attempt meets, as the machine falls asleep
		wire    []string
		verdict string
		is      error
	}{
		{"after a refusal, beyond WriteTimeout", time.Minute, dynactortest.Throttle(), []string{"head", "put"}, "failure", dynactor.ErrThrottled},
		{"after a lost answer, beyond WriteTimeout", time.Minute, dynactortest.DropAnswer(), []string{"head", "put"}, "unknown", context.DeadlineExceeded},
		{"after a lost answer, for days", 72 * time.Hour, dynactortest.DropAnswer(), []string{"head", "put"}, "unknown", context.DeadlineExceeded},
		{"within WriteTimeout", time.Second, dynactortest.Throttle(), []string{"head", "put", "put"}, "success", nil},
		{"before the answer, for long", 13 * time.Hour, dynactortest.Action{}, []string{"head", "put", "mark"}, "success", nil},
	} {
		for _, s := range shapes {
			t.Run(tt.name+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				now := &suspendable{}
				p, db := open(t, dynactor.Options{Now: now.Now})
				ready(t, p, db)
				db.Faults.Add(before(s.op, func() { now.suspend(tt.asleep) }))
				db.Faults.Add(s.on(1, tt.first))

				_, err := p.Journal().Append(t.Context(), "a", 0, numbered(1, s.events)...)

				if got := verdict(err); got != tt.verdict {
					t.Errorf("told %s, want %s: %v", got, tt.verdict, err)
				}
				if tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("error does not match %q: %v", tt.is, err)
				}
				if tt.verdict != "success" && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error does not say that the time is up: %v", err)
				}
				if diff := cmp.Diff(tt.wire, asked(db)); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
			})
		}
	}
	for _, s := range shapes {
		t.Run("while an attempt is signed/"+s.name, func(t *testing.T) {
			t.Parallel()
			now := &suspendable{}
			db := dynactortest.New(t)
			ready(t, outsider(t, db, dynactor.Options{}), db)
			client, faults := db.NewClient(func(o *dynamodb.Options) {
				o.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
					if awsmiddleware.GetOperationName(ctx) == s.op {
						now.suspend(time.Minute)
					}
					return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
				})
			})
			p := openOn(t, db, client, dynactor.Options{Now: now.Now})
			_, err := p.Journal().Append(t.Context(), "a", 0, numbered(1, s.events)...)
			if verdict(err) != "failure" || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("told %v, want that the time is up", err)
			}
			if n := faults.Count(s.op); n != 0 {
				t.Errorf("%d attempts were sent", n)
			}
		})
	}
	t.Run("between two writes of a session", func(t *testing.T) {
		t.Parallel()
		now := &suspendable{}
		p, db := open(t, dynactor.Options{Now: now.Now})
		s := p.GetState()
		recovered(s, "a")
		s.PersistEvent("a", 0, text("1"))
		now.suspend(13 * time.Hour)
		db.Faults.Reset()
		s.PersistEvent("a", 1, text("2"))
		if diff := cmp.Diff([]string{"head", "put"}, asked(db)); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

// suspendable is the clock of a machine that can be suspended.
type suspendable struct {
	mu     sync.Mutex
	asleep time.Duration
}

func (c *suspendable) suspend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asleep += d
}

// Now returns a time whose wall clock has gone on during the sleep, and whose
// monotonic reading has not.
func (c *suspendable) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := time.Now()
	// The first word of a Time with a monotonic reading holds the seconds of the
	// wall clock above 30 bits of nanoseconds.
	*(*uint64)(unsafe.Pointer(&t)) += uint64(c.asleep/time.Second) << 30
	return t
}

func TestSuspendableClock(t *testing.T) {
	t.Parallel()
	c := &suspendable{}
	start := c.Now()
	c.suspend(time.Hour)
	end := c.Now()
	if d := end.Sub(start); d > time.Minute {
		t.Errorf("the monotonic clock went on by %s", d)
	}
	if d := end.Round(0).Sub(start.Round(0)); d < time.Hour || d > time.Hour+time.Minute {
		t.Errorf("the wall clock went on by %s", d)
	}
}
