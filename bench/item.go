package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// id is the persistence id of all streams.
const id = "account-0001"

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// deposit is the event of most cases.
var deposit = wrapperspb.String("deposited 100.00 EUR, reference 2024-000123")

// hundreds is the event of the replays: its item has about 300 bytes.
var hundreds = wrapperspb.String(strings.Repeat("x", 205))

// eventItem is the stored form of an event, as one would write it by hand. The
// operation id is a constant: how it is made is the library's own affair.
func eventItem(seq int64, event *wrapperspb.StringValue) (item, error) {
	data, err := proto.Marshal(event)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return item{
		"pid":  text(id),
		"seq":  number(seq),
		"type": text("google.protobuf.StringValue"),
		"data": &types.AttributeValueMemberB{Value: data},
		"ts":   number(time.Now().UnixMilli()),
		"op":   text("AAAAAAAAAAAAAAAAAAAAAA"),
	}, nil
}

// decode decodes the event in an item.
func decode(it item) error {
	data, ok := it["data"].(*types.AttributeValueMemberB)
	if !ok {
		return fmt.Errorf("no data in %v", it)
	}
	if err := proto.Unmarshal(data.Value, new(wrapperspb.StringValue)); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}

// size is the size of an item as DynamoDB counts it: names and values.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
func size(it item) int {
	n := 0
	for name, v := range it {
		n += len(name)
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			n += len(v.Value)
		case *types.AttributeValueMemberB:
			n += len(v.Value)
		case *types.AttributeValueMemberN:
			n += (len(v.Value)+1)/2 + 1
		}
	}
	return n
}

// The condition of a put into an empty slot, as the library sends it.
var (
	emptySlot = aws.String("attribute_not_exists(#pid)")
	keyNames  = map[string]string{"#pid": "pid"}
)

func putEvent(table string, it item) *dynamodb.PutItemInput {
	return &dynamodb.PutItemInput{
		TableName: &table, Item: it,
		ConditionExpression: emptySlot, ExpressionAttributeNames: keyNames,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// newest asks for the highest number of a stream or of its snapshots.
func newest(table string) *dynamodb.QueryInput {
	in := since(table, 1)
	in.ScanIndexForward, in.Limit = aws.Bool(false), aws.Int32(1)
	return in
}

// since asks for all from a number on.
func since(table string, seq int64) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName: &table, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("#pid = :id AND #seq >= :lo"),
		ExpressionAttributeNames:  map[string]string{"#pid": "pid", "#seq": "seq"},
		ExpressionAttributeValues: item{":id": text(id), ":lo": number(seq)},
	}
}
