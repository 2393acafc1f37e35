package dynactor

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/protobuf/proto"
)

// Snapshot is the state of an actor after its first Seq events.
type Snapshot struct {
	ID      string        // persistence id
	Seq     int64         // how many events it covers; replay goes on at this index
	Message proto.Message // the state
	Type    string        // full name of the message as it was stored
	Time    time.Time     // when it was saved, by the saver's clock, in ms
}

// SnapshotStore keeps snapshots. Of several snapshots of one id the one with the
// highest Seq is the newest, whenever it was saved. Reads are strongly consistent,
// and expired snapshots are absent. Errors are [*Error]. Implementations are safe
// for concurrent use.
type SnapshotStore interface {
	// Save stores a snapshot that covers seq events, at least 1. One that was saved
	// at the same number before is replaced. Too large a state is ErrTooLarge, with
	// nothing stored.
	Save(ctx context.Context, id string, seq int64, state proto.Message) error
	// Latest returns the newest snapshot; false says that there is none, and that
	// this is certain. One that cannot be decoded is an error that matches
	// ErrDecode, with true and a Snapshot without a Message.
	Latest(ctx context.Context, id string) (Snapshot, bool, error)
	// AtOrBefore is Latest among the snapshots that cover at most seq events.
	AtOrBefore(ctx context.Context, id string, seq int64) (Snapshot, bool, error)
	// List returns the numbers of all snapshots in ascending order, without reading them.
	List(ctx context.Context, id string) ([]int64, error)
	// Delete removes the snapshots with these numbers. Those that do not exist are
	// no error.
	Delete(ctx context.Context, id string, seqs ...int64) error
	// DeleteTo removes all snapshots that cover at most seq events, expired ones
	// too, so that with math.MaxInt64 none is left. It trusts its
	// caller that recovery does not need them.
	DeleteTo(ctx context.Context, id string, seq int64) error
}

// dynamoSnapshots keeps snapshots as items of a DynamoDB table, one each, so
// that a state can be at most 400 KB.
type dynamoSnapshots struct {
	o      Options
	caller *caller
	tables *tables
	layout *layout
	codec  *codec
}

var _ SnapshotStore = (*dynamoSnapshots)(nil)

func (s *dynamoSnapshots) Save(ctx context.Context, id string, seq int64, state proto.Message) error {
	return s.saveFor(ctx, id, seq, state, s.o.SnapshotTTL)
}

// saveFor saves a snapshot that expires after ttl, for 0 never.
func (s *dynamoSnapshots) saveFor(ctx context.Context, id string, seq int64, state proto.Message, ttl time.Duration) error {
	return fail("save snapshot", id, seq+1, s.save(ctx, id, seq, state, ttl))
}

func (s *dynamoSnapshots) save(ctx context.Context, id string, seq int64, state proto.Message, ttl time.Duration) error {
	if err := checkID(id); err != nil {
		return err
	}
	if seq < 1 {
		return fmt.Errorf("%w: a snapshot of %d events covers nothing", ErrInvalid, seq)
	}
	name, data, err := s.codec.encode(state)
	if err != nil {
		return err
	}
	it := s.layout.snapshotItem(Snapshot{ID: id, Seq: seq, Type: name, Time: s.o.wall()}, data, ttl)
	if err := checkSize([]item{it}); err != nil {
		return err
	}
	if err := s.tables.ready(ctx); err != nil {
		return err
	}
	// Unconditional on purpose: whoever saves at this number has folded the same events.
	_, err = write(ctx, s.caller, s.layout.snapshots, s.caller.client.PutItem, &dynamodb.PutItemInput{
		TableName: &s.layout.snapshots, Item: it,
	})
	return err
}

// snapshotItem is the stored form of a snapshot.
func (l *layout) snapshotItem(s Snapshot, data []byte, ttl time.Duration) item {
	it := l.key(s.ID, s.Seq)
	it[l.attr.Type] = &types.AttributeValueMemberS{Value: s.Type}
	it[l.attr.Data] = &types.AttributeValueMemberB{Value: data}
	it[l.attr.Timestamp] = number(s.Time.UnixMilli())
	if ttl > 0 {
		it[l.attr.Expires] = number(s.Time.Add(ttl).Unix()) // DynamoDB expects seconds
	}
	return it
}

func (s *dynamoSnapshots) Latest(ctx context.Context, id string) (Snapshot, bool, error) {
	return s.AtOrBefore(ctx, id, math.MaxInt64)
}

func (s *dynamoSnapshots) AtOrBefore(ctx context.Context, id string, seq int64) (Snapshot, bool, error) {
	snap, found, err := s.newest(ctx, id, seq)
	at := int64(noSeq)
	if found {
		at = snap.Seq + 1
	}
	return snap, found, fail("load snapshot", id, at, err)
}

