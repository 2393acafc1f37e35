package dynactor_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

func TestSchema_OneTableMissing(t *testing.T) {
	t.Parallel()
	for _, there := range []string{"events", "snapshots"} {
		names := func(db *dynactortest.DB) (present, lost string) {
			if there == "events" {
				return db.EventsTable, db.SnapshotsTable
			}
			return db.SnapshotsTable, db.EventsTable
		}

		t.Run("lost beside "+there+" in use", func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			present, lost := names(db)
			makeTable(t, db, present, ourKeys)
			putItem(t, db, present, tableItem("1", "per-actor"))
			err := p.EnsureTables(t.Context())
			if !errors.Is(err, dynactor.ErrSchema) || !strings.Contains(err.Error(), present) || !strings.Contains(err.Error(), lost) {
				t.Errorf("got %v, want ErrSchema that names both tables", err)
			}
			if n := db.Faults.Count("CreateTable"); n != 0 {
				t.Errorf("%d tables were made, want none", n)
			}
		})

		t.Run("half-made, "+there+" never used", func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			present, lost := names(db)
			makeTable(t, db, present, ourKeys)
			if err := p.EnsureTables(t.Context()); err != nil {
				t.Fatal(err)
			}
			var made []string
			for _, r := range db.Faults.Requests() {
				if r.Op == "CreateTable" {
					made = append(made, r.Table)
				}
			}
			if diff := cmp.Diff([]string{lost}, made); diff != "" {
				t.Errorf("tables made (-want +got):\n%s", diff)
			}
		})

		t.Run("lost beside "+there+" with another key", func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			present, _ := names(db)
			makeTable(t, db, present, keys{{"pkey", "S"}})
			if err := p.EnsureTables(t.Context()); !errors.Is(err, dynactor.ErrSchema) || !strings.Contains(err.Error(), "HASH pkey (S)") {
				t.Errorf("got %v, want ErrSchema that shows the key", err)
			}
			if n := db.Faults.Count("CreateTable"); n != 0 {
				t.Errorf("%d tables were made, want none", n)
			}
		})

		t.Run("made by another process while this one looks, beside "+there, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			present, lost := names(db)
			makeTable(t, db, present, ourKeys)
			putItem(t, db, present, tableItem("1", "per-actor"))
			db.Faults.Add(dynactortest.Rule{Op: "GetItem", Table: present, Times: 1, Do: dynactortest.EditAnswer(func(_ string, b []byte) []byte {
				makeTable(t, db, lost, ourKeys)
				return b
			})})
			if err := p.EnsureTables(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}

	t.Run("both missing and not ours to make", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{NoCreateTables: true})
		err := p.EnsureTables(t.Context())
		if !errors.Is(err, dynactor.ErrSchema) || !strings.Contains(err.Error(), db.EventsTable) || !strings.Contains(err.Error(), db.SnapshotsTable) {
			t.Errorf("got %v, want ErrSchema that names both tables", err)
		}
		if n := db.Faults.Count("CreateTable"); n != 0 {
			t.Errorf("%d tables were made in spite of NoCreateTables", n)
		}
		makeTable(t, db, db.EventsTable, ourKeys)
		if err := p.EnsureTables(t.Context()); !errors.Is(err, dynactor.ErrSchema) || strings.Contains(err.Error(), db.EventsTable) {
			t.Errorf("got %v, want ErrSchema that names only the snapshots", err)
		}
		makeTable(t, db, db.SnapshotsTable, ourKeys)
		if err := p.EnsureTables(t.Context()); err != nil {
			t.Errorf("with the tables made by hand: %v", err)
		}
	})
}

