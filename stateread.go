package dynactor

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxBatchGet is how many items one BatchGetItem can ask for.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
const maxBatchGet = 100

// LoadMany returns the states of many ids in the order of the ids, as
// [StateStore.Load] does, in requests of up to 100. They are not of one moment. One
// that cannot be read or decoded fails the whole.
func (s *StateStore) LoadMany(ctx context.Context, ids ...string) ([]State, error) {
	byTable := map[string][]string{}
	for _, id := range ids {
		name, err := s.open(ctx, id)
		if err != nil {
			return nil, fail("load states", id, noSeq, err)
		}
		byTable[name] = append(byTable[name], id)
	}
	found := make(map[string]item, len(ids))
	for _, name := range s.o.StateTables {
		list := byTable[name]
		slices.Sort(list)
		for chunk := range slices.Chunk(slices.Compact(list), maxBatchGet) {
			if err := s.getBatch(ctx, name, chunk, found); err != nil {
				return nil, fail("load states", "", noSeq, err)
			}
		}
	}
	states := make([]State, len(ids))
	for i, id := range ids {
		st, err := s.state(id, found[id])
		if err != nil {
			return nil, fail("load states", id, noSeq, err)
		}
		states[i] = st
	}
	return states, nil
}

// getBatch reads the rows of up to 100 ids. What DynamoDB leaves unprocessed is
// asked for again, with back-off, until nothing has come for the time limit of a read.
func (s *StateStore) getBatch(ctx context.Context, table string, ids []string, found map[string]item) error {
	keys := make([]item, len(ids))
	for i, id := range ids {
		keys[i] = s.layout.stateKey(id)
	}
	return s.caller.untilProcessed(ctx, s.caller.readTimeout, func() (done, left int, err error) {
		out, err := read(ctx, s.caller, table, s.caller.client.BatchGetItem, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{table: {Keys: keys, ConsistentRead: aws.Bool(true)}},
		})
		if err != nil {
			return 0, len(keys), err
		}
		for _, it := range out.Responses[table] {
			f := fields{l: s.layout, it: it}
			id := f.text(s.layout.attr.ID)
			if f.err != nil {
				return 0, len(keys), f.err
			}
			found[id] = it
		}
		sent := len(keys)
		keys = out.UnprocessedKeys[table].Keys
		return sent - len(keys), len(keys), nil
	})
}

// StateRow tells of one row without its value.
type StateRow struct {
	ID       string
	Revision int64
	Exists   bool // there is a value: not deleted and not expired
}

// IDs yields the rows of all ids, those of deleted and expired states too, in an
// order that means nothing but stays the same. After an id that was yielded before
// it goes on with the next one; the empty string begins. An id that is there all the
// time is yielded exactly once, whatever is written meanwhile. It reads the whole
// table, in pages, and costs as much. An error ends it, and is yielded once.
func (s *StateStore) IDs(ctx context.Context, after string) iter.Seq2[StateRow, error] {
	return func(yield func(StateRow, error) bool) {
		err := s.scan(ctx, after, func(row StateRow) bool { return yield(row, nil) })
		if err != nil {
			yield(StateRow{}, fail("list states", "", noSeq, err))
		}
	}
}

func (s *StateStore) scan(ctx context.Context, after string, yield func(StateRow) bool) error {
	tables := s.o.StateTables
	var start item
	if after != "" {
		name, err := s.open(ctx, after)
		if err != nil {
			return err
		}
		tables = tables[slices.Index(tables, name):]
		start = s.layout.stateKey(after)
	}
	for _, name := range tables {
		if err := s.tables[name].ready(ctx); err != nil {
			return err
		}
		for {
			out, err := read(ctx, s.caller, name, s.caller.client.Scan, &dynamodb.ScanInput{
				TableName: &name, ConsistentRead: aws.Bool(true), ExclusiveStartKey: start,
				ProjectionExpression: &s.layout.stateKeys, ExpressionAttributeNames: s.layout.stateNames,
			})
			if err != nil {
				return err
			}
			for _, it := range out.Items {
				row, err := s.row(it)
				if err != nil {
					return err
				}
				if row.ID != tableID && !yield(row) {
					return nil
				}
			}
			if start = out.LastEvaluatedKey; len(start) == 0 {
				break
			}
		}
	}
	return nil
}

func (s *StateStore) row(it item) (StateRow, error) {
	f := fields{l: s.layout, it: it}
	row := StateRow{ID: f.text(s.layout.attr.ID)}
	if f.err != nil || row.ID == tableID {
		return row, f.err
	}
	row.Revision = f.number(s.layout.attr.Revision)
	if f.err != nil {
		return row, fmt.Errorf("the row of %q: %w", row.ID, f.err)
	}
	var err error
	row.Exists, err = s.exists(it)
	return row, err
}
