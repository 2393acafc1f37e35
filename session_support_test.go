package dynactor_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/persistence"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// events checks what a session delivers.
func events(t *testing.T, s persistence.ProviderState, id string, start, end int, want ...string) {
	t.Helper()
	var got []string
	s.GetEvents(id, start, end, func(e any) { got = append(got, textOf(e)) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events from %d to %d (-want +got):\n%s", start, end, diff)
	}
}

// isError checks that a session's panic is one for a cause.
func isError(t *testing.T, err *dynactor.Error, want error) {
	t.Helper()
	if err == nil || !errors.Is(err, want) {
		t.Errorf("got %v, want an error that matches %q", err, want)
	}
}

// saveSnapshot saves one with its number as its text.
func saveSnapshot(t *testing.T, p *dynactor.Provider, id string, seq int) {
	t.Helper()
	if err := p.Snapshots().Save(t.Context(), id, int64(seq), text(strconv.Itoa(seq))); err != nil {
		t.Fatal(err)
	}
}

// itemKey is the primary key of an item.
func itemKey(id string, seq int) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pid": &types.AttributeValueMemberS{Value: id},
		"seq": &types.AttributeValueMemberN{Value: strconv.Itoa(seq)},
	}
}

// dropItem removes an item behind the library's back.
func dropItem(t *testing.T, db *dynactortest.DB, table, id string, seq int) {
	t.Helper()
	_, err := db.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: itemKey(id, seq)})
	if err != nil {
		t.Fatal(err)
	}
}

// garble gives an item a type that nobody knows, behind the library's back.
func garble(t *testing.T, db *dynactortest.DB, table, id string, seq int) {
	t.Helper()
	out, err := db.Client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: itemKey(id, seq), ConsistentRead: aws.Bool(true)})
	if err != nil || len(out.Item) == 0 {
		t.Fatal(err, out.Item)
	}
	out.Item["type"] = &types.AttributeValueMemberS{Value: "nobody.Knows"}
	if _, err := db.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: out.Item}); err != nil {
		t.Fatal(err)
	}
}

// stored lists the numbers of the event items that are in the table.
func stored(t *testing.T, db *dynactortest.DB, id string) []int64 {
	t.Helper()
	out, err := db.Client.Query(t.Context(), &dynamodb.QueryInput{
		TableName: &db.EventsTable, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("pid = :id AND seq >= :lo"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":id": &types.AttributeValueMemberS{Value: id}, ":lo": &types.AttributeValueMemberN{Value: "1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var seqs []int64
	for _, it := range out.Items {
		n, err := strconv.ParseInt(it["seq"].(*types.AttributeValueMemberN).Value, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, n)
	}
	return seqs
}

// watcher sees the failures that a provider reports.
type watcher struct {
	log    *errorLog
	reader *metric.ManualReader
}

// observe makes a provider whose failures are seen.
func observe(t *testing.T, o dynactor.Options) (*dynactor.Provider, *dynactortest.DB, watcher) {
	t.Helper()
	w := watcher{log: &errorLog{}, reader: metric.NewManualReader()}
	o.Logger = slog.New(w.log)
	o.MeterProvider = metric.NewMeterProvider(metric.WithReader(w.reader))
	p, db := open(t, o)
	return p, db, w
}

// failures are the counts of dynactor.failures, by operation.
func (w watcher) failures(t *testing.T) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := w.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if !ok || m.Name != "dynactor.failures" {
				continue
			}
			for _, point := range sum.DataPoints {
				op, _ := point.Attributes.Value("op")
				counts[op.AsString()] += point.Value
			}
		}
	}
	return counts
}

// errorLog keeps the errors that are logged at ERROR.
type errorLog struct {
	mu   sync.Mutex
	errs []*dynactor.Error
}

func (l *errorLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }
func (l *errorLog) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *errorLog) WithGroup(string) slog.Handler                    { return l }

// Handle makes the error anew from what was logged about it.
func (l *errorLog) Handle(_ context.Context, r slog.Record) error {
	e := &dynactor.Error{}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "op":
			e.Op = a.Value.String()
		case "persistence_id":
			e.ID = a.Value.String()
		case "index":
			e.Index = a.Value.Int64()
		case "error":
			e.Err, _ = a.Value.Any().(error)
		}
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, e)
	return nil
}

func (l *errorLog) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.errs)
}

// last is the error logged last, nil for none.
func (l *errorLog) last() *dynactor.Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.errs) == 0 {
		return nil
	}
	return l.errs[len(l.errs)-1]
}
