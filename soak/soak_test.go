package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dynactor/dynactor/dynactortest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, dynactortest.IgnoreServer()...) }

func TestSoak(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := settings{rounds: 2, round: time.Second, duration: time.Minute, seed: 1, endpoint: os.Getenv("DYNAMODB_ENDPOINT")}
	if err := soak(t.Context(), &out, s); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	last := lines[len(lines)-1]
	if !regexp.MustCompile(`^operations [1-9][0-9]+, faults [1-9][0-9]+, violations 0$`).MatchString(last) {
		t.Errorf("the last line is %q", last)
	}
	for _, kind := range []string{"persist", "append", "recover", "replay", "save snapshot", "save state", "answer dropped", "clock jumps"} {
		if !regexp.MustCompile(`(?m)^(operations|faults) +` + kind + ` +[1-9]`).MatchString(out.String()) {
			t.Errorf("no %q in\n%s", kind, out.String())
		}
	}
}