func TestSchema_Permissions(t *testing.T) {
	t.Parallel()
	for op, noCreate := range map[string]bool{"DescribeTable": false, "CreateTable": false, "GetItem": true, "PutItem": true} {
		t.Run("without "+op, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{NoCreateTables: noCreate})
			if noCreate {
				makeTable(t, db, db.EventsTable, ourKeys)
				makeTable(t, db, db.SnapshotsTable, ourKeys)
			}
			db.Faults.Add(dynactortest.Rule{Op: op, Do: denied})
			_, err := p.Journal().Append(t.Context(), "a", 0, text("x"))
			if !hasCode(err, "AccessDeniedException") || !strings.Contains(err.Error(), db.EventsTable) {
				t.Errorf("got %v, want the SDK's error and the table", err)
			}
			if errors.Is(err, dynactor.ErrOutcomeUnknown) || errors.Is(err, dynactor.ErrSchema) {
				t.Errorf("%v says more than that permission is lacking", err)
			}
			if n := counts(db.Faults)[op]; n > 2 {
				t.Errorf("%d requests: what is not permitted is not tried again", n)
			}
		})
	}

	t.Run("without DescribeTable, tables not ours to make", func(t *testing.T) {
		t.Parallel()
		logger, lines := logged()
		p, db := open(t, dynactor.Options{NoCreateTables: true, Logger: logger})
		makeTable(t, db, db.EventsTable, ourKeys)
		makeTable(t, db, db.SnapshotsTable, ourKeys)
		db.Faults.Add(dynactortest.Rule{Op: "DescribeTable", Do: denied})
		if _, err := p.Journal().Append(t.Context(), "a", 0, text("x")); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{db.EventsTable, db.SnapshotsTable} {
			if !slices.ContainsFunc(lines(), func(l string) bool {
				return strings.HasPrefix(l, `level=WARN msg="dynactor: table cannot be checked`) && strings.Contains(l, table)
			}) {
				t.Errorf("nothing was logged about %s:\n%s", table, strings.Join(lines(), "\n"))
			}
		}
	})
}

func TestSchema_J52_AnotherKey(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		keys keys
		want string
	}{
		"other names":         {keys{{"pkey", "S"}, {"skey", "S"}}, "HASH pkey (S), RANGE skey (S)"},
		"other type":          {keys{{"pid", "S"}, {"seq", "S"}}, "HASH pid (S), RANGE seq (S)"},
		"no sort key":         {keys{{"pid", "S"}}, "HASH pid (S)"},
		"the wrong way round": {keys{{"seq", "N"}, {"pid", "S"}}, "HASH seq (N), RANGE pid (S)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			makeTable(t, db, db.EventsTable, ourKeys)
			makeTable(t, db, db.SnapshotsTable, tc.keys)
			for which, err := range map[string]error{
				"first use": p.EnsureTables(t.Context()),
				"verify":    p.VerifyTables(t.Context()),
			} {
				if !errors.Is(err, dynactor.ErrSchema) || !strings.Contains(err.Error(), "has the key "+tc.want+", expected HASH pid (S), RANGE seq (N)") {
					t.Errorf("%s: got %v, want ErrSchema and %s", which, err, tc.want)
				}
			}
			if n := db.Faults.Count("PutItem"); n != 0 {
				t.Errorf("%d items were written into tables that do not fit", n)
			}
		})
	}
}

func TestSchema_FormatAndLayout(t *testing.T) {
	t.Parallel()
	broken := tableItem("1", "per-actor")
	delete(broken, "fmt")
	for name, tc := range map[string]struct {
		item map[string]types.AttributeValue
		want string
	}{
		"newer format":   {tableItem("2", "per-actor"), "has format 2, this version knows 1"},
		"another layout": {tableItem("1", "sharded"), `has layout "sharded", expected "per-actor"`},
		"broken item":    {broken, `attribute "fmt" is missing or no number`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			makeTable(t, db, db.EventsTable, ourKeys)
			makeTable(t, db, db.SnapshotsTable, ourKeys)
			putItem(t, db, db.EventsTable, tc.item)
			_, err := p.Journal().Append(t.Context(), "a", 0, text("x"))
			for which, err := range map[string]error{"first use": err, "verify": p.VerifyTables(t.Context())} {
				if !errors.Is(err, dynactor.ErrSchema) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s: got %v, want ErrSchema and %q", which, err, tc.want)
				}
			}
			if n := db.Faults.Count("PutItem"); n != 0 {
				t.Errorf("%d items were written", n)
			}
		})
	}
}

