package dynactor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// DeleteTo deletes the events up to number seq, inclusive, or up to the head if
// that is less; the head and the numbers stay used. They are invisible at once,
// and their items are removed later, by prunes and by [Journal.Sweep]. It trusts
// its caller: without a snapshot at seq or above, actors of that id no longer
// recover ([ErrNoSnapshot]). To delete again, or less, changes nothing.
func (j *Journal) DeleteTo(ctx context.Context, id string, seq int64) error {
	return fail("delete events", id, max(seq, noSeq), j.deleteTo(ctx, id, seq))
}

func (j *Journal) deleteTo(ctx context.Context, id string, seq int64) error {
	h, err := j.look(ctx, id)
	if err != nil || seq <= h.mark.del {
		return err
	}
	// The head never falls, so a number that is not beyond it stays so.
	if seq = min(seq, h.head); seq <= h.mark.del {
		return nil
	}
	return j.raise(ctx, id, seq)
}

// DeleteAll deletes all events of a stream and records that the state at its
// head is empty, so that an actor starts afresh with the numbers that follow;
// snapshots of the time before no longer count. No writer of the stream may be
// alive, and no request of one may still be on its way.
func (j *Journal) DeleteAll(ctx context.Context, id string) error {
	_, err := j.deleteAll(ctx, id)
	return fail("delete all events", id, noSeq, err)
}

func (j *Journal) deleteAll(ctx context.Context, id string) (mark, error) {
	h, err := j.look(ctx, id)
	if err != nil || h.head == 0 {
		return mark{}, err
	}
	m := mark{del: h.head, reset: h.head}
	if h.mark == m {
		return m, nil
	}
	in := j.layout.raiseTo(id, m)
	_, err = write(ctx, j.caller, j.layout.events, j.caller.client.UpdateItem, in)
	if errors.As(err, new(*types.ConditionalCheckFailedException)) {
		return m, fmt.Errorf("%w: a writer is alive: %w", ErrConflict, err)
	}
	return m, err
}

// look reads the end of a stream for an operation that has not read anything yet.
func (j *Journal) look(ctx context.Context, id string) (*history, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	if err := j.tables.ready(ctx); err != nil {
		return nil, err
	}
	return j.open(ctx, id, 1)
}

// raise raises the mark, which is never lowered. The caller knows that seq is
// not beyond the head.
func (j *Journal) raise(ctx context.Context, id string, seq int64) error {
	_, err := write(ctx, j.caller, j.layout.events, j.caller.client.UpdateItem, j.layout.raiseTo(id, mark{del: seq}))
	if errors.As(err, new(*types.ConditionalCheckFailedException)) {
		return nil // it is there already, by ourselves or by another
	}
	return err
}

// raiseTo is the update that raises a stream's mark.
func (l *layout) raiseTo(id string, m mark) *dynamodb.UpdateItemInput {
	in := &dynamodb.UpdateItemInput{
		TableName: &l.events, Key: l.key(id, 0),
		UpdateExpression:          aws.String("SET #del = :n"),
		ConditionExpression:       aws.String("attribute_not_exists(#del) OR #del < :n"),
		ExpressionAttributeNames:  l.markNames,
		ExpressionAttributeValues: item{":n": number(m.del)},
	}
	if m.reset > 0 {
		in.UpdateExpression = aws.String("SET #del = :n, #rst = :n")
		in.ConditionExpression = aws.String("attribute_not_exists(#del) OR #del <= :n")
		in.ExpressionAttributeNames = l.resetNames
	}
	return in
}

// Sweep removes the items of deleted events that are older than
// [Options.DeleteDelay], for the whole stream, and returns how many it removed.
// It can be stopped and repeated at any time, beside living writers.
func (j *Journal) Sweep(ctx context.Context, id string) (removed int, err error) {
	removed, err = j.sweep(ctx, id)
	return removed, fail("sweep", id, noSeq, err)
}

