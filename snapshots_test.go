package dynactor_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// checkSnapshots compares the numbers of the snapshots that the store lists.
func checkSnapshots(t *testing.T, s dynactor.SnapshotStore, id string, want ...int64) {
	t.Helper()
	got, err := s.List(t.Context(), id)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("snapshots of %q: %v (-want +got):\n%s", id, err, diff)
	}
}

// checkLatest compares the newest snapshot that covers at most seq events with
// the one at want, which save has made; 0 for none.
func checkLatest(t *testing.T, s dynactor.SnapshotStore, id string, seq, want int64) {
	t.Helper()
	state := fmt.Sprintf("s-%d", want)
	snap, found, err := s.AtOrBefore(t.Context(), id, seq)
	if err != nil || found != (want > 0) || snap.Seq != want || found && textOf(snap.Message) != state {
		t.Errorf("snapshot of %q at or before %d: got %v, %t, %v; want %s", id, seq, snap, found, err, state)
	}
}

func TestSnapshots_ByNumber(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{})
	s := p.Snapshots()
	ready(t, p, db)
	save(t, p, "a", 13, 11, 15, 14, 12)
	save(t, p, "b", 1)
	for _, tt := range []struct {
		name      string
		seq, want int64
	}{
		{"S-03 below all", 7, 0},
		{"S-03 below all by one", 10, 0},
		{"S-04 the newest", math.MaxInt64, 15},
		{"S-05 exactly", 13, 13},
		{"S-05 the first", 11, 11},
		{"beyond", 16, 15},
		{"at 0", 0, 0},
		{"negative", -1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			checkLatest(t, s, "a", tt.seq, tt.want)
		})
	}
	t.Run("S-01 unknown id", func(t *testing.T) {
		t.Parallel()
		checkLatest(t, s, "unknown", math.MaxInt64, 0)
		checkSnapshots(t, s, "unknown")
	})
	t.Run("Latest and List", func(t *testing.T) {
		t.Parallel()
		snap, found, err := s.Latest(t.Context(), "a")
		if snap.Seq != 15 || !found || err != nil {
			t.Errorf("got %v, %t, %v", snap, found, err)
		}
		checkSnapshots(t, s, "a", 11, 12, 13, 14, 15)
	})
}

