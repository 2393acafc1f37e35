package dynactortest_test

import (
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynactor/dynactor/dynactortest"
)

// The race detector finds what this is about.
func TestDescribeTable_AtOnceByManyClients(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	createTable(t, db, db.EventsTable)
	var running sync.WaitGroup
	for range 4 {
		client, _ := db.NewClient()
		for range 5 {
			running.Go(func() {
				if _, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &db.EventsTable}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	running.Wait()
}
