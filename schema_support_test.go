package dynactor_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dynactor/dynactor/dynactortest"
)

// ignoreSDK leaves out what the SDK adds to its structs.
var ignoreSDK = cmpopts.IgnoreUnexported(types.AttributeDefinition{}, types.KeySchemaElement{})

// sortedBy compares slices without regard to their order.
func sortedBy[T any](less func(a, b T) bool) cmp.Option { return cmpopts.SortSlices(less) }

// denied answers that permission is lacking.
var denied = dynactortest.Answer(http.StatusBadRequest, "AccessDeniedException", "User is not authorized")

// hasCode tells whether err comes from an answer with this error code.
func hasCode(err error, code string) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == code
}

// logged is a logger and the lines that were written to it, without their times.
func logged() (*slog.Logger, func() []string) {
	w := &lockedBuffer{}
	h := slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	return slog.New(h), func() []string {
		w.mu.Lock()
		defer w.mu.Unlock()
		return strings.FieldsFunc(w.b.String(), func(r rune) bool { return r == '\n' })
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *lockedBuffer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

// keys is a primary key: attribute name and type, the partition key first.
type keys []struct{ name, kind string }

var ourKeys = keys{{"pid", "S"}, {"seq", "N"}}

// makeTable makes a table past the fault layer.
func makeTable(t *testing.T, db *dynactortest.DB, name string, k keys) {
	t.Helper()
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest}
	for i, a := range k {
		role := []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &a.name, KeyType: role})
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: &a.name, AttributeType: types.ScalarAttributeType(a.kind),
		})
	}
	client, _ := db.NewClient()
	if _, err := client.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// describe describes a table past the fault layer.
func describe(t *testing.T, db *dynactortest.DB, table string) *types.TableDescription {
	t.Helper()
	client, _ := db.NewClient()
	out, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	return out.Table
}

// expiry is the attribute by which a table expires items, empty for none.
func expiry(t *testing.T, db *dynactortest.DB, table string) string {
	t.Helper()
	client, _ := db.NewClient()
	out, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	d := out.TimeToLiveDescription
	if d.TimeToLiveStatus != types.TimeToLiveStatusEnabled && d.TimeToLiveStatus != types.TimeToLiveStatusEnabling {
		return ""
	}
	return aws.ToString(d.AttributeName)
}

// putItem writes an item past the fault layer.
func putItem(t *testing.T, db *dynactortest.DB, table string, it map[string]types.AttributeValue) {
	t.Helper()
	client, _ := db.NewClient()
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: it}); err != nil {
		t.Fatal(err)
	}
}

// editTable changes descriptions of tables.
func editTable(edit func(table map[string]any)) dynactortest.Action {
	return dynactortest.EditAnswer(func(_ string, body []byte) []byte {
		var out map[string]map[string]any
		if json.Unmarshal(body, &out) != nil || out["Table"] == nil {
			return body // an error stays one
		}
		edit(out["Table"])
		edited, _ := json.Marshal(out)
		return edited
	})
}

// status makes a table be in another state.
func status(state string) dynactortest.Action {
	return editTable(func(table map[string]any) { table["TableStatus"] = state })
}

// tableItem is the item in which a table describes itself.
func tableItem(format, layout string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pid": &types.AttributeValueMemberS{Value: "__dynactor__"}, "seq": &types.AttributeValueMemberN{Value: "0"},
		"fmt": &types.AttributeValueMemberN{Value: format}, "layout": &types.AttributeValueMemberS{Value: layout},
	}
}
