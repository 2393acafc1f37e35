package conformance_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynactor/dynactor/conformance"
)

// checklist is how many checks the field asks for under each letter.
var checklist = map[string]int{"J": 75, "S": 28, "D": 26, "Q": 14, "O": 10, "K": 8, "L": 7, "M": 3, "A": 4}

// ids adds the ids in a text, and those of its ranges.
func addIDs(to map[string]bool, text string) {
	for _, m := range regexp.MustCompile(`\b([A-Z])-(\d\d)\b(?:\x60? to \x60?[A-Z]-(\d\d)\b)?`).FindAllStringSubmatch(text, -1) {
		lo, _ := strconv.Atoi(m[2])
		hi, _ := strconv.Atoi(m[3])
		for i := lo; i <= max(lo, hi); i++ {
			to[fmt.Sprintf("%s-%02d", m[1], i)] = true
		}
	}
}

func addSuite[E any](to map[string]bool, suite conformance.Suite[E]) {
	for _, c := range suite {
		addIDs(to, c.Name)
	}
}

// suiteIDs are the ids in the names of all cases.
func suiteIDs() map[string]bool {
	list := map[string]bool{}
	addSuite(list, conformance.Journal())
	addSuite(list, conformance.Snapshots())
	addSuite(list, conformance.State())
	addSuite(list, conformance.Provider())
	return list
}

// Each check is a case of a suite, or in a table of docs/testing.md with the reason
// why it is not. What is not about stores may be in the name of a test.
func TestChecklist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	inSuites, explained, inTests := suiteIDs(), map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			addIDs(explained, cells[1])
		}
	}
	names, err := filepath.Glob("../*_test.go")
	if err != nil || len(names) < 10 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func Test\w+\(|t\.Run\("[^"]*"|^\t+\{?"[^"]*"`).FindAllString(string(source), -1) {
			addIDs(inTests, m)
		}
	}
	for letter, n := range checklist {
		for i := 1; i <= n; i++ {
			id := fmt.Sprintf("%s-%02d", letter, i)
			if inSuites[id] || explained[id] || !strings.Contains("JSD", letter) && inTests[id] {
				continue
			}
			t.Errorf("%s is in no suite, and docs/testing.md does not say why", id)
		}
	}
	for id := range explained {
		number, _ := strconv.Atoi(id[2:])
		if n, ok := checklist[id[:1]]; !ok || number > n {
			t.Errorf("docs/testing.md has %s, which is no check", id)
		}
	}
}

// The ids of the framework's own contract are those that docs/testing.md lists.
func TestFrameworkIDs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "`F` is the framework's own contract")
	text, _, _ = strings.Cut(text, "\n\n")
	listed := map[string]bool{}
	addIDs(listed, text)
	suites := suiteIDs()
	maps.DeleteFunc(suites, func(id string, _ bool) bool { return id[0] != 'F' })
	if diff := cmp.Diff(slices.Sorted(maps.Keys(suites)), slices.Sorted(maps.Keys(listed))); diff != "" {
		t.Errorf("(-suite +docs/testing.md):\n%s", diff)
	}
}