func (s *dynamoSnapshots) newest(ctx context.Context, id string, hi int64) (Snapshot, bool, error) {
	if err := checkID(id); err != nil {
		return Snapshot{}, false, err
	}
	if err := s.tables.ready(ctx); err != nil {
		return Snapshot{}, false, err
	}
	var start item
	for hi >= 1 {
		out, err := s.query(ctx, id, hi, start, func(in *dynamodb.QueryInput) {
			in.ScanIndexForward, in.Limit = aws.Bool(false), aws.Int32(1)
		})
		if err != nil {
			return Snapshot{}, false, err
		}
		for _, it := range out.Items {
			snap, expired, err := s.decode(id, it)
			if !expired {
				return snap, true, err
			}
		}
		if start = out.LastEvaluatedKey; len(start) == 0 {
			break
		}
	}
	return Snapshot{}, false, nil
}

// query reads a page of the snapshots that cover at most hi events.
func (s *dynamoSnapshots) query(ctx context.Context, id string, hi int64, start item, how func(*dynamodb.QueryInput)) (*dynamodb.QueryOutput, error) {
	in := &dynamodb.QueryInput{
		TableName: &s.layout.snapshots, ConsistentRead: aws.Bool(true), ExclusiveStartKey: start,
		KeyConditionExpression: &s.layout.byIDBetween, ExpressionAttributeNames: s.layout.rangeNames,
		ExpressionAttributeValues: item{":id": &types.AttributeValueMemberS{Value: id}, ":lo": number(1), ":hi": number(hi)},
	}
	how(in)
	return read(ctx, s.caller, s.layout.snapshots, s.caller.client.Query, in)
}

// decode reads a snapshot's item. DynamoDB removes expired items late, so
// expiry is looked at here.
func (s *dynamoSnapshots) decode(id string, it item) (snap Snapshot, expired bool, err error) {
	f := fields{l: s.layout, it: it}
	snap = Snapshot{ID: id, Seq: f.number(s.layout.attr.Seq)}
	if _, ok := it[s.layout.attr.Expires]; ok {
		if exp := f.number(s.layout.attr.Expires); f.err == nil && exp <= s.o.wall().Unix() {
			return snap, true, nil
		}
	}
	snap.Type = f.text(s.layout.attr.Type)
	snap.Time = time.UnixMilli(f.number(s.layout.attr.Timestamp))
	data := f.payload()
	if f.err != nil {
		return snap, false, f.err
	}
	snap.Message, err = s.codec.decode(snap.Type, data)
	return snap, false, err
}

func (s *dynamoSnapshots) List(ctx context.Context, id string) ([]int64, error) {
	list, err := s.list(ctx, id, math.MaxInt64)
	var seqs []int64
	for _, l := range s.unexpired(list) {
		seqs = append(seqs, l.seq)
	}
	return seqs, fail("list snapshots", id, noSeq, err)
}

// listed is what a list shows of a snapshot.
type listed struct {
	seq int64
	exp int64 // when it expires, in s since 1970; 0 for never
}

// unexpired leaves out what has expired.
func (s *dynamoSnapshots) unexpired(list []listed) []listed {
	now := s.o.wall().Unix()
	return slices.DeleteFunc(list, func(l listed) bool { return l.exp > 0 && l.exp <= now })
}

// list lists the snapshots that cover at most hi events, expired ones too.
func (s *dynamoSnapshots) list(ctx context.Context, id string, hi int64) ([]listed, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	if err := s.tables.ready(ctx); err != nil {
		return nil, err
	}
	var list []listed
	for start := item(nil); ; {
		out, err := s.query(ctx, id, hi, start, func(in *dynamodb.QueryInput) {
			in.ProjectionExpression, in.ExpressionAttributeNames = &s.layout.snapshotKeys, s.layout.expiryNames
		})
		if err != nil {
			return nil, err
		}
		for _, it := range out.Items {
			f := fields{l: s.layout, it: it}
			l := listed{seq: f.number(s.layout.attr.Seq)}
			if _, ok := it[s.layout.attr.Expires]; ok {
				l.exp = max(f.number(s.layout.attr.Expires), 1)
			}
			if f.err != nil {
				return nil, f.err
			}
			list = append(list, l)
		}
		if start = out.LastEvaluatedKey; len(start) == 0 {
			return list, nil
		}
	}
}

func (s *dynamoSnapshots) Delete(ctx context.Context, id string, seqs ...int64) error {
	return fail("delete snapshots", id, noSeq, s.delete(ctx, id, seqs))
}

func (s *dynamoSnapshots) delete(ctx context.Context, id string, seqs []int64) error {
	if err := checkID(id); err != nil {
		return err
	}
	seqs = slices.Clone(seqs)
	slices.Sort(seqs)
	keys := make([]item, 0, len(seqs))
	for _, seq := range slices.Compact(seqs) {
		if seq >= 1 {
			keys = append(keys, s.layout.key(id, seq))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	if err := s.tables.ready(ctx); err != nil {
		return err
	}
	return s.caller.deleteKeys(ctx, s.layout.snapshots, keys)
}

func (s *dynamoSnapshots) DeleteTo(ctx context.Context, id string, seq int64) error {
	if err := checkID(id); err != nil || seq < 1 {
		return fail("delete snapshots", id, noSeq, err)
	}
	list, err := s.list(ctx, id, seq)
	if err != nil {
		return fail("delete snapshots", id, noSeq, err)
	}
	seqs := make([]int64, len(list))
	for i, l := range list {
		seqs[i] = l.seq
	}
	return s.Delete(ctx, id, seqs...)
}
