package main

import (
	"os"
	"strings"
	"testing"

	"github.com/dynactor/dynactor/dynactortest"
)

// The output is expected.txt, also when it runs again on the same table.
func TestExpectedOutput(t *testing.T) {
	t.Parallel()
	db := dynactortest.New(t)
	want, err := os.ReadFile("expected.txt")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var out strings.Builder
		if err := run(t.Context(), db.Endpoint, db.StateTable, &out); err != nil {
			t.Fatal(err)
		}
		if out.String() != string(want) {
			t.Errorf("got\n%s\nwant\n%s", out.String(), want)
		}
	}
}
