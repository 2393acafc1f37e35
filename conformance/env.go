package conformance

import (
	"errors"
	"fmt"
)

// Errors are a store's own errors, as errors.Is finds them. Where one is nil, any
// error is taken for it, and a case cannot tell one kind from another.
type Errors struct {
	Conflict error // another writer was there first; nothing was stored
	Unknown  error // the write may have been stored
	Gap      error // the stream has a hole
	Decode   error // a stored item cannot be understood
	TooLarge error // over a limit; nothing was stored
	Invalid  error // an argument that is not acceptable; nothing was stored
	Lost     error // no snapshot stands in for deleted events
	Ahead    error // a snapshot covers events that are not there
}

// Trouble is what happens to the requests of a store from now on. A store that can
// never meet one of the kinds, because it has no batches for instance, takes it
// for Calm: its cases then ask for what must hold anyway.
type Trouble int

// The kinds of trouble.
const (
	Calm       Trouble = iota // no more trouble
	LoseAnswer                // the next write is done, and its first answer lost; the store may try again
	LoseAll                   // the next write is done, and no answer to it arrives; its repetitions are refused
	FailWrites                // no write reaches the store, and each fails
	FailReads                 // each read fails
	HalfBatch                 // of the next write in a batch, only a part is done, and the rest is handed back
	Throttle                  // the next two writes are refused for lack of capacity
	InProgress                // the next two writes of several events are refused, as if the same ones were still under way
	StuckBatch                // of each write in a batch, nothing is done, and all of it is handed back
)

// Harm is what is done to a stored item behind the store's back.
type Harm int

// The kinds of harm.
const (
	Lose  Harm = iota // the item is removed
	Spoil             // the item cannot be decoded any more
)

// Limit is what a store cannot hold. For [Limits] a journal needs Events and Bytes,
// other stores Bytes; other fields that are zero are not tried.
type Limit struct {
	// Events is the most events of one append.
	Events int
	// Bytes is a size in bytes at which a message alone is too large.
	Bytes int
	// Together is a size in bytes at which an append of Events messages is too large, though
	// each of them is not. Zero where there is no such limit.
	Together int
	// ID is the longest persistence id in bytes.
	ID int
	// Seq is the highest sequence number; zero: math.MaxInt64-1.
	Seq int64
}

// want checks that an operation failed, and with the right kind of error.
func want(what string, got, kind error) error {
	switch {
	case got == nil:
		return fmt.Errorf("%s: no error", what)
	case kind != nil && !errors.Is(got, kind):
		return fmt.Errorf("%s: the error is %w, want one that matches %v", what, got, kind) //nolint:errorlint // a sentinel is shown, not wrapped
	}
	return nil
}

// wantConflict wants a conflict, and not one that might have been stored.
func (e Errors) wantConflict(what string, got error) error {
	if e.Unknown != nil && errors.Is(got, e.Unknown) {
		return fmt.Errorf("%s: the outcome is called unknown: %w", what, got)
	}
	return want(what, got, e.Conflict)
}

// wantUnknown wants an error that promises neither success nor failure.
func (e Errors) wantUnknown(what string, got error) error {
	if e.Conflict != nil && errors.Is(got, e.Conflict) {
		return fmt.Errorf("%s: it is called a conflict: %w", what, got)
	}
	return want(what, got, e.Unknown)
}

// first returns the first error of several steps, which are all done before.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
