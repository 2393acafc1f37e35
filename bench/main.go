// Command bench prints what each path costs in requests and capacity units,
// counted at the wire, and how long it takes beside a bare SDK loop that does
// the same in the same run.
//
//	bench persist requests=1 wcu=1 rcu=0 ns_per_op=212345 bare_sdk_ratio=1.02
//	allocs persist per_op=388 bare=376 ratio=1.03
//
// All figures are per operation. Lines that begin with # say what was done. The
// last line is the same as JSON.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // the program's root
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings are what the flags say.
type settings struct {
	cases    *regexp.Regexp
	ops      int
	long     bool
	endpoint string
	json     destination
}

func parse(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	pattern := flags.String("case", "", "run only the cases whose names match this regular `expression`")
	flags.IntVar(&s.ops, "n", 0, "operations to measure in each case; 0 lets each case decide")
	flags.BoolVar(&s.long, "long", false, "also run the cases that prepare 100,000 and 1,000,000 events")
	flags.StringVar(&s.endpoint, "endpoint", os.Getenv("DYNAMODB_ENDPOINT"),
		"`URL` of a server; without one (here or in DYNAMODB_ENDPOINT) dynoxide is started where there is a binary at $DYNOXIDE\n"+
			"or in the cache directory, else an embedded server")
	flags.Var(&s.json, "json", "print only JSON lines; with a file name after it, write them there and print as usual")
	for {
		if err := flags.Parse(args); err != nil {
			return s, err //nolint:wrapcheck // main compares it
		}
		if !s.json.takesFile(flags.Args()) {
			break
		}
		s.json.file, args = flags.Arg(0), flags.Args()[1:]
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if s.ops < 0 {
		return s, fmt.Errorf("-n %d is negative", s.ops)
	}
	var err error
	if s.cases, err = regexp.Compile(*pattern); err != nil {
		return s, fmt.Errorf("-case: %w", err)
	}
	return s, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	var chosen []scenario
	for _, sc := range scenarios {
		if s.cases.MatchString(sc.name) && (s.long || !sc.long) {
			chosen = append(chosen, sc)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no case matches -case %q", s.cases)
	}
	srv, err := startServer(ctx, s.endpoint)
	if err != nil {
		return err
	}
	defer srv.stop()
	r, err := newReport(out, s.json)
	if err != nil {
		return err
	}
	r.remark("server: %s; %s %s/%s, %d CPUs", srv.about, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	for _, sc := range chosen {
		got, err := sc.run(ctx, srv, s.ops)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", sc.name, err), r.close())
		}
		r.add(got)
	}
	return r.close()
}
