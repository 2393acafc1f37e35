package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// readyMark begins the line by which a process reports that it is ready. The
// framework prints other lines.
const readyMark = "bankcluster-ready "

// errParentGone says that the process that started this one has ended.
var errParentGone = errors.New("the driver is gone")

// readConfig reads what the driver sends to a process that it starts. The
// context ends when the driver does, which closes the pipe.
func readConfig(ctx context.Context, stdin io.Reader, config any) (context.Context, error) {
	if err := json.NewDecoder(stdin).Decode(config); err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel(errParentGone)
	}()
	return ctx, nil
}

// reportReady tells the driver that it can go on.
func reportReady(stdout io.Writer, what any) error {
	line, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err = fmt.Fprintf(stdout, "%s%s\n", readyMark, line)
	return err
}
