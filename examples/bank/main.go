// Command bank is a bank whose accounts are persistent actors on DynamoDB. It
// carries out thousands of transactions, stops, recovers every account in a new
// actor system, and compares. The README tells what to look at.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"net/url"
	"os"
	"os/signal"
	"syscall"
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
	ok, err := demonstrate(ctx, f, stdout, stderr)
	switch {
	case err == nil && ok:
		return 0
	case err == nil: // the report says what is wrong
		return 1
	case ctx.Err() != nil:
		say(stderr, "bank: interrupted; what was answered is stored\n")
		return 130
	}
	say(stderr, "bank: %v\n", err)
	return 1
}

// flags are the command line.
type flags struct {
	endpoint          string
	aws               bool
	region            string
	events, snapshots string
	accounts, ops     int
	concurrency       int
}

// parseFlags reads the command line, and says itself what is wrong with it.
func parseFlags(args []string, stderr io.Writer) (flags, error) {
	var f flags
	set := flag.NewFlagSet("bank", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&f.endpoint, "endpoint", "", "`URL` of a DynamoDB Local, LocalStack or the like; by default one is embedded")
	set.BoolVar(&f.aws, "aws", false, "use AWS, with its standard configuration")
	set.StringVar(&f.region, "region", "", "AWS region")
	set.StringVar(&f.events, "events-table", "dynactor_bank_events", "`name` of the table of events")
	set.StringVar(&f.snapshots, "snapshots-table", "dynactor_bank_snapshots", "`name` of the table of snapshots")
	set.IntVar(&f.accounts, "accounts", 20, "how many accounts there are")
	set.IntVar(&f.ops, "ops", 3000, "how many transactions to make")
	set.IntVar(&f.concurrency, "concurrency", 16, "how many transactions at a time")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	var errs []error
	bad := func(is bool, text string) {
		if is {
			errs = append(errs, errors.New(text))
			say(stderr, "bank: %s\n", text)
		}
	}
	u, err := url.Parse(f.endpoint)
	bad(f.endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https"),
		"-endpoint must be a URL like http://localhost:8000")
	bad(f.endpoint != "" && f.aws, "-endpoint and -aws exclude each other")
	bad(f.accounts < 2, "-accounts must be at least 2, for transfers")
	bad(f.ops < 0, "-ops must not be negative")
	bad(f.concurrency < 1, "-concurrency must be at least 1")
	bad(set.NArg() > 0, "there are no arguments but flags")
	return f, errors.Join(errs...)
}
