package dynactortest

import (
	"os"
	"testing"
)

const (
	ringEmbedded = "embedded"
	ringEmulator = "emulator"
)

// server returns the ring that the environment chooses and the URL of its
// server.
func server(tb testing.TB) (ring, endpoint string) {
	tb.Helper()
	if url := os.Getenv("DYNAMODB_ENDPOINT"); url != "" {
		return ringEmulator, url
	}
	switch choice := os.Getenv("DYNACTOR_RING"); choice {
	case "", ringEmbedded:
		return ringEmbedded, sharedEmbedded().URL
	case ringEmulator:
		url, err := sharedContainer()
		if err != nil {
			tb.Fatalf("the emulator ring needs a container: %v", err)
		}
		return ringEmulator, url
	default:
		tb.Fatalf("DYNACTOR_RING is %q, want %q or %q", choice, ringEmbedded, ringEmulator)
		return "", ""
	}
}
