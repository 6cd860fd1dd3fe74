package actuator

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/retinue-sched/retinue/daemon/cluster"
)

// instruments are what an actuator counts. Labels are the verb and the class of the result, nothing that grows with use.
type instruments struct {
	calls   metric.Int64Counter
	seconds metric.Float64Histogram
}

func newInstruments(meter metric.Meter, load func(verb) (flying, queued int64)) (*instruments, error) {
	if meter == nil {
		meter = noop.Meter{}
	}
	var m instruments
	var err error
	if m.calls, err = meter.Int64Counter("retinue.actuator.calls", metric.WithDescription("Calls that create or delete pods, by verb and result.")); err != nil {
		return nil, fmt.Errorf("making a counter: %w", err)
	}
	if m.seconds, err = meter.Float64Histogram("retinue.actuator.call.duration", metric.WithUnit("s"), metric.WithDescription("How long such calls took.")); err != nil {
		return nil, fmt.Errorf("making a histogram: %w", err)
	}
	flying, err := meter.Int64ObservableGauge("retinue.actuator.in_flight", metric.WithDescription("Calls in flight, by verb."))
	if err != nil {
		return nil, fmt.Errorf("making a gauge: %w", err)
	}
	queued, err := meter.Int64ObservableGauge("retinue.actuator.queued", metric.WithDescription("Creations and deletions that wait, by verb."))
	if err != nil {
		return nil, fmt.Errorf("making a gauge: %w", err)
	}
	observe := func(_ context.Context, o metric.Observer) error {
		for v := range verb(verbs) {
			f, q := load(v)
			o.ObserveInt64(flying, f, metric.WithAttributes(attribute.String("verb", v.String())))
			o.ObserveInt64(queued, q, metric.WithAttributes(attribute.String("verb", v.String())))
		}
		return nil
	}
	if _, err = meter.RegisterCallback(observe, flying, queued); err != nil {
		return nil, fmt.Errorf("observing gauges: %w", err)
	}
	return &m, nil
}

func (m *instruments) called(ctx context.Context, v verb, class cluster.Class, took time.Duration) {
	attrs := metric.WithAttributes(attribute.String("verb", v.String()), attribute.String("result", class.String()))
	m.calls.Add(ctx, 1, attrs)
	m.seconds.Record(ctx, took.Seconds(), attrs)
}
