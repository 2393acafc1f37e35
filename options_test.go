package dynactor

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
)

// fieldComments are the comments of a struct's fields, in one line each.
func fieldComments(t *testing.T, file, name string) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		for _, field := range spec.Type.(*ast.StructType).Fields.List {
			text := strings.Join(strings.Fields(field.Doc.Text()+" "+field.Comment.Text()), " ")
			for _, n := range field.Names {
				comments[n.Name] = text
			}
		}
		return false
	})
	return comments
}

// What the comments state about defaults is so.
func TestOptions_Defaults(t *testing.T) {
	t.Parallel()
	o := Options{}.withDefaults()
	rows := []struct {
		field     string
		comment   string // must occur in the field's comment
		got, want any
	}{
		{"EventsTable", "Empty: DefaultEventsTable and DefaultSnapshotsTable.", o.EventsTable, "dynactor_events"},
		{"SnapshotsTable", "Empty: DefaultEventsTable and DefaultSnapshotsTable.", o.SnapshotsTable, "dynactor_snapshots"},
		{"StateTables", "Empty: DefaultStateTable alone.", o.StateTables, []string{"dynactor_state"}},
		{"StateTable", "Nil: the first.", o.StateTable("a"), "dynactor_state"},
		{"StateRetention", "Zero: DefaultStateRetention. Minimum: MinStateRetention, and eight times WriteTimeout.", o.StateRetention, 7 * 24 * time.Hour},
		{"Attributes", "Empty names take their defaults.", o.Attributes, AttributeNames{}.withDefaults()},
		{"NoCreateTables", "By default they are created when both are missing, and those of StateTables when they are first used.", o.NoCreateTables, false},
		{"BillingMode", "PAY_PER_REQUEST, the default", o.BillingMode, types.BillingModePayPerRequest},
		{"ReadUnits", "Zero, unless BillingMode is PROVISIONED.", o.ReadUnits, int64(0)},
		{"WriteUnits", "Zero, unless BillingMode is PROVISIONED.", o.WriteUnits, int64(0)},
		{"HomeRegion", "Empty: tables with replicas are refused.", o.HomeRegion, ""},
		{"TableTimeout", "Zero: DefaultTableTimeout.", o.TableTimeout, 60 * time.Second},
		{"SnapshotInterval", "Zero or negative: no snapshots;", o.SnapshotInterval, 0},
		{"KeepSnapshots", "Zero: DefaultKeepSnapshots. Negative: all are kept.", o.KeepSnapshots, 3},
		{"DeleteEventsOnSnapshot", "By default events are kept for ever.", o.DeleteEventsOnSnapshot, false},
		{"SnapshotFallback", "By default it is an error.", o.SnapshotFallback, false},
		{"SnapshotTTL", "Zero: they do not.", o.SnapshotTTL, time.Duration(0)},
		{"DeleteDelay", "Zero: DefaultDeleteDelay. Minimum: MinDeleteDelay, and eight times WriteTimeout.", o.DeleteDelay, 24 * time.Hour},
		{"Resolver", "Nil: the types linked into the program.", o.Resolver, nil},
		{"StableID", "Nil: all but names that the framework generates.", o.StableID("a") && !o.StableID("$1A"), true},
		{"ReadTimeout", "A single attempt gets half of it. A read's time starts when it has one of MaxConcurrentReads places. Zero: DefaultReadTimeout, DefaultWriteTimeout.", o.ReadTimeout, 10 * time.Second},
		{"WriteTimeout", "A single attempt gets half of it. A read's time starts when it has one of MaxConcurrentReads places. Zero: DefaultReadTimeout, DefaultWriteTimeout.", o.WriteTimeout, 10 * time.Second},
		{"RecoveryTimeout", "Zero: DefaultRecoveryTimeout.", o.RecoveryTimeout, 60 * time.Second},
		{"MaxConcurrentReads", "Zero: DefaultMaxConcurrentReads and DefaultMaxConcurrentWrites.", o.MaxConcurrentReads, 64},
		{"MaxConcurrentWrites", "Zero: DefaultMaxConcurrentReads and DefaultMaxConcurrentWrites.", o.MaxConcurrentWrites, 256},
		{"Logger", "Nil: slog.Default().", o.Logger == slog.Default(), true},
		{"MeterProvider", "Nil: OpenTelemetry's global one.", o.MeterProvider, nil},
		{"Now", "Nil: time.Now.", time.Since(o.Now()).Abs() < time.Minute, true},
	}
	comments := fieldComments(t, "options.go", "Options")
	for _, r := range rows {
		if !strings.Contains(comments[r.field], r.comment) {
			t.Errorf("the comment of %s no longer says %q, but %q", r.field, r.comment, comments[r.field])
		}
		if diff := cmp.Diff(r.want, r.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.field, diff)
		}
		delete(comments, r.field)
	}
	for _, without := range []string{"Region", "Endpoint", "Upcasters"} {
		delete(comments, without)
	}
	for field := range comments {
		t.Errorf("%s has no row here: what is its default?", field)
	}
	if MinDeleteDelay != time.Hour {
		t.Errorf("MinDeleteDelay is %s", MinDeleteDelay)
	}
	if MinStateRetention != time.Hour {
		t.Errorf("MinStateRetention is %s", MinStateRetention)
	}
}

