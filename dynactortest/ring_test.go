package dynactortest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// fatalTB is a test that only notes why it was ended.
type fatalTB struct {
	testing.TB

	fatal string
}

type ended struct{}

func (f *fatalTB) Helper() {}

func (f *fatalTB) Fatalf(format string, args ...any) {
	f.fatal = fmt.Sprintf(format, args...)
	panic(ended{})
}

func serverOf(tb testing.TB) (ring, endpoint string) {
	tb.Helper()
	defer func() { _, _ = recover().(ended) }()
	return server(tb)
}

func TestServerFollowsTheEnvironment(t *testing.T) {
	// An image that no machine can start, with or without a container runtime.
	t.Setenv("DYNACTOR_TEST_IMAGE", "127.0.0.1:1/no/such/image:1")
	shared := sharedContainer
	t.Cleanup(func() { sharedContainer = shared })
	sharedContainer = sync.OnceValues(startContainer)
	tests := []struct {
		name           string
		endpoint, ring string
		wantRing       string
		wantURL        string
		wantFatal      string
	}{
		{name: "nothing set", wantRing: "embedded", wantURL: sharedEmbedded().URL},
		{name: "embedded", ring: "embedded", wantRing: "embedded", wantURL: sharedEmbedded().URL},
		{name: "a server", endpoint: "http://127.0.0.1:9", wantRing: "emulator", wantURL: "http://127.0.0.1:9"},
		{
			name: "a server wins", endpoint: "http://127.0.0.1:9", ring: "emulator",
			wantRing: "emulator", wantURL: "http://127.0.0.1:9",
		},
		{name: "a container that cannot start", ring: "emulator", wantFatal: "the emulator ring needs a container: "},
		{name: "a ring unknown", ring: "gold", wantFatal: `DYNACTOR_RING is "gold"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("DYNAMODB_ENDPOINT", tt.endpoint)
			t.Setenv("DYNACTOR_RING", tt.ring)
			tb := &fatalTB{TB: t}
			ring, url := serverOf(tb)
			if ring != tt.wantRing || url != tt.wantURL {
				t.Errorf("got %q at %q, want %q at %q", ring, url, tt.wantRing, tt.wantURL)
			}
			if !strings.HasPrefix(tb.fatal, tt.wantFatal) || (tb.fatal == "") != (tt.wantFatal == "") {
				t.Errorf("fatal: got %q, want %q", tb.fatal, tt.wantFatal)
			}
		})
	}
}
