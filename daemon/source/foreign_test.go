package source_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	corev1 "k8s.io/api/core/v1"

	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/source"
)

// theirs is a pod of another daemon with the same application, life and number.
func theirs(app string, id snapshot.ID) *corev1.Pod {
	p := executor(app, id)
	p.Labels[pod.LabelOwner] = them.Name()
	return p
}

// foreign is how many foreign pods are counted.
func foreign(t *testing.T, reader sdkmetric.Reader) int64 {
	t.Helper()
	const name = "retinue.pods.foreign"
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if g, ok := m.Data.(metricdata.Gauge[int64]); ok && m.Name == name {
				return g.DataPoints[0].Value
			}
		}
	}
	t.Fatalf("there is no gauge %s", name)
	return 0
}

// Pods of others are never shown as executors: neither those of another daemon, nor those of nobody, nor copies of ours. They are told of by name,
// logged once each, and counted while they are there.
func TestPodsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.create(executor("a", 1))
		w.create(theirs("a", 2))
		unmarked := executor("a", 3)
		delete(unmarked.Labels, pod.LabelOwner)
		w.create(unmarked)
		imitation := executor("a", 4)
		imitation.Name = "imitation"
		w.create(imitation)
		w.create(theirs("b", 1))
		var log bytes.Buffer
		reader := sdkmetric.NewManualReader()
		r := start(t, w, func(c *source.Config) {
			c.Log, c.Meter = slog.New(slog.NewTextHandler(&log, nil)), sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("")
		})
		expect(t, "shown", r.heard(),
			"list: a 1 Pending, a foreign a-i1-exec-2, a foreign a-i1-exec-3, a foreign imitation, b foreign b-i1-exec-1,")
		w.create(theirs("a", 5))
		w.run("a-i1-exec-2")
		w.run("a-i1-exec-1")
		expect(t, "shown", r.heard(), "a foreign a-i1-exec-5 there", "a foreign a-i1-exec-2 there", "a 1 Running")
		if n := foreign(t, reader); n != 5 {
			t.Errorf("%d foreign pods are counted, want 5", n)
		}
		pass(2 * time.Hour)
		for _, name := range []string{"a-i1-exec-2", "a-i1-exec-3", "imitation", "b-i1-exec-1", "a-i1-exec-5"} {
			if n := strings.Count(log.String(), name); n != 1 {
				t.Errorf("%s is logged %d times, want once:\n%s", name, n, log.String())
			}
		}
		r.heard()
		w.delete("a-i1-exec-2")
		w.delete("imitation")
		if got := strings.Join(r.heard(), "; "); !strings.Contains(got, "a foreign a-i1-exec-2 gone") || !strings.Contains(got, "a foreign imitation gone") {
			t.Errorf("shown %s", got)
		}
		if n := foreign(t, reader); n != 3 {
			t.Errorf("%d foreign pods are counted, want 3", n)
		}
		if !r.feed.Shows(1) || r.feed.Shows(2) {
			t.Errorf("shows life 1: %v, life 2: %v", r.feed.Shows(1), r.feed.Shows(2))
		}
	})
}

// What a watch shows of foreign pods while a list is under way is not undone by the list, which is older.
func TestForeignPodsDuringAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.create(theirs("a", 1))
		reader := sdkmetric.NewManualReader()
		r := start(t, w, func(c *source.Config) {
			c.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("")
		})
		r.heard()
		w.spoil(func(w *world) {
			w.during = func() {
				w.delete("a-i1-exec-1")
				w.create(theirs("a", 2))
				w.create(theirs("a", 3))
				pass(time.Second)
			}
		})
		r.feed.Refresh()
		pass(5 * time.Second)
		heard := r.heard()
		list := 0
		for i, line := range heard {
			if strings.HasPrefix(line, "list:") {
				list = i
			}
		}
		expect(t, "shown after the list", heard[list:],
			"list: a foreign a-i1-exec-1,", "a foreign a-i1-exec-1 there", "a foreign a-i1-exec-1 gone", "a foreign a-i1-exec-2 there", "a foreign a-i1-exec-3 there")
		if n := foreign(t, reader); n != 2 {
			t.Errorf("%d foreign pods are counted, want 2", n)
		}
	})
}
