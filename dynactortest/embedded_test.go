package dynactortest_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor/dynactortest"
)

func ExampleNewEmbedded() {
	server := dynactortest.NewEmbedded()
	defer server.Close()

	client := dynamodb.NewFromConfig(dynactortest.Config(server.URL))
	_, err := client.ListTables(context.Background(), &dynamodb.ListTablesInput{})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleNewFaults() {
	server := dynactortest.NewEmbedded()
	defer server.Close()
	faults := dynactortest.NewFaults(nil)
	cfg := dynactortest.Config(server.URL)
	cfg.HTTPClient = &http.Client{Transport: faults}
	client := dynamodb.NewFromConfig(cfg)

	faults.Add(dynactortest.Rule{Op: "ListTables", Times: 1, Do: dynactortest.Throttle()})
	_, err := client.ListTables(context.Background(), &dynamodb.ListTablesInput{})
	fmt.Println(err)
	for _, r := range faults.Requests() {
		fmt.Println(r)
	}
	// Output:
	// <nil>
	// ListTables attempt 1: 400 ProvisionedThroughputExceededException
	// ListTables attempt 2: 200
}

func TestEmbeddedServersShareTheirTables(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	if db.Ring != "embedded" {
		t.Skip("needs the embedded ring")
	}
	createTable(t, db, db.EventsTable)
	server := dynactortest.NewEmbedded()
	defer server.Close()
	client := dynamodb.NewFromConfig(dynactortest.Config(server.URL))
	got, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &db.EventsTable})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(db.EventsTable, *got.Table.TableName); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
