package dynactor_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// watched is a context that tells when somebody waits for its end for the first time.
type watched struct {
	context.Context

	once  sync.Once
	waits chan struct{}
}

func (w *watched) Done() <-chan struct{} {
	w.once.Do(func() { close(w.waits) })
	return w.Context.Done()
}

// scripted is a client without a server, for what takes too much time or luck
// with one. Tables are missing until they are made, unless describe says otherwise.
type scripted struct {
	dynactor.Client // nil: what is not below is not called

	describe func(name string, n int) (*types.TableDescription, error) // n counts the calls for name, from 1
	create   func(name string, n int) error
	item     bool // the tables carry their own items

	mu        sync.Mutex
	described map[string]int
	created   map[string]int
}

func openScripted(t *testing.T, client *scripted, o dynactor.Options) *dynactor.Provider {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	p, err := dynactor.New(client, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func activeTable(name string) *types.TableDescription {
	return &types.TableDescription{
		TableName: &name, TableStatus: types.TableStatusActive,
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("pid"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("seq"), KeyType: types.KeyTypeRange},
		},
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pid"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("seq"), AttributeType: types.ScalarAttributeTypeN},
		},
	}
}

func count(m *map[string]int, name string) int {
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[name]++
	return (*m)[name]
}

func (s *scripted) DescribeTable(_ context.Context, in *dynamodb.DescribeTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	s.mu.Lock()
	n, made := count(&s.described, *in.TableName), s.created[*in.TableName] > 0
	s.mu.Unlock()
	switch {
	case s.describe != nil:
		d, err := s.describe(*in.TableName, n)
		return &dynamodb.DescribeTableOutput{Table: d}, err
	case !made:
		return nil, &types.ResourceNotFoundException{}
	}
	return &dynamodb.DescribeTableOutput{Table: activeTable(*in.TableName)}, nil
}

func (s *scripted) CreateTable(_ context.Context, in *dynamodb.CreateTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	s.mu.Lock()
	n := count(&s.created, *in.TableName)
	s.mu.Unlock()
	if s.create != nil {
		if err := s.create(*in.TableName, n); err != nil {
			return nil, err
		}
	}
	return &dynamodb.CreateTableOutput{}, nil
}

func (s *scripted) GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.item {
		return &dynamodb.GetItemOutput{}, nil
	}
	return &dynamodb.GetItemOutput{Item: tableItem("1", "per-actor")}, nil
}

func (s *scripted) PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.item = true
	return &dynamodb.PutItemOutput{}, nil
}

func (s *scripted) DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return &dynamodb.DescribeTimeToLiveOutput{}, nil
}

func (s *scripted) UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	return &dynamodb.UpdateTimeToLiveOutput{}, nil
}

