package dynactortest_test

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor/dynactortest"
)

func TestNewGivesFreshNames(t *testing.T) {
	t.Parallel()
	allowed := regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)
	var seen sync.Map
	for _, name := range []string{"short", "sp ace/ünïcode#", strings.Repeat("long", 100)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 2 {
				db := dynactortest.New(t)
				for _, table := range []string{db.EventsTable, db.SnapshotsTable, db.StateTable} {
					if !allowed.MatchString(table) {
						t.Errorf("DynamoDB refuses the name %q", table)
					}
					if _, known := seen.LoadOrStore(table, true); known {
						t.Errorf("the name %q is not fresh", table)
					}
				}
			}
		})
	}
}

func TestTablesGoWithTheTest(t *testing.T) {
	t.Parallel()
	after := dynactortest.New(t)
	var table string
	t.Run("makes a table", func(t *testing.T) {
		db := dynactortest.New(t)
		table = db.StateTable
		createTable(t, db, table)
		// Rules left behind do not keep the table.
		db.Faults.Add(dynactortest.Rule{Do: dynactortest.Refuse()})
	})
	_, err := after.Client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
	var missing *types.ResourceNotFoundException
	if !errors.As(err, &missing) {
		t.Errorf("DescribeTable after the test: got %v, want ResourceNotFoundException", err)
	}
}

func TestNewClientIsAnotherProcess(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	options := 0
	client, faults := db.NewClient(func(*dynamodb.Options) { options++ })
	db.Faults.Add(dynactortest.Rule{Do: dynactortest.Refuse()})

	if _, err := client.PutItem(t.Context(), putInput(db, 1, 1)); err != nil {
		t.Fatal(err)
	}
	got := []int{options, faults.Count(""), db.Faults.Count("")}
	if diff := cmp.Diff([]int{1, 1, 0}, got); diff != "" {
		t.Errorf("options applied, requests of the new client, of the old one (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{1}, stored(t, db)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

func TestConfigServesAPlainClient(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	fill(t, db, 1, 1)
	conns := &http.Transport{}
	defer conns.CloseIdleConnections()
	cfg := dynactortest.Config(db.Endpoint)
	cfg.HTTPClient = &http.Client{Transport: conns}
	client := dynamodb.NewFromConfig(cfg)
	got, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &db.EventsTable, Key: key(1)})
	if err != nil || got.Item == nil {
		t.Errorf("GetItem: got %v, %v, want the item", got, err)
	}
}
