// Command cmd searches a small model of docs/design.md. It prints how many states
// there are within each bounds and how deep they lie, and fails when a guarantee
// can be broken:
//
//	tiny      897821 states, depth 48: two slots, repeated attempts
//
// With -without RULE it prints the shortest trace that breaks a guarantee when the
// rule is left out, with -rules the rules.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/dynactor/dynactor/model"
)

// limit is a bound of memory: a state takes about 250 bytes, with its place in the table.
const limit = 20_000_000

func main() {
	err := run(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "model:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("model", flag.ContinueOnError)
	flags.SetOutput(out)
	p := printer{out}
	without := flags.String("without", "", "leave out a `rule`, and print the shortest trace that breaks a guarantee")
	list := flags.Bool("rules", false, "list the rules")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case *list:
		for _, r := range model.Rules() {
			p.line("%-18s %s (shown in %q)", r, r.Text(), r.Shown().Name)
		}
		return nil
	case *without != "":
		return leaveOut(*without, p)
	}
	return all(p)
}

// leaveOut prints what happens without a rule.
func leaveOut(name string, p printer) error {
	r, ok := model.RuleNamed(name)
	if !ok {
		return fmt.Errorf("no rule %q: -rules lists them", name)
	}
	got := model.Search(r.Shown(), limit, r)
	p.line("without %s: %s", r, r.Text())
	p.line("%s: %d states, depth %d: %s", r.Shown().Name, got.States, got.Depth, r.Shown().Text)
	if got.Bad == "" {
		return fmt.Errorf("nothing is broken without %s", r)
	}
	show(p, got)
	return nil
}

func show(p printer, got model.Result) {
	for i, line := range got.Trace {
		p.line("%3d  %s", i+1, line)
	}
	p.line("broken: %s", got.Bad)
}

// all searches all bounds, as many at a time as there are cores.
func all(p printer) error {
	started := time.Now()
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		errs   []error
		states int
		depth  int
		cores  = make(chan struct{}, runtime.GOMAXPROCS(0))
	)
	for _, b := range model.All() {
		cores <- struct{}{}
		wg.Go(func() {
			got := model.Search(b, limit)
			<-cores
			mu.Lock()
			defer mu.Unlock()
			p.line("%-10s %8d states, depth %d: %s", b.Name, got.States, got.Depth, b.Text)
			switch {
			case got.Bad != "":
				show(p, got)
				errs = append(errs, fmt.Errorf("%s: %s", b.Name, got.Bad))
			case !got.Full:
				errs = append(errs, fmt.Errorf("%s: more than %d states", b.Name, limit))
			}
			states, depth = states+got.States, max(depth, got.Depth)
		})
	}
	wg.Wait()
	p.line("states %d, depth %d, violations %d, %.0f s", states, depth, len(errs), time.Since(started).Seconds())
	return errors.Join(errs...)
}

// printer prints lines; an error of the terminal is nobody's concern here.
type printer struct{ w io.Writer }

func (p printer) line(format string, args ...any) { _, _ = fmt.Fprintf(p.w, format+"\n", args...) }
