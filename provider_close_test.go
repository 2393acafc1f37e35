package dynactor_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

func TestProvider_Close(t *testing.T) {
	t.Parallel()

	t.Run("waits for what is in flight, and refuses what is new", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		reached, release := make(chan struct{}), make(chan struct{})
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Do: dynactortest.Hold(reached, release)})
		appended, closed := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := p.Journal().Append(t.Context(), "a", 0, text("x"))
			appended <- err
		}()
		<-reached
		go func() { closed <- p.Close(t.Context()) }()
		for {
			_, err := p.Journal().Head(t.Context(), "a")
			if errors.Is(err, dynactor.ErrClosed) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		select {
		case err := <-closed:
			t.Errorf("Close returned %v while a request was held", err)
		default:
		}
		close(release)
		if err := <-appended; err != nil {
			t.Errorf("the append in flight: %v", err)
		}
		if err := <-closed; err != nil {
			t.Errorf("Close: %v", err)
		}
	})

	t.Run("cancels what is in flight when its time is up", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		reached := make(chan struct{})
		db.Faults.Add(dynactortest.Rule{Op: "PutItem", Do: dynactortest.Hold(reached, nil)})
		db.Faults.Add(dynactortest.Rule{Op: "Query", Match: func(r dynactortest.Request) bool {
			return strings.Contains(string(r.Body), `"reader"`)
		}, Do: dynactortest.Hold(reached, nil)})
		wrote, read := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := p.Journal().Append(t.Context(), "writer", 0, text("x"))
			wrote <- err
		}()
		go func() {
			_, err := p.Journal().Head(t.Context(), "reader")
			read <- err
		}()
		<-reached
		<-reached
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Close(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "requests were cancelled") {
			t.Errorf("Close: got %v, want that requests were cancelled", err)
		}
		if err := <-wrote; !errors.Is(err, dynactor.ErrOutcomeUnknown) || !errors.Is(err, dynactor.ErrClosed) {
			t.Errorf("the write: got %v, want ErrOutcomeUnknown and ErrClosed", err)
		}
		if err := <-read; !errors.Is(err, dynactor.ErrClosed) || errors.Is(err, dynactor.ErrOutcomeUnknown) {
			t.Errorf("the read: got %v, want ErrClosed only", err)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Errorf("Close again: %v", err)
		}
	})

	t.Run("ends a recovery that waits", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{NoCreateTables: true})
		missed := make(chan struct{}, 100)
		db.Faults.Add(dynactortest.Rule{Op: "DescribeTable", Do: dynactortest.EditAnswer(func(_ string, b []byte) []byte {
			missed <- struct{}{}
			return b
		})})
		done := make(chan *dynactor.Error, 1)
		go func() { done <- caught(func() { recovered(p.GetState(), "a") }) }()
		<-missed
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, dynactor.ErrClosed) {
			t.Errorf("the recovery: got %v, want ErrClosed", err)
		}
	})

	t.Run("many at once", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		for _, err := range atOnce(8, func(int) error { return p.Close(t.Context()) }) {
			if err != nil {
				t.Error(err)
			}
		}
	})

	t.Run("L-05 leaves the client alone that it was given", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		q := openOn(t, db, db.Client, dynactor.Options{})
		if _, err := q.Journal().Append(t.Context(), "a", 0, text("x")); err != nil {
			t.Errorf("another provider on the same client: %v", err)
		}
	})
}

// Every public method refuses to work after Close, whether or not the tables were
// checked before.
func TestProvider_AfterClose(t *testing.T) {
	t.Parallel()
	for name, used := range map[string]bool{"used before": true, "never used": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			living := p.GetState()
			if used {
				ready(t, p, db)
				recovered(living, "a")
			}
			if err := p.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			db.Faults.Reset()
			refused := calls(t.Context(), p, living, "a")
			refused["Provider.VerifyTables"] = func() error { return p.VerifyTables(t.Context()) }
			refused["StateStore.EnsureTables"] = func() error { return p.State().EnsureTables(t.Context()) }
			refused["StateStore.IDs"] = func() error {
				for _, err := range p.State().IDs(t.Context(), "") {
					return err
				}
				return nil
			}
			if !used {
				refused["Provider.EnsureTables"] = func() error { return p.EnsureTables(t.Context()) }
			}
			for method, call := range refused {
				err := call()
				if e, ok := errors.AsType[*dynactor.Error](err); !ok || !errors.Is(e, dynactor.ErrClosed) {
					t.Errorf("%s: got %v, want ErrClosed", method, err)
				}
			}
			living.PersistSnapshot("a", 1, text("x")) // logs, and does not panic
			if n := db.Faults.Count(""); n != 0 {
				t.Errorf("%d requests after Close", n)
			}

			var missing []string
			for kind, v := range map[string]reflect.Type{
				"Provider": reflect.TypeFor[*dynactor.Provider](), "Journal": reflect.TypeFor[*dynactor.Journal](),
				"SnapshotStore": reflect.TypeFor[dynactor.SnapshotStore](), "StateStore": reflect.TypeFor[*dynactor.StateStore](),
			} {
				for i := range v.NumMethod() {
					missing = append(missing, kind+"."+v.Method(i).Name)
				}
			}
			harmless := []string{"Provider.Close", "Provider.EnsureTables", "Provider.GetState", "Provider.Journal", "Provider.Snapshots", "Provider.State"}
			missing = slices.DeleteFunc(missing, func(m string) bool {
				return slices.Contains(harmless, m) || slices.Contains(slices.Collect(maps.Keys(refused)), m)
			})
			if len(missing) > 0 {
				t.Errorf("methods without a case here: %v", missing)
			}
		})
	}
}

// L-04: nothing of a provider made by Open is left after Close.
func TestProvider_L04_NothingIsLeft(t *testing.T) { //nolint:paralleltest // looks at all goroutines of the process
	bareEnvironment(t)
	db := dynactortest.New(t)
	before := append(dynactortest.IgnoreServer(), goleak.IgnoreCurrent())
	f := newFront(t, db.Endpoint)

	p := wire(t, db, dynactor.Options{Endpoint: f.URL})
	j := p.Journal()
	errs := atOnce(16, func(i int) error {
		id := fmt.Sprint("actor-", i)
		if _, err := j.Append(t.Context(), id, 0, numbered(1, 3)...); err != nil {
			return err
		}
		for _, err := range j.Replay(t.Context(), id, 1, 0) {
			return err // the consumer has enough after one
		}
		return nil
	})
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	f.mu.Lock()
	if len(f.conns) == 0 {
		t.Error("no connection was kept, so there is nothing to see here")
	}
	f.mu.Unlock()
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	f.mu.Lock()
	for len(f.conns) > 0 {
		f.closed.Wait()
	}
	f.mu.Unlock()
	f.stop()
	goleak.VerifyNone(t, before...)
}