func TestOptions_AttributeDefaults(t *testing.T) {
	t.Parallel()
	comments := fieldComments(t, "layout.go", "AttributeNames")
	names := reflect.ValueOf(AttributeNames{}.withDefaults())
	for i := range names.NumField() {
		field, got := names.Type().Field(i).Name, names.Field(i).String()
		if want := fmt.Sprintf("default %q", got); !strings.HasSuffix(comments[field], want) {
			t.Errorf("%s is %q by default, its comment says %q", field, got, comments[field])
		}
	}
	mine := AttributeNames{ID: "the-id", Expires: "ttl"}
	want := AttributeNames{}.withDefaults()
	want.ID, want.Expires = "the-id", "ttl"
	if diff := cmp.Diff(want, mine.withDefaults()); diff != "" {
		t.Errorf("with two names given (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(AttributeNames{ID: "the-id", Expires: "ttl"}, mine); diff != "" {
		t.Errorf("defaults were written into the caller's value (-want +got):\n%s", diff)
	}
}

func TestOptions_Problems(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 256)
	for name, tc := range map[string]struct {
		o    Options
		want []string // problems in their order; none: accepted
	}{
		"zero value": {},
		"table names at the limits": {
			o: Options{EventsTable: "a-b", SnapshotsTable: long[:255]},
		},
		"table names beyond them": {
			o: Options{EventsTable: "ab", SnapshotsTable: long},
			want: []string{
				`EventsTable "ab" is not 3 to 255 of a-z, A-Z, 0-9, _, ., -`,
				`SnapshotsTable "` + long + `" is not 3 to 255 of a-z, A-Z, 0-9, _, ., -`,
			},
		},
		"a table name with other characters": {
			o:    Options{EventsTable: "events/é"},
			want: []string{`EventsTable "events/é" is not 3 to 255 of a-z, A-Z, 0-9, _, ., -`},
		},
		"one table for both": {
			o:    Options{EventsTable: "dynactor_snapshots"},
			want: []string{`EventsTable and SnapshotsTable are both "dynactor_snapshots"`},
		},
		"tables of state": {
			o: Options{StateTables: []string{"a-b", "x", "dynactor_events", "a-b"}},
			want: []string{
				`StateTables[1] "x" is not 3 to 255 of a-z, A-Z, 0-9, _, ., -`,
				`EventsTable and StateTables[2] are both "dynactor_events"`,
				`StateTables[0] and StateTables[3] are both "a-b"`,
			},
		},
		"the default table of state for events": {
			o:    Options{EventsTable: "dynactor_state"},
			want: []string{`EventsTable and StateTables[0] are both "dynactor_state"`},
		},
		"the shortest retention": {
			o: Options{StateRetention: time.Hour},
		},
		"a retention below it": {
			o:    Options{StateRetention: time.Hour - 1},
			want: []string{"StateRetention 59m59.999999999s is below its minimum 1h0m0s"},
		},
		"the shortest retention for long writes": {
			o: Options{WriteTimeout: 10 * time.Minute, StateRetention: 80 * time.Minute},
		},
		"a retention below it for long writes": {
			o:    Options{WriteTimeout: 10 * time.Minute, StateRetention: 80*time.Minute - 1},
			want: []string{"StateRetention 1h19m59.999999999s is below its minimum 1h20m0s"},
		},
		"attributes": {
			o: Options{Attributes: AttributeNames{Data: "pid", Meta: long, Tags: "a\xff"}},
			want: []string{
				`attributes "pid" and "data" have the same name "pid"`,
				`attribute name for "tags" is not valid UTF-8`,
				`attribute name for "meta" is longer than 255 bytes`,
			},
		},
		"unknown billing mode": {
			o:    Options{BillingMode: "FREE"},
			want: []string{`BillingMode "FREE" is neither PAY_PER_REQUEST nor PROVISIONED`},
		},
		"units on demand": {
			o:    Options{ReadUnits: 1},
			want: []string{"ReadUnits and WriteUnits need BillingMode PROVISIONED"},
		},
		"provisioned": {
			o: Options{BillingMode: types.BillingModeProvisioned, ReadUnits: 1, WriteUnits: 1},
		},
		"provisioned without units": {
			o:    Options{BillingMode: types.BillingModeProvisioned, ReadUnits: 5, WriteUnits: -1},
			want: []string{"BillingMode PROVISIONED needs ReadUnits and WriteUnits of at least 1"},
		},
		"negative times and numbers": {
			o: Options{
				TableTimeout: -1, ReadTimeout: -2, WriteTimeout: -3, RecoveryTimeout: -4, SnapshotTTL: -5,
				MaxConcurrentReads: -6, MaxConcurrentWrites: -7, DeleteDelay: -8,
			},
			want: []string{
				"TableTimeout -1ns is negative", "ReadTimeout -2ns is negative", "WriteTimeout -3ns is negative",
				"RecoveryTimeout -4ns is negative", "MaxConcurrentReads -6 is negative", "MaxConcurrentWrites -7 is negative",
				"SnapshotTTL -5ns is negative", "DeleteDelay -8ns is below its minimum 1h0m0s",
			},
		},
		"negative numbers that mean something": {
			o: Options{KeepSnapshots: -1, SnapshotInterval: -1},
		},
		"expiry in seconds": {
			o: Options{SnapshotTTL: time.Second},
		},
		"expiry below a second": {
			o:    Options{SnapshotTTL: time.Second - 1},
			want: []string{"SnapshotTTL 999.999999ms is below one second"},
		},
		"expiring snapshots of deleted events": {
			o:    Options{SnapshotTTL: time.Hour, DeleteEventsOnSnapshot: true},
			want: []string{"SnapshotTTL and DeleteEventsOnSnapshot together would lose history: deleted events need a snapshot that stays"},
		},
		"the shortest delay": {
			o: Options{DeleteDelay: time.Hour},
		},
		"a delay below it": {
			o:    Options{DeleteDelay: time.Hour - 1},
			want: []string{"DeleteDelay 59m59.999999999s is below its minimum 1h0m0s"},
		},
		"the shortest delay for long writes": {
			o: Options{WriteTimeout: 10 * time.Minute, DeleteDelay: 80 * time.Minute},
		},
		"a delay below it for long writes": {
			o:    Options{WriteTimeout: 10 * time.Minute, DeleteDelay: 80*time.Minute - 1},
			want: []string{"DeleteDelay 1h19m59.999999999s is below its minimum 1h20m0s"},
		},
		"writes without end": {
			o: Options{WriteTimeout: math.MaxInt64},
			want: []string{
				"DeleteDelay 24h0m0s is below its minimum 2562047h47m16.8547758s",
				"StateRetention 168h0m0s is below its minimum 2562047h47m16.8547758s",
			},
		},
		"no upcaster": {
			o:    Options{Upcasters: []Upcaster{func(n string, b []byte) (string, []byte, error) { return n, b, nil }, nil}},
			want: []string{"Upcasters[1] is nil"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, made := New(&dynamodb.Client{}, tc.o)
			tc.o.Endpoint = "http://127.0.0.1:8000"
			_, opened := Open(t.Context(), tc.o)
			for op, err := range map[string]error{"new provider": made, "open provider": opened} {
				var got []string
				if err != nil {
					text := strings.TrimPrefix(err.Error(), "dynactor: "+op+": invalid argument: ")
					got = strings.Split(text, "\n")
					if !errors.Is(err, ErrInvalid) {
						t.Errorf("%s: %v does not match ErrInvalid", op, err)
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: problems (-want +got):\n%s", op, diff)
				}
			}
		})
	}
}

// One error names all that is wrong with what New and Open are given.
func TestOptions_AllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	o := Options{EventsTable: "x", BillingMode: "FREE", SnapshotTTL: -1, DeleteDelay: 1, Endpoint: "nowhere"}
	for op, tc := range map[string]struct {
		make func() (*Provider, error)
		want int
	}{
		"New":                  {func() (*Provider, error) { return New(nil, o) }, 6},
		"New, nil in a client": {func() (*Provider, error) { return New((*dynamodb.Client)(nil), o) }, 6},
		"Open":                 {func() (*Provider, error) { return Open(t.Context(), o) }, 5},
	} {
		p, err := tc.make()
		if p != nil || !errors.Is(err, ErrInvalid) {
			t.Fatalf("%s: got %v, %v, want ErrInvalid", op, p, err)
		}
		if got := strings.Split(err.Error(), "\n"); len(got) != tc.want {
			t.Errorf("%s: %d problems, want %d:\n%v", op, len(got), tc.want, err)
		}
	}
}

