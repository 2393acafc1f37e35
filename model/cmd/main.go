// Command cmd searches the model of docs/design.md.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/dynactor/dynactor/model"
)

const limit = 60_000_000

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "model:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("model", flag.ContinueOnError)
	without := flags.String("without", "", "leave a rule out and print the shortest trace that breaks a guarantee")
	list := flags.Bool("rules", false, "list the rules")
	only := flags.String("bounds", "", "search only these bounds")
	if err := flags.Parse(args); err != nil {
		return err
	}
	_ = list
	_ = without
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2)
	for _, b := range model.All() {
		if *only != "" && b.Name != *only {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			start := time.Now()
			r := model.Search(b, limit)
			fmt.Fprintln(out, b.Name, r.States, r.Depth, r.Full, r.Bad, time.Since(start))
			for i, l := range r.Trace {
				fmt.Fprintln(out, i+1, l)
			}
		})
	}
	wg.Wait()
	return nil
}
