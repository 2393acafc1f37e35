package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
)

// result is what a case has shown. All figures are per operation.
type result struct {
	Case     string   `json:"case"`
	About    string   `json:"about"`
	Server   string   `json:"server"`
	Requests float64  `json:"requests"`
	WCU      float64  `json:"wcu"`
	RCU      float64  `json:"rcu"`
	NsPerOp  float64  `json:"ns_per_op"`
	Ratio    float64  `json:"bare_sdk_ratio"`
	Allocs   *allocs  `json:"allocs,omitempty"`
	Item     *written `json:"item,omitempty"`
}

// allocs are heap allocations; absent where the server allocates in the same process.
type allocs struct {
	PerOp float64 `json:"per_op"`
	Bare  float64 `json:"bare"`
	Ratio float64 `json:"ratio"`
}

// written says what the persist cases write.
type written struct {
	ID    string `json:"id"`
	Type  string `json:"type"`
	Bytes int    `json:"bytes"`
}

func (r result) String() string {
	return fmt.Sprintf("bench %s requests=%s wcu=%s rcu=%s ns_per_op=%.0f bare_sdk_ratio=%.3f",
		r.Case, short(r.Requests), short(r.WCU), short(r.RCU), r.NsPerOp, r.Ratio)
}

func (a allocs) line(name string) string {
	return fmt.Sprintf("allocs %s per_op=%.0f bare=%.0f ratio=%.3f", name, a.PerOp, a.Bare, a.Ratio)
}

// short is a number with at most two decimals.
func short(f float64) string {
	return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64)
}

// report writes results as they come, and as JSON.
type report struct {
	out     io.Writer
	file    *os.File // of the JSON lines; nil for none
	quiet   bool     // only JSON lines
	results []result
	errs    []error
}

func newReport(out io.Writer, to destination) (*report, error) {
	r := &report{out: out, quiet: to.set && to.file == ""}
	if to.file != "" {
		var err error
		if r.file, err = os.Create(to.file); err != nil {
			return nil, fmt.Errorf("-json: %w", err)
		}
	}
	return r, nil
}

// remark writes a line about what follows.
func (r *report) remark(format string, args ...any) {
	if !r.quiet {
		r.print("# "+format+"\n", args...)
	}
}

func (r *report) add(got result) {
	r.results = append(r.results, got)
	line, err := json.Marshal(got)
	r.errs = append(r.errs, err)
	if r.file != nil {
		_, err := fmt.Fprintf(r.file, "%s\n", line)
		r.errs = append(r.errs, err)
	}
	if r.quiet {
		r.print("%s\n", line)
		return
	}
	r.remark("%s: %s", got.Case, got.About)
	r.print("%s\n", got)
	if got.Allocs != nil {
		r.print("%s\n", got.Allocs.line(got.Case))
	}
}

// close ends the report; without a place of its own the JSON comes last, in one line.
func (r *report) close() error {
	if r.file != nil {
		r.errs = append(r.errs, r.file.Close())
	} else if !r.quiet {
		all, err := json.Marshal(r.results)
		r.errs = append(r.errs, err)
		r.print("%s\n", all)
	}
	if err := errors.Join(r.errs...); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

func (r *report) print(format string, args ...any) {
	_, err := fmt.Fprintf(r.out, format, args...)
	r.errs = append(r.errs, err)
}

// destination is the value of -json, which works without a file name, too.
type destination struct {
	set  bool
	file string
}

func (d *destination) String() string   { return d.file }
func (d *destination) IsBoolFlag() bool { return true }

func (d *destination) Set(value string) error {
	d.set = value != "false"
	if d.set && value != "true" {
		d.file = value
	}
	return nil
}

// takesFile tells whether the arguments that no flag took begin with the file name.
func (d *destination) takesFile(rest []string) bool {
	return d.set && d.file == "" && len(rest) > 0
}
