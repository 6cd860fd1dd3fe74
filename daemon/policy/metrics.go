package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/retinue-sched/retinue/hostabi"
)

// meters are the instruments of this package. Labels come from small fixed sets, and from the modules that an operator loaded: no
// application is a label.
type meters struct {
	decisions metric.Int64Counter
	latency   metric.Float64Histogram
	faults    metric.Int64Counter
	swaps     metric.Int64Counter
	compile   metric.Float64Histogram
	dropped   metric.Int64Counter
	counters  metric.Int64Counter
	gauges    metric.Int64Gauge
	info      metric.Int64ObservableGauge
	instances metric.Int64UpDownCounter
	fuel      metric.Int64Histogram
}

func newMeters(m metric.Meter) (*meters, error) {
	b := builder{meter: m}
	out := &meters{
		decisions: b.counter("retinue.policy.decisions", "Questions answered, by hook and by who answered."),
		latency: b.seconds("retinue.policy.decision.duration", "Time from question to answer, encoding included.",
			.0001, .00025, .0005, .001, .002, .005, .01, .025, .05, .1, .25, .5, 1),
		faults:    b.counter("retinue.policy.faults", "Questions that a module did not answer, by cause."),
		swaps:     b.counter("retinue.policy.swaps", "Wishes to let another policy decide, by result."),
		compile:   b.seconds("retinue.policy.compile.duration", "Time to compile a module.", .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60),
		dropped:   b.counter("retinue.policy.module.dropped", "Log lines and metric values of modules beyond their bounds."),
		counters:  b.counter("retinue.policy.module.counter", "Counters kept by modules."),
		instances: b.upDown("retinue.policy.instances", "Live instances of modules."),
	}
	var gaugeErr, infoErr, fuelErr error
	out.fuel, fuelErr = m.Int64Histogram("retinue.policy.decision.fuel", metric.WithUnit("{tick}"),
		metric.WithDescription("Fuel that modules took for an answer, by hook."),
		metric.WithExplicitBucketBoundaries(1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8))
	out.gauges, gaugeErr = m.Int64Gauge("retinue.policy.module.gauge", metric.WithDescription("Gauges kept by modules; the last instance to speak counts."))
	out.info, infoErr = m.Int64ObservableGauge("retinue.policy.module.info", metric.WithDescription("One for each loaded module."))
	if err := errors.Join(append(b.errs, gaugeErr, infoErr, fuelErr)...); err != nil {
		return nil, fmt.Errorf("making the instruments of the policy host: %w", err)
	}
	return out, nil
}

// builder makes instruments and gathers what goes wrong.
type builder struct {
	meter metric.Meter
	errs  []error
}

func (b *builder) counter(name, about string) metric.Int64Counter {
	c, err := b.meter.Int64Counter(name, metric.WithDescription(about))
	b.errs = append(b.errs, err)
	return c
}

func (b *builder) upDown(name, about string) metric.Int64UpDownCounter {
	c, err := b.meter.Int64UpDownCounter(name, metric.WithDescription(about))
	b.errs = append(b.errs, err)
	return c
}

func (b *builder) seconds(name, about string, bounds ...float64) metric.Float64Histogram {
	h, err := b.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(about), metric.WithExplicitBucketBoundaries(bounds...))
	b.errs = append(b.errs, err)
	return h
}

// result says who answered a question. It is a label.
type result string

const (
	byModule   result = "module"
	byBuiltin  result = "builtin"  // as it should be: the module has no such hook, or none is there yet
	byFallback result = "fallback" // the module made a fault
)

func (m *meters) decided(ctx context.Context, hook hostabi.Hook, by result, took time.Duration) {
	labels := metric.WithAttributes(attribute.String("hook", hook.String()), attribute.String("result", string(by)))
	m.decisions.Add(ctx, 1, labels)
	m.latency.Record(ctx, took.Seconds(), labels)
}

func (m *meters) burnt(ctx context.Context, hook hostabi.Hook, ticks int64) {
	m.fuel.Record(ctx, ticks, metric.WithAttributes(attribute.String("hook", hook.String())))
}

func (m *meters) faulted(ctx context.Context, c cause) {
	m.faults.Add(ctx, 1, metric.WithAttributes(attribute.String("cause", string(c))))
}

func (m *meters) swapped(ctx context.Context, result string) {
	m.swaps.Add(ctx, 1, metric.WithAttributes(attribute.String("result", result)))
}

func (m *meters) compiled(ctx context.Context, took time.Duration, err error) {
	outcome := "compiled"
	if err != nil {
		outcome = "refused"
	}
	m.compile.Record(ctx, took.Seconds(), metric.WithAttributes(attribute.String("result", outcome)))
}

// describe shows the loaded modules as a metric until the registration is undone.
func (m *meters) describe(meter metric.Meter, list func() []Module) (metric.Registration, error) {
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, mod := range list() {
			o.ObserveInt64(m.info, 1, metric.WithAttributes(attribute.String("policy", mod.Name), attribute.String("digest", mod.Digest),
				attribute.String("version", mod.Version), attribute.Bool("shipped", mod.Shipped)))
		}
		return nil
	}, m.info)
}