func TestOptions_Endpoint(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]struct{ accepted, loopback bool }{
		"http://localhost:8000":                       {true, true},
		"http://LOCALHOST":                            {true, true},
		"https://127.0.0.1":                           {true, true},
		"http://127.8.9.10:1":                         {true, true},
		"http://[::1]:8000":                           {true, true},
		"http://[::ffff:127.0.0.1]:8000":              {true, true},
		"http://dynamodb:8000":                        {true, false},
		"http://192.168.0.1:8000":                     {true, false},
		"http://0.0.0.0:8000":                         {true, false},
		"http://localhost.example.com":                {true, false},
		"http://127.0.0.1.example.com":                {true, false},
		"http://localhost@example.com":                {true, false},
		"http://example.com/127.0.0.1":                {true, false},
		"https://dynamodb.eu-central-1.amazonaws.com": {true, false},
		"localhost:8000":                              {false, false},
		"127.0.0.1:8000":                              {false, false},
		"localhost":                                   {false, false},
		"ftp://localhost":                             {false, false},
		"http://":                                     {false, false},
		"http://local host":                           {false, false},
		"/tmp/socket":                                 {false, false},
	} {
		t.Run(endpoint, func(t *testing.T) {
			t.Parallel()
			if got := isLoopback(endpoint); want.accepted && got != want.loopback {
				t.Errorf("loopback: %t, want %t", got, want.loopback)
			}
			_, err := Open(t.Context(), Options{Endpoint: endpoint, Region: "eu-central-1"})
			if want.accepted && err != nil {
				t.Error(err)
			}
			if !want.accepted && !errors.Is(err, ErrInvalid) {
				t.Errorf("got %v, want ErrInvalid", err)
			}
		})
	}
}

