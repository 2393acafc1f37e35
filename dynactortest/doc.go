// Package dynactortest gives tests a DynamoDB of their own, and a fault layer
// between the SDK and that DynamoDB.
//
// [New] is the way in:
//
//	db := dynactortest.New(t)
//	db.Faults.Add(dynactortest.Rule{Op: "PutItem", Times: 1, Do: dynactortest.DropAnswer()})
//	// use db.Client with db.EventsTable, then look at db.Faults.Requests()
//
// # Rings
//
// The same tests run against three servers:
//
//   - embedded, the default: [kumo] in this process. Nothing to install. It
//     lacks DynamoDB's limits, so a layer adds 1 MB pages and refuses items over
//     400 KB and transactions over 4 MB. It does not return old items on failed conditions, knows no
//     idempotency tokens, and of update expressions only SET x = :v is
//     reliable.
//   - emulator: a container, when DYNACTOR_RING is "emulator". Its image is
//     DYNACTOR_TEST_IMAGE, by default a pinned amazon/dynamodb-local. It is
//     started once in each test process. If it cannot start, tests fail.
//   - emulator: any server, when DYNAMODB_ENDPOINT holds its URL.
//
// # Faults
//
// [Faults] records every request, adds up what the requests cost, and applies
// rules. A [Rule] says which requests it means and which [Action] they meet:
// an answer lost after the write, a delay, a throttle, half a batch, a body cut
// short. Actions that change a request break its signature, which local
// servers do not check and AWS does.
//
// # Leak checks
//
// The embedded server outlives the tests that use it. [IgnoreServer] lists its
// goroutines for go.uber.org/goleak.
//
// [kumo]: https://github.com/sivchari/kumo
package dynactortest
