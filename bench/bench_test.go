package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dynactor/dynactor/dynactortest"
)

// benchLine is the shape of a result.
var benchLine = regexp.MustCompile(`^bench (\S+) requests=([0-9.]+) wcu=([0-9.]+) rcu=([0-9.]+) ns_per_op=[0-9]+ bare_sdk_ratio=[0-9.]+$`)

// bench runs the program on the server of the ring.
func bench(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), append([]string{"-endpoint", dynactortest.New(t).Endpoint, "-n", "4"}, args...), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestRun_CountsAtTheWire(t *testing.T) {
	t.Parallel()
	out := bench(t, "-case", "^(persist(-null|-at-0|-at-1000)?|journal-append|snapshot-save|recover)$")
	want := map[string][3]string{ // requests, wcu, rcu; empty: whatever
		"persist":         {"1", "1", "0"},
		"persist-null":    {"1", "1", "0"},
		"persist-at-0":    {"1", "1", "0"},
		"persist-at-1000": {"1", "1", "0"},
		"journal-append":  {"3", "20", "2"},
		"snapshot-save":   {"2", "", "0"},
		"recover":         {"3", "0", ""},
	}
	got := map[string][3]string{}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	for _, line := range lines[:len(lines)-1] {
		if strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "allocs ") {
			continue
		}
		m := benchLine.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("line %q is not of the shape %s", line, benchLine)
			continue
		}
		counts := [3]string{m[2], m[3], m[4]}
		for i, w := range want[m[1]] {
			if w == "" {
				counts[i] = ""
			}
		}
		got[m[1]] = counts
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	var results []result
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &results); err != nil {
		t.Fatalf("the last line is no JSON: %v", err)
	}
	if len(results) != len(want) {
		t.Fatalf("%d results as JSON, want %d", len(results), len(want))
	}
	first := results[0]
	if first.Case != "persist" || first.Item == nil || first.Item.ID != id || first.Item.Bytes > 1024 {
		t.Errorf("the first result is %+v of %+v", first, first.Item)
	}
}

func TestRun_JSON(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args func(file string) []string
		file bool
	}{
		{name: "to standard output", args: func(string) []string { return []string{"-json", "-case", "persist-null"} }},
		{name: "to a file", args: func(file string) []string { return []string{"-json", file, "-case", "persist-null"} }, file: true},
		{name: "to a file, last", args: func(file string) []string { return []string{"-case", "persist-null", "-json=" + file} }, file: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "figures")
			out := bench(t, tt.args(file)...)
			if tt.file {
				if !strings.Contains(out, "\nbench persist-null requests=1 ") || strings.Contains(out, "{") {
					t.Errorf("printed %q", out)
				}
				lines, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				out = string(lines)
			}
			var r result
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if r.Case != "persist-null" || r.Requests != 1 || r.WCU != 1 || r.Ratio <= 0 || r.NsPerOp <= 0 || r.Allocs == nil {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestRun_Refuses(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-case", "("}, {"-case", "no such case"}, {"-n", "-1"}, {"stray"}, {"-endpoint", "http://127.0.0.1:1", "-json", "/no/such/directory/file"},
	} {
		if err := run(t.Context(), args, &bytes.Buffer{}); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

// TestYardstick compares what the two loops send: nothing but the time, the
// operation id and the table may differ.
func TestYardstick(t *testing.T) {
	t.Parallel()
	l, err := newLab(&server{url: "http://127.0.0.1:1"}, toNowhere, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := persistingNowhere(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.bare(t.Context()); err != nil { // the session has made a first one, too
		t.Fatal(err)
	}
	_, err = l.wire.record(func() error {
		if err := w.ours(t.Context()); err != nil {
			return err
		}
		return w.bare(t.Context())
	})
	if err != nil {
		t.Fatal(err)
	}
	var sent []map[string]any
	for _, r := range l.wire.recorder.Requests() {
		in := r.Input()
		delete(in, "TableName")
		if it, ok := in["Item"].(map[string]any); ok {
			for _, name := range []string{"ts", "op"} {
				if it[name] == nil {
					t.Errorf("%s has no %s", r, name)
				}
				delete(it, name)
			}
		}
		sent = append(sent, in)
	}
	if len(sent) != 2 || !reflect.DeepEqual(sent[0], sent[1]) {
		t.Errorf("sent %v", sent)
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	got, err := scenario{name: "replay", ops: 1, batch: 1, prepare: replaying(60)}.run(t.Context(), &server{url: dynactortest.New(t).Endpoint}, 0)
	if err != nil {
		t.Fatal(err)
	}
	// The mark and the head, then a page. All but the newest are read forwards.
	if got.Requests < 3 || got.WCU != 0 || got.Ratio <= 0 {
		t.Errorf("got %+v", got)
	}
}

func TestShelf(t *testing.T) {
	t.Parallel()
	const length = 8000 // three pages
	got, err := scenario{
		name: "replay", ops: 1, batch: 1, via: toShelf(length, time.Millisecond), prepare: replayingShelf(length),
	}.run(t.Context(), &server{url: "http://127.0.0.1:1"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	// The mark and the head, a full page, and the rest in two ranges; then the mark again.
	if got.Requests != 6 {
		t.Errorf("%v requests, want 6", got.Requests)
	}
}

func TestMiddle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{7}, 7},
		{[]float64{1, 3}, 2},
		{[]float64{1000, 4, 2, 0}, 3},
	} {
		if got := middle(tt.values); got != tt.want {
			t.Errorf("middle(%v) = %v, want %v", tt.values, got, tt.want)
		}
	}
}
