// Command bankcluster is the bank of examples/bank as virtual actors on several
// processes. While they work, it kills one, splits another off and adds a third;
// then it audits the journal. The README tells what to look at. It needs Linux or
// macOS, for the signals.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// The roles of the other processes. Without one, the program drives the demonstration.
const (
	roleNode   = "node"
	roleServer = "server"
)

// run is the program without its process. It returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var err error
	switch {
	case slices.Equal(args, []string{roleNode}):
		err = runNode(ctx, stdin, stdout, stderr)
	case slices.Equal(args, []string{roleServer}):
		err = runServer(ctx, stdin, stdout)
	default:
		return drive(ctx, args, stdout, stderr)
	}
	if err != nil {
		say(stderr, "bankcluster: %v\n", err)
		return 1
	}
	return 0
}

// drive is the role of the first process.
func drive(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	v, err := perform(ctx, f, stdout, stderr)
	switch {
	case v != nil: // the audit has been made, whatever came after it
	case ctx.Err() != nil:
		say(stderr, "bankcluster: interrupted\n")
		return 130
	default:
		say(stderr, "bankcluster: %v\n", err)
		return 1
	}
	if err != nil {
		say(stdout, "FAILED after the audit: %v\n", err)
	}
	if report := v.report(); report != "" {
		say(stdout, "%s\n", report)
	}
	say(stdout, "%s\n", v)
	if err != nil || !v.good() {
		return 1
	}
	return 0
}

// say prints. A console that cannot be written to has nobody to tell.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
