package main

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/dynactor/dynactor/dynactortest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, dynactortest.IgnoreServer()...) }
