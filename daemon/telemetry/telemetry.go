// Package telemetry is what the daemon tells about itself: logs, metrics, traces, and whether it lives and is ready. It makes the
// providers; everything else gets meters and tracers handed in.
//
// It promises that
//
//   - nothing here is global, and nothing runs outside of Run;
//   - what is served is served on an address of this machine, unless others were let in on purpose;
//   - a Secret is not shown.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// service is the daemon's name in metrics and traces.
const service = "retinued"

// scope is what names of meters and tracers start with.
const scope = "github.com/retinue-sched/retinue/daemon/"

// Telemetry is the providers of the daemon.
type Telemetry struct {
	cfg      Config
	registry *prometheus.Registry
	metrics  *sdkmetric.MeterProvider
	traces   *sdktrace.TracerProvider // nil: there are none
	failures metric.Int64Counter
}

// New makes the providers.
func New(cfg Config) (*Telemetry, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	build := readBuild(cfg.Version)
	res := resource.NewSchemaless(attribute.String("service.name", service), attribute.String("service.version", build.version))
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("preparing metrics: %w", err)
	}
	t := &Telemetry{
		cfg: cfg, registry: registry,
		metrics: sdkmetric.NewMeterProvider(sdkmetric.WithResource(res), sdkmetric.WithReader(exporter)),
	}
	if cfg.TraceEndpoint != "" {
		t.traces = sdktrace.NewTracerProvider(sdktrace.WithResource(res),
			sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(cfg.TraceRatio))))
	}
	return t, t.describe(build)
}

// MeterProvider returns the provider of meters.
func (t *Telemetry) MeterProvider() metric.MeterProvider { return t.metrics }

// TracerProvider returns the provider of tracers. Its spans go nowhere if no endpoint is set, or before Run.
func (t *Telemetry) TracerProvider() trace.TracerProvider {
	if t.traces == nil {
		return noop.NewTracerProvider()
	}
	return t.traces
}

// Meter returns the meter of a part of the daemon.
func (t *Telemetry) Meter(part string) metric.Meter { return t.metrics.Meter(scope + part) }

// Tracer returns the tracer of a part of the daemon.
func (t *Telemetry) Tracer(part string) trace.Tracer { return t.TracerProvider().Tracer(scope + part) }

// flushTimeout is how long the last spans may take to leave.
const flushTimeout = 5 * time.Second

// Run sends traces until ctx is done, then sends what is left and returns context.Cause(ctx).
func (t *Telemetry) Run(ctx context.Context) error {
	if err := t.connect(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return errors.Join(context.Cause(ctx), t.finish(context.WithoutCancel(ctx)))
}

// connect begins to send traces.
func (t *Telemetry) connect(ctx context.Context) error {
	if t.traces == nil {
		return nil
	}
	exporter, err := t.newExporter(ctx)
	if err != nil {
		return fmt.Errorf("preparing traces for %s: %w", t.cfg.TraceEndpoint, err)
	}
	t.traces.RegisterSpanProcessor(sdktrace.NewBatchSpanProcessor(exporter))
	return nil
}

// finish sends what is left.
func (t *Telemetry) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	err := t.metrics.Shutdown(ctx)
	if t.traces != nil {
		err = errors.Join(err, t.traces.Shutdown(ctx))
	}
	if err != nil {
		return fmt.Errorf("ending telemetry: %w", err)
	}
	return nil
}

// build is what was built.
type build struct{ version, revision, toolchain string }

// readBuild asks the binary what the program did not say.
func readBuild(version string) build {
	b := build{version: version, revision: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.toolchain = info.GoVersion
	if b.version == "" {
		b.version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.revision = s.Value
		}
	}
	return b
}

// describe makes this package's own instruments.
func (t *Telemetry) describe(b build) error {
	meter := t.Meter("telemetry")
	labels := metric.WithAttributes(attribute.String("version", b.version), attribute.String("revision", b.revision),
		attribute.String("goversion", b.toolchain))
	_, err := meter.Int64ObservableGauge("retinue.build.info", metric.WithDescription("One, with what was built as labels."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(1, labels)
			return nil
		}))
	if err != nil {
		return fmt.Errorf("preparing metrics: %w", err)
	}
	t.failures, err = meter.Int64Counter("retinue.telemetry.export.failures", metric.WithDescription("Batches of spans that did not arrive."))
	if err != nil {
		return fmt.Errorf("preparing metrics: %w", err)
	}
	return nil
}
