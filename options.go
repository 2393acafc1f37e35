package dynactor

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.opentelemetry.io/otel/metric"
)

// Defaults and limits of [Options].
const (
	DefaultKeepSnapshots       = 3
	DefaultDeleteDelay         = 24 * time.Hour
	DefaultStateRetention      = 7 * 24 * time.Hour
	DefaultReadTimeout         = 10 * time.Second
	DefaultWriteTimeout        = 10 * time.Second
	DefaultRecoveryTimeout     = 60 * time.Second
	DefaultTableTimeout        = 60 * time.Second
	DefaultMaxConcurrentReads  = 64
	DefaultMaxConcurrentWrites = 256

	// MinDeleteDelay is the shortest DeleteDelay. AWS refuses a request whose
	// signature is some minutes old, and a put must land within a quarter of the delay.
	// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html
	MinDeleteDelay = time.Hour

	// MinStateRetention is the shortest StateRetention, for the same reason: a save
	// must land before half of it has passed since its revision was read.
	MinStateRetention = time.Hour
)

// Options configures a [Provider]. The zero value works.
type Options struct {
	// Region is the AWS region, for Open. Empty: the standard configuration's.
	Region string
	// Endpoint is the URL of the service, for Open, for example that of a local
	// server. Empty: the standard configuration's, which is AWS's own by default.
	Endpoint string

	// EventsTable and SnapshotsTable name the tables. Empty: DefaultEventsTable
	// and DefaultSnapshotsTable.
	EventsTable, SnapshotsTable string
	// StateTables name the tables of durable state. Empty: DefaultStateTable alone.
	// They are checked, and created, when state in one of them is first used.
	StateTables []string
	// StateTable tells which of StateTables holds the state of an id, always the
	// same one for an id. It must be safe for concurrent use. Nil: the first.
	StateTable func(id string) string
	// Attributes names the attributes in the tables. Empty names take their defaults.
	Attributes AttributeNames
	// NoCreateTables leaves the making of tables to you. By default they are
	// created when both are missing, and those of StateTables when they are first used.
	NoCreateTables bool
	// BillingMode of tables that are created: PAY_PER_REQUEST, the default, or
	// PROVISIONED, which needs ReadUnits and WriteUnits.
	BillingMode types.BillingMode
	// ReadUnits and WriteUnits are the capacity of each created table. Zero, unless
	// BillingMode is PROVISIONED.
	ReadUnits, WriteUnits int64
	// HomeRegion names the only region whose processes write. It is needed for
	// tables that have replicas in other regions, where conditions hold within one
	// region only; a provider in another region then refuses to work. Empty: tables
	// with replicas are refused.
	HomeRegion string
	// TableTimeout limits how long an operation waits until tables are there and
	// active. Zero: DefaultTableTimeout.
	TableTimeout time.Duration

	// SnapshotInterval asks the actor for a snapshot every so many events. Zero or
	// negative: no snapshots; recovery then replays everything.
	SnapshotInterval int
	// KeepSnapshots is how many snapshots of an actor are kept; older ones are
	// deleted after each save. Zero: DefaultKeepSnapshots. Negative: all are kept.
	KeepSnapshots int
	// DeleteEventsOnSnapshot deletes, after each save, the events that the oldest
	// kept snapshot covers. By default events are kept for ever.
	DeleteEventsOnSnapshot bool
	// SnapshotFallback lets recovery pass over a snapshot that cannot be decoded:
	// it takes an older one, or replays all, where no event of that history has been
	// deleted. Each one passed over is logged and counted. By default it is an error.
	SnapshotFallback bool
	// SnapshotTTL lets snapshots expire so long after they were saved. Zero: they
	// do not. A session saves one that stays where events of its stream are deleted. It cannot go with DeleteEventsOnSnapshot, because a deleted history
	// needs its snapshot for ever.
	SnapshotTTL time.Duration
	// DeleteDelay is how old the item of a deleted event must be before it is
	// removed from the table. Until then it guards its number against a writer that
	// was asleep. It must be the same in every process that writes, prunes or sweeps,
	// tools included: a shorter one elsewhere removes what this one still relies on. The clocks of all writers must agree within a quarter of it. Zero:
	// DefaultDeleteDelay. Minimum: MinDeleteDelay, and eight times WriteTimeout.
	DeleteDelay time.Duration

	// StateRetention is how long the row of a deleted or expired state keeps its
	// revision. A revision that was read longer ago than half of it must be read
	// again before it is used, because the numbers may have begun anew since. It must
	// be the same in every process. Zero: DefaultStateRetention. Minimum:
	// MinStateRetention, and eight times WriteTimeout.
	StateRetention time.Duration

	// Resolver finds message types by name; messages of types that it does not know
	// are refused. Nil: the types linked into the program.
	Resolver Resolver
	// Upcasters are applied in order to what was stored, before it is decoded.
	Upcasters []Upcaster
	// StableID tells whether a persistence id is the same at every start; others
	// are refused with ErrUnstableID at the framework's seam. Nil: all but names
	// that the framework generates.
	StableID func(id string) bool

	// ReadTimeout limits one read with all its attempts, WriteTimeout one write.
	// A single attempt gets half of it. A read's time starts when it has one of
	// MaxConcurrentReads places. Zero: DefaultReadTimeout, DefaultWriteTimeout.
	ReadTimeout, WriteTimeout time.Duration
	// RecoveryTimeout is how long a recovery goes on trying while nothing it needs
	// can be read for a passing cause: throttling, a missing table, no network.
	// Zero: DefaultRecoveryTimeout.
	RecoveryTimeout time.Duration
	// MaxConcurrentReads and MaxConcurrentWrites limit the requests in flight to
	// each table. Zero: DefaultMaxConcurrentReads and DefaultMaxConcurrentWrites.
	MaxConcurrentReads, MaxConcurrentWrites int

	// Logger gets what an operator should know. Nil: slog.Default().
	Logger *slog.Logger
	// MeterProvider makes the counters. Nil: OpenTelemetry's global one.
	MeterProvider metric.MeterProvider
	// Now is the wall clock. Nil: time.Now. It must be safe for concurrent use.
	Now func() time.Time
}

