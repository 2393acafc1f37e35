package dynactor

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/protobuf/proto"
)

// Journal gives access to event streams without actors. Sequence numbers count
// from 1. Every read is strongly consistent. It is safe for concurrent use; of two
// writers to one stream, one gets [ErrConflict].
type Journal struct {
	o      Options
	caller *caller
	tables *tables
	layout *layout
	codec  *codec
}

// Append stores events after the head of a stream, all or none, and returns the
// new head. The stream's head must be expectedHead, 0 for a stream without
// events, or nothing is stored and the error matches [ErrConflict]. It can hold
// 1 to [MaxEvents] events, 400 KB each and 4 MB together ([ErrTooLarge]).
//
// An error that matches [ErrOutcomeUnknown] says that the events may have been
// stored: read the stream again before you repeat them. After any other error they are not.
func (j *Journal) Append(ctx context.Context, id string, expectedHead int64, events ...proto.Message) (head int64, err error) {
	list := make([]Event, len(events))
	for i, m := range events {
		list[i].Message = m
	}
	return j.AppendEvents(ctx, id, expectedHead, list...)
}

// AppendEvents is [Journal.Append] for events with tags and metadata.
func (j *Journal) AppendEvents(ctx context.Context, id string, expectedHead int64, events ...Event) (head int64, err error) {
	head, err = j.append(ctx, id, expectedHead, events)
	return head, fail("append", id, max(expectedHead+1, noSeq), err)
}

func (j *Journal) append(ctx context.Context, id string, expected int64, events []Event) (int64, error) {
	if err := checkID(id); err != nil {
		return 0, err
	}
	if expected < 0 || expected >= math.MaxInt64-MaxEvents {
		return 0, fmt.Errorf("%w: expected head %d", ErrInvalid, expected)
	}
	// Refuse what cannot be stored before anything is sent.
	a, err := j.newAppend(id, position{head: expected}, events)
	if err != nil {
		return 0, err
	}
	if err := j.tables.ready(ctx); err != nil {
		return 0, err
	}
	a.at.proven = j.o.wall()
	head, err := j.end(ctx, id)
	if err != nil {
		return 0, err
	}
	if head != expected {
		return head, fmt.Errorf("%w: expected head %d, but it is %d", ErrConflict, expected, head)
	}
	at, err := a.write(ctx)
	return at.head, err
}

// Head returns the highest sequence number ever used in a stream, 0 for none.
// Deletions do not change it.
func (j *Journal) Head(ctx context.Context, id string) (int64, error) {
	if err := checkID(id); err != nil {
		return 0, fail("read head", id, noSeq, err)
	}
	if err := j.tables.ready(ctx); err != nil {
		return 0, fail("read head", id, noSeq, err)
	}
	head, err := j.end(ctx, id)
	return head, fail("read head", id, noSeq, err)
}

// Replay yields the events of a stream in order, from sequence number from to
// number to, both inclusive; to may lie beyond the head, and 0 stands for the
// head. What was deleted is left out at the beginning; within what is left, a
// hole, a wrong order or an event that cannot be decoded ends the iteration with an error,
// which is yielded once, with a zero Event, and nothing after it.
//
// Pages are read ahead while events are consumed; memory stays within a few
// pages whatever the length. Events that are appended while it reads may be left out.
func (j *Journal) Replay(ctx context.Context, id string, from, to int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		seq := int64(noSeq)
		err := j.replay(ctx, id, from, to, func(e Event) error {
			if err := ctx.Err(); err != nil {
				return err //nolint:wrapcheck // fail does; looked at here too, not only between pages
			}
			seq = e.Seq
			if !yield(e, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && err != errStop { //nolint:errorlint // errStop is never wrapped
			yield(Event{}, fail("replay", id, seq, err))
		}
	}
}

func (j *Journal) replay(ctx context.Context, id string, from, to int64, deliver func(Event) error) error {
	if err := checkID(id); err != nil {
		return err
	}
	if from < 0 || to < 0 {
		return fmt.Errorf("%w: replay from %d to %d", ErrInvalid, from, to)
	}
	if err := j.tables.ready(ctx); err != nil {
		return err
	}
	if to > 0 && from > to {
		return nil
	}
	for {
		h, err := j.open(ctx, id, 1)
		if err != nil {
			return err
		}
		h.from(max(from, h.mark.del+1, 1))
		if to > 0 {
			h.until(to)
		}
		if err := h.run(ctx, deliver); err != errMoved { //nolint:errorlint // errMoved is never wrapped
			return err
		}
	}
}

// event decodes a record.
func (j *Journal) event(id string, r record) (Event, error) {
	m, err := j.codec.decode(r.name, r.data)
	if err != nil {
		return Event{}, err
	}
	return Event{
		Message: m, Tags: r.tags, Meta: r.meta,
		ID: id, Seq: r.seq, Type: r.name, Time: time.UnixMilli(r.ts), Operation: r.op,
	}, nil
}

// end reads the head of a stream: the highest number present, or the mark when
// nothing above it is.
func (j *Journal) end(ctx context.Context, id string) (int64, error) {
	h, err := j.open(ctx, id, 1)
	if err != nil {
		return 0, err
	}
	return h.head, nil
}

// mark reads the mark of a stream.
func (j *Journal) mark(ctx context.Context, id string) (mark, error) {
	it, err := j.get(ctx, id, 0)
	if err != nil {
		return mark{}, err
	}
	return j.layout.readMark(it)
}

// get reads one item of a stream; nil for none.
func (j *Journal) get(ctx context.Context, id string, seq int64) (item, error) {
	out, err := read(ctx, j.caller, j.layout.events, j.caller.client.GetItem, &dynamodb.GetItemInput{
		TableName: &j.layout.events, Key: j.layout.key(id, seq), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// page reads one page of events from lo to hi in ascending order; more tells
// whether there may be another, which starts at next. A page that ends at hi has
// none, whatever the server says: it refuses a range that is turned round.
func (j *Journal) page(ctx context.Context, id string, lo, hi int64) (items []item, next int64, more bool, err error) {
	in := &dynamodb.QueryInput{
		TableName: &j.layout.events, ConsistentRead: aws.Bool(true),
		KeyConditionExpression: &j.layout.byIDBetween, ExpressionAttributeNames: j.layout.rangeNames,
		ExpressionAttributeValues: item{":id": &types.AttributeValueMemberS{Value: id}, ":lo": number(lo), ":hi": number(hi)},
	}
	for {
		out, err := read(ctx, j.caller, j.layout.events, j.caller.client.Query, in)
		if err != nil {
			return nil, 0, false, err
		}
		if len(out.LastEvaluatedKey) == 0 {
			return out.Items, 0, false, nil
		}
		if len(out.Items) > 0 {
			last, err := j.layout.seq(out.Items[len(out.Items)-1])
			return out.Items, last + 1, last < hi, err
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey // an empty page is no end
	}
}
