package dynactor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// errNotThere says that a table is missing or not active, which may pass.
var errNotThere = errors.New("table is not there yet")

// table is what this package needs of one table.
type table struct {
	name    string
	sorted  bool // by number within an id; else an id has one item
	expires bool // items are removed by their expiry
	wanted  bool // items with an expiry are written, so that it is switched on in a table that is there already
}

// tables makes sure, once in a process, that tables which belong together are
// what this package needs. It is safe for concurrent use: callers that come while a check is under
// way share it, and what failed is tried again by the next one.
type tables struct {
	caller *caller
	layout *layout
	o      Options
	obs    *observer
	group  []table

	ok   atomic.Bool
	mu   sync.Mutex
	busy *flight
}

// flight is a check under way; done is closed when the rest is set.
type flight struct {
	done  chan struct{}
	err   error
	ended bool // the time of the caller that led it was up, which says nothing about that of others
}

func newTables(c *caller, l *layout, o Options, obs *observer, group ...table) *tables {
	return &tables{caller: c, layout: l, o: o, obs: obs, group: group}
}

// ready returns when the tables can be used. After the first success it costs
// nothing: a table that is lost afterwards is an error of the operation that
// meets it, never created anew, because an empty table in the place of a lost one
// would be a forgotten history.
func (t *tables) ready(ctx context.Context) error {
	for !t.ok.Load() {
		t.mu.Lock()
		f, leads := t.busy, false
		if f == nil && !t.ok.Load() {
			f, leads = &flight{done: make(chan struct{})}, true
			t.busy = f
		}
		t.mu.Unlock()
		switch {
		case leads:
			t.lead(ctx, f)
			return f.err
		case f == nil:
			return nil
		}
		select {
		case <-f.done:
			if f.err != nil && !f.ended {
				return f.err
			}
		case <-ctx.Done():
			return fmt.Errorf("waiting for tables: %w", ctx.Err())
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("waiting for tables: %w", err)
		}
	}
	return nil
}

func (t *tables) lead(ctx context.Context, f *flight) {
	defer func() {
		t.mu.Lock()
		t.busy = nil
		t.mu.Unlock()
		close(f.done)
	}()
	f.err = errors.New("table check was interrupted") // stays only when ensure panics
	f.err = t.ensure(ctx)
	f.ended = ctx.Err() != nil
	if f.err == nil {
		t.ok.Store(true)
	}
}

// ensure checks the tables, and creates them where that is right.
func (t *tables) ensure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.o.TableTimeout)
	defer cancel()
	made := map[string]bool{} // by us or by another process in this time
	for n := 1; ; n++ {
		there, err := t.look(ctx)
		if err != nil {
			return err
		}
		var missing []table
		for _, d := range t.group {
			if there[d.name] == nil {
				missing = append(missing, d)
			}
		}
		if len(missing) == 0 {
			return t.adopt(ctx, made, there)
		}
		if t.o.NoCreateTables {
			return notThere(missing)
		}
		for _, d := range missing {
			if made[d.name] {
				// A description may be some seconds behind the creation.
				if err := t.caller.pause(ctx, backoff(n)); err != nil {
					return fmt.Errorf("%w: %w: table %q is made, but cannot be seen yet: %w", ErrSchema, errNotThere, d.name, err)
				}
				continue
			}
			for _, other := range t.group {
				if is := there[other.name]; is != nil {
					if err := t.halfMade(ctx, other, is, d.name); err != nil {
						return err
					}
				}
			}
			if err := t.create(ctx, d); err != nil {
				return err
			}
			made[d.name] = true
		}
	}
}

// look waits for the tables that are being created, and describes those that exist.
func (t *tables) look(ctx context.Context) (map[string]*types.TableDescription, error) {
	there := map[string]*types.TableDescription{}
	var errs []error
	for _, d := range t.group {
		is, err := t.await(ctx, d.name)
		errs = append(errs, err)
		if is != nil {
			there[d.name] = is
		}
	}
	return there, errors.Join(errs...)
}

