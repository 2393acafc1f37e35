package dynactor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxTransaction is how many writes one TransactWriteItems can hold.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
const maxTransaction = 100

// saving is one save or deletion of a state on its way.
type saving struct {
	s        *StateStore
	id       string
	op       string
	expected int64
	row      string    // operation id of the expected row, where it is known
	known    time.Time // wall clock: the expected revision was read then, or later
	item     item
	made     time.Time // wall clock, the time stamp of the item
	extra    []types.TransactWriteItem

	table     string
	firstSent time.Time // wall clock
}

// ExtraError says that a condition of one of the writes that were given to
// [StateStore.SaveWith] failed. Unless the error matches [ErrOutcomeUnknown] as
// well, nothing was stored.
type ExtraError struct {
	Position int                             // of the write among those given, from 0
	Item     map[string]types.AttributeValue // what is there, where the write asked for it
	Err      error
}

// Error tells the position and the cause.
func (e *ExtraError) Error() string {
	return fmt.Sprintf("the condition of write %d beside the state's failed: %v", e.Position, e.Err)
}

// Unwrap returns the cause.
func (e *ExtraError) Unwrap() error { return e.Err }

// write sends the save. Its error matches ErrConflict, ErrOutcomeUnknown, or is a
// failure that stored nothing.
func (w *saving) write(ctx context.Context) error {
	table, err := w.s.open(ctx, w.id)
	if err != nil {
		return err
	}
	w.table = table
	w.stamp()
	c := w.s.caller
	k := &call{caller: c, gate: c.writes[table], limit: c.writeTimeout, before: w.fence}
	err = w.send(ctx, k)
	w.firstSent = k.firstSent
	return w.outcome(ctx, k, err)
}

// stamp renews the time stamp when the tables took their time.
func (w *saving) stamp() {
	now := w.s.o.wall()
	if now.Sub(w.made) < time.Second {
		return
	}
	w.made = now
	attr := w.s.layout.attr
	w.item[attr.Timestamp] = number(now.UnixMilli())
	if _, gone := w.item[attr.Gone]; gone {
		w.item[attr.Expires] = w.s.removable(now)
	}
}

// send makes the one request.
func (w *saving) send(ctx context.Context, k *call) error {
	l, client := w.s.layout, w.s.caller.client
	condition, names, values := &l.atRevision, l.revisionNames, item{":r": number(w.expected)}
	switch {
	case w.expected == 0:
		condition, names, values = &l.emptySlot, l.keyNames, nil
	case w.row != "": // a number alone can come again, once the row of an absent state is removed
		condition, names = &l.atRow, l.rowNames
		values[":o"] = &types.AttributeValueMemberS{Value: w.row}
	}
	if len(w.extra) == 0 {
		_, err := send(ctx, k, client.PutItem, &dynamodb.PutItemInput{
			TableName: &w.table, Item: w.item,
			ConditionExpression: condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		return err
	}
	put := types.TransactWriteItem{Put: &types.Put{
		TableName: &w.table, Item: w.item,
		ConditionExpression: condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
	_, err := send(ctx, k, client.TransactWriteItems, &dynamodb.TransactWriteItemsInput{
		TransactItems: append([]types.TransactWriteItem{put}, w.extra...), ClientRequestToken: &w.op,
	})
	return err
}

// errOld stops an attempt whose revision was read too long ago.
var errOld = errors.New("the revision must be read again: half of StateRetention has passed, or the clock was set back")

// fence is asked before each attempt. Once half of StateRetention has passed since
// the revision was read, the row may soon be removed and its numbers begin anew.
func (w *saving) fence(context.Context) error {
	if !w.stale() {
		return nil
	}
	return fmt.Errorf("%w: revision %d was read at %s", errOld, w.expected, w.known)
}

// stale tells whether too much time has passed, or nobody knows how much, because
// the clock was set back by more than is assumed.
func (w *saving) stale() bool { return w.s.stale(w.known) }

func (s *StateStore) stale(known time.Time) bool {
	since := s.o.wall().Sub(known)
	return since > s.o.StateRetention/2 || since < -s.o.StateRetention/4
}

// outcome judges the request over all its attempts: nil is success. Three things
// decide: success; a row with our operation id; a row that shows that no attempt of
// ours was or will be carried out. Everything else leaves open what happened, unless
// no attempt can have been carried out.
func (w *saving) outcome(ctx context.Context, k *call, err error) error {
	if err == nil {
		return nil
	}
	cause := withReasons(k.explain(ctx, err))
	if old, refused := w.refusal(err); refused {
		return w.compare(ctx, k, old, cause)
	}
	if position, extra, failed := w.extraFailed(err); failed {
		cause = &ExtraError{Position: position, Item: extra, Err: cause}
	}
	if k.unsettled {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, cause)
	}
	if errors.Is(err, errOld) {
		return fmt.Errorf("%w: %w", ErrConflict, cause)
	}
	return cause
}

// refusal tells whether an error says that the row is not as expected, and what is
// in it where the server says so.
func (w *saving) refusal(err error) (old item, refused bool) {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return failed.Item, true
	}
	if errors.As(err, new(*types.IdempotentParameterMismatchException)) {
		return nil, true
	}
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) && len(canceled.CancellationReasons) > 0 {
		if r := canceled.CancellationReasons[0]; aws.ToString(r.Code) == "ConditionalCheckFailed" {
			return r.Item, true
		}
	}
	return nil, false
}

// extraFailed tells whether a condition of the caller's own writes failed.
func (w *saving) extraFailed(err error) (position int, old item, failed bool) {
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) {
		return 0, nil, false
	}
	for i, r := range canceled.CancellationReasons {
		if i > 0 && aws.ToString(r.Code) == "ConditionalCheckFailed" {
			return i - 1, r.Item, true
		}
	}
	return 0, nil, false
}

// compare judges by the row: nil is ours. A foreign row at the very next revision
// shows that no attempt of ours can have been carried out, since a number is used
// once. A row elsewhere shows that only if no attempt is without an answer: ours may
// have been there and others may have followed.
func (w *saving) compare(ctx context.Context, k *call, old item, cause error) error {
	if old == nil { // there is none, or the server left it out: ask for it
		var err error
		old, err = w.s.get(ctx, w.table, w.id)
		if err == nil && w.stale() {
			err = errors.New("the numbers may have begun anew")
		}
		switch {
		case err == nil:
		case k.unsettled:
			return fmt.Errorf("%w: %w; reading the row: %w", ErrOutcomeUnknown, cause, err)
		default:
			return fmt.Errorf("%w: %w", ErrConflict, cause)
		}
	}
	if w.s.operation(old) == w.op {
		return nil
	}
	current := w.s.revision(old)
	switch {
	case k.unsettled && current != w.expected+1:
		return fmt.Errorf("%w: the revision is %d by now: %w", ErrOutcomeUnknown, current, cause)
	case old != nil && current == 0:
		return fmt.Errorf("%w: what is there is no state: %w", ErrConflict, cause)
	case current == w.expected:
		return fmt.Errorf("%w: revision %d is another one by now: its row was removed, and the id begun anew: %w", ErrConflict, current, cause)
	}
	return fmt.Errorf("%w: %w", &RevisionConflict{Expected: w.expected, Current: current}, cause)
}
