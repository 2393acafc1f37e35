package dynactor_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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
