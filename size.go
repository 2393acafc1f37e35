package dynactor

import (
	"fmt"
	"math"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// DynamoDB's limits.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const (
	maxItemBytes        = 400 << 10
	maxTransactionBytes = 4 << 20

	// MaxEvents is how many events one append can hold.
	MaxEvents = 100
)

// itemSize is the size of an item in bytes as DynamoDB counts it: names and
// values. Numbers are counted at most one byte too high, since the documentation
// only says "approximately".
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
func itemSize(it item) int {
	n := 0
	for name, v := range it {
		n += len(name) + valueSize(v)
	}
	return n
}

// nestingSize is what a list or a map costs by itself, and again each element.
const (
	nestingSize = 3
	elementSize = 1
)

func valueSize(v types.AttributeValue) int {
	n := 0
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return numberSize(v.Value)
	case *types.AttributeValueMemberBOOL, *types.AttributeValueMemberNULL:
		return 1
	case *types.AttributeValueMemberSS:
		for _, s := range v.Value {
			n += len(s)
		}
	case *types.AttributeValueMemberNS:
		for _, s := range v.Value {
			n += numberSize(s)
		}
	case *types.AttributeValueMemberBS:
		for _, b := range v.Value {
			n += len(b)
		}
	case *types.AttributeValueMemberL:
		n = nestingSize
		for _, e := range v.Value {
			n += elementSize + valueSize(e)
		}
	case *types.AttributeValueMemberM:
		n = nestingSize + elementSize*len(v.Value) + itemSize(v.Value)
	default:
		return math.MaxInt32 // unknown to this package, so never sent by it
	}
	return n
}

// numberSize: about one byte for two significant digits and one more, one for a
// sign. Zeros before and after the digits do not count.
func numberSize(s string) int {
	digits := strings.TrimLeft(s, "-0")
	size := (len(strings.TrimRight(digits, "0"))+1)/2 + 1
	if strings.HasPrefix(s, "-") {
		size++
	}
	return size
}

// checkSize refuses items that DynamoDB would refuse for their size or number.
func checkSize(items []item) error {
	if len(items) > MaxEvents {
		return fmt.Errorf("%w: %d events in one append, at most %d", ErrTooLarge, len(items), MaxEvents)
	}
	total := 0
	for i, it := range items {
		size := itemSize(it)
		if size > maxItemBytes {
			return fmt.Errorf("%w: item %d of %d has %d bytes, at most %d", ErrTooLarge, i+1, len(items), size, maxItemBytes)
		}
		total += size
	}
	if len(items) > 1 && total > maxTransactionBytes {
		return fmt.Errorf("%w: the items of the append have %d bytes, at most %d", ErrTooLarge, total, maxTransactionBytes)
	}
	return nil
}
