package policy

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// newHostWith returns a host that logs to a tape.
func newHostWith(t testing.TB, records *tape, change ...func(*Config)) *Host {
	t.Helper()
	return startHost(t, records, sdkmetric.NewManualReader(), change...)
}

// tape keeps what is logged.
type tape struct {
	mu      sync.Mutex
	records []record
}

type record struct {
	level   slog.Level
	message string
	text    string // its attribute of that name
}

func (t *tape) Enabled(context.Context, slog.Level) bool { return true }

func (t *tape) Handle(_ context.Context, r slog.Record) error {
	entry := record{level: r.Level, message: r.Message}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "text" {
			entry.text = a.Value.String()
		}
		return true
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.records = append(t.records, entry)
	return nil
}

func (t *tape) WithAttrs([]slog.Attr) slog.Handler { return t }
func (t *tape) WithGroup(string) slog.Handler      { return t }

// of returns the records with a message.
func (t *tape) of(message string) []record {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []record
	for _, r := range t.records {
		if r.message == message {
			list = append(list, r)
		}
	}
	return list
}

// newCountingHost returns a host and a function that tells how many faults were counted, of a cause or of all.
func newCountingHost(t testing.TB, change ...func(*Config)) (*Host, func(cause) int64) {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	h := startHost(t, slog.DiscardHandler, reader, change...)
	return h, func(c cause) int64 {
		return sum(t, reader, "retinue.policy.faults", attribute.String("cause", string(c)))
	}
}

// sum adds up a counter's points, those with a label if it has a value.
func sum(t testing.TB, reader *sdkmetric.ManualReader, name string, label attribute.KeyValue) int64 {
	t.Helper()
	total := int64(0)
	for _, p := range points(t, reader, name) {
		if v, there := p.Attributes.Value(label.Key); label.Value.AsString() == "" || there && v == label.Value {
			total += p.Value
		}
	}
	return total
}

// points returns what a counter or gauge stands at.
func points(t testing.TB, reader *sdkmetric.ManualReader, name string) []metricdata.DataPoint[int64] {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				return data.DataPoints
			case metricdata.Gauge[int64]:
				return data.DataPoints
			}
		}
	}
	return nil
}

// newHost returns a host that keeps what it compiles in memory. It is closed at the end of the test.
func newHost(t testing.TB, change ...func(*Config)) *Host {
	t.Helper()
	return startHost(t, slog.DiscardHandler, sdkmetric.NewManualReader(), change...)
}

func startHost(t testing.TB, handler slog.Handler, reader sdkmetric.Reader, change ...func(*Config)) *Host {
	t.Helper()
	cfg := DefaultConfig()
	cfg.CompileTimeout, cfg.StartTimeout = 10*time.Minute, time.Minute // the race detector makes the compiler slow by a factor of twenty
	for _, c := range change {
		c(&cfg)
	}
	h, err := New(cfg, slog.New(handler), sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Errorf("closing the host: %v", err)
		}
	})
	return h
}
