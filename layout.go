package dynactor

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Default table names.
const (
	DefaultEventsTable    = "dynactor_events"
	DefaultSnapshotsTable = "dynactor_snapshots"
	DefaultStateTable     = "dynactor_state"
)

// tableID is the partition key of the item in which a table describes itself.
const tableID = "__dynactor__"

// format is the version of the stored form that this package reads and writes.
const format = 1

// AttributeNames are the names of the attributes in the tables. An empty field
// takes its default. All names must differ, and every process that uses a table
// must use the same ones.
type AttributeNames struct {
	ID        string // persistence id, partition key; default "pid"
	Seq       string // sequence number, sort key; default "seq"
	Type      string // full name of the protobuf message; default "type"
	Data      string // payload bytes; default "data"
	Encoding  string // what was done to the payload; default "enc"
	Timestamp string // when it was written, in ms since 1970; default "ts"
	Operation string // id of the append or save that wrote it; default "op"
	Last      string // last sequence number of an append of many; default "last"
	Tags      string // tags of an event or a state; default "tags"
	Meta      string // metadata of an event; default "meta"
	Deleted   string // the mark: events up to here are deleted; default "del"
	Reset     string // the number at which the state is empty; default "reset"
	Expires   string // when DynamoDB may remove a snapshot or a state's row, in s since 1970; default "exp"
	Revision  string // revision of a state; default "rev"
	Until     string // when the value of a state ends, in ms since 1970; default "until"
	Gone      string // on the row of a deleted state; default "gone"
	Format    string // version of the stored form; default "fmt"
	Layout    string // name of the layout; default "layout"
}

// fields lists the names with their defaults, for defaulting and validation.
func (a *AttributeNames) fields() []struct {
	name *string
	def  string
} {
	return []struct {
		name *string
		def  string
	}{
		{&a.ID, "pid"},
		{&a.Seq, "seq"},
		{&a.Type, "type"},
		{&a.Data, "data"},
		{&a.Encoding, "enc"},
		{&a.Timestamp, "ts"},
		{&a.Operation, "op"},
		{&a.Last, "last"},
		{&a.Tags, "tags"},
		{&a.Meta, "meta"},
		{&a.Deleted, "del"},
		{&a.Reset, "reset"},
		{&a.Expires, "exp"},
		{&a.Revision, "rev"},
		{&a.Until, "until"},
		{&a.Gone, "gone"},
		{&a.Format, "fmt"},
		{&a.Layout, "layout"},
	}
}

// maxAttributeName is DynamoDB's limit for the name of a key attribute, in
// bytes; other names may be longer, but nobody needs that.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const maxAttributeName = 255

// withDefaults returns the names with the empty ones filled in.
func (a AttributeNames) withDefaults() AttributeNames {
	for _, f := range a.fields() {
		if *f.name == "" {
			*f.name = f.def
		}
	}
	return a
}

// problems tells what is wrong with the names.
func (a AttributeNames) problems() []error {
	var errs []error
	seen := map[string]string{}
	for _, f := range a.fields() {
		if len(*f.name) > maxAttributeName {
			errs = append(errs, fmt.Errorf("attribute name for %q is longer than %d bytes", f.def, maxAttributeName))
		}
		if !utf8.ValidString(*f.name) {
			errs = append(errs, fmt.Errorf("attribute name for %q is not valid UTF-8", f.def))
		}
		if other, ok := seen[*f.name]; ok {
			errs = append(errs, fmt.Errorf("attributes %q and %q have the same name %q", other, f.def, *f.name))
		}
		seen[*f.name] = f.def
	}
	return errs
}

// layout is the one place that knows where an item lives: table, key and
// attribute names. It holds the layout PerActor: one partition for each
// persistence id, events sorted by their number, and at number 0 the item of the
// stream itself. It is immutable and safe for concurrent use.
type layout struct {
	events    string
	snapshots string
	attr      AttributeNames

	// Shared by all requests; the SDK only reads them. Placeholders keep
	// reserved words and odd names out of the expressions. None is a prefix of
	// another: some servers replace them as text.
	keyNames    map[string]string // #pid
	rangeNames  map[string]string // #pid #seq
	listNames   map[string]string // #pid #seq #ts
	markNames   map[string]string // #del
	resetNames  map[string]string // #del #rst
	emptySlot   string            // condition of a put into an empty slot
	byIDFrom    string            // key condition: from :lo
	byIDBetween string            // key condition: :lo to :hi

	expiryNames  map[string]string // #pid #seq #exp
	eventKeys    string            // projection: number and age
	snapshotKeys string            // projection: number and expiry

	revisionNames map[string]string // #rev
	rowNames      map[string]string // #rev #op
	purgeNames    map[string]string // #rev #exp
	stateNames    map[string]string // #pid #rev #until #gone
	atRevision    string            // condition of a write over revision :r
	atRow         string            // condition of a write over the row of operation :o
	purgeable     string            // condition of a purge at :now
	stateKeys     string            // projection: whether there is a value
}

// layoutName is what a table's own item says about the layout.
const layoutName = "per-actor"

func newLayout(events, snapshots string, attr AttributeNames) *layout {
	return &layout{
		events: events, snapshots: snapshots, attr: attr,
		keyNames:    map[string]string{"#pid": attr.ID},
		rangeNames:  map[string]string{"#pid": attr.ID, "#seq": attr.Seq},
		listNames:   map[string]string{"#pid": attr.ID, "#seq": attr.Seq, "#ts": attr.Timestamp},
		markNames:   map[string]string{"#del": attr.Deleted},
		resetNames:  map[string]string{"#del": attr.Deleted, "#rst": attr.Reset},
		emptySlot:   "attribute_not_exists(#pid)",
		byIDFrom:    "#pid = :id AND #seq >= :lo",
		byIDBetween: "#pid = :id AND #seq BETWEEN :lo AND :hi",

		expiryNames:  map[string]string{"#pid": attr.ID, "#seq": attr.Seq, "#exp": attr.Expires},
		eventKeys:    "#seq, #ts",
		snapshotKeys: "#seq, #exp",

		revisionNames: map[string]string{"#rev": attr.Revision},
		rowNames:      map[string]string{"#rev": attr.Revision, "#op": attr.Operation},
		purgeNames:    map[string]string{"#rev": attr.Revision, "#exp": attr.Expires},
		stateNames:    map[string]string{"#pid": attr.ID, "#rev": attr.Revision, "#until": attr.Until, "#gone": attr.Gone},
		atRevision:    "#rev = :r",
		atRow:         "#rev = :r AND #op = :o",
		purgeable:     "#rev = :r AND #exp <= :now",
		stateKeys:     "#pid, #rev, #until, #gone",
	}
}

// key is the primary key of number seq of a stream, in either table.
func (l *layout) key(id string, seq int64) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		l.attr.ID:  &types.AttributeValueMemberS{Value: id},
		l.attr.Seq: number(seq),
	}
}

// stateKey is the primary key of a state.
func (l *layout) stateKey(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{l.attr.ID: &types.AttributeValueMemberS{Value: id}}
}

// number is a DynamoDB number.
func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
