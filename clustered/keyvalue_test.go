package clustered_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/clustered"
	"github.com/dynactor/dynactor/dynactortest"
)

func TestKeyValueStore(t *testing.T) {
	t.Parallel()
	p, db := stateProvider(t)
	s := clustered.KeyValueStore[*cluster.Subscribers](p.State(), "prototopic/")
	ctx := t.Context()
	subscribers := func(n int) *cluster.Subscribers {
		list := &cluster.Subscribers{}
		for i := range n {
			list.Subscribers = append(list.Subscribers, &cluster.SubscriberIdentity{
				Identity: &cluster.SubscriberIdentity_Pid{Pid: actor.NewPID("here", fmt.Sprint(i))},
			})
		}
		return list
	}
	expect := func(want *cluster.Subscribers) {
		t.Helper()
		got, err := s.Get(ctx, "news")
		if err != nil || !proto.Equal(want, got) {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
	expect(nil)
	if err := s.Clear(ctx, "news"); err != nil {
		t.Error(err)
	}
	for _, n := range []int{1, 3, 0, 2} {
		if err := s.Set(ctx, "news", subscribers(n)); err != nil {
			t.Fatal(err)
		}
		expect(subscribers(n))
	}
	if err := s.Clear(ctx, "news"); err != nil {
		t.Error(err)
	}
	expect(nil)
	if got, err := s.Get(ctx, "other"); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	// Another store on the same table sees it, and the last one wins.
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := s.Set(ctx, "news", subscribers(1)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	expect(subscribers(1))
	if st, err := p.State().Load(ctx, "prototopic/news"); err != nil || st.Revision != 8 {
		t.Errorf("revision %d, %v", st.Revision, err)
	}
	db.Faults.Add(dynactortest.Rule{Op: "GetItem", Do: dynactortest.Answer(400, "AccessDeniedException", "no")})
	for _, err := range []error{s.Set(ctx, "news", subscribers(2)), s.Clear(ctx, "news")} {
		if _, ok := errors.AsType[*dynactor.Error](err); !ok {
			t.Errorf("got %v", err)
		}
	}
}

// stateProvider is a provider on a database of the test's own.
func stateProvider(t *testing.T) (*dynactor.Provider, *dynactortest.DB) {
	t.Helper()
	db := dynactortest.New(t)
	p, err := dynactor.New(db.Client, dynactor.Options{
		EventsTable: db.EventsTable, SnapshotsTable: db.SnapshotsTable, StateTables: []string{db.StateTable},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return p, db
}
