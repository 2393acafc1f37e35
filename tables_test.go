package dynactor_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// atOnce runs f n times at the same time and returns the errors.
func atOnce(n int, f func(i int) error) []error {
	errs := make([]error, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { errs[i] = f(i) })
	}
	running.Wait()
	return errs
}

// counts says how many requests of each operation came.
func counts(f *dynactortest.Faults) map[string]int {
	n := map[string]int{}
	for _, r := range f.Requests() {
		n[r.Op]++
	}
	return n
}

// firstUse is what the very first check of a process costs where the tables are
// not there and are active as soon as they are made.
var firstUse = map[string]int{
	"DescribeTable": 4, "CreateTable": 2, "DescribeTimeToLive": 1, "UpdateTimeToLive": 1, "GetItem": 4, "PutItem": 2,
}

func TestTables_Creation(t *testing.T) {
	t.Parallel()

	t.Run("A-01 made, then used as they are", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		if err := p.EnsureTables(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(firstUse, counts(db.Faults)); diff != "" {
			t.Errorf("requests of the first time (-want +got):\n%s", diff)
		}
		if err := p.VerifyTables(t.Context()); err != nil {
			t.Errorf("the tables just made: %v", err)
		}

		db.Faults.Reset()
		if err := p.EnsureTables(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := db.Faults.Count(""); n != 0 {
			t.Errorf("the second time costs %d requests, want none", n)
		}

		client, faults := db.NewClient()
		if err := openOn(t, db, client, dynactor.Options{}).EnsureTables(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]int{"DescribeTable": 2, "GetItem": 2}, counts(faults)); diff != "" {
			t.Errorf("requests of a second process (-want +got):\n%s", diff)
		}
	})

	t.Run("A-02 only key attributes are declared", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{Attributes: dynactor.AttributeNames{ID: "the-id", Seq: "no"}})
		ready := p.EnsureTables(t.Context())
		if ready != nil {
			t.Fatal(ready)
		}
		for _, table := range []string{db.EventsTable, db.SnapshotsTable} {
			d := describe(t, db, table)
			want := []types.AttributeDefinition{
				{AttributeName: aws.String("no"), AttributeType: types.ScalarAttributeTypeN},
				{AttributeName: aws.String("the-id"), AttributeType: types.ScalarAttributeTypeS},
			}
			if diff := cmp.Diff(want, d.AttributeDefinitions, ignoreSDK, sortedBy(func(a, b types.AttributeDefinition) bool {
				return *a.AttributeName < *b.AttributeName
			})); diff != "" {
				t.Errorf("attributes of %s (-want +got):\n%s", table, diff)
			}
			keys := []types.KeySchemaElement{
				{AttributeName: aws.String("the-id"), KeyType: types.KeyTypeHash},
				{AttributeName: aws.String("no"), KeyType: types.KeyTypeRange},
			}
			if diff := cmp.Diff(keys, d.KeySchema, ignoreSDK); diff != "" {
				t.Errorf("key of %s (-want +got):\n%s", table, diff)
			}
		}
	})

	t.Run("H08 billing", func(t *testing.T) {
		t.Parallel()
		for name, tc := range map[string]struct {
			o    dynactor.Options
			want map[string]any
		}{
			"on demand": {
				want: map[string]any{"BillingMode": "PAY_PER_REQUEST"},
			},
			"provisioned": {
				o: dynactor.Options{BillingMode: types.BillingModeProvisioned, ReadUnits: 7, WriteUnits: 3},
				want: map[string]any{
					"BillingMode":           "PROVISIONED",
					"ProvisionedThroughput": map[string]any{"ReadCapacityUnits": 7.0, "WriteCapacityUnits": 3.0},
				},
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p, db := open(t, tc.o)
				if err := p.EnsureTables(t.Context()); err != nil {
					t.Fatal(err)
				}
				made := 0
				for _, r := range db.Faults.Requests() {
					if r.Op != "CreateTable" {
						continue
					}
					made++
					got := map[string]any{}
					for _, k := range []string{"BillingMode", "ProvisionedThroughput", "GlobalSecondaryIndexes"} {
						if v, ok := r.Input()[k]; ok {
							got[k] = v
						}
					}
					if diff := cmp.Diff(tc.want, got); diff != "" {
						t.Errorf("creation of %s (-want +got):\n%s", r.Table, diff)
					}
				}
				if made != 2 {
					t.Errorf("%d tables were made, want 2", made)
				}
				var units int64
				if u := describe(t, db, db.SnapshotsTable).ProvisionedThroughput; u != nil {
					units = aws.ToInt64(u.ReadCapacityUnits)
				}
				if units != tc.o.ReadUnits {
					t.Errorf("the server took %d read units, want %d", units, tc.o.ReadUnits)
				}
			})
		}
	})

	t.Run("each creation is logged at WARN", func(t *testing.T) {
		t.Parallel()
		logger, lines := logged()
		p, db := open(t, dynactor.Options{Logger: logger})
		if err := p.EnsureTables(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []string{
			`level=WARN msg="dynactor: creating table" table=` + db.EventsTable + ` billing_mode=PAY_PER_REQUEST`,
			`level=WARN msg="dynactor: creating table" table=` + db.SnapshotsTable + ` billing_mode=PAY_PER_REQUEST`,
		}
		if diff := cmp.Diff(want, lines()); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})

	t.Run("expiry", func(t *testing.T) {
		t.Parallel()
		for name, tc := range map[string]struct {
			o    dynactor.Options
			made bool // the tables are there before
			want string
		}{
			"of new tables":                        {want: "exp"},
			"by the configured attribute":          {o: dynactor.Options{Attributes: dynactor.AttributeNames{Expires: "ttl"}}, want: "ttl"},
			"of tables that are there, as asked":   {made: true, o: dynactor.Options{SnapshotTTL: time.Hour}, want: "exp"},
			"of tables that are there, not asked":  {made: true},
			"of tables that are not ours to make":  {made: true, o: dynactor.Options{SnapshotTTL: time.Hour, NoCreateTables: true}},
			"already on, of tables that are there": {o: dynactor.Options{SnapshotTTL: time.Hour}, want: "exp"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p, db := open(t, tc.o)
				if tc.made {
					makeTable(t, db, db.EventsTable, ourKeys)
					makeTable(t, db, db.SnapshotsTable, ourKeys)
				}
				if err := p.EnsureTables(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := expiry(t, db, db.SnapshotsTable); got != tc.want {
					t.Errorf("snapshots expire by %q, want %q", got, tc.want)
				}
				if got := expiry(t, db, db.EventsTable); got != "" {
					t.Errorf("events expire by %q: they never may", got)
				}
			})
		}
	})

	t.Run("expiry that cannot be switched on is logged and does no harm", func(t *testing.T) {
		t.Parallel()
		logger, lines := logged()
		p, db := open(t, dynactor.Options{Logger: logger})
		db.Faults.Add(dynactortest.Rule{Op: "UpdateTimeToLive", Do: denied})
		if err := p.EnsureTables(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := strings.Join(lines(), "\n")
		if !strings.Contains(log, `level=WARN msg="dynactor: expiry cannot be switched on" table=`+db.SnapshotsTable) ||
			!strings.Contains(log, "AccessDeniedException") {
			t.Errorf("log:\n%s", log)
		}
	})
}

func TestTables_H01_ConcurrentCreators(t *testing.T) {
	t.Parallel()

	t.Run("callers of one process share one check", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		reached, release := make(chan struct{}), make(chan struct{})
		db.Faults.Add(dynactortest.Rule{Op: "DescribeTable", Times: 1, Do: dynactortest.Hold(reached, release)})
		go func() { <-reached; close(release) }()
		for i, err := range atOnce(20, func(int) error { return p.EnsureTables(t.Context()) }) {
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
		}
		if diff := cmp.Diff(firstUse, counts(db.Faults)); diff != "" {
			t.Errorf("requests of 20 callers (-want +got):\n%s", diff)
		}
	})

	t.Run("processes", func(t *testing.T) {
		t.Parallel()
		db := dynactortest.New(t)
		errs := atOnce(8, func(i int) error {
			client, _ := db.NewClient()
			p := openOn(t, db, client, dynactor.Options{})
			_, err := p.Journal().Append(t.Context(), string(rune('a'+i)), 0, text("x"))
			return err
		})
		for i, err := range errs {
			if err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		}
		p := openOn(t, db, db.Client, dynactor.Options{})
		if err := p.VerifyTables(t.Context()); err != nil {
			t.Errorf("tables that 8 processes made at once: %v", err)
		}
		for i := range errs {
			if got, err := replayed(t.Context(), p.Journal(), string(rune('a'+i)), 1, 0); len(got) != 1 || err != nil {
				t.Errorf("process %d: events %v, error %v", i, got, err)
			}
		}
	})
}

