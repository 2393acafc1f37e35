package main

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/dynactor/dynactor/dynactortest"
)

// wire is what both loops send their requests through: straight on while time
// is measured, through a recorder while requests are counted.
type wire struct {
	base      http.RoundTripper
	recorder  *dynactortest.Faults
	recording atomic.Bool
}

func newWire(base http.RoundTripper) *wire {
	w := &wire{base: base, recorder: dynactortest.NewFaults(base)}
	w.recorder.ReportCapacity(true)
	return w
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if w.recording.Load() {
		return w.recorder.RoundTrip(req) //nolint:wrapcheck // a transport passes errors on
	}
	return w.base.RoundTrip(req) //nolint:wrapcheck // a transport passes errors on
}

// record returns what the requests consume that do makes.
func (w *wire) record(do func() error) (dynactortest.Usage, error) {
	w.recorder.Reset()
	w.recording.Store(true)
	err := do()
	w.recording.Store(false)
	return w.recorder.Usage(), err
}

// distance adds the time to a server far away to each request.
type distance struct {
	base http.RoundTripper
	time time.Duration
}

func (d distance) RoundTrip(req *http.Request) (*http.Response, error) {
	t := time.NewTimer(d.time)
	defer t.Stop()
	select {
	case <-t.C:
		return d.base.RoundTrip(req) //nolint:wrapcheck // a transport passes errors on
	case <-req.Context().Done():
		return nil, req.Context().Err() //nolint:wrapcheck // a transport passes errors on
	}
}
