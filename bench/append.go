package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
)

// many is how many events an append of many holds.
const many = 10

// appending is an append of several events without a session, which reads the
// head first.
func appending(ctx context.Context, l *lab) (*workload, error) {
	a := &appends{l: l}
	for i := range a.streams {
		s, err := l.store(ctx, dynactor.Options{})
		if err != nil {
			return nil, err
		}
		a.streams[i] = &stream{store: s}
	}
	for range many {
		a.events = append(a.events, deposit)
	}
	return &workload{
		about: fmt.Sprintf("%d events by Journal.Append, which reads the mark and the head first; yardstick: Query of the head, TransactWriteItems", many),
		ours:  a.ours, bare: a.bare, swap: a.swap,
	}, nil
}

// appends appends to two streams: the library to the first, the yardstick to
// the second.
type appends struct {
	l       *lab
	streams [2]*stream
	events  []proto.Message
}

func (a *appends) swap(context.Context) error {
	a.streams[0], a.streams[1] = a.streams[1], a.streams[0]
	return nil
}

func (a *appends) ours(ctx context.Context) error {
	s := a.streams[0]
	head, err := s.Journal().Append(ctx, id, s.head, a.events...)
	if err != nil {
		return fmt.Errorf("append: %w", err)
	}
	s.head = head
	return nil
}

func (a *appends) bare(ctx context.Context) error {
	s := a.streams[1]
	if _, err := a.l.client.Query(ctx, newest(s.events)); err != nil {
		return fmt.Errorf("read head: %w", err)
	}
	puts := make([]types.TransactWriteItem, many)
	for i := range puts {
		it, err := eventItem(s.head+int64(i)+1, deposit)
		if err != nil {
			return err
		}
		it["last"] = number(s.head + many)
		puts[i].Put = &types.Put{
			TableName: &s.events, Item: it,
			ConditionExpression: emptySlot, ExpressionAttributeNames: keyNames,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}
	}
	_, err := a.l.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: puts, ClientRequestToken: aws.String(fmt.Sprintf("%s-%d", s.events, s.head)[len("bench-"):]),
	})
	if err != nil {
		return fmt.Errorf("append: %w", err)
	}
	s.head += many
	return nil
}
