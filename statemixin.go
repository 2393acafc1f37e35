package dynactor

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/protobuf/proto"
)

// StateLoaded is what an actor under [UsingState] receives when it has started,
// before any other message. Without a value its Message is nil.
type StateLoaded struct{ State }

// StateMixin is for embedding in an actor whose state is one value without a
// history. It needs [UsingState] or clustered.UsingState. All methods are for the
// actor's own goroutine, and those that write are for after [StateLoaded].
//
// A method that writes returns an error for what was refused before anything was
// sent: a value that cannot be encoded or is too large, a bad tag, an end in the
// past, a state that is not loaded. Nothing is stored then, and the actor is as it
// was. After every other failure it panics with an [*Error]: the actor's state may
// no longer be what is stored, so it must restart and load it. So it is when a
// second activation of the actor has saved first: nothing is overwritten.
type StateMixin struct {
	state *stateActivation
}

func (m *StateMixin) attachState(a *stateActivation) { m.state = a }

// StateID is the id of the actor's state; empty before the actor has started.
func (m *StateMixin) StateID() string {
	if m.state == nil {
		return ""
	}
	return m.state.id
}

// Revision is the revision of the actor's state; 0 when there is no row of it, and
// before it is loaded.
func (m *StateMixin) Revision() int64 {
	if m.state == nil {
		return 0
	}
	return m.state.revision
}

// SaveState stores a value in the place of the one before, in one request. It can
// be 400 KB with its id and tags (ErrTooLarge).
func (m *StateMixin) SaveState(value proto.Message) error {
	return m.state.save("save state", State{Message: value}, nil)
}

// PutState is SaveState for a value with tags or an end. When a value ends, the
// actor is not told; it finds no value when it starts again.
func (m *StateMixin) PutState(state State) error {
	return m.state.save("save state", state, nil)
}

// PutStateWith is PutState in one transaction with writes of your own, as
// [StateStore.SaveWith]. It returns the failed condition of one of these, an error
// with an [*ExtraError] in its chain: nothing is stored then.
func (m *StateMixin) PutStateWith(state State, extra ...types.TransactWriteItem) error {
	return m.state.save("save state", state, extra)
}

// DeleteState removes the value, in one request. The revision goes on. Where nothing
// was ever saved it does nothing.
func (m *StateMixin) DeleteState() error { return m.state.remove("delete state") }

var errNoState = fmt.Errorf("%w: the actor has not started, or dynactor.UsingState is missing", ErrInvalid)
