package dynactor

import (
	"errors"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/dynactor/dynactor/dynactortest"
)

// J-40: the rules, one by one.
func TestSize_J40_Rules(t *testing.T) {
	t.Parallel()
	s := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	n := func(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
	for name, tc := range map[string]struct {
		v    types.AttributeValue
		want int
	}{
		"string":             {s("abc"), 3},
		"string in UTF-8":    {s("é€"), 5},
		"empty string":       {s(""), 0},
		"bytes":              {&types.AttributeValueMemberB{Value: make([]byte, 7)}, 7},
		"no bytes":           {&types.AttributeValueMemberB{}, 0},
		"0":                  {n("0"), 1},
		"one digit":          {n("7"), 2},
		"two digits":         {n("42"), 2},
		"three digits":       {n("420001"), 4},
		"zeros at the end":   {n("1000"), 2},
		"negative":           {n("-42"), 3},
		"largest":            {n(strconv.Itoa(math.MaxInt64)), 11},
		"boolean":            {&types.AttributeValueMemberBOOL{Value: true}, 1},
		"null":               {&types.AttributeValueMemberNULL{Value: true}, 1},
		"set of strings":     {&types.AttributeValueMemberSS{Value: []string{"a", "é"}}, 3},
		"set of numbers":     {&types.AttributeValueMemberNS{Value: []string{"1", "-1"}}, 5},
		"set of bytes":       {&types.AttributeValueMemberBS{Value: [][]byte{{1}, {2, 3}}}, 3},
		"empty list":         {&types.AttributeValueMemberL{}, 3},
		"list":               {&types.AttributeValueMemberL{Value: []types.AttributeValue{s("ab"), n("1")}}, 3 + 1 + 2 + 1 + 2},
		"empty map":          {&types.AttributeValueMemberM{}, 3},
		"map":                {&types.AttributeValueMemberM{Value: item{"key": s("v"), "k": s("")}}, 3 + 1 + 3 + 1 + 1 + 1},
		"map in a map":       {&types.AttributeValueMemberM{Value: item{"k": &types.AttributeValueMemberM{}}}, 3 + 1 + 1 + 3},
		"a type of tomorrow": {&types.UnknownUnionMember{}, math.MaxInt32},
		"nothing":            {nil, math.MaxInt32},
	} {
		if got := itemSize(item{"näme": tc.v}); got != 5+tc.want {
			t.Errorf("%s has %d bytes, want %d", name, got-5, tc.want)
		}
	}
}

func TestSize_Limits(t *testing.T) {
	t.Parallel()
	sized := func(n int) item { return item{"d": &types.AttributeValueMemberB{Value: make([]byte, n-1)}} }
	many := func(n, size int) []item { return slices.Repeat([]item{sized(size)}, n) }
	for name, tc := range map[string]struct {
		items []item
		want  string // empty: accepted
	}{
		"J-39 the largest item":       {many(1, 409_600), ""},
		"J-39 one byte more":          {many(1, 409_601), "item 1 of 1 has 409601 bytes, at most 409600"},
		"J-39 one of several":         {append(many(2, 10), sized(409_601)), "item 3 of 3 has 409601 bytes, at most 409600"},
		"J-37 the most items":         {many(100, 10), ""},
		"J-37 one more":               {many(101, 10), "101 events in one append, at most 100"},
		"J-38 the largest append":     {many(64, 65_536), ""},
		"J-38 one byte more":          {append(many(63, 65_536), sized(65_537)), "the items of the append have 4194305 bytes, at most 4194304"},
		"J-38 D07 eleven large items": {many(11, 390<<10), "the items of the append have 4392960 bytes, at most 4194304"},
	} {
		err := checkSize(tc.items)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.want != "" && (!errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: got %v, want ErrTooLarge and %q", name, err, tc.want)
		}
	}
}

// J-40, E06: the server's own count, as the write units show it. The items are
// padded to where the next byte costs another unit.
func TestSize_J40_AsTheServerCounts(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	p, err := New(db.Client, Options{EventsTable: db.EventsTable, SnapshotsTable: db.SnapshotsTable, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.EnsureTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	db.Faults.ReportCapacity(true)
	const unit = 1024
	units := func(it item, pad int) float64 {
		it = maps.Clone(it)
		it["pad"] = &types.AttributeValueMemberB{Value: make([]byte, pad)}
		db.Faults.Reset()
		if _, err := db.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &db.EventsTable, Item: it}); err != nil {
			t.Fatal(err)
		}
		return db.Faults.Usage().WriteUnits
	}
	numbers := rapid.Custom(func(t *rapid.T) types.AttributeValue { return number(rapid.Int64().Draw(t, "n")) })
	texts := rapid.StringN(0, 30, 60)
	events := rapid.Custom(func(t *rapid.T) item {
		l := newLayout("e", "s", AttributeNames{}.withDefaults())
		seq := rapid.Int64Range(1, math.MaxInt64-100).Draw(t, "seq")
		it := l.eventItem("p", record{
			seq: seq, last: seq + rapid.Int64Range(0, 99).Draw(t, "more"), name: texts.Draw(t, "type"), op: "0123456789012345678901",
			data: rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "data"), ts: rapid.Int64Range(0, 1<<42).Draw(t, "ts"),
			tags: rapid.SliceOfN(rapid.StringN(1, 8, 20), 0, 5).Draw(t, "tags"),
			meta: rapid.MapOfN(rapid.StringN(1, 8, 20), texts, 0, 4).Draw(t, "meta"),
		})
		it["other"] = numbers.Draw(t, "other")
		return it
	})
	drawn := 0
	rapid.Check(t, func(r *rapid.T) {
		it := events.Draw(r, "item")
		drawn++ // a put over another item costs as much as the larger one
		it["pid"] = &types.AttributeValueMemberS{Value: strconv.Itoa(drawn)}
		size := itemSize(it) + len("pad")
		if size >= unit {
			r.Skip()
		}
		// Ours may be some bytes too high for numbers, never too low.
		numbers := 0
		for _, v := range it {
			if _, ok := v.(*types.AttributeValueMemberN); ok {
				numbers++
			}
		}
		if got := units(it, unit-size); got != 1 {
			r.Errorf("%g units: the server counts more than our %d bytes in %v", got, unit, it)
		}
		if got := units(it, unit-size+numbers+1); got != 2 {
			r.Errorf("%g units: the server counts less than our %d bytes, by more than one for each of %d numbers, in %v", got, unit+numbers+1, numbers, it)
		}
	})
}