func TestTables_H02_Waiting(t *testing.T) {
	t.Parallel()

	t.Run("CREATING is waited for", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		makeTable(t, db, db.EventsTable, ourKeys)
		makeTable(t, db, db.SnapshotsTable, ourKeys)
		db.Faults.Add(dynactortest.Rule{Op: "DescribeTable", Table: db.SnapshotsTable, Times: 3, Do: status("CREATING")})
		if err := p.EnsureTables(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := counts(db.Faults)["DescribeTable"]; n != 5 {
			t.Errorf("%d descriptions, want 1 of the events and 4 of the snapshots", n)
		}
		if n := db.Faults.Count("CreateTable"); n != 0 {
			t.Errorf("%d tables were made, want none", n)
		}
	})

	t.Run("UPDATING is usable at once", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		makeTable(t, db, db.EventsTable, ourKeys)
		makeTable(t, db, db.SnapshotsTable, ourKeys)
		db.Faults.Add(dynactortest.Rule{Op: "DescribeTable", Do: status("UPDATING")})
		if err := p.EnsureTables(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := counts(db.Faults)["DescribeTable"]; n != 2 {
			t.Errorf("%d descriptions, want one of each table", n)
		}
	})

	for _, state := range []string{"DELETING", "ARCHIVED", "ARCHIVING", "INACCESSIBLE_ENCRYPTION_CREDENTIALS", "NEW_IN_2030"} {
		t.Run("J-52 "+state+" is an error, which the next call forgets", func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			makeTable(t, db, db.EventsTable, ourKeys)
			makeTable(t, db, db.SnapshotsTable, ourKeys)
			db.Faults.Add(dynactortest.Rule{Op: "DescribeTable", Table: db.EventsTable, Do: status(state)})
			_, err := p.Journal().Head(t.Context(), "a")
			if !errors.Is(err, dynactor.ErrSchema) || !strings.Contains(err.Error(), db.EventsTable) {
				t.Errorf("got %v, want ErrSchema that names the table", err)
			}
			if n := db.Faults.Count("CreateTable") + db.Faults.Count("Query") + db.Faults.Count("PutItem"); n != 0 {
				t.Errorf("%d requests went to the table, want none", n)
			}
			db.Faults.Clear()
			if _, err := p.Journal().Head(t.Context(), "a"); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}

	t.Run("a recovery outlasts missing tables", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{NoCreateTables: true})
		missed := make(chan struct{}, 1)
		db.Faults.Add(dynactortest.Rule{Op: "DescribeTable", Times: 1, Do: dynactortest.EditAnswer(func(_ string, b []byte) []byte {
			missed <- struct{}{}
			return b
		})})
		done := make(chan *dynactor.Error, 1)
		go func() { done <- caught(func() { recovered(p.GetState(), "a") }) }()
		<-missed
		client, _ := db.NewClient()
		if err := openOn(t, db, client, dynactor.Options{}).EnsureTables(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("the recovery failed: %v", err)
		}
		if n := db.Faults.Count("CreateTable"); n != 0 {
			t.Errorf("%d tables were made in spite of NoCreateTables", n)
		}
	})
}

func TestTables_NeverMadeAgain(t *testing.T) {
	t.Parallel()
	p, db := open(t, dynactor.Options{})
	ready(t, p, db)
	raw, _ := db.NewClient()
	for _, table := range []string{db.EventsTable, db.SnapshotsTable} {
		if _, err := raw.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
			t.Fatal(err)
		}
	}
	_, appended := p.Journal().Append(t.Context(), "a", 0, text("x"))
	_, _, loaded := p.Snapshots().Latest(t.Context(), "a")
	for op, err := range map[string]error{
		"append": appended,
		"load":   loaded,
		"save":   p.Snapshots().Save(t.Context(), "a", 1, text("x")),
		"delete": p.Journal().DeleteTo(t.Context(), "a", 1),
	} {
		if !errors.Is(err, dynactor.ErrSchema) || !errors.As(err, new(*types.ResourceNotFoundException)) {
			t.Errorf("%s on a lost table: got %v, want ErrSchema and the SDK's error", op, err)
		}
	}
	if n := db.Faults.Count("CreateTable"); n != 0 {
		t.Errorf("%d tables were made in the place of lost ones", n)
	}
}