func TestSnapshots_RoundTrip(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_700_000_000_123)
	p, db := open(t, dynactor.Options{Now: func() time.Time { return at }})
	ready(t, p, db)
	random := rand.NewChaCha8([32]byte{})
	for name, m := range map[string]proto.Message{
		"S-11 10,000 bytes": text(fmt.Sprintf("%-10000d", 1)),
		"S-12 another type": durationpb.New(time.Hour),
		"S-12 empty bytes":  &emptypb.Empty{},
		"D05 399 KB": func() proto.Message {
			b := make([]byte, 399<<10)
			_, _ = random.Read(b)
			return wrapperspb.Bytes(b)
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := p.Snapshots().Save(t.Context(), name, 7, m); err != nil {
				t.Fatal(err)
			}
			got, found, err := p.Snapshots().Latest(t.Context(), name)
			want := dynactor.Snapshot{ID: name, Seq: 7, Message: m, Type: string(m.ProtoReflect().Descriptor().FullName()), Time: at}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || !found || err != nil {
				t.Errorf("%t, %v (-want +got):\n%.1000s", found, err, diff)
			}
		})
	}
	t.Run("D05 S-23 too large", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		save(t, p, "a", 1)
		db.Faults.Reset()
		for _, size := range []int{400 << 10, 401 << 10, 5 << 20} {
			err := p.Snapshots().Save(t.Context(), "a", 1, wrapperspb.Bytes(make([]byte, size)))
			if !errors.Is(err, dynactor.ErrTooLarge) || db.Faults.Count("") != 0 {
				t.Errorf("%d bytes: %v, %d requests", size, err, db.Faults.Count(""))
			}
		}
		checkLatest(t, p.Snapshots(), "a", 1, 1)
	})
	t.Run("S-25 of no events, and of no state", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		for _, err := range []error{
			p.Snapshots().Save(t.Context(), "a", 0, text("s")),
			p.Snapshots().Save(t.Context(), "a", -1, text("s")),
			p.Snapshots().Save(t.Context(), "a", 1, nil),
		} {
			if !errors.Is(err, dynactor.ErrInvalid) {
				t.Errorf("got %v", err)
			}
		}
		if n := db.Faults.Count(""); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestSnapshots_AreReplaced(t *testing.T) {
	t.Parallel()
	var c clock
	p, db := open(t, dynactor.Options{Now: c.Now})
	s := p.Snapshots()
	for _, state := range []string{"first", "s-10"} { // S-10, D03
		if err := s.Save(t.Context(), "a", 10, text(state)); err != nil {
			t.Fatal(err)
		}
	}
	checkLatest(t, s, "a", math.MaxInt64, 10)
	checkSnapshots(t, s, "a", 10)
	save(t, p, "a", 20)
	c.Advance(48 * time.Hour)
	save(t, p, "a", 12) // D04: later by the clock, and still older
	checkLatest(t, s, "a", math.MaxInt64, 20)
	c.Advance(-96 * time.Hour)
	save(t, p, "a", 30) // D04: earlier by the clock, and still newer
	checkLatest(t, s, "a", math.MaxInt64, 30)
	if n := len(items(t, db, db.SnapshotsTable, "a")); n != 4 {
		t.Errorf("%d items", n)
	}
	var saving sync.WaitGroup
	for seq := range int64(12) { // S-22
		saving.Go(func() { save(t, p, "b", seq+1) })
	}
	saving.Wait()
	checkLatest(t, s, "b", math.MaxInt64, 12)
	checkSnapshots(t, s, "b", upTo(1, 12)...)
}

func TestSnapshots_Delete(t *testing.T) {
	t.Parallel()
	t.Run("S-07 S-28 C18 C19 some", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		s := p.Snapshots()
		save(t, p, "a", 1, 2, 3, 4, 5)
		save(t, p, "b", 1, 2, 3, 4, 5)
		remove := func(seqs ...int64) {
			if err := s.Delete(t.Context(), "a", seqs...); err != nil {
				t.Error(err)
			}
		}
		remove(5)
		checkLatest(t, s, "a", math.MaxInt64, 4)
		remove(5)
		remove(4, 2, 4, 7, 2)
		checkSnapshots(t, s, "a", 1, 3)
		remove(4, 2, 4, 7, 2)
		db.Faults.Reset()
		remove()
		remove(0, -1)
		if n := db.Faults.Count(""); n != 0 {
			t.Errorf("%d requests to delete nothing", n)
		}
		checkSnapshots(t, s, "a", 1, 3)
		checkSnapshots(t, s, "b", 1, 2, 3, 4, 5)
	})
	for name, rules := range map[string][]dynactortest.Rule{
		"S-17 C06 in small pages": {{Match: forward, Do: smallPages(7)}},
		"C07 with empty pages":    {{Match: forward, Skip: 1, Times: 2, Do: dynactortest.EmptyPage()}, {Match: forward, Do: smallPages(7)}},
		"S-18 unprocessed":        {{Op: "BatchWriteItem", Times: 4, Do: dynactortest.Unprocessed(10)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			s := p.Snapshots()
			save(t, p, "a", upTo(1, 62)...)
			save(t, p, "b", 1)
			db.Faults.Reset()
			for _, rule := range rules {
				db.Faults.Add(rule)
			}
			checkSnapshots(t, s, "a", upTo(1, 62)...)
			for range 2 {
				if err := s.DeleteTo(t.Context(), "a", 60); err != nil {
					t.Error(err)
				}
				checkSnapshots(t, s, "a", 61, 62)
			}
			checkSnapshots(t, s, "b", 1)
			for _, b := range batches(t, db.Faults) {
				if len(b) > 25 {
					t.Errorf("a batch of %d", len(b))
				}
			}
			for _, r := range db.Faults.Requests() {
				if r.Op == "Query" && r.Input()["ProjectionExpression"] == nil {
					t.Errorf("states are read to list them: %s", r.Body)
				}
			}
			for _, seq := range []int64{0, -1, math.MinInt64} {
				if err := s.DeleteTo(t.Context(), "a", seq); err != nil {
					t.Error(err)
				}
			}
			if err := s.DeleteTo(t.Context(), "a", math.MaxInt64); err != nil {
				t.Error(err)
			}
			checkSnapshots(t, s, "a")
		})
	}
}

