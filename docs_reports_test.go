package dynactor_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each kind of bug that was reported in public is in the name of a test, or is
// told of in docs/testing.md.
func TestDocs_Reports(t *testing.T) {
	t.Parallel()
	missing := map[string]int{}
	for kind, numbers := range map[string]string{
		"A": "1-8 10-13 14-16 18-22", "B": "1-14", "C": "2 4-21", "D": "1-10", "E": "1-12 14", "F": "1 3-6", "G": "1-16",
		"H": "1-8", "I": "1 3-7 9-11", "J": "1-3 5 6 9-16 18", "K": "2-7", "L": "1-5",
	} {
		for part := range strings.FieldsSeq(numbers) {
			var lo, hi int
			if n, err := fmt.Sscanf(part, "%d-%d", &lo, &hi); err != nil && n == 1 {
				hi = lo
			}
			for n := lo; n <= hi; n++ {
				missing[fmt.Sprintf("%s%02d", kind, n)]++
			}
		}
	}
	if want := 139; len(missing) != want {
		t.Fatalf("%d reports are looked for, want %d", len(missing), want)
	}
	id := regexp.MustCompile(`\b(?:\w+_)?([A-L]\d\d)[a-z]?(?:_\w+)?\b`)
	sources := goFiles(t)
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		if !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "conformance/") || name == "docs_reports_test.go" {
			continue
		}
		for _, m := range id.FindAllStringSubmatch(sources[name], -1) {
			delete(missing, m[1])
		}
	}
	for _, m := range id.FindAllStringSubmatch(readDoc(t, "docs/testing.md"), -1) {
		delete(missing, m[1])
	}
	if len(missing) > 0 {
		t.Errorf("neither in a test nor in docs/testing.md: %q", slices.Sorted(maps.Keys(missing)))
	}
}