// notThere names the tables that are missing.
func notThere(missing []table) error {
	var errs []error
	for _, d := range missing {
		errs = append(errs, fmt.Errorf("table %q does not exist", d.name))
	}
	return fmt.Errorf("%w: %w: %w", ErrSchema, errNotThere, errors.Join(errs...))
}

// lostLooks is how often a table that seems lost is looked for: descriptions may
// be some seconds behind.
const lostLooks = 8

// halfMade decides what one table without the other means. When it carries its
// own item it was in use, and the other one is lost: an error. When it does not, a
// creation is under way or was interrupted, and may go on. The lost one is looked
// for again after the item was read, since another process may have made it meanwhile.
func (t *tables) halfMade(ctx context.Context, present table, is *types.TableDescription, lost string) error {
	if errs := t.shape(present, is); len(errs) > 0 {
		return fmt.Errorf("%w: %w", ErrSchema, errors.Join(errs...))
	}
	it, err := t.readItem(ctx, present)
	if err != nil || it == nil {
		return err
	}
	for n := 1; n <= lostLooks; n++ {
		again, err := t.await(ctx, lost)
		if err != nil || again != nil {
			return err
		}
		if err := t.caller.pause(ctx, backoff(n)); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: table %q has been in use, but %q does not exist: it is not created anew, because that would hide a loss",
		ErrSchema, present.name, lost)
}

// await describes a table, and waits while it is being created; nil says that
// it does not exist.
func (t *tables) await(ctx context.Context, name string) (*types.TableDescription, error) {
	for n := 1; ; n++ {
		d, err := t.describe(ctx, name)
		if d == nil || err != nil {
			return nil, err
		}
		switch status := d.TableStatus; {
		case usable(status):
			return d, nil
		case status == types.TableStatusDeleting:
			return nil, fmt.Errorf("%w: %w: table %q is being deleted", ErrSchema, errNotThere, name)
		case status != types.TableStatusCreating:
			return nil, fmt.Errorf("%w: table %q is %s", ErrSchema, name, status)
		}
		if err := t.caller.pause(ctx, backoff(n)); err != nil {
			return nil, fmt.Errorf("%w: %w: table %q is still being created: %w", ErrSchema, errNotThere, name, err)
		}
	}
}

// usable tells whether a table can be read and written; one that could not be
// described has no status.
func usable(s types.TableStatus) bool {
	return s == types.TableStatusActive || s == types.TableStatusUpdating || s == ""
}

// describe describes a table; nil says that it does not exist. Where that is not
// permitted and nothing is to be created, the table is taken for what its owner says.
func (t *tables) describe(ctx context.Context, name string) (*types.TableDescription, error) {
	out, err := read(ctx, t.caller, name, t.caller.client.DescribeTable, &dynamodb.DescribeTableInput{TableName: &name})
	switch {
	case errors.As(err, new(*types.ResourceNotFoundException)):
		return nil, nil //nolint:nilnil // absent is an answer
	case err != nil && t.o.NoCreateTables && isDenied(err):
		t.obs.warn(ctx, "table cannot be checked: describing it is not permitted", "table", name, "error", err)
		return &types.TableDescription{TableName: &name}, nil
	case err != nil:
		return nil, fmt.Errorf("describe table %q: %w", name, err)
	}
	return out.Table, nil
}

// isDenied tells whether permission is lacking.
func isDenied(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == "AccessDeniedException"
}

// limitPatience is how long a limit on the number of tables made at a time is
// waited for; the same error also stands for a limit that does not pass.
const limitPatience = 20 * time.Second

