package dynactor

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// position is where a writer stands: the head, and the wall-clock time at which
// the request was sent that proved it. What was true then may have changed since:
// another writer may have appended, and after DeleteDelay even the items that
// would tell may be gone. The fence looks again before that can be.
type position struct {
	head   int64
	proven time.Time
}

// appending is one append on its way: items for the numbers after a head.
type appending struct {
	j     *Journal
	id    string
	op    string
	first int64
	items []item
	made  time.Time // wall clock, the time stamp of the items
	at    position
}

// newAppend encodes events for the numbers after at.head and checks what can be
// checked without a request.
func (j *Journal) newAppend(id string, at position, events []Event) (*appending, error) {
	if len(events) == 0 {
		return nil, fmt.Errorf("%w: no events to append", ErrInvalid)
	}
	a := &appending{j: j, id: id, op: newOperation(), first: at.head + 1, at: at}
	a.made = j.o.wall()
	ts := a.made.UnixMilli()
	last := at.head + int64(len(events))
	a.items = make([]item, len(events))
	for i, e := range events {
		if err := errors.Join(checkTags(e.Tags), checkMeta(e.Meta)); err != nil {
			return nil, err
		}
		name, data, err := j.codec.encode(e.Message)
		if err != nil {
			return nil, err
		}
		a.items[i] = j.layout.eventItem(id, record{
			seq: a.first + int64(i), last: last, name: name, data: data, op: a.op, ts: ts, tags: e.Tags, meta: e.Meta,
		})
	}
	return a, checkSize(a.items)
}

// newOperation is a fresh operation id: 128 random bits in 22 characters.
func newOperation() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// write sends the append and tells where the writer stands afterwards. Its error
// matches ErrConflict, ErrOutcomeUnknown, or is a failure that stored nothing.
func (a *appending) write(ctx context.Context) (position, error) {
	c := a.j.caller
	a.stamp()
	k := &call{caller: c, gate: c.writes[a.j.layout.events], limit: c.writeTimeout, before: a.fence}
	err := a.send(ctx, k)
	outcome, found := a.outcome(ctx, k, err)
	if outcome == nil || (found && k.attempts > 0) { // what was never sent is not stored
		if err := a.lookBack(ctx); err != nil {
			return a.at, err
		}
	}
	if outcome != nil {
		return a.at, outcome
	}
	at := position{head: a.first - 1 + int64(len(a.items)), proven: k.firstSent}
	if a.at.proven.After(at.proven) {
		at.proven = a.at.proven
	}
	return at, nil
}

// stamp renews the time stamps when time has passed since the items were made: a
// put must land soon after its time stamp.
func (a *appending) stamp() {
	now := a.j.o.wall()
	if now.Sub(a.made) < time.Second {
		return
	}
	a.made = now
	for _, it := range a.items {
		it[a.j.layout.attr.Timestamp] = number(now.UnixMilli())
	}
}

