package clustered

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor"
)

// setTries is how often a value is set anew after another writer was faster.
const setTries = 10

// keyValues is a StateStore as the framework wants it: without revisions.
type keyValues[T proto.Message] struct {
	store  *dynactor.StateStore
	prefix string
}

// KeyValueStore makes a store of the framework's kind from one of state. The id of
// a key's state is the prefix and the key. As the interface knows no revisions, the
// last Set wins; one that another writer is faster than is tried again up to ten
// times. It is safe for concurrent use.
//
// It lets the subscribers of the framework's pub/sub outlast the topic's
// activation: register a kind cluster.TopicActorKind whose props make
// cluster.NewTopicActor(KeyValueStore[*cluster.Subscribers](store, "prototopic/"), logger).
func KeyValueStore[T proto.Message](store *dynactor.StateStore, prefix string) cluster.KeyValueStore[T] {
	return &keyValues[T]{store: store, prefix: prefix}
}

// Get returns the value of a key; the zero T, which is nil, when there is none.
func (s *keyValues[T]) Get(ctx context.Context, key string) (T, error) {
	value, _, err := dynactor.LoadState[T](ctx, s.store, s.prefix+key)
	return value, err
}

// Set stores the value of a key.
func (s *keyValues[T]) Set(ctx context.Context, key string, value T) error {
	return s.over(ctx, key, func(id string, revision int64) error {
		_, err := s.store.Save(ctx, id, revision, value)
		return err //nolint:wrapcheck // an error of our own
	})
}

// Clear deletes the value of a key. One that is not there is no error.
func (s *keyValues[T]) Clear(ctx context.Context, key string) error {
	return s.over(ctx, key, func(id string, revision int64) error {
		if revision == 0 {
			return nil
		}
		_, err := s.store.Delete(ctx, id, revision)
		return err //nolint:wrapcheck // an error of our own
	})
}

// over writes over the newest revision, whatever it is. A value that cannot be
// decoded may be replaced.
func (s *keyValues[T]) over(ctx context.Context, key string, write func(id string, revision int64) error) error {
	id := s.prefix + key
	st, err := s.store.Load(ctx, id)
	if err != nil && (!errors.Is(err, dynactor.ErrDecode) || st.Revision == 0) {
		return err //nolint:wrapcheck // an error of our own
	}
	revision := st.Revision
	for range setTries {
		err = write(id, revision)
		conflict, ok := errors.AsType[*dynactor.RevisionConflict](err)
		if !ok {
			return err
		}
		revision = conflict.Current
	}
	return err
}
