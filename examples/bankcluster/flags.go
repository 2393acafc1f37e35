package main

import (
	"errors"
	"flag"
	"io"
	"net/url"
	"time"
)

// flags are the command line.
type flags struct {
	store       storeConfig
	accounts    int
	concurrency int
	pace, limit time.Duration
	page        string
	verbose     bool
}

// parseFlags reads the command line, and says itself what is wrong with it.
func parseFlags(args []string, stderr io.Writer) (flags, error) {
	var f flags
	set := flag.NewFlagSet("bankcluster", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&f.store.Endpoint, "endpoint", "", "`URL` of a DynamoDB Local, LocalStack or the like; by default one more process embeds one")
	set.BoolVar(&f.store.AWS, "aws", false, "use AWS, with its standard configuration")
	set.StringVar(&f.store.Region, "region", "", "AWS region")
	set.StringVar(&f.store.Events, "events-table", "dynactor_bankcluster_events", "`name` of the table of events")
	set.StringVar(&f.store.Snapshots, "snapshots-table", "dynactor_bankcluster_snapshots", "`name` of the table of snapshots")
	set.IntVar(&f.accounts, "accounts", 24, "how many accounts there are")
	set.IntVar(&f.concurrency, "concurrency", 16, "how many transactions at a time")
	set.DurationVar(&f.pace, "pace", 5*time.Second, "how long it lasts from one thing that happens to the next, about")
	set.DurationVar(&f.limit, "limit", 115*time.Second, "after how long the demonstration gives up")
	set.StringVar(&f.page, "page", "127.0.0.1:0", "`address` of the status page")
	set.BoolVar(&f.verbose, "verbose", false, "print what the other processes log")
	set.BoolVar(&f.store.Unsafe, "unsafe-overwrite", false,
		"ONLY TO SEE THE AUDIT FAIL: take the condition off every put, so that nodes overwrite each other's events")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	var errs []error
	bad := func(is bool, text string) {
		if is {
			errs = append(errs, errors.New(text))
			say(stderr, "bankcluster: %s\n", text)
		}
	}
	u, err := url.Parse(f.store.Endpoint)
	bad(f.store.Endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https"),
		"-endpoint must be a URL like http://localhost:8000")
	bad(f.store.Endpoint != "" && f.store.AWS, "-endpoint and -aws exclude each other")
	bad(f.store.AWS && f.store.Unsafe, "-unsafe-overwrite is not for AWS")
	bad(f.accounts < 2, "-accounts must be at least 2, for transfers")
	bad(f.concurrency < 1, "-concurrency must be at least 1")
	bad(f.pace <= 0 || f.limit <= 0, "-pace and -limit must be more than 0")
	bad(set.NArg() > 0, "there are no arguments but flags")
	return f, errors.Join(errs...)
}
