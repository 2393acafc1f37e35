package dynactor_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dynactor/dynactor"
	"github.com/dynactor/dynactor/dynactortest"
)

// quiet keeps the examples' logs out of the way. An operator wants them.
var quiet = slog.New(slog.DiscardHandler)

// A provider on a client of your own, for settings that Open does not have.
func ExampleNew() {
	server := dynactortest.NewEmbedded()
	defer server.Close()

	client := dynamodb.NewFromConfig(dynactortest.Config(server.URL)) // or your own aws.Config
	provider, err := dynactor.New(client, dynactor.Options{
		SnapshotInterval: 100, // every 100 events
		Logger:           quiet,
	})
	if err != nil {
		log.Fatal(err)
	}
	// Optional: the first use does it, too.
	if err := provider.EnsureTables(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("tables are ready:", provider.VerifyTables(context.Background()) == nil)

	// All that is wrong with the options is named at once.
	_, err = dynactor.New(client, dynactor.Options{EventsTable: "ev", ReadTimeout: -1})
	fmt.Println(errors.Is(err, dynactor.ErrInvalid))
	fmt.Println(err)
	// Output:
	// tables are ready: true
	// true
	// dynactor: new provider: invalid argument: EventsTable "ev" is not 3 to 255 of a-z, A-Z, 0-9, _, ., -
	// ReadTimeout -1ns is negative
}

// A provider with the standard AWS configuration, here for a server on this
// machine, which needs none.
func ExampleOpen() {
	ctx := context.Background()
	server := dynactortest.NewEmbedded()
	defer server.Close()

	provider, err := dynactor.Open(ctx, dynactor.Options{Endpoint: server.URL, Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	head, err := provider.Journal().Append(ctx, "bob", 0, wrapperspb.Int64(100))
	fmt.Println(head, err)

	// Close waits for what is in flight.
	fmt.Println(provider.Close(ctx))
	_, err = provider.Journal().Head(ctx, "bob")
	fmt.Println(errors.Is(err, dynactor.ErrClosed))
	// Output:
	// 1 <nil>
	// <nil>
	// true
}

// openExample is Open on a server in this process.
func openExample() (provider *dynactor.Provider, stop func()) {
	server := dynactortest.NewEmbedded()
	provider, err := dynactor.Open(context.Background(), dynactor.Options{Endpoint: server.URL, Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	return provider, server.Close
}

// Events are appended all or none, after a head that the caller expects.
func ExampleJournal_Append() {
	provider, stop := openExample()
	defer stop()
	ctx, journal := context.Background(), provider.Journal()

	head, err := journal.Append(ctx, "carol", 0, wrapperspb.String("opened"), wrapperspb.String("verified"))
	fmt.Println(head, err)

	// Somebody else was faster, or it is the same append once more.
	head, err = journal.Append(ctx, "carol", 0, wrapperspb.String("opened"))
	fmt.Println(head, errors.Is(err, dynactor.ErrConflict))

	var e *dynactor.Error
	if errors.As(err, &e) {
		fmt.Printf("%s of %s at index %d\n", e.Op, e.ID, e.Index)
	}
	// Output:
	// 2 <nil>
	// 2 true
	// append of carol at index 0
}

func ExampleJournal_AppendEvents() {
	provider, stop := openExample()
	defer stop()
	ctx, journal := context.Background(), provider.Journal()

	_, err := journal.AppendEvents(ctx, "dave", 0, dynactor.Event{
		Message: wrapperspb.Int64(250),
		Tags:    []string{"deposit", "cash"},
		Meta:    map[string]string{"teller": "7"},
	})
	if err != nil {
		log.Fatal(err)
	}
	for event, err := range journal.Replay(ctx, "dave", 1, 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.Seq, event.Type, event.Tags, event.Meta["teller"])
	}
	// Output:
	// 1 google.protobuf.Int64Value [cash deposit] 7
}

// A replay ends with an error, or is complete.
func ExampleJournal_Replay() {
	provider, stop := openExample()
	defer stop()
	ctx, journal := context.Background(), provider.Journal()
	if _, err := journal.Append(ctx, "erin", 0, wrapperspb.Int64(10), wrapperspb.Int64(20), wrapperspb.Int64(30)); err != nil {
		log.Fatal(err)
	}

	for event, err := range journal.Replay(ctx, "erin", 2, 0) { // from the second to the head
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.Seq, event.Message.(*wrapperspb.Int64Value).GetValue())
	}
	// Output:
	// 2 20
	// 3 30
}

func ExampleProvider_Snapshots() {
	provider, stop := openExample()
	defer stop()
	ctx, snapshots := context.Background(), provider.Snapshots()

	// The state after the first 100 events, and after 200.
	for _, seq := range []int64{100, 200} {
		if err := snapshots.Save(ctx, "frank", seq, wrapperspb.Int64(seq*5)); err != nil {
			log.Fatal(err)
		}
	}
	newest, found, err := snapshots.Latest(ctx, "frank")
	if err != nil {
		log.Fatal(err) // it does not say that there is none
	}
	fmt.Println(found, newest.Seq, newest.Message.(*wrapperspb.Int64Value).GetValue())
	fmt.Println(snapshots.List(ctx, "frank"))
	// Output:
	// true 200 1000
	// [100 200] <nil>
}
