package dynactor_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

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
