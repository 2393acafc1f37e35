package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/persistence"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/conformance"
	"github.com/dynactor/dynactor/dynactortest"
)

// process is a provider of the library as one process has it.
type process struct {
	tb testing.TB
	db *dynactortest.DB
	p  *dynactor.Provider
	o  dynactor.Options
	// clock is that of all processes.
	clock sundial
}

// newProcess makes a provider on tables of its own. wrap changes its client; nil
// leaves it as it is.
func newProcess(tb testing.TB, wrap func(dynactor.Client) dynactor.Client) *process {
	tb.Helper()
	db := dynactortest.New(tb)
	var client dynactor.Client = db.Client
	if wrap != nil {
		client = wrap(client)
	}
	p := &process{tb: tb, db: db}
	p.o = dynactor.Options{
		EventsTable: db.EventsTable, SnapshotsTable: db.SnapshotsTable, StateTables: []string{db.StateTable}, SnapshotInterval: 3, KeepSnapshots: 3,
		RecoveryTimeout: 500 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		Now: p.clock.now,
	}
	p.p = provider(tb, client, p.o)
	return p
}

// lifetime is how long snapshots last where they expire.
const lifetime = time.Hour

// expiring lets snapshots expire.
func (p *process) expiring() *process {
	p.o.SnapshotTTL = lifetime
	p.p = provider(p.tb, p.db.Client, p.o)
	return p
}

// another is a second process on the same tables.
func (p *process) another() *dynactor.Provider {
	client, _ := p.db.NewClient()
	return provider(p.tb, client, p.o)
}

func provider(tb testing.TB, client dynactor.Client, o dynactor.Options) *dynactor.Provider {
	tb.Helper()
	p, err := dynactor.New(client, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), 10*time.Second)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			tb.Error(err)
		}
	})
	return p
}

// trouble puts rules into the fault layer.
func (p *process) trouble(ctx context.Context, kind conformance.Trouble) error {
	if err := errors.Join(p.p.EnsureTables(ctx), p.p.State().EnsureTables(ctx)); err != nil {
		return err
	}
	is := func(ops ...string) func(dynactortest.Request) bool {
		return func(r dynactortest.Request) bool { return slices.Contains(ops, r.Op) }
	}
	writes := is("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem")
	denied := dynactortest.Answer(400, "AccessDeniedException", "as the suite has asked")
	p.db.Faults.Clear()
	switch kind {
	case conformance.Calm:
	case conformance.LoseAnswer:
		p.db.Faults.Add(dynactortest.Rule{Match: writes, Times: 1, Do: dynactortest.DropAnswer()})
	case conformance.LoseAll:
		p.db.Faults.Add(dynactortest.Rule{Match: writes, Times: 1, Do: dynactortest.DropAnswer()})
		p.db.Faults.Add(dynactortest.Rule{Match: writes, Do: denied}) // at once, not after WriteTimeout
	case conformance.FailWrites:
		p.db.Faults.Add(dynactortest.Rule{Match: writes, Do: denied})
	case conformance.FailReads:
		p.db.Faults.Add(dynactortest.Rule{Match: is("GetItem", "Query", "Scan"), Do: denied})
	case conformance.HalfBatch:
		p.db.Faults.Add(dynactortest.Rule{Op: "BatchWriteItem", Times: 1, Do: dynactortest.Unprocessed(1)})
	case conformance.Throttle:
		p.db.Faults.Add(dynactortest.Rule{Match: writes, Times: 2, Do: dynactortest.Throttle()})
	case conformance.InProgress:
		p.db.Faults.Add(dynactortest.Rule{Op: "TransactWriteItems", Times: 2, Do: dynactortest.InProgress()})
	case conformance.StuckBatch:
		p.db.Faults.Add(dynactortest.Rule{Op: "BatchWriteItem", Do: dynactortest.Unprocessed(0)})
	default:
		return fmt.Errorf("no such trouble: %d", kind)
	}
	return nil
}

// damage harms an event or a snapshot.
func (p *process) damage(ctx context.Context, table, id string, seq int64, harm conformance.Harm) error {
	key := map[string]types.AttributeValue{
		"pid": &types.AttributeValueMemberS{Value: id}, "seq": &types.AttributeValueMemberN{Value: strconv.FormatInt(seq, 10)},
	}
	if harm == conformance.Lose {
		_, err := p.db.Client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &table, Key: key})
		return err
	}
	return p.edit(ctx, table, key, "type", &types.AttributeValueMemberS{Value: "nobody.Knows"})
}

// edit changes an attribute of an item.
func (p *process) edit(ctx context.Context, table string, key map[string]types.AttributeValue, name string, value types.AttributeValue) error {
	out, err := p.db.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key})
	if err != nil {
		return err
	}
	out.Item[name] = value
	_, err = p.db.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: out.Item})
	return err
}

func (p *process) journal() conformance.JournalEnv {
	return conformance.JournalEnv{
		Store: journal{p.p.Journal()}, Another: func() conformance.JournalStore { return journal{p.another().Journal()} },
		Errors: ours, Limit: p.limits(), Trouble: p.trouble,
		Damage: func(ctx context.Context, id string, seq int64, harm conformance.Harm) error {
			return p.damage(ctx, p.db.EventsTable, id, seq, harm)
		},
		StartAt: p.startAt,
	}
}

