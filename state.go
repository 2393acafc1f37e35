package dynactor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/protobuf/proto"
)

// State is the latest value of an id, for what needs no history.
type State struct {
	// Message is the value; nil where there is none: never saved, deleted, expired.
	Message proto.Message
	// Tags are as those of an [Event].
	Tags []string
	// Until is when the value ends, in ms: it is absent from then on, by the reader's
	// clock. The zero time: it does not end.
	Until time.Time

	// What follows is set by the store, and ignored when a state is saved.

	ID       string    // persistence id
	Revision int64     // the number of the last save or deletion, from 1; 0: none is known
	Type     string    // full name of the message as it was stored
	Time     time.Time // when it was written, by the writer's clock, in ms
}

// Exists tells whether there is a value.
func (s State) Exists() bool { return s.Message != nil }

// StateStore keeps the latest value of each id. A save or a deletion names the
// revision that it expects and makes the next one, in one request, without reading
// before or after; if another writer was there first, it stores nothing and its
// error matches [ErrConflict], with a [*RevisionConflict] in its chain. Revision 0
// stands for an id that has no row.
//
// Revisions of an id only rise, over deletions and expiry, too: the row of a state
// that is deleted or has expired stays for [Options.StateRetention] with its
// revision, which Load tells and the next Save expects. After that the row may be
// removed, and then revisions begin anew, and the same number can come again. So a
// revision that was read longer ago than half of StateRetention must be read again
// before it is used, and that of an absent state when its row may go: StateRetention
// after the deletion or the end. The store cannot know when you read it: it only
// refuses to send a request later than half of it after the call began. [StateMixin]
// knows, reads again, and writes over no other row than the one that it read.
//
// A write whose outcome nobody knows is [ErrOutcomeUnknown]: load the state before
// you decide anything. All reads are strongly consistent. Errors are [*Error]. It
// is safe for concurrent use.
type StateStore struct {
	o      Options
	caller *caller
	layout *layout
	codec  *codec
	tables map[string]*tables // by name; each is made when it is first used
}

// RevisionConflict is in the chain of an error that matches [ErrConflict] where
// the store knows which revision is there.
type RevisionConflict struct {
	Expected int64
	Current  int64 // 0: there is no row
}

// Error tells both revisions.
func (c *RevisionConflict) Error() string {
	return fmt.Sprintf("%v: expected revision %d, but it is %d", ErrConflict, c.Expected, c.Current)
}

// Unwrap returns ErrConflict.
func (c *RevisionConflict) Unwrap() error { return ErrConflict }

// EnsureTables does now what the first use of each table of state would do.
func (s *StateStore) EnsureTables(ctx context.Context) error {
	var errs []error
	for _, name := range s.o.StateTables {
		errs = append(errs, s.tables[name].ready(ctx))
	}
	return fail("ensure tables", "", noSeq, errors.Join(errs...))
}

// Load returns the state of an id. Where there is no value, the state has no
// Message; its Revision tells what the next Save expects. A value that cannot be
// decoded is an error that matches [ErrDecode], and the Revision is set with it
// where it can be read.
func (s *StateStore) Load(ctx context.Context, id string) (State, error) {
	st, _, err := s.load(ctx, id)
	return st, fail("load state", id, noSeq, err)
}

// load also returns the operation id of the row.
func (s *StateStore) load(ctx context.Context, id string) (st State, op string, err error) {
	name, err := s.open(ctx, id)
	if err != nil {
		return State{}, "", err
	}
	it, err := s.get(ctx, name, id)
	if err != nil {
		return State{}, "", err
	}
	st, err = s.state(id, it)
	return st, s.operation(it), err
}

// LoadState is [StateStore.Load] for values of one type. Where there is no value
// it returns the zero M, which is nil, and the revision that the next Save expects.
// A value of another type is an error that matches [ErrDecode].
func LoadState[M proto.Message](ctx context.Context, s *StateStore, id string) (value M, revision int64, err error) {
	st, err := s.Load(ctx, id)
	if err != nil || !st.Exists() {
		return value, st.Revision, err
	}
	value, ok := st.Message.(M)
	if !ok {
		err = fmt.Errorf("%w: it is a %T, not a %T", ErrDecode, st.Message, value)
	}
	return value, st.Revision, fail("load state", id, noSeq, err)
}

