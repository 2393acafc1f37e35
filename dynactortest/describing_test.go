package dynactortest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynactor/dynactor/dynactortest"
)

// The race detector finds what this is about.
func TestDescribeTable_AtOnceByManyClients(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	createTable(t, db, db.EventsTable)
	var running sync.WaitGroup
	for i := range 4 {
		client, _ := db.NewClient()
		ctx := func() (context.Context, context.CancelFunc) { return t.Context(), func() {} }
		if i%2 == 0 { // these give up while the server is at work
			ctx = func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(t.Context(), time.Millisecond)
			}
		}
		for range 5 {
			running.Go(func() {
				ctx, cancel := ctx()
				defer cancel()
				if _, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &db.EventsTable}); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			})
		}
	}
	running.Wait()
}

// A creation is answered with a description, too.
func TestDescribeTable_BesideItsCreation(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	other, _ := db.NewClient()
	made := make(chan struct{})
	go func() {
		defer close(made)
		createTable(t, db, db.EventsTable)
	}()
	for {
		_, _ = other.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &db.EventsTable})
		select {
		case <-made:
			return
		default:
		}
	}
}
