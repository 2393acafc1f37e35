package dynactor

import (
	"context"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// meterName names this package's instruments.
const meterName = "github.com/dynactor/dynactor"

// observer tells an operator what no caller is told, or what the framework
// would only log at a low level. It is safe for concurrent use.
type observer struct {
	log      *slog.Logger
	failures metric.Int64Counter
}

func newObserver(o Options) (*observer, error) {
	mp := o.MeterProvider
	if mp == nil {
		mp = otel.GetMeterProvider()
	}
	failures, err := mp.Meter(meterName).Int64Counter("dynactor.failures",
		metric.WithDescription("Operations of actors that failed, by operation"),
		metric.WithUnit("{failure}"))
	if err != nil {
		return nil, fmt.Errorf("make counter: %w", err)
	}
	return &observer{log: o.Logger, failures: failures}, nil
}

// failed logs a failure at ERROR and counts it.
func (o *observer) failed(ctx context.Context, err *Error) {
	o.log.ErrorContext(ctx, "dynactor: operation failed",
		slog.String("op", err.Op), slog.String("persistence_id", err.ID),
		slog.Int64("index", err.Index), slog.Any("error", err.Err))
	o.failures.Add(ctx, 1, metric.WithAttributes(attribute.String("op", err.Op)))
}

// warn logs what an operator should look at.
func (o *observer) warn(ctx context.Context, msg string, args ...any) {
	o.log.WarnContext(ctx, "dynactor: "+msg, args...)
}

// passedOver logs and counts a snapshot that recovery could not decode and went past.
func (o *observer) passedOver(ctx context.Context, id string, seq int64, err error) {
	o.log.ErrorContext(ctx, "dynactor: snapshot passed over",
		slog.String("persistence_id", id), slog.Int64("index", seq), slog.Any("error", err))
	o.failures.Add(ctx, 1, metric.WithAttributes(attribute.String("op", "load snapshot")))
}
