package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// exporter counts what does not arrive. The SDK would print it, past the log.
type exporter struct {
	sdktrace.SpanExporter
	failures metric.Int64Counter
}

// ExportSpans sends spans. That it did not work is counted, and no error: nobody could do anything about it.
func (e exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := e.SpanExporter.ExportSpans(ctx, spans); err != nil {
		e.failures.Add(ctx, 1)
	}
	return nil
}

func (t *Telemetry) newExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	options := []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(t.cfg.TraceEndpoint)}
	if t.cfg.TracePlainText {
		options = append(options, otlptracegrpc.WithInsecure())
	}
	otlp, err := otlptracegrpc.New(ctx, options...)
	if err != nil {
		return nil, err
	}
	return exporter{otlp, t.failures}, nil
}
