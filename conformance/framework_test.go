package conformance_test

import (
	"context"
	"os"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/persistence"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/dynactor/dynactor/conformance"
)

// frameworks is the framework's own provider in memory, with a lock around it: it
// has none that holds, and the race detector would stop the test.
type frameworks struct {
	mu sync.Mutex
	*persistence.InMemoryProvider
}

func (p *frameworks) GetState() persistence.ProviderState { return p }

func (p *frameworks) GetSnapshot(id string) (any, int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.InMemoryProvider.GetSnapshot(id)
}

func (p *frameworks) GetEvents(id string, start, end int, f func(any)) {
	for _, e := range p.events(id, start, end) {
		f(e)
	}
}

func (p *frameworks) events(id string, start, end int) (list []any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.InMemoryProvider.GetEvents(id, start, end, func(e any) { list = append(list, e) })
	return list
}

func (p *frameworks) PersistEvent(id string, index int, e proto.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.InMemoryProvider.PersistEvent(id, index, e)
}

func (p *frameworks) PersistSnapshot(id string, index int, state proto.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.InMemoryProvider.PersistSnapshot(id, index, state)
}

// What the framework's own provider fails, for information, is listed in
// docs/testing.md. It has no hooks for trouble, damage, the list of snapshots and time.
func TestFrameworksInMemoryProvider(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var failing []string
	for _, c := range conformance.Provider() {
		if slices.ContainsFunc(c.Needs, func(f conformance.Feature) bool {
			return f == conformance.Faults || f == conformance.Tampering || f == conformance.Pruning || f == conformance.Expiry
		}) {
			continue
		}
		p := &frameworks{InMemoryProvider: persistence.NewInMemoryProvider(3)}
		err := c.Check(ctx, conformance.ProviderEnv{Provider: p, Another: func() persistence.Provider { return p }})
		if err != nil {
			t.Logf("%s: %v", c.Name, err)
			failing = append(failing, c.Name)
		}
	}
	page, err := os.ReadFile("../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, m := range regexp.MustCompile(`(?m)^- \x60(F-\d\d.*)\x60$`).FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, m[1])
	}
	if diff := cmp.Diff(listed, failing); diff != "" {
		t.Errorf("what the framework's provider fails (-docs/testing.md +now):\n%s", diff)
	}
}