// create asks for a table. One that exists by now is as good.
func (t *tables) create(ctx context.Context, d table) error {
	name := d.name
	t.obs.warn(ctx, "creating table", "table", name, "billing_mode", t.o.BillingMode)
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: t.o.BillingMode,
		KeySchema: t.layout.keySchema(d), AttributeDefinitions: t.layout.keyTypes(d),
	}
	if t.o.BillingMode == types.BillingModeProvisioned {
		in.ProvisionedThroughput = &types.ProvisionedThroughput{ReadCapacityUnits: &t.o.ReadUnits, WriteCapacityUnits: &t.o.WriteUnits}
	}
	start := time.Now()
	for n := 1; ; n++ {
		_, err := write(ctx, t.caller, name, t.caller.client.CreateTable, in)
		switch {
		case err == nil, errors.As(err, new(*types.ResourceInUseException)):
			return nil
		case !errors.As(err, new(*types.LimitExceededException)) || time.Since(start) > limitPatience:
			return fmt.Errorf("create table %q: %w", name, err)
		}
		if ended := t.caller.pause(ctx, 10*backoff(n)); ended != nil {
			return fmt.Errorf("create table %q: %w; last answer: %w", name, ended, err)
		}
	}
}

// adopt checks tables that are there, writes or reads the item in which each
// describes itself, and switches on expiry where it is needed.
func (t *tables) adopt(ctx context.Context, made map[string]bool, there map[string]*types.TableDescription) error {
	var errs []error
	for _, d := range t.group {
		errs = append(errs, t.shape(d, there[d.name])...)
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w: %w", ErrSchema, errors.Join(errs...))
	}
	for _, d := range t.group {
		if d.expires && (made[d.name] || (d.wanted && !t.o.NoCreateTables)) {
			if err := t.expire(ctx, d.name); err != nil {
				t.obs.warn(ctx, "expiry cannot be switched on", "table", d.name, "error", err)
			}
		}
	}
	for _, d := range t.group {
		it, err := t.readItem(ctx, d)
		if err == nil && it == nil {
			it, err = t.writeItem(ctx, d)
		}
		if err != nil {
			return err
		}
		if err := t.layout.checkTableItem(d.name, it); err != nil {
			return fmt.Errorf("%w: %w", ErrSchema, err)
		}
	}
	return nil
}

// readItem reads the item in which a table describes itself; nil for none.
func (t *tables) readItem(ctx context.Context, d table) (item, error) {
	out, err := read(ctx, t.caller, d.name, t.caller.client.GetItem, &dynamodb.GetItemInput{
		TableName: &d.name, Key: t.layout.tableKey(d), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, fmt.Errorf("read the own item of table %q: %w", d.name, err)
	}
	if len(out.Item) == 0 {
		return nil, nil
	}
	return out.Item, nil
}

// writeItem writes that item, unless another process was faster, and returns
// what is there.
func (t *tables) writeItem(ctx context.Context, d table) (item, error) {
	_, err := write(ctx, t.caller, d.name, t.caller.client.PutItem, &dynamodb.PutItemInput{
		TableName: &d.name, Item: t.layout.tableItem(d),
		ConditionExpression: &t.layout.emptySlot, ExpressionAttributeNames: t.layout.keyNames,
	})
	if err != nil && !errors.As(err, new(*types.ConditionalCheckFailedException)) {
		return nil, fmt.Errorf("write the own item of table %q: %w", d.name, err)
	}
	return t.readItem(ctx, d)
}

// expire switches on DynamoDB's removal of expired items.
func (t *tables) expire(ctx context.Context, name string) error {
	on, err := t.expires(ctx, name)
	if err != nil || on {
		return err
	}
	_, err = write(ctx, t.caller, name, t.caller.client.UpdateTimeToLive, &dynamodb.UpdateTimeToLiveInput{
		TableName: &name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: &t.layout.attr.Expires, Enabled: aws.Bool(true),
		},
	})
	return err
}

// expires tells whether a table removes items by our attribute.
func (t *tables) expires(ctx context.Context, name string) (bool, error) {
	out, err := read(ctx, t.caller, name, t.caller.client.DescribeTimeToLive, &dynamodb.DescribeTimeToLiveInput{TableName: &name})
	if err != nil {
		return false, err
	}
	d := out.TimeToLiveDescription
	on := d != nil && (d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling)
	return on && aws.ToString(d.AttributeName) == t.layout.attr.Expires, nil
}