// withDefaults returns a copy with the zero fields filled in.
func (o Options) withDefaults() Options {
	def(&o.EventsTable, DefaultEventsTable)
	def(&o.SnapshotsTable, DefaultSnapshotsTable)
	o.Attributes = o.Attributes.withDefaults()
	def(&o.BillingMode, types.BillingModePayPerRequest)
	def(&o.TableTimeout, DefaultTableTimeout)
	def(&o.KeepSnapshots, DefaultKeepSnapshots)
	def(&o.DeleteDelay, DefaultDeleteDelay)
	def(&o.StateRetention, DefaultStateRetention)
	o.StateTables = slices.Clone(o.StateTables)
	if len(o.StateTables) == 0 {
		o.StateTables = []string{DefaultStateTable}
	}
	if o.StateTable == nil {
		first := o.StateTables[0]
		o.StateTable = func(string) string { return first }
	}
	def(&o.ReadTimeout, DefaultReadTimeout)
	def(&o.WriteTimeout, DefaultWriteTimeout)
	def(&o.RecoveryTimeout, DefaultRecoveryTimeout)
	def(&o.MaxConcurrentReads, DefaultMaxConcurrentReads)
	def(&o.MaxConcurrentWrites, DefaultMaxConcurrentWrites)
	def(&o.Logger, slog.Default())
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.StableID == nil {
		o.StableID = func(id string) bool { return !generatedName.MatchString(id) }
	}
	return o
}

func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// generatedName matches a name with a segment that the framework's process
// registry made up: it ends in "$" and the registry's digits.
var generatedName = regexp.MustCompile(`\$[0-9a-zA-Z~+]{1,12}(/|$)`)

// tableName is DynamoDB's rule for the name of a table.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html
var tableName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

// problems names all that is wrong with the options.
func (o Options) problems() []error {
	o = o.withDefaults()
	var errs []error
	bad := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	field := map[string]string{}
	for _, t := range o.tableNames() {
		bad(!tableName.MatchString(t.name), "%s %q is not 3 to 255 of a-z, A-Z, 0-9, _, ., -", t.field, t.name)
		if other, taken := field[t.name]; taken {
			bad(true, "%s and %s are both %q", other, t.field, t.name)
		}
		field[t.name] = t.field
	}
	errs = append(errs, o.Attributes.problems()...)
	switch o.BillingMode {
	case types.BillingModePayPerRequest:
		bad(o.ReadUnits != 0 || o.WriteUnits != 0, "ReadUnits and WriteUnits need BillingMode PROVISIONED")
	case types.BillingModeProvisioned:
		bad(o.ReadUnits < 1 || o.WriteUnits < 1, "BillingMode PROVISIONED needs ReadUnits and WriteUnits of at least 1")
	default:
		bad(true, "BillingMode %q is neither PAY_PER_REQUEST nor PROVISIONED", o.BillingMode)
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"TableTimeout", o.TableTimeout},
		{"ReadTimeout", o.ReadTimeout},
		{"WriteTimeout", o.WriteTimeout},
		{"RecoveryTimeout", o.RecoveryTimeout},
	} {
		bad(d.value < 0, "%s %s is negative", d.field, d.value)
	}
	bad(o.MaxConcurrentReads < 0, "MaxConcurrentReads %d is negative", o.MaxConcurrentReads)
	bad(o.MaxConcurrentWrites < 0, "MaxConcurrentWrites %d is negative", o.MaxConcurrentWrites)
	bad(o.SnapshotTTL < 0, "SnapshotTTL %s is negative", o.SnapshotTTL)
	bad(o.SnapshotTTL > 0 && o.SnapshotTTL < time.Second, "SnapshotTTL %s is below one second", o.SnapshotTTL)
	bad(o.SnapshotTTL > 0 && o.DeleteEventsOnSnapshot,
		"SnapshotTTL and DeleteEventsOnSnapshot together would lose history: deleted events need a snapshot that stays")
	least := max(MinDeleteDelay, 8*min(o.WriteTimeout, math.MaxInt64/8))
	bad(o.DeleteDelay < least, "DeleteDelay %s is below its minimum %s", o.DeleteDelay, least)
	least = max(MinStateRetention, 8*min(o.WriteTimeout, math.MaxInt64/8))
	bad(o.StateRetention < least, "StateRetention %s is below its minimum %s", o.StateRetention, least)
	for i, u := range o.Upcasters {
		bad(u == nil, "Upcasters[%d] is nil", i)
	}
	return errs
}

// tableNames are the names of all tables, with the options that give them.
func (o Options) tableNames() []struct{ field, name string } {
	names := []struct{ field, name string }{{"EventsTable", o.EventsTable}, {"SnapshotsTable", o.SnapshotsTable}}
	for i, name := range o.StateTables {
		names = append(names, struct{ field, name string }{fmt.Sprintf("StateTables[%d]", i), name})
	}
	return names
}

// invalidOptions makes one error of all problems, nil when there are none.
func invalidOptions(op string, problems []error) error {
	if len(problems) == 0 {
		return nil
	}
	return fail(op, "", noSeq, fmt.Errorf("%w: %w", ErrInvalid, errors.Join(problems...)))
}

// wall is the wall-clock time without the monotonic reading, which stops while
// a machine is suspended.
func (o *Options) wall() time.Time { return o.Now().Round(0) }
