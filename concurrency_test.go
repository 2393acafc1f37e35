package dynactor_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// rounds is how often two writers race for the same numbers.
const rounds = 200

// contender is one of two processes that write to one stream.
type contender struct {
	name  string
	write func(head int64, texts []string) error
}

// newContender is a journal or a session of a process of its own. Its clock is
// ahead, and the answers to its first attempts get lost when it is lossy.
func newContender(t *testing.T, db *dynactortest.DB, name string, session, lossy bool, ahead time.Duration) contender {
	t.Helper()
	now := &clock{}
	now.Advance(ahead)
	client, faults := db.NewClient()
	p := openOn(t, db, impatient{client}, dynactor.Options{Now: now.Now})
	if err := p.EnsureTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lossy {
		faults.Add(dynactortest.Rule{Table: db.EventsTable, Match: func(r dynactortest.Request) bool {
			return r.Attempt == 1 && (r.Op == "PutItem" || r.Op == "TransactWriteItems")
		}, Do: dynactortest.DropAnswer()})
	}
	if !session {
		return contender{name, func(head int64, list []string) error {
			_, err := p.Journal().Append(t.Context(), "a", head, messages(list)...)
			return err
		}}
	}
	s := p.GetState()
	return contender{name, func(head int64, list []string) error {
		// Knows its place by recovery, so that nothing but its put can tell of the other.
		s.Restart()
		s.GetEvents("a", int(head), 0, func(any) {})
		if err := caught(func() { s.PersistEvent("a", int(head), messages(list)[0]) }); err != nil {
			return err
		}
		return nil
	}}
}

func messages(list []string) []proto.Message {
	ms := make([]proto.Message, len(list))
	for i, s := range list {
		ms[i] = text(s)
	}
	return ms
}

// Of two writers of the same numbers one wins, the other is told of a conflict,
// and what is stored is the winner's.
func TestRace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		session bool
		events  int
		lossy   bool
		ahead   time.Duration
		rounds  int
	}{
		{name: "A01 J-33 one event", events: 1, rounds: rounds},
		{name: "A01 J-33 many events", events: 2, rounds: rounds},
		{name: "A01 J-33 sessions", session: true, events: 1, rounds: rounds},
		{name: "A06 A07a one event, answers lost", events: 1, lossy: true, rounds: rounds},
		{name: "A06 A07a many events, answers lost", events: 2, lossy: true, rounds: rounds},
		{name: "A06 A07a sessions, answers lost", session: true, events: 1, lossy: true, rounds: rounds},
		{name: "A02 one event, clocks 5 ms apart", events: 1, ahead: 5 * time.Millisecond, rounds: rounds / 10},
		{name: "A02 one event, clocks an hour apart", events: 1, ahead: time.Hour, rounds: rounds / 10},
		{name: "A02 many events, clocks an hour apart", events: 2, ahead: time.Hour, rounds: rounds / 10},
		{name: "A02 sessions, clocks an hour apart", session: true, events: 1, ahead: time.Hour, rounds: rounds / 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := dynactortest.New(t)
			both := []contender{
				newContender(t, db, "left", tt.session, tt.lossy, tt.ahead),
				newContender(t, db, "right", tt.session, false, 0),
			}
			var want []string
			wins := map[string]int{}
			for round := range tt.rounds {
				head := int64(len(want))
				told := make([]error, 2)
				lists := make([][]string, 2)
				start := make(chan struct{})
				var running sync.WaitGroup
				for i, c := range both {
					for n := range tt.events {
						lists[i] = append(lists[i], fmt.Sprintf("%s %d/%d", c.name, round, n))
					}
					running.Go(func() {
						<-start
						told[i] = c.write(head, lists[i])
					})
				}
				close(start)
				running.Wait()
				verdicts := []string{verdict(told[0]), verdict(told[1])}
				winner := slices.Index(verdicts, "success")
				slices.Sort(verdicts)
				if diff := cmp.Diff([]string{"conflict", "success"}, verdicts); diff != "" {
					t.Fatalf("round %d: %v", round, told)
				}
				want = append(want, lists[winner]...)
				wins[both[winner].name]++
			}
			if diff := cmp.Diff(want, tableTexts(t, db, "a")); diff != "" {
				t.Errorf("stored (-winners +got):\n%s", diff)
			}
			t.Logf("wins: %v", wins)
		})
	}
}

