package dynactortest_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dynactor/dynactor/dynactortest"
)

// facts leaves out of a record what differs from run to run.
var facts = cmpopts.IgnoreFields(dynactortest.Request{}, "Body", "InvocationID", "Start", "End")

func TestRequestsAreRecordedInOrder(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	ctx := t.Context()
	before := time.Now()
	if err := put(ctx, db, 1, 1); err != nil {
		t.Fatal(err)
	}
	if err := put(ctx, db, 1, 1); err == nil {
		t.Fatal("the second put found no item")
	}
	db.Faults.Add(dynactortest.Rule{Times: 1, Do: dynactortest.Refuse()})
	if _, err := db.Client.Query(ctx, queryInput(db)); err != nil {
		t.Fatal(err)
	}

	table := db.EventsTable
	want := []dynactortest.Request{
		{
			Op: "PutItem", Table: table, Attempt: 1, Sent: true, Status: 200,
			Usage: dynactortest.Usage{Requests: 1, WriteUnits: 1},
		},
		{
			Op: "PutItem", Table: table, Attempt: 1, Sent: true, Status: 400,
			Usage: dynactortest.Usage{Requests: 1, WriteUnits: 1}, Err: "ConditionalCheckFailedException",
		},
		{Op: "Query", Table: table, Attempt: 1, Err: "dial tcp: connect: connection refused"},
		{
			Op: "Query", Table: table, Attempt: 2, Sent: true, Status: 200,
			Usage: dynactortest.Usage{Requests: 1, ReadUnits: 1},
		},
	}
	got := db.Faults.Requests()
	if diff := cmp.Diff(want, got, facts); diff != "" {
		t.Fatalf("requests (-want +got):\n%s", diff)
	}
	if got[2].InvocationID == "" || got[2].InvocationID != got[3].InvocationID || got[1].InvocationID == got[2].InvocationID {
		t.Errorf("invocations do not tell calls apart: %q, %q, %q", got[1].InvocationID, got[2].InvocationID, got[3].InvocationID)
	}
	for i, r := range got {
		if r.Start.Before(before) || r.End.Before(r.Start) {
			t.Errorf("request %d ran from %v to %v", i, r.Start, r.End)
		}
	}
	wantUsage := dynactortest.Usage{Requests: 3, WriteUnits: 2, ReadUnits: 1}
	if diff := cmp.Diff(wantUsage, db.Faults.Usage()); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	counts := []int{db.Faults.Count(""), db.Faults.Count("PutItem"), db.Faults.Count("GetItem")}
	if diff := cmp.Diff([]int{4, 2, 0}, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestResetForgetsRecordsAndKeepsRules(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.Faults.Add(dynactortest.Rule{Op: "PutItem", Do: dynactortest.Throttle()})
	_ = put(t.Context(), db, 1, 1)
	db.Faults.Reset()
	if n, used := db.Faults.Count(""), db.Faults.Usage(); n != 0 || used != (dynactortest.Usage{}) {
		t.Errorf("after Reset: %d requests, usage %v", n, used)
	}
	if err := put(t.Context(), db, 1, 1); err == nil {
		t.Error("the rule is gone after Reset")
	}
	db.Faults.Clear()
	if err := put(t.Context(), db, 1, 1); err != nil {
		t.Errorf("the rule is in force after Clear: %v", err)
	}
}

func TestRequestUnderWay(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	reached, release := make(chan struct{}), make(chan struct{})
	db.Faults.Add(dynactortest.Rule{Do: dynactortest.Hold(reached, release)})
	done := make(chan error)
	go func() { done <- put(t.Context(), db, 1, 1) }()
	<-reached
	want := []dynactortest.Request{{Op: "PutItem", Table: db.EventsTable, Attempt: 1}}
	got := db.Faults.Requests()
	if diff := cmp.Diff(want, got, facts); diff != "" {
		t.Errorf("while held (-want +got):\n%s", diff)
	}
	if !got[0].End.IsZero() {
		t.Errorf("End is %v before the end", got[0].End)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRequestReadsItsInput(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	ctx := t.Context()
	other, token := db.StateTable, rand.Text()
	createTable(t, db, other)
	db.Faults.Reset()

	_, err := db.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		ClientRequestToken: &token,
		TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: &other, Item: item(1, 1)}},
			{Put: &types.Put{TableName: &db.EventsTable, Item: item(2, 1)}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	weak := queryInput(db)
	weak.ConsistentRead = nil
	_, err1 := db.Client.Query(ctx, queryInput(db))
	_, err2 := db.Client.Query(ctx, weak)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}

	type reading struct {
		Table, Token, Text string
		Strong             bool
		Limit              any
	}
	want := []reading{
		{db.EventsTable, token, fmt.Sprintf("TransactWriteItems %s attempt 1: 200", db.EventsTable), false, nil},
		{db.EventsTable, "", fmt.Sprintf("Query %s attempt 1: 200", db.EventsTable), true, nil},
		{db.EventsTable, "", fmt.Sprintf("Query %s attempt 1: 200", db.EventsTable), false, nil},
	}
	var got []reading
	for _, r := range db.Faults.Requests() {
		got = append(got, reading{r.Table, r.Token(), r.String(), r.ConsistentRead(), r.Input()["Limit"]})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("readings (-want +got):\n%s", diff)
	}
	if pid := db.Faults.Requests()[1].Input()["ExpressionAttributeValues"]; !cmp.Equal(pid, map[string]any{
		":p": map[string]any{"S": "a"},
	}) {
		t.Errorf("Input has values %v", pid)
	}
}

func TestFaultsServeManyAtOnce(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.Faults.Add(dynactortest.Rule{Op: "PutItem", Skip: 5, Times: 10, Do: dynactortest.Throttle()})
	var wg sync.WaitGroup
	for seq := range 40 {
		wg.Go(func() {
			_ = put(t.Context(), db, seq, 1)
			_ = db.Faults.Requests()
			_ = db.Faults.Usage()
		})
	}
	wg.Wait()
	got := map[string]int{}
	for _, r := range db.Faults.Requests() {
		got[r.Err]++
	}
	want := map[string]int{"": 30, "ProvisionedThroughputExceededException": 10}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}
