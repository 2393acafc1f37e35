package dynactor_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// The largest item that passes our check is taken by the server, and one that is
// 1 KB larger is not: so we refuse no more than 1 KB too early.
func FuzzSize(f *testing.F) {
	f.Add("a", "t", "", "", int64(1), int64(1))
	f.Add("kind/identité", "étiquette", "clé", strings.Repeat("ü", 300), int64(math.MaxInt64), int64(1234567891234))
	f.Add(strings.Repeat("é", 512), strings.Repeat("t", 1000), "k", "", int64(1000), int64(1_000_000_000_000))
	db := dynactortest.New(f)
	p, err := dynactor.New(db.Client, dynactor.Options{EventsTable: db.EventsTable, SnapshotsTable: db.SnapshotsTable})
	if err != nil {
		f.Fatal(err)
	}
	if err := p.EnsureTables(f.Context()); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, id, tag, key, value string, seq, ts int64) {
		if seq < 1 || ts < 0 || dynactor.CheckID(id) != nil || len(value)+len(tag)+len(key) > 10_000 {
			return
		}
		var tags []string
		if dynactor.CheckTags([]string{tag}) == nil {
			tags = []string{tag}
		}
		meta := map[string]string{key: value}
		if dynactor.CheckMeta(meta) != nil {
			meta = nil
		}
		of := func(size int) map[string]types.AttributeValue {
			return dynactor.StoredEvent(id, seq, seq, ts, "google.protobuf.BytesValue", strings.Repeat("o", 22), make([]byte, size), tags, meta)
		}
		put := func(size int) error {
			_, err := db.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &db.EventsTable, Item: of(size)})
			return err
		}
		largest := dynactor.MaxItemBytes - dynactor.ItemSize(of(0))
		if err := dynactor.CheckSize([]map[string]types.AttributeValue{of(largest + 1)}); !errors.Is(err, dynactor.ErrTooLarge) {
			t.Fatalf("one byte too many: got %v, want ErrTooLarge", err)
		}
		if err := put(largest); err != nil {
			t.Errorf("we would let it through, and then: %v", err)
		}
		if err := put(largest + 1024); err == nil {
			t.Error("the server takes an item that is 1 KB larger")
		}
	})
}
