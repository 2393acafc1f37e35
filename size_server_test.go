package dynactor_test

import (
	"maps"
	"math"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// J-40, E06: the server's own count, as the write units show it. The items are
// padded to where the next byte costs another unit.
func TestSize_J40_AsTheServerCounts(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	ready(t, openOn(t, db, db.Client, dynactor.Options{}), db)
	db.Faults.ReportCapacity(true)
	const unit = 1024
	units := func(it map[string]types.AttributeValue, pad int) float64 {
		it = maps.Clone(it)
		it["pad"] = &types.AttributeValueMemberB{Value: make([]byte, pad)}
		db.Faults.Reset()
		if _, err := db.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &db.EventsTable, Item: it}); err != nil {
			t.Fatal(err)
		}
		return db.Faults.Usage().WriteUnits
	}
	numbers := rapid.Custom(func(t *rapid.T) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(rapid.Int64().Draw(t, "n"), 10)}
	})
	texts := rapid.StringN(0, 30, 60)
	events := rapid.Custom(func(t *rapid.T) map[string]types.AttributeValue {
		seq := rapid.Int64Range(1, math.MaxInt64-100).Draw(t, "seq")
		it := dynactor.StoredEvent("p", seq, seq+rapid.Int64Range(0, 99).Draw(t, "more"), rapid.Int64Range(0, 1<<42).Draw(t, "ts"),
			texts.Draw(t, "type"), "0123456789012345678901", rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "data"),
			rapid.SliceOfN(rapid.StringN(1, 8, 20), 0, 5).Draw(t, "tags"), rapid.MapOfN(rapid.StringN(1, 8, 20), texts, 0, 4).Draw(t, "meta"))
		it["other"] = numbers.Draw(t, "other")
		return it
	})
	drawn := 0
	rapid.Check(t, func(r *rapid.T) {
		it := events.Draw(r, "item")
		drawn++ // a put over another item costs as much as the larger one
		it["pid"] = &types.AttributeValueMemberS{Value: strconv.Itoa(drawn)}
		size := dynactor.ItemSize(it) + len("pad")
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
