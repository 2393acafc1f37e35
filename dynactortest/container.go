package dynactortest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

const defaultImage = "amazon/dynamodb-local:2.6.1"

// sharedContainer starts the one emulator that all tests of a process share.
// testcontainers removes it when the process ends.
var sharedContainer = sync.OnceValues(startContainer)

func startContainer() (url string, err error) {
	// testcontainers panics when it finds no container runtime.
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("no container runtime: %v", cause)
		}
	}()
	image := os.Getenv("DYNACTOR_TEST_IMAGE")
	if image == "" {
		image = defaultImage
	}
	const port = "8000/tcp"
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) //nolint:forbidigo // it outlives the test that is first to need it
	defer cancel()
	c, err := testcontainers.Run(ctx, image,
		testcontainers.WithExposedPorts(port),
		testcontainers.WithWaitStrategy(wait.ForListeningPort(port)),
	)
	if err != nil {
		return "", fmt.Errorf("start %s: %w", image, errors.Join(err, testcontainers.TerminateContainer(c)))
	}
	url, err = c.PortEndpoint(ctx, port, "http")
	if err != nil {
		return "", fmt.Errorf("address of %s: %w", image, err)
	}
	return url, nil
}
