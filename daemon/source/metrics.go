package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/retinue-sched/retinue/daemon/cluster"
)

// instruments are what a feed counts, by namespace.
type instruments struct {
	here      metric.MeasurementOption
	namespace attribute.KeyValue
	lists     metric.Int64Counter
	events    metric.Int64Counter
	breaks    metric.Int64Counter
	unread    metric.Int64Counter
}

func newInstruments(meter metric.Meter, namespace string, age func() (time.Duration, bool), foreign func() int64) (*instruments, error) {
	if meter == nil {
		meter = noop.Meter{}
	}
	m := &instruments{namespace: attribute.String("namespace", namespace)}
	m.here = metric.WithAttributes(m.namespace)
	for _, c := range []struct {
		into       *metric.Int64Counter
		name, text string
	}{
		{&m.lists, "retinue.source.lists", "Lists of pods, by result."},
		{&m.events, "retinue.source.events", "Events of watches, bookmarks included."},
		{&m.breaks, "retinue.source.watch.ends", "Watches that ended, by cause."},
		{&m.unread, "retinue.source.unreadable_pods", "Different pods that carry our labels and name no executor."},
	} {
		var err error
		if *c.into, err = meter.Int64Counter(c.name, metric.WithDescription(c.text)); err != nil {
			return nil, fmt.Errorf("making counter %s: %w", c.name, err)
		}
	}
	_, err := meter.Float64ObservableGauge("retinue.source.staleness", metric.WithUnit("s"),
		metric.WithDescription("Time since the cluster last gave a sign of life."),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			if d, ok := age(); ok {
				o.Observe(d.Seconds(), m.here)
			}
			return nil
		}))
	if err != nil {
		return nil, fmt.Errorf("making a gauge: %w", err)
	}
	_, err = meter.Int64ObservableGauge("retinue.pods.foreign",
		metric.WithDescription("Pods that carry the labels of executors and are not this daemon's: it leaves them alone."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(foreign(), m.here)
			return nil
		}))
	if err != nil {
		return nil, fmt.Errorf("making a gauge: %w", err)
	}
	return m, nil
}

func (m *instruments) listed(ctx context.Context, err error) {
	m.lists.Add(ctx, 1, metric.WithAttributes(m.namespace, attribute.String("result", cluster.ClassOf(err).String())))
}

func (m *instruments) broke(ctx context.Context, err error) {
	cause := cluster.ClassOf(err).String()
	switch {
	case errors.Is(err, cluster.ErrEnded):
		cause = "ended"
	case errors.Is(err, errSilent):
		cause = "silent"
	}
	m.breaks.Add(ctx, 1, metric.WithAttributes(m.namespace, attribute.String("cause", cause)))
}
