package dynactor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// history is a stream as one look at it shows it, and the state of delivering
// its events from there: in order, without a hole, and never half of an append.
// A pass that fails can be run again; it goes on where it stopped. It is for one
// goroutine.
type history struct {
	j  *Journal
	id string

	mark   mark
	head   int64     // the highest number ever used
	proven time.Time // wall clock when the read that showed the head was sent
	held   []item    // events in hand, in ascending order: the beginning or the end

	first int64 // number to start at
	next  int64 // number to deliver next
	stop  int64 // last number to deliver
	limit int64 // last number that the caller wants, which may cut an append of many

	group     []Event // of one append that is not complete yet
	last      int64   // number of its last event
	delivered bool    // something reached the consumer
	reread    bool    // more than the first look was needed
	aged      bool    // an event is so old that its slot may have been emptied and filled again
	hole      int64   // number of the last hole that a second look filled
	filled    int     // how often in a row it was that one
}

var (
	errStop  = errors.New("the consumer has enough")
	errHole  = errors.New("an event is missing")
	errMoved = errors.New("events were deleted while they were being read")
)

// open looks at the end of a stream: the mark and the newest events, at most
// tail of them, read at the same time.
func (j *Journal) open(ctx context.Context, id string, tail int32) (*history, error) {
	h := &history{j: j, id: id, proven: j.o.wall()}
	err := together(
		func() (err error) { h.mark, err = j.mark(ctx, id); return err },
		func() (err error) { h.held, err = j.newest(ctx, id, tail); return err },
	)
	if err != nil {
		return nil, err
	}
	return h, h.findHead()
}

