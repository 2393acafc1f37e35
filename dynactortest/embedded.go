package dynactortest

import (
	"sync"

	"github.com/sivchari/kumo"
	"go.uber.org/goleak"
)

// Embedded is a DynamoDB in this process, for programs and examples. It is kumo
// as it is: no pages, no limits. All of them in one process share their tables.
type Embedded struct {
	// URL is the endpoint for [Config].
	URL string

	server *kumo.Server
}

// NewEmbedded starts an embedded DynamoDB on a free port of the local host. The
// caller closes it.
func NewEmbedded() *Embedded {
	s := kumo.NewServer()
	return &Embedded{URL: s.URL, server: s}
}

// Close stops the server. Its tables stay for the next one in this process.
func (e *Embedded) Close() { e.server.Close() }

// sharedEmbedded is the one server that all tests of a process share.
var sharedEmbedded = sync.OnceValue(NewEmbedded)

// IgnoreServer lists the goroutines of the servers that outlive the tests, and one
// of Proto.Actor that outlives a dead letter by a second, for
// goleak.VerifyTestMain and goleak.VerifyNone.
func IgnoreServer() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/sivchari/kumo/internal/service/dynamodb.(*MemoryStorage).ttlReaper"),
		goleak.IgnoreAnyFunction("net/http/httptest.(*Server).goServe.func1"),
		goleak.IgnoreAnyFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"),
		goleak.IgnoreAnyFunction("github.com/testcontainers/testcontainers-go.(*Reaper).connect.func1"),
	}
}