// Save stores a value in the place of the one at the expected revision, and
// returns the new revision, which is the next number. A deleted or expired state is
// replaced in the same way. Expected revision 0 says that there is no row: over any
// row, that of a deleted or expired state too, it is [ErrConflict]. The value can
// be 400 KB with its id and tags ([ErrTooLarge]).
func (s *StateStore) Save(ctx context.Context, id string, expected int64, value proto.Message) (revision int64, err error) {
	return s.SaveState(ctx, id, expected, State{Message: value})
}

// SaveState is [StateStore.Save] for a value with tags or an end.
func (s *StateStore) SaveState(ctx context.Context, id string, expected int64, state State) (revision int64, err error) {
	return s.SaveWith(ctx, id, expected, state)
}

// SaveWith is [StateStore.SaveState] in one transaction with up to 99 writes of
// your own to other items, such as messages that somebody sends later: all is
// stored, or nothing. If a condition of one of yours fails, the error has an
// [*ExtraError] in its chain and does not match ErrConflict.
func (s *StateStore) SaveWith(ctx context.Context, id string, expected int64, state State, extra ...types.TransactWriteItem) (revision int64, err error) {
	w, err := s.newSave(id, expected, s.o.wall(), state, extra)
	if err == nil {
		err = w.write(ctx)
	}
	if err != nil {
		return 0, fail("save state", id, noSeq, err)
	}
	return expected + 1, nil
}

// Delete removes the value at the expected revision, 1 or more, and returns the
// new revision. The row stays without it for [Options.StateRetention]. An id
// without a row is [ErrConflict], a state that is deleted already is deleted again.
func (s *StateStore) Delete(ctx context.Context, id string, expected int64) (revision int64, err error) {
	w, err := s.newDelete(id, expected, s.o.wall())
	if err == nil {
		err = w.write(ctx)
	}
	if err != nil {
		return 0, fail("delete state", id, noSeq, err)
	}
	return expected + 1, nil
}

// Purge removes the row of a state that was deleted, or has expired, at least
// [Options.StateRetention] ago and is at the expected revision. DynamoDB does the
// same by itself, some time after. A row that is not there is no error. One that
// still has a value, or must stay, is ErrInvalid, and nothing is removed.
func (s *StateStore) Purge(ctx context.Context, id string, expected int64) error {
	return fail("purge state", id, noSeq, s.purge(ctx, id, expected))
}

func (s *StateStore) purge(ctx context.Context, id string, expected int64) error {
	if err := checkRevision(expected, 1); err != nil {
		return err
	}
	w := &saving{s: s, id: id, expected: expected, known: s.o.wall()}
	name, err := s.open(ctx, id)
	if err != nil {
		return err
	}
	k := &call{caller: s.caller, gate: s.caller.writes[name], limit: s.caller.writeTimeout, before: w.fence}
	_, err = send(ctx, k, s.caller.client.DeleteItem, &dynamodb.DeleteItemInput{
		TableName: &name, Key: s.layout.stateKey(id),
		ConditionExpression: &s.layout.purgeable, ExpressionAttributeNames: s.layout.purgeNames,
		ExpressionAttributeValues:           item{":r": number(expected), ":now": number(s.o.wall().Unix())},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err == nil {
		return nil
	}
	cause := k.explain(ctx, err)
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		old, readErr := failed.Item, error(nil)
		if old == nil {
			old, readErr = s.get(ctx, name, id)
		}
		switch {
		case readErr != nil:
		case old == nil:
			return nil // by this call or another, or by DynamoDB
		case k.unsettled: // the row may be that of a new life, and ours removed
		case s.revision(old) == expected:
			return fmt.Errorf("%w: revision %d has a value, or must stay for StateRetention: %w", ErrInvalid, expected, cause)
		default:
			return fmt.Errorf("%w: %w", &RevisionConflict{Expected: expected, Current: s.revision(old)}, cause)
		}
	}
	if k.unsettled {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, cause)
	}
	return cause
}

// open finds the table of an id and makes sure that it can be used.
func (s *StateStore) open(ctx context.Context, id string) (table string, err error) {
	if err := checkID(id); err != nil {
		return "", err
	}
	name := s.o.StateTable(id)
	t := s.tables[name]
	if t == nil {
		return "", fmt.Errorf("%w: StateTable answers %q, which is not in StateTables", ErrInvalid, name)
	}
	return name, t.ready(ctx)
}

// get reads the row of an id; nil for none.
func (s *StateStore) get(ctx context.Context, table, id string) (item, error) {
	out, err := read(ctx, s.caller, table, s.caller.client.GetItem, &dynamodb.GetItemInput{
		TableName: &table, Key: s.layout.stateKey(id), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, err
	}
	if len(out.Item) == 0 {
		return nil, nil
	}
	return out.Item, nil
}