// A name that the framework's registry makes up is refused, wherever it stands
// in a path; one without a "$" never is.
func FuzzGeneratedName(f *testing.F) {
	f.Add("", uint64(1), "")
	f.Add("partition-activator/alice", uint64(1<<20), "")
	f.Add("parent/", uint64(math.MaxUint64), "/child")
	f.Add("a\n", uint64(63), "/b")
	stable := Options{}.withDefaults().StableID
	f.Fuzz(func(t *testing.T, before string, n uint64, after string) {
		registry := &actor.ProcessRegistryValue{SequenceID: n - 1}
		id := before + registry.NextId()
		if stable(id) || stable(id+"/"+after) {
			t.Errorf("%q or %q counts as stable", id, id+"/"+after)
		}
		if plain := strings.ReplaceAll(before+after, "$", ""); !stable(plain) {
			t.Errorf("%q counts as generated", plain)
		}
	})
}

func TestOptions_StableID(t *testing.T) {
	t.Parallel()
	stable := Options{}.withDefaults().StableID
	for id, want := range map[string]bool{
		"account/alice": true, "alice": true, "$": true, "price$": true, "a$b c": true, "$/x": true, "a$1234567890123": true,
		"$1": false, "$1A": false, "$zZ~+": false, "$1/child": false, "parent/$1": false, "parent/$1/child": false,
		"partition-activator/alice$t": false, "alice$2k": false,
	} {
		if got := stable(id); got != want {
			t.Errorf("%q: stable %t, want %t", id, got, want)
		}
	}
}
