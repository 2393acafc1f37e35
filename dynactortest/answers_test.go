package dynactortest_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor/dynactortest"
)

func TestCutBodyBreaksTheAnswer(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, 0, 1, 50} {
		db := newTable(t)
		fill(t, db, 1, 1000)
		db.Faults.Add(dynactortest.Rule{Do: dynactortest.CutBody(n)})
		_, err := db.Client.Query(t.Context(), queryInput(db), once)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut after %d bytes: got %v, want an unexpected EOF", n, err)
		}
		if got := db.Faults.Requests()[0]; got.Status != 200 || got.Usage.ReadUnits != 1 {
			t.Errorf("cut after %d bytes: recorded %v, usage %v", n, got, got.Usage)
		}
	}
}

// answering is a server that gives every request the same answer.
type answering struct {
	header http.Header
	body   string
}

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: a.header, Body: io.NopCloser(strings.NewReader(a.body))}, nil
}

func TestFlipByteIsFoundByTheChecksum(t *testing.T) {
	t.Parallel()
	sum := func(body string) string { return strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(body))), 10) }
	tests := []struct {
		name, body, sum, want string
	}{
		{"a letter in the middle", `{"Item":{"data":{"B":"abcd"}}}`, "", `{"Item":{"data":{"C":"abcd"}}}`},
		{"a digit behind the middle", `{"":"1"}`, "", `{"":"0"}`},
		{"no letter", `{}`, "", `{} `},
		{"the server's own checksum stays", `{"N":"12"}`, sum(`{"N":"12"}`), `{"N":"02"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			header := http.Header{}
			if tt.sum != "" {
				header.Set("X-Amz-Crc32", tt.sum)
			}
			faults := dynactortest.NewFaults(answering{header, tt.body})
			faults.Add(dynactortest.Rule{Do: dynactortest.FlipByte()})
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
			resp, err := faults.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(sum(tt.body), resp.Header.Get("X-Amz-Crc32")); diff != "" {
				t.Errorf("checksum (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHideItemsShowsTheRest(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	fill(t, db, 4, 1)
	second := func(item map[string]any) bool { return cmp.Equal(item["seq"], map[string]any{"N": "2"}) }
	db.Faults.Add(dynactortest.Rule{Do: dynactortest.HideItems(second)})

	query := queryInput(db)
	query.Limit = aws.Int32(2)
	page, err := db.Client.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1}, seqs(page.Items)); diff != "" {
		t.Errorf("first page (-want +got):\n%s", diff)
	}
	if page.Count != 1 || page.ScannedCount != 1 {
		t.Errorf("Count %d and ScannedCount %d, want 1", page.Count, page.ScannedCount)
	}
	got, err := pages(t.Context(), db, queryInput(db))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]int{{1, 3, 4}}, got); diff != "" {
		t.Errorf("query (-want +got):\n%s", diff)
	}
	scan, err := db.Client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &db.EventsTable})
	if err != nil {
		t.Fatal(err)
	}
	if scan.Count != 3 {
		t.Errorf("scan shows %v", seqs(scan.Items))
	}
	for seq, want := range map[int]bool{1: true, 2: false} {
		out, err := db.Client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &db.EventsTable, Key: key(seq)})
		if err != nil || (out.Item != nil) != want {
			t.Errorf("GetItem %d: got %v, %v, want an item: %v", seq, out.Item, err, want)
		}
	}
}

func TestHideItemsLeavesErrorsAlone(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	all := func(map[string]any) bool { return true }
	db.Faults.Add(dynactortest.Rule{Do: dynactortest.Sequence(dynactortest.HideItems(all), dynactortest.Throttle())})
	_, err := db.Client.Query(t.Context(), queryInput(db), once)
	if !as[*types.ProvisionedThroughputExceededException](err) {
		t.Errorf("got %v, want a throttle", err)
	}
}

func TestEditAnswerKeepsTheChecksumRight(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	fill(t, db, 2, 1)
	db.Faults.Add(dynactortest.Rule{Do: dynactortest.EditAnswer(func(op string, body []byte) []byte {
		if op != "Query" {
			t.Errorf("op is %q", op)
		}
		return bytes.ReplaceAll(body, []byte(`"2"`), []byte(`"22"`))
	})})
	got, err := pages(t.Context(), db, queryInput(db))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]int{{1, 22}}, got); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

func TestStripOldItem(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	// Stands in for the server, so that it returns old items on every ring.
	old := `{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"no","Item":{"seq":{"N":"1"}},` +
		`"CancellationReasons":[{"Code":"None"},{"Code":"ConditionalCheckFailed","Item":{"seq":{"N":"1"}}}]}`
	failed := func(code string) dynactortest.Action {
		return dynactortest.Sequence(
			dynactortest.EditAnswer(func(string, []byte) []byte { return []byte(fmt.Sprintf(old, code)) }),
			dynactortest.Answer(400, code, ""))
	}
	const one, many = "ConditionalCheckFailedException", "TransactionCanceledException"
	for _, strip := range []bool{false, true} {
		db.Faults.Clear()
		for op, code := range map[string]string{"PutItem": one, "TransactWriteItems": many} {
			do := failed(code)
			if strip {
				do = dynactortest.Sequence(dynactortest.StripOldItem(), do)
			}
			db.Faults.Add(dynactortest.Rule{Op: op, Do: do})
		}
		var single *types.ConditionalCheckFailedException
		if err := put(t.Context(), db, 1, 1); !errors.As(err, &single) || (single.Item == nil) != strip {
			t.Errorf("strip %v: PutItem returned %v", strip, err)
		}
		_, err := db.Client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{{Put: &types.Put{TableName: &db.EventsTable, Item: item(1, 1)}}},
		}, once)
		var multiple *types.TransactionCanceledException
		if !errors.As(err, &multiple) || (multiple.CancellationReasons[1].Item == nil) != strip {
			t.Errorf("strip %v: TransactWriteItems returned %v", strip, err)
		}
	}
}