func TestSchema_A19_Replicas(t *testing.T) {
	t.Parallel()
	replicated := func(regions ...string) dynactortest.Action {
		return editTable(func(table map[string]any) {
			var list []any
			for _, r := range regions {
				list = append(list, map[string]any{"RegionName": r})
			}
			table["Replicas"] = list
			table["TableArn"] = "arn:aws:dynamodb:eu-central-1:123456789012:table/x"
		})
	}
	for name, tc := range map[string]struct {
		regions []string
		home    string
		want    string // empty: accepted
	}{
		"none":                       {},
		"only the table itself":      {regions: []string{"eu-central-1"}},
		"elsewhere, no home":         {regions: []string{"eu-central-1", "us-east-1", "us-west-2"}, want: "has replicas in us-east-1, us-west-2"},
		"elsewhere, home is here":    {regions: []string{"us-east-1"}, home: "eu-central-1"},
		"elsewhere, home is there":   {regions: []string{"us-east-1"}, home: "us-east-1", want: "is in region eu-central-1, but only us-east-1 may write"},
		"none, home is of no matter": {home: "us-east-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{HomeRegion: tc.home})
			ready(t, openOn(t, db, db.Client, dynactor.Options{}), db)
			db.Faults.Add(dynactortest.Rule{Op: "DescribeTable", Do: replicated(tc.regions...)})
			_, err := p.Journal().Append(t.Context(), "a", 0, text("x"))
			for which, err := range map[string]error{"first use": err, "verify": p.VerifyTables(t.Context())} {
				switch {
				case tc.want == "" && err != nil:
					t.Errorf("%s: %v", which, err)
				case tc.want != "" && (!errors.Is(err, dynactor.ErrSchema) || !strings.Contains(err.Error(), tc.want)):
					t.Errorf("%s: got %v, want ErrSchema and %q", which, err, tc.want)
				}
			}
			if n := db.Faults.Count("PutItem"); tc.want != "" && n != 0 {
				t.Errorf("%d events were written", n)
			}
		})
	}
}

func TestSchema_H06_Verify(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		events, snapshots keys // nil: no table
		rules             func(*dynactortest.DB) []dynactortest.Rule
		items             func(*dynactortest.DB) map[string]map[string]types.AttributeValue
		want              []string // of lines that each hold one of these
	}{
		"both missing": {
			want: []string{"events-%s does not exist", "snapshots-%s does not exist"},
		},
		"a restored table does not expire": {
			events: ourKeys, snapshots: ourKeys,
			want: []string{`snapshots-%s does not expire items by attribute "exp"`},
		},
		"everything at once": {
			events: keys{{"pkey", "S"}, {"seq", "N"}}, snapshots: ourKeys,
			items: func(db *dynactortest.DB) map[string]map[string]types.AttributeValue {
				return map[string]map[string]types.AttributeValue{db.SnapshotsTable: tableItem("9", "per-actor")}
			},
			want: []string{
				"events-%s has the key HASH pkey (S), RANGE seq (N), expected HASH pid (S), RANGE seq (N)",
				"snapshots-%s has format 9, this version knows 1",
				`snapshots-%s does not expire items by attribute "exp"`,
			},
		},
		"not active": {
			events: ourKeys, snapshots: ourKeys,
			rules: func(db *dynactortest.DB) []dynactortest.Rule {
				return []dynactortest.Rule{{Op: "DescribeTable", Table: db.EventsTable, Do: status("ARCHIVED")}}
			},
			want: []string{"events-%s is ARCHIVED", `snapshots-%s does not expire items by attribute "exp"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, dynactor.Options{})
			for table, k := range map[string]keys{db.EventsTable: tc.events, db.SnapshotsTable: tc.snapshots} {
				if k != nil {
					makeTable(t, db, table, k)
				}
			}
			if tc.items != nil {
				for table, it := range tc.items(db) {
					putItem(t, db, table, it)
				}
			}
			if tc.rules != nil {
				for _, r := range tc.rules(db) {
					db.Faults.Add(r)
				}
			}
			err := p.VerifyTables(t.Context())
			if !errors.Is(err, dynactor.ErrSchema) {
				t.Fatalf("got %v, want ErrSchema", err)
			}
			shown := strings.NewReplacer(`"`+db.EventsTable+`"`, "events-%s", `"`+db.SnapshotsTable+`"`, "snapshots-%s").Replace(err.Error())
			got := strings.Split(strings.TrimPrefix(shown, "dynactor: verify tables: table does not fit: "), "\n")
			for i := range got {
				got[i] = strings.TrimPrefix(got[i], "table ")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			for op := range maps.Keys(counts(db.Faults)) {
				if !slices.Contains([]string{"DescribeTable", "DescribeTimeToLive", "GetItem"}, op) {
					t.Errorf("verifying made a %s", op)
				}
			}
		})
	}
}