func (j *Journal) sweep(ctx context.Context, id string) (int, error) {
	h, err := j.look(ctx, id)
	if err != nil {
		return 0, err
	}
	removed := 0
	for lo := int64(1); lo < h.mark.del; {
		b, err := j.removable(ctx, id, lo, h.mark.del-1, 0)
		if err != nil {
			return removed, err
		}
		if err := j.caller.deleteKeys(ctx, j.layout.events, b.keys); err != nil {
			return removed, err
		}
		removed += len(b.keys)
		if !b.more {
			break
		}
		lo = b.next
	}
	return removed, nil
}

// Erase deletes all events of a stream as [Journal.DeleteAll] does and removes
// their items at once, as a request for the erasure of personal data may demand.
// Only the number of the head stays. No writer of the stream may be alive: one
// that is may store an event that nobody will ever see. Snapshots are kept in a
// store of their own: delete them there, with DeleteTo. It can be repeated after
// a failure.
func (j *Journal) Erase(ctx context.Context, id string) error {
	return fail("erase", id, noSeq, j.erase(ctx, id))
}

func (j *Journal) erase(ctx context.Context, id string) error {
	m, err := j.deleteAll(ctx, id)
	if err != nil {
		return err
	}
	for lo := int64(1); lo <= m.del; {
		b, err := j.removable(ctx, id, lo, m.del, -1)
		if err != nil {
			return err
		}
		if err := j.caller.deleteKeys(ctx, j.layout.events, b.keys); err != nil {
			return err
		}
		if !b.more {
			break
		}
		lo = b.next
	}
	return nil
}

// removal is a page of items that may be removed.
type removal struct {
	keys  []item
	more  bool
	next  int64
	young time.Time // when the oldest of the others may be removed; zero for none
}

// removable reads the keys, not the payloads, of a page of events from lo to hi
// that are old enough to be removed; with limit -1 all of them are. A limit above
// 0 bounds the page.
func (j *Journal) removable(ctx context.Context, id string, lo, hi int64, limit int32) (removal, error) {
	in := &dynamodb.QueryInput{
		TableName: &j.layout.events, ConsistentRead: aws.Bool(true),
		KeyConditionExpression: &j.layout.byIDBetween, ExpressionAttributeNames: j.layout.listNames,
		ProjectionExpression:      &j.layout.eventKeys,
		ExpressionAttributeValues: item{":id": &types.AttributeValueMemberS{Value: id}, ":lo": number(lo), ":hi": number(hi)},
	}
	if limit > 0 {
		in.Limit = &limit
	}
	var b removal
	now := j.o.wall()
	for {
		out, err := read(ctx, j.caller, j.layout.events, j.caller.client.Query, in)
		if err != nil {
			return b, err
		}
		for _, it := range out.Items {
			f := fields{l: j.layout, it: it}
			seq := f.number(j.layout.attr.Seq)
			if f.err != nil {
				return b, f.err // a number that is not ours, and no reason to touch another
			}
			b.next = seq + 1
			due := time.UnixMilli(f.number(j.layout.attr.Timestamp)).Add(j.o.DeleteDelay)
			switch {
			case limit < 0 || (f.err == nil && !due.After(now)):
				b.keys = append(b.keys, j.layout.key(id, seq))
			case f.err == nil && (b.young.IsZero() || due.Before(b.young)):
				b.young = due
			}
		}
		b.more = len(out.LastEvaluatedKey) > 0
		if !b.more || len(out.Items) > 0 {
			return b, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey // an empty page is no end
	}
}

// minPrune is the least number of items that a prune looks at.
const minPrune = 100

// prune removes some items below the mark, at most twice as many as came in
// since the last time, so that it keeps up and yet stays short. It returns when
// the next prune can find anything, the zero time for at once. The item at the
// mark stays, so that the highest number is always a present item.
func (j *Journal) prune(ctx context.Context, id string, del, came int64) (due time.Time, err error) {
	limit := min(max(2*came, minPrune), math.MaxInt32)
	b, err := j.removable(ctx, id, 1, del-1, int32(limit))
	if err != nil {
		return time.Time{}, err
	}
	if len(b.keys) == 0 {
		return b.young, nil
	}
	return time.Time{}, j.caller.deleteKeys(ctx, j.layout.events, b.keys)
}