// Writers that reload and retry get all their events in.
func TestRace_A08_ReloadAndRetry(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{})
	ready(t, p, db)
	j := p.Journal()
	var running sync.WaitGroup
	for i := range 20 {
		running.Go(func() {
			for {
				head, err := j.Head(t.Context(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				_, err = j.Append(t.Context(), "a", head, text(fmt.Sprint(i)), text(fmt.Sprint(i)))
				if err == nil {
					return
				}
				if !errors.Is(err, dynactor.ErrConflict) {
					t.Errorf("writer %d: %v", i, err)
					return
				}
			}
		})
	}
	running.Wait()
	got := content(t, db, "a") // which has no gap, or it were an error
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprint(i), fmt.Sprint(i))
	}
	for i := 0; i+1 < len(got); i += 2 {
		if got[i] != got[i+1] {
			t.Errorf("the append of %s was torn apart: %v", got[i], got)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

// A read of the head proves nothing once it is over.
func TestRace_A05_AppendBetweenReadAndWrite(t *testing.T) {
	t.Parallel()
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			p, db := fixture(t)
			other := outsider(t, db, dynactor.Options{}).Journal()
			db.Faults.Add(before(s.op, func() {
				if _, err := other.Append(t.Context(), "a", 5, text("other")); err != nil {
					t.Error(err)
				}
			}))
			_, err := p.Journal().Append(t.Context(), "a", 5, numbered(6, 5+s.events)...)
			if verdict(err) != "conflict" {
				t.Errorf("told %v, want a conflict", err)
			}
			if diff := cmp.Diff(append(texts(1, 5), "other"), tableTexts(t, db, "a")); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

// The put of an incarnation that is over lands after its successor has recovered.
func TestRace_A14_WriteOutlivesItsIncarnation(t *testing.T) {
	t.Parallel()
	p, db := fixture(t)
	reached, release := make(chan struct{}), make(chan struct{})
	db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: dynactortest.Hold(reached, release)})
	old := p.GetState()
	recovered(old, "a")
	done := make(chan *dynactor.Error, 1)
	go func() { done <- caught(func() { old.PersistEvent("a", 5, text("old")) }) }()
	<-reached

	successor := outsider(t, db, dynactor.Options{}).GetState()
	recovered(successor, "a")
	close(release)
	if err := <-done; err != nil {
		t.Errorf("the late put: %v", err)
	}
	err := caught(func() { successor.PersistEvent("a", 5, text("new")) })
	if err == nil || verdict(err) != "conflict" {
		t.Errorf("told %v, want a conflict", err)
	}
	_, _, events := recovered(successor, "a")
	if diff := cmp.Diff(append(texts(1, 5), "old"), events); diff != "" {
		t.Errorf("recovered (-want +got):\n%s", diff)
	}
	successor.PersistEvent("a", 6, text("new"))
	if diff := cmp.Diff(append(texts(1, 5), "old", "new"), tableTexts(t, db, "a")); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

// What is acknowledged is what a fresh replay returns, also where numbers get
// another digit and appends are large.
func TestRace_A16_AcknowledgedIsReplayed(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{})
	ready(t, p, db)
	// Every third write fails without being stored, another third is stored and its answer lost.
	n := 0
	rule := func(do dynactortest.Action, rest int) {
		db.Faults.Add(dynactortest.Rule{Op: "TransactWriteItems", Match: func(r dynactortest.Request) bool { return r.Attempt == 1 && n%3 == rest }, Do: do})
	}
	rule(dynactortest.Answer(400, "AccessDeniedException", "by a test"), 1)
	rule(dynactortest.FailAfter(500), 2)
	var want []string
	for _, size := range []int{8, 2, 2, 80, 9, 100, 100, 2, 3} {
		list := numbered(len(want)+1, len(want)+size)
		_, err := p.Journal().Append(t.Context(), "a", int64(len(want)), list...)
		if n%3 == 1 {
			if err == nil {
				t.Errorf("append %d: the failure is not told", n)
			}
		} else if err != nil {
			t.Errorf("append %d: %v", n, err)
		} else {
			want = append(want, texts(len(want)+1, len(want)+size)...)
		}
		n++
		if diff := cmp.Diff(want, content(t, db, "a")); diff != "" {
			t.Errorf("after append %d (-acknowledged +replayed):\n%s", n, diff)
		}
	}
}

// Every read of a table is strongly consistent and none uses an index.
func TestRace_A20_StrongReads(t *testing.T) {
	t.Parallel()
	now := &clock{}
	p, db := open(t, dynactor.Options{Now: now.Now, SnapshotInterval: 3, KeepSnapshots: 1, DeleteEventsOnSnapshot: true})
	j, snapshots := p.Journal(), p.Snapshots()
	s := p.GetState()
	recovered(s, "a")
	for i := range 9 {
		s.PersistEvent("a", i, text(strconv.Itoa(i+1)))
	}
	s.PersistSnapshot("a", 3, text("state 3"))
	now.Advance(25 * time.Hour) // the fence looks, and the prune finds something
	s.PersistEvent("a", 9, text("10"))
	s.PersistSnapshot("a", 9, text("state 9"))
	recovered(s, "a")
	s.GetEvents("a", 9, 10, func(any) {})
	s.DeleteEvents("a", 8)
	s.DeleteSnapshots("a", 3)
	first := func(_ any, err error) error { return err }
	second := func(_ any, _ bool, err error) error { return err }
	_, err := replayed(t.Context(), j, "a", 1, 0)
	for _, err := range []error{
		err, first(j.Append(t.Context(), "a", 10, text("11"))), first(j.Head(t.Context(), "a")), j.DeleteTo(t.Context(), "a", 9),
		first(j.Sweep(t.Context(), "a")), second(snapshots.Latest(t.Context(), "a")), second(snapshots.AtOrBefore(t.Context(), "a", 3)),
		first(snapshots.List(t.Context(), "a")), snapshots.DeleteTo(t.Context(), "a", 1), j.DeleteAll(t.Context(), "a"),
		j.Erase(t.Context(), "a"), p.VerifyTables(t.Context()),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	reads := 0
	for _, r := range db.Faults.Requests() {
		switch {
		case strings.HasPrefix(r.Op, "Batch") && r.Op != "BatchWriteItem", r.Op == "Scan":
			t.Errorf("unexpected request: %v", r)
		case r.Op == "GetItem" || r.Op == "Query":
			reads++
			if _, ok := r.Input()["IndexName"]; ok || !r.ConsistentRead() {
				t.Errorf("weak or indexed read: %s", r.Body)
			}
		}
	}
	if reads < 30 {
		t.Errorf("only %d reads were seen", reads)
	}
}
