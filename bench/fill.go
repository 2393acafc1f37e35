package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	batchSize = 25 // DynamoDB's limit
	fillers   = 4  // batches at a time
)

// fill writes the events 1 to n of a stream in batches, past the library.
func (l *lab) fill(ctx context.Context, table string, n int64, event *wrapperspb.StringValue) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	starts := make(chan int64)
	var running sync.WaitGroup
	for range fillers {
		running.Go(func() {
			for from := range starts {
				if err := l.fillBatch(ctx, table, from, min(n, from+batchSize-1), event); err != nil {
					cancel(err)
				}
			}
		})
	}
	for from := int64(1); from <= n && ctx.Err() == nil; from += batchSize {
		starts <- from
	}
	close(starts)
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("fill %s: %w", table, err)
	}
	return nil
}

func (l *lab) fillBatch(ctx context.Context, table string, from, to int64, event *wrapperspb.StringValue) error {
	var puts []types.WriteRequest
	for seq := from; seq <= to; seq++ {
		it, err := eventItem(seq, event)
		if err != nil {
			return err
		}
		puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: it}})
	}
	for len(puts) > 0 {
		out, err := l.filler.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{table: puts},
		})
		if err != nil {
			return fmt.Errorf("write batch: %w", err)
		}
		puts = out.UnprocessedItems[table]
	}
	return nil
}