// startAt writes the mark that a deletion up to a number leaves.
func (p *process) startAt(ctx context.Context, id string, seq int64) error {
	if err := p.p.EnsureTables(ctx); err != nil {
		return err
	}
	n := func(n int64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	_, err := p.db.Client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &p.db.EventsTable, Item: map[string]types.AttributeValue{"pid": &types.AttributeValueMemberS{Value: id}, "seq": n(0), "del": n(seq)},
	})
	return err
}

// limits are the library's, and those of the server.
func (p *process) limits() conformance.Limit {
	l := limits
	if p.db.Ring == "embedded" {
		l.Seq = 1 << 53 // it compares numbers as floating point
	}
	return l
}

func (p *process) snapshots() conformance.SnapshotEnv {
	return conformance.SnapshotEnv{
		Store: snapshots{p.p.Snapshots()}, Another: func() conformance.SnapshotStore { return snapshots{p.another().Snapshots()} },
		Errors: ours, Limit: limits, Trouble: p.trouble, Lifetime: lifetime, Pass: p.clock.pass,
		Damage: func(ctx context.Context, id string, seq int64, harm conformance.Harm) error {
			return p.damage(ctx, p.db.SnapshotsTable, id, seq, harm)
		},
	}
}

func (p *process) state() conformance.StateEnv {
	set := func(ctx context.Context, id, name string, value types.AttributeValue) error {
		return p.edit(ctx, p.db.StateTable, map[string]types.AttributeValue{"pid": &types.AttributeValueMemberS{Value: id}}, name, value)
	}
	return conformance.StateEnv{
		Store: state{p.p.State()}, Another: func() conformance.StateStore { return state{p.another().State()} },
		Errors: ours, Limit: limits, Trouble: p.trouble,
		Damage: func(ctx context.Context, id string, _ conformance.Harm) error {
			return set(ctx, id, "type", &types.AttributeValueMemberS{Value: "nobody.Knows"})
		},
		Pass: p.clock.pass, SaveValue: saveValue(p.p.State(), p.clock.now), Tags: tags(p.p.State().Load), IDs: ids(p.p.State()),
		Old: func(ctx context.Context, id string) error {
			return set(ctx, id, "exp", &types.AttributeValueMemberN{Value: "1"})
		},
	}
}

func (p *process) provider() conformance.ProviderEnv {
	return conformance.ProviderEnv{
		Provider: p.p, Another: func() persistence.Provider { return p.another() }, Errors: ours, Trouble: p.trouble,
		Keep: 3, Kept: p.p.Snapshots().List, Lifetime: p.o.SnapshotTTL, Pass: p.clock.pass,
		Damage: func(ctx context.Context, id string, index int, harm conformance.Harm) error {
			return p.damage(ctx, p.db.EventsTable, id, int64(index)+1, harm)
		},
	}
}

func TestDynactor(t *testing.T) {
	t.Parallel()
	t.Run("journal", func(t *testing.T) {
		t.Parallel()
		conformance.Journal().Run(t, func(tb testing.TB) conformance.JournalEnv {
			tb.Helper()
			return newProcess(tb, nil).journal()
		}, conformance.AllFeatures())
	})
	t.Run("snapshots", func(t *testing.T) {
		t.Parallel()
		conformance.Snapshots().Run(t, func(tb testing.TB) conformance.SnapshotEnv {
			tb.Helper()
			return newProcess(tb, nil).expiring().snapshots()
		}, conformance.AllFeatures())
	})
	t.Run("state", func(t *testing.T) {
		t.Parallel()
		conformance.State().Run(t, func(tb testing.TB) conformance.StateEnv {
			tb.Helper()
			return newProcess(tb, nil).state()
		}, conformance.AllFeatures())
	})
	t.Run("stock middleware", func(t *testing.T) {
		t.Parallel()
		conformance.Provider().Run(t, func(tb testing.TB) conformance.ProviderEnv {
			tb.Helper()
			return newProcess(tb, nil).provider()
		}, without(conformance.ApplyFirst, conformance.Expiry))
	})
	t.Run("stock middleware and snapshots that expire", func(t *testing.T) {
		t.Parallel()
		// Where snapshots expire, a session deletes no events.
		conformance.Provider().Run(t, func(tb testing.TB) conformance.ProviderEnv {
			tb.Helper()
			return newProcess(tb, nil).expiring().provider()
		}, without(conformance.ApplyFirst, conformance.Deletion))
	})
	t.Run("own middleware", func(t *testing.T) {
		t.Parallel()
		var actors conformance.Suite[conformance.ProviderEnv]
		for _, c := range conformance.Provider() {
			if c.Name >= "F-60" {
				actors = append(actors, c)
			}
		}
		actors.Run(t, func(tb testing.TB) conformance.ProviderEnv {
			tb.Helper()
			e := newProcess(tb, nil).provider()
			e.Using = func(p persistence.Provider) actor.ReceiverMiddleware {
				return dynactor.Using(p.(*dynactor.Provider), dynactor.UsingOptions{})
			}
			return e
		}, conformance.AllFeatures())
	})
}
