package dynactor

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
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
