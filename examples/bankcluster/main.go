// Command bankcluster is the bank of the bank example on a cluster: accounts as
// virtual actors on several processes. While clients send transactions, one process
// is killed, one is stopped and goes on, and one joins. Then an audit reads the
// journal. The README tells what to look at.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/dynactor/dynactor/dynactortest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program without its process. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	switch f.role {
	case "server":
		go untilEOF(os.Stdin)
		_, err = fmt.Fprintln(stdout, dynactortest.NewEmbedded().URL)
		<-ctx.Done()
	case "node":
		go untilEOF(os.Stdin)
		err = runNode(ctx, f)
	default:
		return drive(ctx, f, stdout, stderr)
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "bankcluster %s: %v\n", f.role, err)
		return 1
	}
	return 0
}

// drive performs the play and prints the verdict.
func drive(ctx context.Context, f flags, stdout, stderr io.Writer) int {
	v, err := perform(ctx, f, stdout)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "bankcluster: %v\n", err)
		return 1
	}
	if !v.good() {
		_, _ = fmt.Fprintln(stdout, v.report())
	}
	_, _ = fmt.Fprintln(stdout, v)
	if !v.good() {
		return 1
	}
	return 0
}

// flags are the command line.
type flags struct {
	endpoint, region  string
	aws               bool
	events, snapshots string
	accounts, workers int
	pace, limit       time.Duration
	page              string
	unsafeOverwrite   bool

	role                           string
	httpPort, autoPort, remotePort int
	hosts                          string
}

// store are the flags that children need to find the store.
func (f flags) store() []string {
	args := []string{"-endpoint", f.endpoint, "-region", f.region, "-events-table", f.events, "-snapshots-table", f.snapshots}
	if f.aws {
		args = append(args, "-aws")
	}
	if f.unsafeOverwrite {
		args = append(args, "-unsafe-overwrite")
	}
	return args
}

// parseFlags reads the command line, and says itself what is wrong with it.
func parseFlags(args []string, stderr io.Writer) (flags, error) {
	var f flags
	set := flag.NewFlagSet("bankcluster", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&f.endpoint, "endpoint", "", "`URL` of a DynamoDB Local, LocalStack or the like; by default one is embedded in a process of its own")
	set.BoolVar(&f.aws, "aws", false, "use AWS, with its standard configuration")
	set.StringVar(&f.region, "region", "", "AWS region")
	set.StringVar(&f.events, "events-table", "dynactor_bankcluster_events", "`name` of the table of events")
	set.StringVar(&f.snapshots, "snapshots-table", "dynactor_bankcluster_snapshots", "`name` of the table of snapshots")
	set.IntVar(&f.accounts, "accounts", 20, "how many accounts there are")
	set.IntVar(&f.workers, "concurrency", 16, "how many transactions at a time")
	set.DurationVar(&f.pace, "pace", 4*time.Second, "how long it lasts from one event to the next, about")
	set.DurationVar(&f.limit, "limit", 110*time.Second, "how long all may take")
	set.StringVar(&f.page, "page", "127.0.0.1:0", "`address` of the status page")
	set.BoolVar(&f.unsafeOverwrite, "unsafe-overwrite", false, "leave the condition out of every put, to see the audit fail")
	set.StringVar(&f.role, "role", "", "node or server, for the children")
	set.IntVar(&f.httpPort, "http-port", 0, "of a node, for commands")
	set.IntVar(&f.autoPort, "auto-port", 0, "of a node, for its health")
	set.IntVar(&f.remotePort, "remote-port", 0, "of a node, for other nodes")
	set.StringVar(&f.hosts, "hosts", "", "where the health of all nodes is, for a node")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	var errs []error
	bad := func(is bool, text string) {
		if is {
			errs = append(errs, errors.New(text))
			_, _ = fmt.Fprintf(stderr, "bankcluster: %s\n", text)
		}
	}
	bad(f.endpoint != "" && f.aws, "-endpoint and -aws exclude each other")
	bad(f.accounts < 2, "-accounts must be at least 2, for transfers")
	bad(f.workers < 1, "-concurrency must be at least 1")
	bad(f.pace <= 0 || f.limit <= 0, "-pace and -limit must be positive")
	bad(set.NArg() > 0, "there are no arguments but flags")
	return f, errors.Join(errs...)
}