// S-14: that a snapshot cannot be loaded is never the answer that there is none.
func TestSnapshots_FailToLoad(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		do   dynactortest.Action
		want error
		slow bool // tried again until the time is up
	}{
		"refused":   {dynactortest.Answer(400, "AccessDeniedException", "no"), nil, false},
		"no table":  {dynactortest.Answer(400, "ResourceNotFoundException", "no"), dynactor.ErrSchema, false},
		"failed":    {dynactortest.Answer(500, "InternalServerError", "no"), nil, true},
		"throttled": {dynactortest.Throttle(), dynactor.ErrThrottled, true},
		"cut":       {dynactortest.CutBody(20), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{ReadTimeout: 3 * time.Second, RecoveryTimeout: time.Second})
			five(t, p.Journal(), "a")
			save(t, p, "a", 3)
			db.Faults.Add(dynactortest.Rule{Op: "Query", Table: db.SnapshotsTable, Do: tt.do})
			check := func(found bool, err error) {
				t.Helper()
				if e, ok := errors.AsType[*dynactor.Error](err); !ok || found || e.ID != "a" || tt.want != nil && !errors.Is(err, tt.want) {
					t.Errorf("got %t, %v", found, err)
				}
			}
			_, found, err := p.Snapshots().Latest(t.Context(), "a")
			check(found, err)
			if err := caught(func() { p.GetState().GetSnapshot("a") }); err == nil {
				t.Error("the session has found no snapshot, without an error")
			}
			if !tt.slow {
				_, err = p.Snapshots().List(t.Context(), "a")
				check(false, err)
				check(false, p.Snapshots().DeleteTo(t.Context(), "a", 3))
			}
		})
	}
	t.Run("C07 an empty page", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		save(t, p, "a", 3, 4)
		db.Faults.Add(dynactortest.Rule{Op: "Query", Times: 3, Do: dynactortest.EmptyPage()})
		checkLatest(t, p.Snapshots(), "a", math.MaxInt64, 4)
	})
	t.Run("S-26 undecodable", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		save(t, p, "a", 3, 4)
		spoil(t, db, "a", 4)
		snap, found, err := p.Snapshots().Latest(t.Context(), "a")
		if !found || snap.Message != nil || snap.Seq != 4 || !errors.Is(err, dynactor.ErrDecode) {
			t.Errorf("got %v, %t, %v", snap, found, err)
		}
		checkLatest(t, p.Snapshots(), "a", 3, 3)
		checkSnapshots(t, p.Snapshots(), "a", 3, 4)
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, dynactor.Options{})
		save(t, p, "a", 3)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, found, err := p.Snapshots().Latest(ctx, "a")
		if found || !errors.Is(err, context.Canceled) {
			t.Errorf("got %t, %v", found, err)
		}
	})
}

// spoil makes snapshots into what nobody can decode.
func spoil(t *testing.T, db *dynactortest.DB, id string, seqs ...int64) {
	t.Helper()
	for _, seq := range seqs {
		it := eventOf(t, id, seq, text("x"))
		it["type"] = &types.AttributeValueMemberS{Value: "gone.State"}
		put(t, db, db.SnapshotsTable, it)
	}
}

// Snapshots expire by the clock of who reads, whether DynamoDB has removed them or not.
func TestSnapshots_Expire(t *testing.T) {
	t.Parallel()
	start := time.UnixMilli(1_700_000_000_999)
	now := start
	p, db := open(t, dynactor.Options{SnapshotTTL: 90 * time.Second, KeepSnapshots: 2, SnapshotInterval: 1, Now: func() time.Time { return now }})
	s := p.Snapshots()
	at := func(d time.Duration) { now = start.Add(d) }
	exp := func(n int) (got string) {
		e, _ := items(t, db, db.SnapshotsTable, "a")[n]["exp"].(*types.AttributeValueMemberN)
		return e.Value
	}
	five(t, p.Journal(), "a")
	save(t, p, "a", 2)
	if got := exp(0); got != "1700000090" {
		t.Errorf("F04: expires at %s, in seconds it is 1700000090", got)
	}
	at(30 * time.Second)
	save(t, p, "a", 1)
	at(89 * time.Second)
	checkLatest(t, s, "a", math.MaxInt64, 2)
	checkSnapshots(t, s, "a", 1, 2)
	at(90 * time.Second) // F01, S-24
	checkLatest(t, s, "a", math.MaxInt64, 1)
	checkSnapshots(t, s, "a", 1)
	checkRecovery(t, p, "a", "s-1", 1, 2, 5)
	save(t, p, "a", 2) // renewed
	checkLatest(t, s, "a", math.MaxInt64, 2)
	at(180 * time.Second)
	checkLatest(t, s, "a", math.MaxInt64, 0)
	checkSnapshots(t, s, "a")
	db.Faults.Reset()
	checkRecovery(t, p, "a", "", 0, 1, 5)
	for _, r := range db.Faults.Requests() {
		if r.Op != "Query" && r.Op != "GetItem" {
			t.Errorf("F03: a load does more than read: %s", r)
		}
	}
	session := p.GetState() // F01: expired ones are not counted
	recovered(session, "a")
	session.PersistSnapshot("a", 4, text("s-4"))
	session.PersistSnapshot("a", 5, text("s-5"))
	checkSnapshots(t, s, "a", 4, 5)
	if got := numbers(t, db, db.SnapshotsTable, "a"); !slices.Equal(got, []int64{1, 2, 4, 5}) {
		t.Errorf("stored are %v", got)
	}

	q := openOn(t, db, db.Client, dynactor.Options{})
	save(t, q, "a", 9)
	if list := items(t, db, db.SnapshotsTable, "a"); list[4]["exp"] != nil {
		t.Errorf("F04: without SnapshotTTL it expires at %v", list[4]["exp"])
	}
	if err := s.DeleteTo(t.Context(), "a", math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	if got := numbers(t, db, db.SnapshotsTable, "a"); len(got) > 0 {
		t.Errorf("expired ones that nobody sees are left after a deletion of all: %v", got)
	}
}
