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
// again, with back-off, until nothing has been processed for the time limit of a write.
func (c *caller) deleteKeys(ctx context.Context, table string, keys []item) error {
	for batch := range slices.Chunk(keys, maxBatch) {
		writes := make([]types.WriteRequest, len(batch))
		for i, key := range batch {
			writes[i].DeleteRequest = &types.DeleteRequest{Key: key}
		}
		if err := c.deleteBatch(ctx, table, writes); err != nil {
			return err
		}
	}
	return nil
}

func (c *caller) deleteBatch(ctx context.Context, table string, writes []types.WriteRequest) error {
	progress := time.Now()
	for n := 1; len(writes) > 0; n++ {
		out, err := write(ctx, c, table, c.client.BatchWriteItem, &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{table: writes},
		})
		if err != nil {
			return err
		}
		left := out.UnprocessedItems[table]
		if len(left) == 0 {
			return nil
		}
		if len(left) < len(writes) {
			progress, n = time.Now(), 1
		}
		writes = left
		wait := backoff(n)
		if time.Since(progress)+wait > c.writeTimeout {
			return fmt.Errorf("%w: %d of the deletions were left unprocessed", ErrThrottled, len(left))
		}
		if err := c.pause(ctx, wait); err != nil {
			return fmt.Errorf("%w: %d of the deletions were left unprocessed: %w", ErrThrottled, len(left), err)
		}
	}
	return nil
}
