package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dynactor/dynactor/dynactortest"
)

// TestMain lets the tests' program take the roles of the other processes.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		main()
	}
	goleak.VerifyTestMain(m, dynactortest.IgnoreServer()...)
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, args string
		code       int
		want       string
	}{
		{"nothing listens", "-endpoint http://127.0.0.1:1", 1, "bankcluster: no DynamoDB answers (http://127.0.0.1:1, "},
		{"no time", "-limit 1ms", 1, "bankcluster: start store: "},
		{"bad page", "-endpoint http://127.0.0.1:1 -page nowhere", 1, "bankcluster: listen tcp: address nowhere"},
		{"not a URL", "-endpoint localhost:8000", 2, "bankcluster: -endpoint must be a URL like http://localhost:8000\n"},
		{"two stores", "-aws -endpoint http://localhost:8000", 2, "bankcluster: -endpoint and -aws exclude each other\n"},
		{"unsafe on AWS", "-aws -unsafe-overwrite", 2, "bankcluster: -unsafe-overwrite is not for AWS\n"},
		{"one account", "-accounts 1", 2, "bankcluster: -accounts must be at least 2, for transfers\n"},
		{"nobody", "-concurrency 0", 2, "bankcluster: -concurrency must be at least 1\n"},
		{"no pace", "-pace 0s", 2, "bankcluster: -pace and -limit must be more than 0\n"},
		{"unknown flag", "-account 5", 2, "flag provided but not defined: -account\n"},
		{"no flag", "go", 2, "bankcluster: there are no arguments but flags\n"},
		{"help", "-help", 0, "Usage of bankcluster:\n"},
		{"node without a driver", "node", 1, "bankcluster: read the configuration: EOF\n"},
		{"server without a driver", "server", 1, "bankcluster: read the configuration: EOF\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr strings.Builder
			start := time.Now()
			code := run(t.Context(), strings.Fields(c.args), strings.NewReader(""), &stdout, &stderr)
			if code != c.code || !strings.Contains(stderr.String(), c.want) {
				t.Errorf("exit code %d, want %d and %q\n%s", code, c.code, c.want, stderr.String())
			}
			if took := time.Since(start); took > 2*reachTime {
				t.Errorf("it took %s", took)
			}
		})
	}
}
