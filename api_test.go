package dynactor_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The listings in docs/api show what a change does to the exported API.
func TestAPI_Listings(t *testing.T) {
	t.Parallel()
	packages := apiPackages(t)
	var listed []string
	for _, dir := range packages {
		name := goTool(t, "list", "-f", "{{.Name}}", dir)
		file := filepath.Join("docs", "api", strings.TrimSpace(name)+".txt")
		listed = append(listed, file)
		want, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%v: run make api", err)
			continue
		}
		if diff := cmp.Diff(string(want), goTool(t, "doc", "-all", dir)); diff != "" {
			t.Errorf("the API of %s is not what %s says: run make api, look at the difference, and commit it (-listed +is):\n%s", dir, file, diff)
		}
	}
	there, err := filepath.Glob("docs/api/*")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(listed)
	if diff := cmp.Diff(listed, there); diff != "" {
		t.Errorf("files in docs/api (-want +got):\n%s", diff)
	}
}

// apiPackages are the packages that make api lists.
func apiPackages(t *testing.T) []string {
	t.Helper()
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^API\s*:=\s*(.+)$`).FindSubmatch(makefile)
	if found == nil {
		t.Fatal("the Makefile has no list API := of packages")
	}
	return strings.Fields(string(found[1]))
}

// goTool is what a command of the go tool prints.
func goTool(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return string(out)
}
