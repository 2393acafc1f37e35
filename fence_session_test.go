package dynactor_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/persistence"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

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
