package dynactor_test

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
)

// blob is a message that takes n bytes and a few more.
func blob(n int) proto.Message { return wrapperspb.Bytes(make([]byte, n)) }

// blobs are n messages of that size.
func blobs(n, size int) []proto.Message {
	list := make([]proto.Message, n)
	for i := range list {
		list[i] = blob(size)
	}
	return list
}

// patient are options with time for large items.
func patient(o dynactor.Options) dynactor.Options {
	o.ReadTimeout, o.WriteTimeout = 2*time.Minute, 2*time.Minute
	return o
}

// E06: our check and the server's agree within 1 KB, and ours is the stricter.
func TestSize_E06_LargestItem(t *testing.T) {
	t.Parallel()
	tags := make([]string, 20)
	meta := map[string]string{}
	for i := range tags {
		tags[i] = fmt.Sprint("étiquette-", i)
		meta[fmt.Sprint("clé-", i)] = strings.Repeat("ü", i)
	}
	for name, tc := range map[string]struct {
		o    dynactor.Options
		with dynactor.Event
		id   string
	}{
		"plain":             {id: "a"},
		"tags and metadata": {id: "kind/identité", with: dynactor.Event{Tags: tags, Meta: meta}},
		"long names, long id": {
			id: strings.Repeat("é", 500),
			o: dynactor.Options{Attributes: dynactor.AttributeNames{
				Data: strings.Repeat("d", 255), Timestamp: strings.Repeat("t", 255), Operation: strings.Repeat("ö", 100),
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.UnixMilli(1234567891234) // the size of a number depends on its digits
			tc.o.Now = func() time.Time { return now }
			p, db := open(t, patient(tc.o))
			ready(t, p, db)
			add := func(payload int) (int64, error) {
				e := tc.with
				e.Message = blob(payload)
				return p.Journal().AppendEvents(t.Context(), tc.id, 0, e)
			}
			// The refusal says by how much the item is too large.
			_, err := add(400 << 10)
			found := regexp.MustCompile(`has (\d+) bytes, at most (\d+)`).FindStringSubmatch(fmt.Sprint(err))
			if !errors.Is(err, dynactor.ErrTooLarge) || found == nil {
				t.Fatalf("got %v, want ErrTooLarge", err)
			}
			has, _ := strconv.Atoi(found[1])
			most, _ := strconv.Atoi(found[2])
			largest := 400<<10 - (has - most)
			if _, err := add(largest + 1); !errors.Is(err, dynactor.ErrTooLarge) {
				t.Errorf("one byte more than the largest: got %v, want ErrTooLarge", err)
			}
			if n := db.Faults.Count(""); n != 0 {
				t.Errorf("%d requests so far, want none", n)
			}
			if _, err := add(largest); err != nil {
				t.Fatalf("we let it through, and then: %v", err)
			}

			// The same item with 1 KB more, past us.
			client, _ := db.NewClient()
			in := &dynamodb.PutItemInput{TableName: &db.EventsTable, Item: only(t, client, db.EventsTable)}
			data := in.Item[cmp.Or(tc.o.Attributes.Data, "data")].(*types.AttributeValueMemberB)
			data.Value = append(data.Value, make([]byte, 1024)...)
			if _, err := client.PutItem(t.Context(), in); err == nil {
				t.Error("the server takes an item that is 1 KB larger")
			}
		})
	}
}

// only is the only item in a table but for the table's own.
func only(t *testing.T, client *dynamodb.Client, table string) map[string]types.AttributeValue {
	t.Helper()
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range out.Items {
		if it["fmt"] == nil {
			return it
		}
	}
	t.Fatal("the table is empty")
	return nil
}

func TestSize_TooLarge(t *testing.T) {
	t.Parallel()

	t.Run("J-39 is refused before any request, and the journal goes on", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		for name, events := range map[string][]proto.Message{
			"one item":              {blob(400 << 10)},
			"one item of several":   {blob(1), blob(400 << 10)},
			"J-38 D07 all together": blobs(11, 390<<10),
			"E12 too many":          blobs(101, 1),
		} {
			_, err := p.Journal().Append(t.Context(), "a", 0, events...)
			if e, ok := errors.AsType[*dynactor.Error](err); !ok || !errors.Is(e, dynactor.ErrTooLarge) || e.ID != "a" || e.Index != 0 {
				t.Errorf("%s: got %v, want ErrTooLarge of a at index 0", name, err)
			}
			if !strings.Contains(err.Error(), "at most ") {
				t.Errorf("%s: %v does not tell the limit", name, err)
			}
		}
		if err := p.Snapshots().Save(t.Context(), "a", 1, blob(400<<10)); !errors.Is(err, dynactor.ErrTooLarge) {
			t.Errorf("snapshot: got %v, want ErrTooLarge", err)
		}
		if n := db.Faults.Count(""); n != 0 {
			t.Errorf("%d requests for what cannot be stored", n)
		}
		if head, err := p.Journal().Append(t.Context(), "a", 0, blob(1)); head != 1 || err != nil {
			t.Errorf("the next append: %d, %v", head, err)
		}
	})

	t.Run("J-39 an actor goes on", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		s := p.GetState()
		recovered(s, "a")
		s.PersistEvent("a", 0, text("before"))
		err := caught(func() { s.PersistEvent("a", 1, blob(400<<10)) })
		if !errors.Is(err, dynactor.ErrTooLarge) || err.Index != 1 {
			t.Errorf("got %v, want ErrTooLarge at index 1", err)
		}
		s.PersistSnapshot("a", 1, blob(400<<10)) // logged
		s.PersistEvent("a", 1, text("after"))
		if got, err := replayed(t.Context(), p.Journal(), "a", 1, 0); err != nil || strings.Join(got, " ") != "before after" {
			t.Errorf("stored %v, %v", got, err)
		}
	})

	t.Run("S-23 leaves the old snapshot", func(t *testing.T) {
		t.Parallel()
		p, db := open(t, dynactor.Options{})
		ready(t, p, db)
		if err := p.Snapshots().Save(t.Context(), "a", 1, text("old")); err != nil {
			t.Fatal(err)
		}
		if err := p.Snapshots().Save(t.Context(), "a", 1, blob(400<<10)); !errors.Is(err, dynactor.ErrTooLarge) {
			t.Errorf("got %v, want ErrTooLarge", err)
		}
		if snap, ok, err := p.Snapshots().Latest(t.Context(), "a"); !ok || err != nil || textOf(snap.Message) != "old" {
			t.Errorf("loaded %v, %t, %v", snap, ok, err)
		}
	})
}

// E12, J-37, J-38: what fits in one transaction lands whole.
func TestSize_E12_LargestAppends(t *testing.T) {
	t.Parallel()
	for name, events := range map[string][]proto.Message{
		"97 events":                    blobs(97, 100),
		"99 events":                    blobs(99, 100),
		"100 events":                   blobs(100, 100),
		"D07 4 MB but for a few bytes": blobs(11, 4<<20/11-200),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, db := open(t, patient(dynactor.Options{}))
			ready(t, p, db)
			if _, err := p.Journal().Append(t.Context(), "a", 0, events...); err != nil {
				t.Fatal(err)
			}
			if n := db.Faults.Count("TransactWriteItems"); n != 1 {
				t.Errorf("%d transactions, want one", n)
			}
			if head, err := p.Journal().Head(t.Context(), "a"); head != int64(len(events)) || err != nil {
				t.Errorf("the head is %d, %v, want %d", head, err, len(events))
			}
		})
	}
}
