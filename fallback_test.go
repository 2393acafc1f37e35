package dynactor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// A snapshot that cannot be decoded is an error, unless it may be passed over.
func TestSnapshots_Fallback(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		spoil  []int64
		mark   int64
		state  string // with the option
		index  int
		passed int64
		fails  bool // with the option, too
	}{
		{name: "D01 D02 to an older one", spoil: []int64{9}, state: "1 2 3 4 5 6", index: 6, passed: 1},
		{name: "D02 past several", spoil: []int64{6, 9}, state: "1 2 3", index: 3, passed: 2},
		{name: "D01 to the whole history", spoil: []int64{3, 6, 9}, passed: 3},
		{name: "D01 to one at the mark", spoil: []int64{9}, mark: 6, state: "1 2 3 4 5 6", index: 6, passed: 1},
		{name: "D01 not to one below the mark", spoil: []int64{9}, mark: 7, passed: 1, fails: true},
		{name: "D01 not to a part of the history", spoil: []int64{3, 6, 9}, mark: 1, passed: 3, fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{SnapshotInterval: 3})
			a := start(t, p, 0)
			for range 3 {
				a.run(3)
				a.save()
			}
			a.run(2)
			deleteTo(t, p.Journal(), "a", tt.mark)
			spoil(t, db, "a", tt.spoil...)
			checkRefused(t, p, "a", dynactor.ErrDecode) // S-26
			reader := metric.NewManualReader()
			log, lines := logged()
			q := openOn(t, db, db.Client, dynactor.Options{
				SnapshotInterval: 3, SnapshotFallback: true, Logger: log,
				MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)),
			})
			if tt.fails {
				checkRefused(t, q, "a", dynactor.ErrDecode)
				return
			}
			checkRecovery(t, q, "a", tt.state, tt.index, tt.index+1, 11) // S-27
			if diff := cmp.Diff(map[string]int64{"load snapshot": tt.passed}, failures(t, reader)); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
			all := strings.Join(lines(), "\n")
			for _, seq := range tt.spoil {
				if !strings.Contains(all, fmt.Sprintf("persistence_id=a index=%d ", seq)) {
					t.Errorf("the one at %d is not named:\n%s", seq, all)
				}
			}
		})
	}
	t.Run("not into a past that was ended", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 3, SnapshotFallback: true})
		five(t, p.Journal(), "a")
		save(t, p, "a", 3, 5)
		deleteAll(t, p.Journal(), "a")
		if _, err := p.Journal().Append(t.Context(), "a", 5, numbered(6, 8)...); err != nil {
			t.Fatal(err)
		}
		spoil(t, db, "a", 7)
		checkRecovery(t, p, "a", "reset", 5, 6, 8)
	})
	t.Run("C15 the only snapshot is gone", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 3, SnapshotFallback: true})
		five(t, p.Journal(), "a")
		save(t, p, "a", 4)
		deleteTo(t, p.Journal(), "a", 4)
		checkRecovery(t, p, "a", "s-4", 4, 5, 5)
		remove(t, db, db.SnapshotsTable, "a", 4)
		checkRefused(t, p, "a", dynactor.ErrNoSnapshot)
		save(t, p, "a", 3) // below the mark
		checkRefused(t, p, "a", dynactor.ErrNoSnapshot)
		save(t, p, "a", 9) // beyond the head
		checkRefused(t, p, "a", dynactor.ErrAhead)
	})
	t.Run("a failed load is not passed over", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{SnapshotInterval: 3, SnapshotFallback: true})
		five(t, p.Journal(), "a")
		save(t, p, "a", 3, 4)
		db.Faults.Add(dynactortest.Rule{Op: "Query", Table: db.SnapshotsTable, Times: 1, Do: dynactortest.Answer(400, "AccessDeniedException", "no")})
		err := caught(func() { p.GetState().GetSnapshot("a") })
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}
