package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/persistence"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynactor/dynactor"
)

// saving is a snapshot by a session that has saved before: it saves the new one
// and deletes the oldest.
func saving(ctx context.Context, l *lab) (*workload, error) {
	s, err := l.store(ctx, dynactor.Options{})
	if err != nil {
		return nil, err
	}
	yardstick, err := l.store(ctx, dynactor.Options{})
	if err != nil {
		return nil, err
	}
	const keep = dynactor.DefaultKeepSnapshots
	v := &saves{l: l, session: s.GetState(), store: s, table: yardstick.snapshots}
	// The session must know as many events as snapshots are saved: one after each.
	length := int64(l.ops + 200)
	if err := l.fill(ctx, s.events, length, deposit); err != nil {
		return nil, err
	}
	if err := persist(v.session, length); err != nil {
		return nil, err
	}
	for range keep + 1 {
		if err := v.ours(ctx); err != nil {
			return nil, err
		}
		if err := v.bare(ctx); err != nil {
			return nil, err
		}
	}
	return &workload{
		about: fmt.Sprintf("a snapshot by a session that keeps %d; yardstick: PutItem and DeleteItem", keep),
		ours:  v.ours, bare: v.bare, check: v.check,
	}, nil
}

// saves saves snapshots that cover one event more each time.
type saves struct {
	l       *lab
	store   store
	session persistence.ProviderState
	saved   int64 // by the library
	table   string
	put     int64 // by the yardstick
}

func (v *saves) ours(context.Context) error {
	v.saved++
	v.session.PersistSnapshot(id, int(v.saved), deposit)
	return nil
}

func (v *saves) bare(ctx context.Context) error {
	v.put++
	it, err := eventItem(v.put, deposit)
	if err != nil {
		return err
	}
	delete(it, "op") // a snapshot has none
	if _, err := v.l.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &v.table, Item: it}); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	_, err = v.l.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &v.table, Key: item{"pid": text(id), "seq": number(v.put - dynactor.DefaultKeepSnapshots)},
	})
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}

// check looks whether the newest are there, and only those: a session only logs
// what goes wrong with a snapshot.
func (v *saves) check(ctx context.Context) error {
	got, err := v.store.Snapshots().List(ctx, id)
	if err != nil {
		return fmt.Errorf("list snapshots: %w", err)
	}
	if want := []int64{v.saved - 2, v.saved - 1, v.saved}; !slices.Equal(got, want) {
		return fmt.Errorf("snapshots %v are left, want %v", got, want)
	}
	return nil
}