// openFromStart looks at the beginning of a stream. Its own item has number 0,
// so one read shows the mark and the first events.
func (j *Journal) openFromStart(ctx context.Context, id string) (*history, error) {
	h := &history{j: j, id: id, proven: j.o.wall()}
	items, _, more, err := j.page(ctx, id, 0, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	h.held = items
	if len(items) > 0 {
		seq, err := j.layout.seq(items[0])
		if err != nil {
			return nil, err
		}
		if seq == 0 {
			if h.mark, err = j.layout.readMark(items[0]); err != nil {
				return nil, err
			}
			h.held = items[1:]
		}
	}
	if !more {
		return h, h.findHead()
	}
	end, err := j.open(ctx, id, 1)
	if err != nil {
		return nil, err
	}
	h.mark, h.head, h.proven, h.reread = end.mark, end.head, end.proven, true
	return h, nil
}

// findHead takes the head from the mark and the events in hand.
func (h *history) findHead() error {
	h.head = h.mark.del
	if n := len(h.held); n > 0 {
		seq, err := h.j.layout.seq(h.held[n-1])
		if err != nil {
			return err
		}
		h.head = max(h.head, seq)
	}
	return nil
}

// newest reads the newest events of a stream, at most limit, in ascending order.
func (j *Journal) newest(ctx context.Context, id string, limit int32) ([]item, error) {
	in := &dynamodb.QueryInput{
		TableName: &j.layout.events, ConsistentRead: aws.Bool(true), ScanIndexForward: aws.Bool(false), Limit: &limit,
		KeyConditionExpression: &j.layout.byIDFrom, ExpressionAttributeNames: j.layout.rangeNames,
		ExpressionAttributeValues: item{":id": &types.AttributeValueMemberS{Value: id}, ":lo": number(1)},
	}
	for {
		out, err := read(ctx, j.caller, j.layout.events, j.caller.client.Query, in)
		if err != nil {
			return nil, err
		}
		if len(out.Items) > 0 || len(out.LastEvaluatedKey) == 0 {
			slices.Reverse(out.Items)
			return out.Items, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey // an empty page is no end
	}
}

// from sets the number to start at, and the head as the end.
func (h *history) from(first int64) {
	h.first, h.next, h.stop, h.limit = first, first, h.head, math.MaxInt64
}

// until cuts the history after number last.
func (h *history) until(last int64) {
	h.stop, h.limit = min(last, h.head), last
}

// run delivers the events. It returns errMoved, with nothing delivered, when the
// events to deliver were deleted meanwhile: look again. When something was
// delivered before, that is ErrConflict.
func (h *history) run(ctx context.Context, deliver func(Event) error) error {
	for {
		err := h.pass(ctx, deliver)
		if err == errHole { //nolint:errorlint // errHole is never wrapped
			err = h.recheck(ctx)
			if err == nil {
				continue
			}
		}
		if err == nil && (h.reread || h.aged) {
			// The reads were not one moment, not even those of the first look. What was
			// deleted between them may have been removed and overwritten by a stale put
			// that nobody acknowledged. It takes half of DeleteDelay until that can be.
			err = h.lookAgain(ctx)
		}
		if err == errMoved && h.delivered { //nolint:errorlint // errMoved is never wrapped
			return fmt.Errorf("%w: %w", ErrConflict, err)
		}
		return err
	}
}

// pass delivers what is in hand and reads what is not, once.
func (h *history) pass(ctx context.Context, deliver func(Event) error) error {
	take := func(it item) error { return h.take(it, deliver) }
	if len(h.held) > 0 {
		low, err := h.j.layout.seq(h.held[0])
		if err != nil {
			return err
		}
		if err := h.fetch(ctx, min(low-1, h.stop), take); err != nil {
			return err
		}
	}
	held := h.held
	h.held = nil
	for _, it := range held {
		if err := take(it); err != nil {
			return err
		}
	}
	// The last append may reach further than the look at the end has shown.
	for h.next <= h.stop {
		if err := h.fetch(ctx, h.stop, take); err != nil {
			return err
		}
	}
	return nil
}

// fetch reads the events from next to hi.
func (h *history) fetch(ctx context.Context, hi int64, take func(item) error) error {
	if h.next > hi {
		return nil
	}
	h.reread = true
	if err := h.j.stream(ctx, h.id, h.next, hi, take); err != nil {
		return err
	}
	if h.next <= hi {
		return errHole
	}
	return nil
}

// take accepts the next item of the stream: it must have the next number. An
// append of many is kept back until it is complete, and all of it makes sense.
func (h *history) take(it item, deliver func(Event) error) error {
	seq, err := h.j.layout.seq(it)
	switch {
	case err != nil:
		return err
	case seq < h.first || seq > h.stop:
		return nil // in hand, but not asked for
	case seq < h.next:
		return fmt.Errorf("%w: number %d came after %d", ErrGap, seq, h.next-1)
	case seq > h.next:
		return errHole
	}
	r, err := h.j.layout.record(it)
	if err != nil {
		return atSeq(seq, err)
	}
	if len(h.group) > 0 && (r.op != h.group[0].Operation || r.last != h.last) {
		return errHole // it has taken the place of one of the group
	}
	e, err := h.j.event(h.id, r)
	if err != nil {
		return atSeq(seq, err)
	}
	h.aged = h.aged || h.j.o.wall().Sub(e.Time) > h.j.o.DeleteDelay/4
	h.group, h.last = append(h.group, e), r.last
	h.next++
	h.stop, h.head = max(h.stop, min(r.last, h.limit)), max(h.head, r.last)
	if r.seq < r.last && r.seq < h.stop {
		return nil
	}
	for len(h.group) > 0 {
		e := h.group[0]
		h.group, h.delivered = h.group[1:], true
		if err := deliver(e); err != nil {
			return err
		}
	}
	h.group = nil
	return nil
}

// holeLooks is how often a hole is looked at again before it counts as one.
const holeLooks = 6

// recheck looks again at a hole. A read may see half of a transaction, and a
// deletion may have come in between; only what later strong reads still show,
// and the mark has not passed, is a gap.
func (h *history) recheck(ctx context.Context) error {
	h.reread = true
	found := "nothing after it"
	for n := range holeLooks {
		if n > 0 {
			if err := h.j.caller.pause(ctx, backoff(n)); err != nil {
				return err
			}
		}
		items, _, _, err := h.j.page(ctx, h.id, h.next, h.next+holeWindow)
		if err != nil {
			return err
		}
		if len(items) > 0 {
			seq, err := h.j.layout.seq(items[0])
			if err != nil {
				return err
			}
			if seq == h.next && h.fills() {
				return nil
			}
			found = fmt.Sprintf("number %d", seq)
			if seq == h.next {
				found += " of another append"
			}
		}
		if err := h.lookAgain(ctx); err != nil {
			return err
		}
	}
	return atSeq(h.next, fmt.Errorf("%w: expected number %d, found %s", ErrGap, h.next, found))
}

// fills notes that a second look has filled the hole. Reads that disagree about
// the same number again and again are not believed.
func (h *history) fills() bool {
	if h.hole != h.next {
		h.hole, h.filled = h.next, 0
	}
	h.filled++
	return h.filled <= holeLooks
}

// holeWindow is how many numbers after a hole are read to name what is there.
const holeWindow = 100

// lookAgain reads the mark: errMoved when it has reached what is being delivered.
func (h *history) lookAgain(ctx context.Context) error {
	m, err := h.j.mark(ctx, h.id)
	if err != nil {
		return err
	}
	if m.del >= h.first {
		return errMoved
	}
	return nil
}

// seqError tells at which number something went wrong, where the operation as a
// whole has no number.
type seqError struct {
	seq int64
	err error
}

func atSeq(seq int64, err error) error { return &seqError{seq, err} }
func (e *seqError) Error() string      { return fmt.Sprintf("number %d: %v", e.seq, e.err) }
func (e *seqError) Unwrap() error      { return e.err }