// send makes the one request.
func (a *appending) send(ctx context.Context, k *call) error {
	l, client := a.j.layout, a.j.caller.client
	if len(a.items) == 1 {
		_, err := send(ctx, k, client.PutItem, &dynamodb.PutItemInput{
			TableName: &l.events, Item: a.items[0],
			ConditionExpression: &l.emptySlot, ExpressionAttributeNames: l.keyNames,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		return err
	}
	puts := make([]types.TransactWriteItem, len(a.items))
	for i, it := range a.items {
		puts[i].Put = &types.Put{
			TableName: &l.events, Item: it,
			ConditionExpression: &l.emptySlot, ExpressionAttributeNames: l.keyNames,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}
	}
	_, err := send(ctx, k, client.TransactWriteItems, &dynamodb.TransactWriteItemsInput{
		TransactItems: puts, ClientRequestToken: &a.op,
	})
	return err
}

// errTaken stops an attempt whose number the fence found taken.
var errTaken = errors.New("the number was taken meanwhile")

// fence is asked before each attempt. Once half of DeleteDelay has passed since
// the head was proven, it is proven again: after all of it, the item that would
// refuse a stale put may have been removed.
func (a *appending) fence(ctx context.Context) error {
	if !a.stale() {
		return nil
	}
	sent := a.j.o.wall()
	head, err := a.j.end(ctx, a.id)
	if err != nil {
		return err
	}
	if head != a.first-1 {
		return fmt.Errorf("%w: the head is %d", errTaken, head)
	}
	a.at.proven = sent
	return nil
}

// lookBack is asked when an answer has come. When half of DeleteDelay has passed,
// the answer may be about a slot that was filled, deleted and emptied in between.
func (a *appending) lookBack(ctx context.Context) error {
	if !a.stale() {
		return nil
	}
	m, err := a.j.mark(ctx, a.id)
	if err != nil {
		return fmt.Errorf("%w: the answer came late and the mark cannot be read: %w", ErrOutcomeUnknown, err)
	}
	if m.del >= a.first {
		return fmt.Errorf("%w: the answer came late, and events up to %d are deleted", ErrOutcomeUnknown, m.del)
	}
	return nil
}

// stale tells whether too much time has passed since the head was proven, or
// nobody knows how much, because the clock was set back by more than is assumed.
func (a *appending) stale() bool {
	since := a.j.o.wall().Sub(a.at.proven)
	return since > a.j.o.DeleteDelay/2 || since < -a.j.o.DeleteDelay/4
}

// outcome judges the request over all its attempts: nil is success. found says
// that an item in the slot decided. Three things decide: success; an item with
// our operation id; one with a foreign id. Everything else leaves open what
// happened, unless no attempt can have been carried out.
func (a *appending) outcome(ctx context.Context, k *call, err error) (outcome error, found bool) {
	if err == nil {
		return nil, true
	}
	slot, old, refused := a.refusal(err)
	cause := withReasons(k.explain(ctx, err))
	switch {
	case refused && old != nil:
		return a.compare(old, cause), true
	case refused:
		// The server left the old item out: ask for it.
		old, readErr := a.readSlot(ctx, slot)
		if readErr != nil && k.unsettled {
			return fmt.Errorf("%w: %w; reading the slot: %w", ErrOutcomeUnknown, cause, readErr), false
		}
		if old != nil {
			return a.compare(old, cause), true
		}
	}
	if k.unsettled {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, cause), false
	}
	if refused {
		return fmt.Errorf("%w: %w", ErrConflict, cause), true
	}
	return cause, false
}

// refusal tells whether an error says that a slot is not empty, which one, and
// what is in it where the server says so.
func (a *appending) refusal(err error) (slot int, old item, refused bool) {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return 0, failed.Item, true
	}
	if errors.Is(err, errTaken) || errors.As(err, new(*types.IdempotentParameterMismatchException)) {
		return 0, nil, true
	}
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) {
		return 0, nil, false
	}
	for i, r := range canceled.CancellationReasons {
		if aws.ToString(r.Code) != "ConditionalCheckFailed" || i >= len(a.items) {
			continue
		}
		if !refused || r.Item != nil {
			slot, old, refused = i, r.Item, true
		}
		if old != nil {
			break
		}
	}
	return slot, old, refused
}

// withReasons adds to the error of a cancelled transaction what the server says
// about each item, which the SDK's error does not show.
func withReasons(err error) error {
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) {
		return err
	}
	for i, r := range canceled.CancellationReasons {
		if code := aws.ToString(r.Code); code != "" && code != "None" {
			err = fmt.Errorf("%w; item %d of %d: %s: %s", err, i+1, len(canceled.CancellationReasons), code, aws.ToString(r.Message))
		}
	}
	return err
}

// compare tells by its operation id whose item is in the slot: nil is ours.
func (a *appending) compare(old item, cause error) error {
	op, _ := old[a.j.layout.attr.Operation].(*types.AttributeValueMemberS)
	if op != nil && op.Value == a.op {
		return nil
	}
	other := "an item without an operation id"
	if op != nil {
		other = "operation " + op.Value
	}
	return fmt.Errorf("%w: %s holds the number: %w", ErrConflict, other, cause)
}

// readSlot reads what is in the slot of one of the items; nil for nothing.
func (a *appending) readSlot(ctx context.Context, slot int) (item, error) {
	return a.j.get(ctx, a.id, a.first+int64(slot))
}

// checkTags refuses tags that cannot be stored.
func checkTags(tags []string) error {
	if len(tags) > MaxTags {
		return fmt.Errorf("%w: %d tags, at most %d", ErrInvalid, len(tags), MaxTags)
	}
	for _, t := range tags {
		if t == "" {
			return fmt.Errorf("%w: a tag is empty", ErrInvalid)
		}
		if !utf8.ValidString(t) {
			return fmt.Errorf("%w: tag %q is not valid UTF-8", ErrInvalid, t)
		}
	}
	return nil
}

// checkMeta refuses metadata that cannot be stored. Its keys are names of
// attributes in a map, which can be longer than those in [AttributeNames].
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
func checkMeta(meta map[string]string) error {
	for k, v := range meta {
		switch {
		case k == "":
			return fmt.Errorf("%w: a metadata key is empty", ErrInvalid)
		case len(k) > 1<<16-1:
			return fmt.Errorf("%w: a metadata key of %d bytes is longer than %d", ErrInvalid, len(k), 1<<16-1)
		case !utf8.ValidString(k) || !utf8.ValidString(v):
			return fmt.Errorf("%w: metadata %q: %q is not valid UTF-8", ErrInvalid, k, v)
		}
	}
	return nil
}
