package dynactor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxBatch is how many writes one BatchWriteItem can hold.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html
const maxBatch = 25

// deleteKeys removes the items with these keys, in the order given as far as
// batches go. No key may occur twice. What DynamoDB leaves unprocessed is sent
// again, with back-off, until nothing has been processed for the time limit of a
// write. An error tells how many may be left.
func (c *caller) deleteKeys(ctx context.Context, table string, keys []item) error {
	left := len(keys)
	for batch := range slices.Chunk(keys, maxBatch) {
		left -= len(batch)
		writes := make([]types.WriteRequest, len(batch))
		for i, key := range batch {
			writes[i].DeleteRequest = &types.DeleteRequest{Key: key}
		}
		if unprocessed, err := c.deleteBatch(ctx, table, writes); err != nil {
			return fmt.Errorf("%d of %d deletions are left: %w", left+unprocessed, len(keys), err)
		}
	}
	return nil
}

// deleteBatch returns how many of one batch may be left.
func (c *caller) deleteBatch(ctx context.Context, table string, writes []types.WriteRequest) (int, error) {
	err := c.untilProcessed(ctx, c.writeTimeout, func() (done, left int, err error) {
		out, err := write(ctx, c, table, c.client.BatchWriteItem, &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{table: writes},
		})
		if err != nil {
			return 0, len(writes), err
		}
		sent := len(writes)
		writes = out.UnprocessedItems[table]
		return sent - len(writes), len(writes), nil
	})
	return len(writes), err
}

// untilProcessed repeats a batch, which keeps what DynamoDB left unprocessed for the
// next time, with back-off, until nothing is left or nothing was done for a time.
func (c *caller) untilProcessed(ctx context.Context, limit time.Duration, batch func() (done, left int, err error)) error {
	progress := time.Now()
	for n := 1; ; n++ {
		done, left, err := batch()
		if err != nil || left == 0 {
			return err
		}
		if done > 0 {
			progress, n = time.Now(), 1
		}
		wait := backoff(n)
		if time.Since(progress)+wait > limit {
			return fmt.Errorf("%w: nothing was processed for %s", ErrThrottled, time.Since(progress))
		}
		if err := c.pause(ctx, wait); err != nil {
			return fmt.Errorf("%w: %w", ErrThrottled, err)
		}
	}
}