func TestTables_Sharing(t *testing.T) {
	t.Parallel()

	t.Run("a failed check fails all that share it, once, and is not remembered", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		reached, release := make(chan struct{}), make(chan struct{})
		db.Faults.Add(dynactortest.Rule{Op: "DescribeTable", Times: 1, Do: dynactortest.Sequence(dynactortest.Hold(reached, release), denied)})
		leader := make(chan error, 1)
		go func() { leader <- p.EnsureTables(t.Context()) }()
		<-reached
		followers := make(chan error, 4)
		for range cap(followers) {
			ctx := &watched{Context: t.Context(), waits: make(chan struct{})}
			go func() { followers <- p.EnsureTables(ctx) }()
			<-ctx.waits
		}
		close(release)
		errs := []error{<-leader}
		for range cap(followers) {
			errs = append(errs, <-followers)
		}
		for i, err := range errs {
			if !hasCode(err, "AccessDeniedException") {
				t.Errorf("caller %d: got %v, want what the shared check met", i, err)
			}
		}
		if n := db.Faults.Count(""); n != 2 {
			t.Errorf("%d requests, want one description of each table for all callers", n)
		}
		if err := p.EnsureTables(t.Context()); err != nil {
			t.Errorf("the next call: %v", err)
		}
	})

	t.Run("a caller whose own time is up returns, the others go on", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		reached, release := make(chan struct{}), make(chan struct{})
		db.Faults.Add(dynactortest.Rule{Op: "DescribeTable", Times: 1, Do: dynactortest.Hold(reached, release)})
		leader := make(chan error, 1)
		go func() { leader <- p.EnsureTables(t.Context()) }()
		<-reached
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.EnsureTables(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled while the check is still held", err)
		}
		close(release)
		if err := <-leader; err != nil {
			t.Errorf("the one that checks: %v", err)
		}
	})

	t.Run("another takes over when the time of the one that checks is up", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		reached := make(chan struct{})
		db.Faults.Add(dynactortest.Rule{Op: "DescribeTable", Times: 1, Do: dynactortest.Hold(reached, nil)})
		short, cancel := context.WithCancel(t.Context())
		leader, follower := make(chan error, 1), make(chan error, 1)
		go func() { leader <- p.EnsureTables(short) }()
		<-reached
		ctx := &watched{Context: t.Context(), waits: make(chan struct{})}
		go func() { follower <- p.EnsureTables(ctx) }()
		<-ctx.waits
		cancel()
		if err := <-leader; !errors.Is(err, context.Canceled) {
			t.Errorf("the first: got %v, want context.Canceled", err)
		}
		if err := <-follower; err != nil {
			t.Errorf("the second: %v", err)
		}
	})

	t.Run("a check that panics leaves nobody waiting", func(t *testing.T) {
		t.Parallel()
		reached, waiting, panicked := make(chan struct{}), make(chan struct{}), make(chan any, 1)
		p := openScripted(t, &scripted{describe: func(string, int) (*types.TableDescription, error) {
			close(reached)
			<-waiting
			panic("a client of somebody else")
		}}, dynactor.Options{})
		go func() {
			defer func() { panicked <- recover() }()
			_ = p.EnsureTables(t.Context())
		}()
		<-reached
		ctx := &watched{Context: t.Context(), waits: waiting}
		if err := p.EnsureTables(ctx); err == nil || !strings.Contains(err.Error(), "interrupted") {
			t.Errorf("got %v, want that the check was interrupted", err)
		}
		if got := <-panicked; got == nil {
			t.Error("the panic was swallowed")
		}
	})
}

// The rest needs much time, and has it in a synctest bubble.

