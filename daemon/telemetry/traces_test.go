package telemetry

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Spans arrive at the endpoint, at the latest when the daemon ends.
func TestTracesArrive(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	arrived := make(chan []byte, 1)
	collector := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		// Any message can be read as an empty one: what it holds is kept as unknown fields.
		request := new(emptypb.Empty)
		if err := stream.RecvMsg(request); err != nil {
			return err
		}
		arrived <- request.ProtoReflect().GetUnknown()
		return stream.SendMsg(new(emptypb.Empty))
	}))
	go func() { _ = collector.Serve(l) }()
	t.Cleanup(collector.Stop)

	tel := newTraced(t, l.Addr().String())
	if err := tel.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, span := tel.Tracer("policy").Start(t.Context(), "the decision")
	span.End()
	if err := tel.finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	request := <-arrived
	for _, part := range []string{"the decision", "retinued", "v1.2.3"} {
		if !bytes.Contains(request, []byte(part)) {
			t.Errorf("%q is not in what arrived", part)
		}
	}
}

// Without an endpoint no span is recorded.
func TestNoEndpointNoTraces(t *testing.T) {
	_, span := newTraced(t, "").Tracer("policy").Start(t.Context(), "nothing")
	if span.IsRecording() {
		t.Error("a span is recorded for nobody")
	}
}

// What does not arrive is counted, and nobody is bothered.
func TestLostSpansAreCounted(t *testing.T) {
	tel := newTraced(t, "")
	lossy := exporter{SpanExporter: broken{}, failures: tel.failures}
	if err := lossy.ExportSpans(t.Context(), nil); err != nil {
		t.Errorf("error %v", err)
	}
	families, err := tel.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "retinue_telemetry_export_failures_total" && f.GetMetric()[0].GetCounter().GetValue() == 1 {
			return
		}
	}
	t.Error("the loss is not counted")
}

type broken struct{}

func (broken) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	return errors.New("nobody answers")
}
func (broken) Shutdown(context.Context) error { return nil }

func newTraced(t *testing.T, endpoint string) *Telemetry {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Version, cfg.TraceEndpoint, cfg.TracePlainText = "v1.2.3", endpoint, true
	tel, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tel
}
