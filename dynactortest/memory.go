package dynactortest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/dynactor/dynactor"
)

// Memory keeps events, snapshots and durable state in memory, by the same rules
// as the library keeps them in DynamoDB, for unit tests of actors. It is a
// persistence.Provider. It is strict: every message is encoded and decoded again,
// an index that is not the next is refused, and errors are the library's own. The
// zero Memory can be used, and so can one with its fields set; they must not change after that. It
// is safe for concurrent use.
//
// What it lacks: ids that the framework generates are taken, upcasters and
// resolvers are not used, and deleted events are gone at once.
type Memory struct {
	// SnapshotInterval asks the actor for a snapshot every so many events. Zero: never.
	SnapshotInterval int
	// KeepSnapshots is how many snapshots a session keeps. Zero: all.
	KeepSnapshots int
	// SnapshotTTL lets snapshots expire so long after they were saved, unless they
	// stand in for deleted events. Zero: they do not.
	SnapshotTTL time.Duration
	// Now is the wall clock. Nil: time.Now. It must be safe for concurrent use.
	Now func() time.Time

	mu        sync.Mutex
	streams   map[string]*memoryStream
	snapshots map[string]map[int64]memoryRecord
	states    map[string]memoryState
	mishap    Mishap
	handed    []handedOut
}

// Mishap is what happens to all requests of a [Memory].
type Mishap int

// The mishaps.
const (
	NoMishap    Mishap = iota
	AnswersLost        // writes are done, and fail with ErrOutcomeUnknown
	WritesFail         // writes fail with ErrThrottled, and nothing is stored
	ReadsFail          // reads fail with ErrThrottled
)

// memoryStream is a stream of events. All numbers from del+1 to the head are
// present, unless Lose has removed one.
type memoryStream struct {
	events map[int64]memoryRecord
	head   int64
	del    int64
}

// memoryRecord is a stored message.
type memoryRecord struct {
	name string
	data []byte
	tags []string
	meta map[string]string
	made time.Time
	ends time.Time // when it expires; zero for never
}

// handedOut is a message that a caller shares with the store, as it was then.
type handedOut struct {
	what string
	m    proto.Message
	was  proto.Message
}

// NewMemory makes an empty Memory.
func NewMemory() *Memory { return &Memory{} }

// Meet lets all requests meet a mishap from now on.
func (m *Memory) Meet(mishap Mishap) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mishap = mishap
}

// Lose removes the event with a number, as no program should. Reading the stream
// is [dynactor.ErrGap] from then on.
func (m *Memory) Lose(id string, seq int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.streams[id]; s != nil {
		delete(s.events, seq)
	}
}

// StartAt lets a new stream go on after a number, as if that many events had been
// appended and deleted. A stream that has events is left as it is.
func (m *Memory) StartAt(id string, seq int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.stream(id); s.head == 0 {
		s.head, s.del = seq, seq
		m.make()
		m.streams[id] = s
	}
}

// Spoil makes the event and the snapshot with a number, and the state at that
// revision, undecodable. Reading them is [dynactor.ErrDecode] from then on.
func (m *Memory) Spoil(id string, seq int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	spoil := func(records map[int64]memoryRecord) {
		if r, ok := records[seq]; ok {
			r.name = "spoiled." + r.name
			records[seq] = r
		}
	}
	if s := m.streams[id]; s != nil {
		spoil(s.events)
	}
	spoil(m.snapshots[id])
	if st := m.states[id]; st.revision == seq && seq > 0 {
		st.record.name = "spoiled." + st.record.name
		m.states[id] = st
	}
}

// Aliased names the events and snapshots whose message was changed by the actor
// after a session had persisted it. With a store that keeps bytes the change does
// no harm, but an actor that changes its events goes another way than its
// replay does. Call it when the actors have stopped.
func (m *Memory) Aliased() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []string
	for _, h := range m.handed {
		if !proto.Equal(h.m, h.was) {
			list = append(list, h.what)
		}
	}
	return list
}

