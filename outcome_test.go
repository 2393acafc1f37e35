package dynactor_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// The last answer of a write says nothing about the attempts before it.
func TestOutcome(t *testing.T) {
	t.Parallel()
	answer := func(status int, code string) dynactortest.Action {
		return dynactortest.Answer(status, code, "by a test")
	}
	type rules = []dynactortest.Rule
	for _, tt := range []struct {
		name     string
		rules    func(shape) rules
		verdict  string
		stored   bool
		attempts int
		is       error  // also matched
		code     string // of an SDK error in the chain
	}{
		{
			name: "no trouble", rules: func(shape) rules { return nil },
			verdict: "success", stored: true, attempts: 1,
		},
		{
			name: "A06 500 after the write", rules: func(s shape) rules { return rules{s.on(1, dynactortest.FailAfter(500))} },
			verdict: "success", stored: true, attempts: 2,
		},
		{
			name: "A06 503 after the write", rules: func(s shape) rules { return rules{s.on(1, dynactortest.FailAfter(503))} },
			verdict: "success", stored: true, attempts: 2,
		},
		{
			name: "J-32 G02 connection reset after the write", rules: func(s shape) rules { return rules{s.on(1, dynactortest.DropAnswer())} },
			verdict: "success", stored: true, attempts: 2,
		},
		{
			name: "two answers lost", rules: func(s shape) rules {
				return rules{s.on(1, dynactortest.DropAnswer()), s.on(2, dynactortest.FailAfter(500))}
			},
			verdict: "success", stored: true, attempts: 3,
		},
		{
			name: "answer cut short", rules: func(s shape) rules { return rules{s.on(1, dynactortest.CutBody(1))} },
			verdict: "success", stored: true, attempts: 2,
		},
		{
			name: "answer garbled", rules: func(s shape) rules { return rules{s.on(1, dynactortest.FlipByte())} },
			verdict: "success", stored: true, attempts: 2,
		},
		{
			name: "G02 reset before the write", rules: func(s shape) rules { return rules{s.on(1, answer(500, "InternalServerError"))} },
			verdict: "success", stored: true, attempts: 2,
		},
		{
			name: "every answer lost", rules: func(s shape) rules { return rules{s.from(1, dynactortest.DropAnswer())} },
			verdict: "unknown", stored: true, attempts: 3,
		},
		{
			name: "500 each time, not applied", rules: func(s shape) rules { return rules{s.from(1, answer(500, "InternalServerError"))} },
			verdict: "unknown", attempts: 3, code: "InternalServerError",
		},
		{
			name: "first applied and lost, then throttled", rules: func(s shape) rules {
				return rules{s.on(1, dynactortest.DropAnswer()), s.from(2, dynactortest.Throttle())}
			},
			verdict: "unknown", stored: true, attempts: 3, is: dynactor.ErrThrottled, code: "ProvisionedThroughputExceededException",
		},
		{
			name: "first lost and not applied, then throttled", rules: func(s shape) rules {
				return rules{s.on(1, answer(500, "InternalServerError")), s.from(2, dynactortest.Throttle())}
			},
			verdict: "unknown", attempts: 3, is: dynactor.ErrThrottled,
		},
		{
			name: "first applied and lost, then access denied", rules: func(s shape) rules {
				return rules{s.on(1, dynactortest.DropAnswer()), s.from(2, answer(400, "AccessDeniedException"))}
			},
			verdict: "unknown", stored: true, attempts: 2, code: "AccessDeniedException",
		},
		{
			name: "G07 first applied and lost, then credentials expire", rules: func(s shape) rules {
				return rules{s.on(1, dynactortest.DropAnswer()), s.from(2, answer(400, "ExpiredTokenException"))}
			},
			verdict: "unknown", stored: true, attempts: 3, code: "ExpiredTokenException",
		},
		{
			name: "first applied and lost, then invalid", rules: func(s shape) rules {
				return rules{s.on(1, dynactortest.DropAnswer()), s.from(2, answer(400, "ValidationException"))}
			},
			verdict: "unknown", stored: true, attempts: 2, code: "ValidationException",
		},
		{
			name: "first applied and lost, then refused connections", rules: func(s shape) rules {
				return rules{s.on(1, dynactortest.DropAnswer()), s.from(2, dynactortest.Refuse())}
			},
			verdict: "unknown", stored: true, attempts: 3,
		},
		{
			name: "first applied and lost, then no such host", rules: func(s shape) rules {
				return rules{s.on(1, dynactortest.DropAnswer()), s.from(2, dynactortest.NoSuchHost())}
			},
			verdict: "unknown", stored: true, attempts: 2,
		},
		{
			name: "J-43 throttled only", rules: func(s shape) rules { return rules{s.from(1, dynactortest.Throttle())} },
			verdict: "failure", attempts: 3, is: dynactor.ErrThrottled, code: "ProvisionedThroughputExceededException",
		},
		{
			name: "refused connections only", rules: func(s shape) rules { return rules{s.from(1, dynactortest.Refuse())} },
			verdict: "failure", attempts: 3,
		},
		{
			name: "no such host", rules: func(s shape) rules { return rules{s.from(1, dynactortest.NoSuchHost())} },
			verdict: "failure", attempts: 1,
		},
		{
			name: "invalid", rules: func(s shape) rules { return rules{s.from(1, answer(400, "ValidationException"))} },
			verdict: "failure", attempts: 1, code: "ValidationException",
		},
		{
			name: "access denied", rules: func(s shape) rules { return rules{s.from(1, answer(400, "AccessDeniedException"))} },
			verdict: "failure", attempts: 1, code: "AccessDeniedException",
		},
		{
			name: "G07 credentials expire and stay so", rules: func(s shape) rules { return rules{s.from(1, answer(400, "ExpiredTokenException"))} },
			verdict: "failure", attempts: 3, code: "ExpiredTokenException",
		},
		{
			name: "table is gone", rules: func(s shape) rules { return rules{s.from(1, answer(400, "ResourceNotFoundException"))} },
			verdict: "failure", attempts: 1, is: dynactor.ErrSchema, code: "ResourceNotFoundException",
		},
		{
			name: "408 says nothing", rules: func(s shape) rules { return rules{s.from(1, answer(408, "RequestTimeout"))} },
			verdict: "unknown", attempts: 3, code: "RequestTimeout",
		},
		{
			name: "J-41 A10 held by a transaction twice", rules: func(s shape) rules { return rules{s.on(1, s.busy()), s.on(2, s.busy())} },
			verdict: "success", stored: true, attempts: 3,
		},
		{
			name: "A10 held by a transaction for ever", rules: func(s shape) rules { return rules{s.from(1, s.busy())} },
			verdict: "failure", attempts: 3, is: dynactor.ErrThrottled,
		},
	} {
		for _, s := range shapes {
			t.Run(tt.name+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				db := dynactortest.New(t)
				p := openOn(t, db, impatient{db.Client}, dynactor.Options{})
				fill(t, p.Journal(), "a", 2)
				db.Faults.Reset()
				for _, r := range tt.rules(s) {
					db.Faults.Add(r)
				}

				head, err := p.Journal().Append(t.Context(), "a", 2, numbered(3, 2+s.events)...)

				if got := verdict(err); got != tt.verdict {
					t.Errorf("told %s, want %s: %v", got, tt.verdict, err)
				}
				if err == nil && head != int64(2+s.events) {
					t.Errorf("head %d, want %d", head, 2+s.events)
				}
				if tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("error does not match %q: %v", tt.is, err)
				}
				if tt.code != "" && !slices.Contains(codes(err), tt.code) {
					t.Errorf("no SDK error with code %s in %v", tt.code, err)
				}
				if got := attempts(db, s.op); got != tt.attempts {
					t.Errorf("%d attempts, want %d: %v", got, tt.attempts, db.Faults.Requests())
				}
				want := texts(1, 2)
				if tt.stored {
					want = texts(1, 2+s.events)
				}
				if diff := cmp.Diff(want, content(t, db, "a")); diff != "" {
					t.Errorf("stream (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// When the slot is taken, only the operation id in it tells by whom.
func TestOutcomeOfATakenSlot(t *testing.T) {
	t.Parallel()
	type rules = []dynactortest.Rule
	gone := dynactortest.Rule{Op: "GetItem", Match: readsEvent, Do: dynactortest.HideItems(func(map[string]any) bool { return true })}
	unreadable := dynactortest.Rule{Op: "GetItem", Match: readsEvent, Do: dynactortest.Answer(400, "AccessDeniedException", "by a test")}
	for _, tt := range []struct {
		name    string
		foreign bool // another writer appends before the first attempt arrives
		rules   func(shape) rules
		verdict string
		stored  bool
	}{
		{
			name: "own item, left out by the server", verdict: "success", stored: true,
			rules: func(s shape) rules { return rules{s.on(1, dynactortest.DropAnswer()), s.on(2, s.refused())} },
		},
		{
			name: "own item, read in vain", verdict: "unknown", stored: true,
			rules: func(s shape) rules {
				return rules{s.on(1, dynactortest.DropAnswer()), s.on(2, s.refused()), unreadable}
			},
		},
		{
			name: "own item, gone when asked", verdict: "unknown", stored: true,
			rules: func(s shape) rules { return rules{s.on(1, dynactortest.DropAnswer()), s.on(2, s.refused()), gone} },
		},
		{
			name: "nothing in the slot after a lost attempt", verdict: "unknown",
			rules: func(s shape) rules {
				return rules{s.on(1, dynactortest.Answer(500, "InternalServerError", "by a test")), s.on(2, s.refused())}
			},
		},
		{
			name: "only attempt refused, read in vain", verdict: "conflict",
			rules: func(s shape) rules { return rules{s.on(1, s.refused()), unreadable} },
		},
		{
			name: "only attempt refused, gone when asked", verdict: "conflict",
			rules: func(s shape) rules { return rules{s.on(1, s.refused()), gone} },
		},
		{name: "A07b foreign item with the same payload", foreign: true, verdict: "conflict", rules: func(shape) rules { return nil }},
		{
			name: "foreign item, left out by the server", foreign: true, verdict: "conflict",
			rules: func(s shape) rules { return rules{s.on(1, dynactortest.StripOldItem())} },
		},
		{
			name: "foreign item after a lost attempt", foreign: true, verdict: "conflict",
			rules: func(s shape) rules {
				return rules{s.on(1, dynactortest.Answer(500, "InternalServerError", "by a test"))}
			},
		},
		{
			name: "foreign item after a lost attempt, left out by the server", foreign: true, verdict: "conflict",
			rules: func(s shape) rules {
				return rules{s.on(1, dynactortest.DropAnswer()), s.on(2, dynactortest.StripOldItem())}
			},
		},
		{
			name: "A13 token mismatch over the own item", verdict: "success", stored: true,
			rules: func(s shape) rules { return rules{s.on(1, dynactortest.DropAnswer()), s.on(2, mismatch)} },
		},
		{
			name: "A13 token mismatch over nothing", verdict: "unknown",
			rules: func(s shape) rules { return rules{s.on(1, mismatch)} },
		},
		{
			name: "A13 token mismatch over a foreign item", foreign: true, verdict: "conflict",
			rules: func(s shape) rules { return rules{s.on(1, mismatch)} },
		},
	} {
		for _, s := range shapes {
			t.Run(tt.name+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				p, db := open(t, dynactor.Options{})
				fill(t, p.Journal(), "a", 2)
				db.Faults.Reset()
				other := outsider(t, db, dynactor.Options{}).Journal()
				if tt.foreign {
					db.Faults.Add(before(s.op, func() {
						if _, err := other.Append(t.Context(), "a", 2, numbered(3, 2+s.events)...); err != nil {
							t.Error(err)
						}
					}))
				}
				for _, r := range tt.rules(s) {
					db.Faults.Add(r)
				}

				_, err := p.Journal().Append(t.Context(), "a", 2, numbered(3, 2+s.events)...)

				if got := verdict(err); got != tt.verdict {
					t.Errorf("told %s, want %s: %v", got, tt.verdict, err)
				}
				want := texts(1, 2)
				if tt.stored || tt.foreign {
					want = texts(1, 2+s.events)
				}
				if diff := cmp.Diff(want, content(t, db, "a")); diff != "" {
					t.Errorf("stream (-want +got):\n%s", diff)
				}
			})
		}
	}
}