func TestTables_TimeLimits(t *testing.T) {
	t.Parallel()
	creating := func(string, int) (*types.TableDescription, error) {
		return &types.TableDescription{TableStatus: types.TableStatusCreating}, nil
	}

	t.Run("creation that never ends, for all callers together", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			p, start := openScripted(t, &scripted{describe: creating}, dynactor.Options{}), time.Now()
			for _, err := range atOnce(10, func(int) error { return p.EnsureTables(t.Context()) }) {
				if !errors.Is(err, dynactor.ErrSchema) || !errors.Is(err, context.DeadlineExceeded) ||
					!strings.Contains(err.Error(), `"dynactor_events" is still being created`) {
					t.Errorf("got %v, want ErrSchema, the deadline, and the table", err)
				}
			}
			if got := time.Since(start); got != dynactor.DefaultTableTimeout {
				t.Errorf("it took %s, want TableTimeout, %s", got, dynactor.DefaultTableTimeout)
			}
		})
	})

	t.Run("creation that never ends, by the caller's time", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			p, start := openScripted(t, &scripted{describe: creating}, dynactor.Options{}), time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if err := p.EnsureTables(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want the deadline", err)
			}
			if got := time.Since(start); got != 5*time.Second {
				t.Errorf("it took %s, want the caller's 5s", got)
			}
		})
	})

	t.Run("creation that never ends, until the provider closes", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			p, start := openScripted(t, &scripted{describe: creating}, dynactor.Options{}), time.Now()
			done := make(chan error, 1)
			go func() { done <- p.EnsureTables(t.Context()) }()
			time.Sleep(30 * time.Second) // of the bubble
			if err := p.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if err := <-done; !errors.Is(err, dynactor.ErrClosed) {
				t.Errorf("got %v, want ErrClosed", err)
			}
			if got := time.Since(start); got != 30*time.Second {
				t.Errorf("it took %s more to end the wait", got-30*time.Second)
			}
		})
	})

	t.Run("a new table that is not visible yet is not asked for in a hurry", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			client := &scripted{
				describe: func(name string, _ int) (*types.TableDescription, error) {
					if time.Since(start) < 10*time.Second {
						return nil, &types.ResourceNotFoundException{}
					}
					return activeTable(name), nil
				},
				create: func(_ string, n int) error {
					if n > 1 {
						return &types.ResourceInUseException{}
					}
					return nil
				},
			}
			if err := openScripted(t, client, dynactor.Options{}).EnsureTables(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := client.created["dynactor_events"]; n > 60 {
				t.Errorf("%d creations of one table in %s", n, time.Since(start))
			}
		})
	})

	t.Run("a new table that is visible late is not taken for a lost one", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			client := &scripted{
				// Another process has finished already, so the one that is visible carries its item.
				item: true,
				describe: func(name string, n int) (*types.TableDescription, error) {
					if n == 1 || (name == dynactor.DefaultSnapshotsTable && time.Since(start) < 10*time.Second) {
						return nil, &types.ResourceNotFoundException{}
					}
					return activeTable(name), nil
				},
				create: func(string, int) error { return &types.ResourceInUseException{} },
			}
			if err := openScripted(t, client, dynactor.Options{}).EnsureTables(t.Context()); err != nil {
				t.Error(err)
			}
		})
	})

	t.Run("G11 a limit that passes", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		db.Faults.Add(dynactortest.Rule{
			Op: "CreateTable", Table: db.EventsTable, Times: 2,
			Do: dynactortest.Answer(http.StatusBadRequest, "LimitExceededException", "Subscriber limit exceeded"),
		})
		if err := p.EnsureTables(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := db.Faults.Count("CreateTable"); n != 4 {
			t.Errorf("%d creations, want 3 of the events and 1 of the snapshots", n)
		}
	})

	// In these two the whole of the SDK runs in the bubble, before a server that is not there.
	for name, tc := range map[string]struct{ own, least, most time.Duration }{
		"of its own accord":    {own: time.Hour, least: 15 * time.Second, most: 30 * time.Second},
		"by the caller's time": {own: 3 * time.Second, least: 3 * time.Second, most: 3 * time.Second},
	} {
		t.Run("G11 a limit that stays is given up "+name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				faults := dynactortest.NewFaults(nil)
				for op, code := range map[string]string{"DescribeTable": "ResourceNotFoundException", "CreateTable": "LimitExceededException"} {
					faults.Add(dynactortest.Rule{Op: op, Do: dynactortest.Answer(http.StatusBadRequest, code, "Subscriber limit exceeded")})
				}
				cfg := dynactortest.Config("http://127.0.0.1:1")
				cfg.HTTPClient = &http.Client{Transport: faults}
				p, err := dynactor.New(dynamodb.NewFromConfig(cfg), dynactor.Options{Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), tc.own)
				defer cancel()
				start := time.Now()
				err = p.EnsureTables(ctx)
				if !errors.As(err, new(*types.LimitExceededException)) || !strings.Contains(err.Error(), `create table "dynactor_events"`) {
					t.Errorf("got %v, want the table and the SDK's error", err)
				}
				if ctx.Err() != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v, want the deadline as well", err)
				}
				if got := time.Since(start); got < tc.least || got > tc.most {
					t.Errorf("it took %s, want %s to %s", got, tc.least, tc.most)
				}
				if n := faults.Count("CreateTable"); n > 100 {
					t.Errorf("%d requests in %s", n, time.Since(start))
				}
			})
		})
	}
}