// share remembers a message that a session was given.
func (m *Memory) share(what, id string, seq int64, msg proto.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handed = append(m.handed, handedOut{what: fmt.Sprintf("%s %d of %q", what, seq, id), m: msg, was: proto.Clone(msg)})
}

// begin locks, and refuses what must be refused before anything is looked at.
func (m *Memory) begin(id string, fails Mishap) (unlock func(), err error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	return m.lock(fails)
}

// lock locks, unless requests of a kind are to fail.
func (m *Memory) lock(fails Mishap) (unlock func(), err error) {
	m.mu.Lock()
	m.make()
	if m.mishap == fails {
		m.mu.Unlock()
		return nil, fmt.Errorf("%w: as Meet has asked", dynactor.ErrThrottled)
	}
	return m.mu.Unlock, nil
}

// make makes the maps of the zero Memory.
func (m *Memory) make() {
	if m.streams == nil {
		m.streams = map[string]*memoryStream{}
		m.snapshots = map[string]map[int64]memoryRecord{}
		m.states = map[string]memoryState{}
	}
}

// outcome is what the caller of a write that was done hears.
func (m *Memory) outcome() error {
	if m.mishap == AnswersLost {
		return fmt.Errorf("%w: as Meet has asked", dynactor.ErrOutcomeUnknown)
	}
	return nil
}

// stream returns a stream, which is only kept when it is written to.
func (m *Memory) stream(id string) *memoryStream {
	if s := m.streams[id]; s != nil {
		return s
	}
	return &memoryStream{events: map[int64]memoryRecord{}}
}

// maxMemoryItem is about the size of an item that DynamoDB takes.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const maxMemoryItem = 400 << 10

// maxMemoryID is the longest persistence id of the library, in bytes.
const maxMemoryID = 1024

func checkID(id string) error {
	if id == "" || len(id) > maxMemoryID || !utf8.ValidString(id) {
		return fmt.Errorf("%w: persistence id %q", dynactor.ErrInvalid, id)
	}
	return nil
}

// now is the wall-clock time in full milliseconds, as the library stores it.
func (m *Memory) now() time.Time {
	if m.Now != nil {
		return time.UnixMilli(m.Now().UnixMilli())
	}
	return time.UnixMilli(time.Now().UnixMilli())
}

// ended tells whether a record has expired.
func (m *Memory) ended(r memoryRecord) bool { return !r.ends.IsZero() && !r.ends.After(m.now()) }

func (m *Memory) newRecord(msg proto.Message) (memoryRecord, error) {
	if msg == nil || !msg.ProtoReflect().IsValid() {
		return memoryRecord{}, fmt.Errorf("%w: message is nil", dynactor.ErrInvalid)
	}
	data, err := proto.Marshal(msg)
	if err != nil {
		return memoryRecord{}, fmt.Errorf("%w: %w", dynactor.ErrInvalid, err)
	}
	if len(data) > maxMemoryItem {
		return memoryRecord{}, fmt.Errorf("%w: message of %d bytes", dynactor.ErrTooLarge, len(data))
	}
	return memoryRecord{
		name: string(msg.ProtoReflect().Descriptor().FullName()), data: data,
		made: m.now(),
	}, nil
}

func (r memoryRecord) decode() (proto.Message, error) {
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(r.name))
	if err != nil {
		return nil, fmt.Errorf("%w: type %q: %w", dynactor.ErrDecode, r.name, err)
	}
	msg := t.New().Interface()
	if err := proto.Unmarshal(r.data, msg); err != nil {
		return nil, fmt.Errorf("%w: bytes of type %q: %w", dynactor.ErrDecode, r.name, err)
	}
	return msg, nil
}

// distinct returns tags in order, each once; nil for none.
func distinct(tags []string) []string {
	if len(tags) == 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(tags)))
}

// failed makes the library's error.
func failed(op, id string, index int64, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*dynactor.Error](err); ok {
		return e
	}
	return &dynactor.Error{Op: op, ID: id, Index: index, Err: err}
}
