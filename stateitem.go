package dynactor

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// newSave encodes a value and checks what can be checked without a request. The
// expected revision is known since a time.
func (s *StateStore) newSave(id string, expected int64, known time.Time, st State, extra []types.TransactWriteItem) (*saving, error) {
	if err := errors.Join(checkID(id), checkRevision(expected, 0), checkTags(st.Tags)); err != nil {
		return nil, err
	}
	name, data, err := s.codec.encode(st.Message)
	if err != nil {
		return nil, err
	}
	w := s.newSaving(id, expected, known)
	attr := s.layout.attr
	w.item[attr.Type] = &types.AttributeValueMemberS{Value: name}
	w.item[attr.Data] = &types.AttributeValueMemberB{Value: data}
	if len(st.Tags) > 0 {
		tags := slices.Clone(st.Tags)
		slices.Sort(tags)
		w.item[attr.Tags] = &types.AttributeValueMemberSS{Value: slices.Compact(tags)}
	}
	if !st.Until.IsZero() {
		if ms := st.Until.UnixMilli(); ms <= w.made.UnixMilli() {
			return nil, fmt.Errorf("%w: the value ends at %s, which is not after now, %s", ErrInvalid, st.Until, w.made)
		}
		w.item[attr.Until] = number(st.Until.UnixMilli())
		w.item[attr.Expires] = s.removable(st.Until)
	}
	w.extra = extra
	return w, w.checkSize()
}

// newDelete is a save of no value.
func (s *StateStore) newDelete(id string, expected int64, known time.Time) (*saving, error) {
	if err := errors.Join(checkID(id), checkRevision(expected, 1)); err != nil {
		return nil, err
	}
	w := s.newSaving(id, expected, known)
	w.item[s.layout.attr.Gone] = &types.AttributeValueMemberBOOL{Value: true}
	w.item[s.layout.attr.Expires] = s.removable(w.made)
	return w, w.checkSize()
}

func (s *StateStore) newSaving(id string, expected int64, known time.Time) *saving {
	w := &saving{s: s, id: id, op: newOperation(), expected: expected, known: known, made: s.o.wall()}
	w.item = s.layout.stateKey(id)
	w.item[s.layout.attr.Revision] = number(expected + 1)
	w.item[s.layout.attr.Timestamp] = number(w.made.UnixMilli())
	w.item[s.layout.attr.Operation] = &types.AttributeValueMemberS{Value: w.op}
	return w
}

// removable is when DynamoDB may remove a row whose value ends at a time, in full
// seconds, rounded up.
func (s *StateStore) removable(end time.Time) types.AttributeValue {
	return number(end.Add(s.o.StateRetention + time.Second - 1).Unix())
}

// checkRevision refuses what no row can have or get.
func checkRevision(expected, least int64) error {
	if expected < least || expected == math.MaxInt64 {
		return fmt.Errorf("%w: expected revision %d, which is below %d or the last", ErrInvalid, expected, least)
	}
	return nil
}

// checkSize refuses what DynamoDB would refuse for its size or number.
func (w *saving) checkSize() error {
	if len(w.extra) >= maxTransaction {
		return fmt.Errorf("%w: %d writes beside the state's in a transaction, at most %d", ErrTooLarge, len(w.extra), maxTransaction-1)
	}
	size := itemSize(w.item)
	if size > maxItemBytes {
		return fmt.Errorf("%w: the state's item has %d bytes, at most %d", ErrTooLarge, size, maxItemBytes)
	}
	for i, e := range w.extra {
		if e.Put == nil {
			continue
		}
		n := itemSize(e.Put.Item)
		if n > maxItemBytes {
			return fmt.Errorf("%w: item %d beside the state's has %d bytes, at most %d", ErrTooLarge, i, n, maxItemBytes)
		}
		size += n
	}
	if len(w.extra) > 0 && size > maxTransactionBytes {
		return fmt.Errorf("%w: the items of the transaction have %d bytes, at most %d", ErrTooLarge, size, maxTransactionBytes)
	}
	return nil
}

// state reads a row; none is an absent state without a revision. DynamoDB removes
// expired rows late, so the end is looked at here.
func (s *StateStore) state(id string, it item) (State, error) {
	st := State{ID: id}
	if it == nil {
		return st, nil
	}
	f := fields{l: s.layout, it: it}
	attr := s.layout.attr
	revision := f.number(attr.Revision)
	if f.err == nil && revision < 1 {
		f.fail(attr.Revision, "is 0, which no row has")
	}
	if f.err != nil {
		return st, f.err
	}
	st.Revision = revision
	st.Time = time.UnixMilli(f.number(attr.Timestamp))
	if _, gone := it[attr.Gone]; gone {
		return st, f.err
	}
	if _, ends := it[attr.Until]; ends {
		if ms := f.number(attr.Until); f.err == nil {
			st.Until = time.UnixMilli(ms)
			if !st.Until.After(s.o.wall()) {
				return st, nil
			}
		}
	}
	st.Type = f.text(attr.Type)
	st.Tags = f.set(attr.Tags)
	data := f.payload()
	if f.err != nil {
		return st, f.err
	}
	m, err := s.codec.decode(st.Type, data)
	st.Message = m
	return st, err
}

// exists tells whether a row has a value, without decoding it.
func (s *StateStore) exists(it item) (bool, error) {
	attr := s.layout.attr
	if _, gone := it[attr.Gone]; gone {
		return false, nil
	}
	if _, ends := it[attr.Until]; !ends {
		return true, nil
	}
	f := fields{l: s.layout, it: it}
	ms := f.number(attr.Until)
	return ms > s.o.wall().UnixMilli(), f.err
}

// operation is the id of the save or deletion that wrote a row; empty for none.
func (s *StateStore) operation(it item) string {
	if op, ok := it[s.layout.attr.Operation].(*types.AttributeValueMemberS); ok {
		return op.Value
	}
	return ""
}

// revision is that of a row; 0 for none, and for what is no row of ours.
func (s *StateStore) revision(it item) int64 {
	f := fields{l: s.layout, it: it}
	n := f.number(s.layout.attr.Revision)
	if f.err != nil {
		return 0
	}
	return n
}
