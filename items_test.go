package dynactor_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// items reads what a table holds under an id, past the library and the fault layer.
func items(t *testing.T, db *dynactortest.DB, table, id string) []map[string]types.AttributeValue {
	t.Helper()
	client, _ := db.NewClient()
	pages := dynamodb.NewQueryPaginator(client, &dynamodb.QueryInput{
		TableName: &table, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("pid = :id"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":id": &types.AttributeValueMemberS{Value: id}},
	})
	var list []map[string]types.AttributeValue
	for pages.HasMorePages() {
		out, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, out.Items...)
	}
	return list
}

// numbers are the sort keys of what a table holds under an id; nil for nothing.
func numbers(t *testing.T, db *dynactortest.DB, table, id string) []int64 {
	t.Helper()
	var list []int64
	for _, it := range items(t, db, table, id) {
		seq, _ := it["seq"].(*types.AttributeValueMemberN)
		n, err := strconv.ParseInt(seq.Value, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}

// upTo are the numbers lo to hi.
func upTo(lo, hi int64) []int64 {
	var list []int64
	for n := lo; n <= hi; n++ {
		list = append(list, n)
	}
	return list
}

// put writes an item as it is, past the library and the fault layer.
func put(t *testing.T, db *dynactortest.DB, table string, it map[string]types.AttributeValue) {
	t.Helper()
	client, _ := db.NewClient()
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: it}); err != nil {
		t.Fatal(err)
	}
}

// remove deletes items as they are, past the library and the fault layer.
func remove(t *testing.T, db *dynactortest.DB, table, id string, seqs ...int64) {
	t.Helper()
	client, _ := db.NewClient()
	for _, seq := range seqs {
		_, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: keyOf(id, seq)})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func keyOf(id string, seq int64) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pid": &types.AttributeValueMemberS{Value: id},
		"seq": &types.AttributeValueMemberN{Value: strconv.FormatInt(seq, 10)},
	}
}

// eventOf is an event's item as the library would store it.
func eventOf(t *testing.T, id string, seq int64, m proto.Message) map[string]types.AttributeValue {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	it := keyOf(id, seq)
	it["type"] = &types.AttributeValueMemberS{Value: string(m.ProtoReflect().Descriptor().FullName())}
	it["data"] = &types.AttributeValueMemberB{Value: data}
	it["ts"] = &types.AttributeValueMemberN{Value: "1700000000001"}
	it["op"] = &types.AttributeValueMemberS{Value: "by-hand"}
	return it
}

// sized are messages with the texts "lo" to "hi", padded to so many bytes.
func sized(lo, hi, size int) []proto.Message {
	var list []proto.Message
	for i := lo; i <= hi; i++ {
		list = append(list, text(fmt.Sprintf("%-*d", size, i)))
	}
	return list
}

// fillSized appends events "1" to "n" of a size, so many in one append.
func fillSized(t *testing.T, j *dynactor.Journal, id string, n, size, group int) {
	t.Helper()
	for head := 0; head < n; head += group {
		list := sized(head+1, min(head+group, n), size)
		if _, err := j.Append(t.Context(), id, int64(head), list...); err != nil {
			t.Fatal(err)
		}
	}
}
