package policy

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// What all instances of a module may say together.
const (
	linesPerSecond = 10
	linesAtOnce    = maxLines
	maxMetrics     = 16 // names
	maxMetricName  = 64 // bytes
)

// voice passes on what the instances of one module say, as much as is good for the log and the metrics.
type voice struct {
	policy string
	log    *slog.Logger
	meters *meters

	mu      sync.Mutex
	metrics map[string]bool
	left    float64 // lines that may be logged now
	at      time.Time
}

func newVoice(policy string, log *slog.Logger, m *meters) *voice {
	return &voice{policy: policy, log: log, meters: m, metrics: map[string]bool{}, left: linesAtOnce}
}

// pass takes what an instance said in a call.
func (v *voice) pass(ctx context.Context, w *world) {
	w.flush()
	if len(w.said)+len(w.points)+w.dropped == 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	dropped := w.dropped
	for _, l := range w.said {
		if !v.allowed() {
			dropped++
			continue
		}
		v.log.LogAttrs(ctx, levelOf(l.level), "policy said", slog.String("policy", v.policy), slog.String("text", l.text))
	}
	for _, p := range w.points {
		if !v.measure(ctx, p) {
			dropped++
		}
	}
	if dropped > 0 {
		v.meters.dropped.Add(ctx, int64(dropped), metric.WithAttributes(attribute.String("policy", v.policy)))
	}
}

// allowed takes one line off what may be logged now.
func (v *voice) allowed() bool {
	now := time.Now()
	if !v.at.IsZero() {
		v.left = min(linesAtOnce, v.left+now.Sub(v.at).Seconds()*linesPerSecond)
	}
	v.at = now
	if v.left < 1 {
		return false
	}
	v.left--
	return true
}

// measure passes a value on, unless its name is one too many or it makes no sense.
func (v *voice) measure(ctx context.Context, p point) bool {
	if !v.metrics[p.name] {
		if len(v.metrics) >= maxMetrics || !metricName(p.name) {
			return false
		}
		v.metrics[p.name] = true
	}
	labels := metric.WithAttributes(attribute.String("policy", v.policy), attribute.String("metric", p.name))
	switch {
	case p.kind == metricCounter && p.value >= 0:
		v.meters.counters.Add(ctx, p.value, labels)
	case p.kind == metricGauge:
		v.meters.gauges.Record(ctx, p.value, labels)
	default:
		return false
	}
	return true
}

func metricName(name string) bool {
	fine := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' }
	return name != "" && len(name) <= maxMetricName && !strings.ContainsFunc(name, func(r rune) bool { return !fine(r) })
}

func levelOf(level uint32) slog.Level {
	switch level {
	case levelDebug, levelPrinted:
		return slog.LevelDebug
	case levelInfo:
		return slog.LevelInfo
	case levelWarn:
		return slog.LevelWarn
	default:
		return slog.LevelError
	}
}
