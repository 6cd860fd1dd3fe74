package orphan_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/orphan"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

const timeout = 10 * time.Minute

// rig is a keeper at work, the applications that are known, and the deletions that it asked for.
type rig struct {
	keeper *orphan.Keeper
	log    bytes.Buffer
	reader *sdkmetric.ManualReader
	cancel context.CancelCauseFunc
	done   chan error

	mu      sync.Mutex
	known   map[string]bool
	deleted []string
	newest  application.DeletePod
}

func start(t *testing.T, change func(*orphan.Config)) *rig {
	t.Helper()
	r := &rig{known: map[string]bool{}, reader: sdkmetric.NewManualReader(), done: make(chan error, 1)}
	origin := time.Now()
	cfg := orphan.Config{
		Namespaces: []string{"n", "quiet"}, Timeout: timeout, Known: r.knows, Delete: r.remove,
		Clock: func() snapshot.Instant { return snapshot.Instant(time.Since(origin)) + 1 },
		Log:   slog.New(slog.NewTextHandler(&r.log, nil)), Meter: sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader)).Meter(""),
	}
	if change != nil {
		change(&cfg)
	}
	var err error
	if r.keeper, err = orphan.New(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	r.cancel = cancel
	go func() { r.done <- r.keeper.Run(ctx) }()
	t.Cleanup(func() { cancel(nil) })
	return r
}

func (r *rig) knows(_, app string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[app]
}

func (r *rig) remove(namespace string, p application.DeletePod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deleted = append(r.deleted, namespace+"/"+p.Name+" "+p.UID)
	r.newest = p
}

// asked returns the deletions since it was last called.
func (r *rig) asked() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.deleted
	r.deleted = nil
	return out
}

func (r *rig) counted(t *testing.T) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if g, ok := m.Data.(metricdata.Gauge[int64]); ok && m.Name == "retinue.pods.orphaned" {
				for _, p := range g.DataPoints {
					namespace, _ := p.Attributes.Value("namespace")
					out[namespace.AsString()] = p.Value
				}
			}
		}
	}
	return out
}

// pod is a pod of an application's executor, of uid "u" and the executor's number.
func pod(app string, id snapshot.ID) orphan.Pod {
	return orphan.Pod{Namespace: "n", Application: app, Seen: snapshot.Observation{
		ID: id, Name: fmt.Sprintf("%s-i1-exec-%d", app, id), UID: fmt.Sprintf("u%d", id), Phase: snapshot.Running,
	}}
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differ (-want +got):\n%s", what, diff)
	}
}

// An orphan is told of at once, once, and counted; when it has been one for the timeout it is deleted by its uid, and asked for again until it is gone.
func TestOrphanIsDeletedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		for range 3 {
			r.keeper.Listed(t.Context(), "n", []orphan.Pod{pod("a", 1), pod("a", 2), pod("b", 1)})
		}
		if text := r.log.String(); strings.Count(text, "not known here") != 1 || !strings.Contains(text, "count=3") || !strings.Contains(text, "a-i1-exec-2") {
			t.Errorf("told:\n%s", text)
		}
		if diff := cmp.Diff(map[string]int64{"n": 3, "quiet": 0}, r.counted(t)); diff != "" {
			t.Error(diff)
		}
		pass(timeout - time.Second)
		expect(t, "deletions too soon", r.asked())
		pass(2 * time.Second)
		expect(t, "deletions", r.asked(), "n/a-i1-exec-1 u1", "n/a-i1-exec-2 u2", "n/b-i1-exec-1 u1")
		if p := r.newest; p.Why != application.DeleteOrphaned || p.Grace >= 0 || p.Text == "" {
			t.Errorf("asked for %+v", p)
		}
		gone := pod("a", 1)
		gone.Seen.Phase = snapshot.Deleted
		r.keeper.Observed(t.Context(), gone)
		going := pod("a", 2)
		going.Seen.Deleting = true
		r.keeper.Observed(t.Context(), going)
		pass(time.Minute)
		expect(t, "deletions of what is still there and not going", r.asked(), "n/b-i1-exec-1 u1")
		r.keeper.Listed(t.Context(), "n", nil)
		pass(10 * time.Hour)
		expect(t, "deletions of what is gone", r.asked())
		if n := r.counted(t)["n"]; n != 0 {
			t.Errorf("%d are counted, and none is there", n)
		}
	})
}

// Whose application becomes known is not deleted, whether the keeper was told so or finds out in the last moment.
func TestClaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		r.keeper.Listed(t.Context(), "n", []orphan.Pod{pod("a", 1), pod("b", 1), pod("c", 1)})
		pass(timeout / 2)
		r.keeper.Claimed("n", "a")
		if n := r.counted(t)["n"]; n != 2 {
			t.Errorf("%d are counted, want 2", n)
		}
		r.mu.Lock()
		r.known["b"] = true
		r.mu.Unlock()
		pass(timeout/2 + time.Second)
		expect(t, "deletions", r.asked(), "n/c-i1-exec-1 u1")
	})
}

// A list of one namespace says nothing of another.
func TestNamespacesApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		r.keeper.Listed(t.Context(), "n", []orphan.Pod{pod("a", 1)})
		r.keeper.Listed(t.Context(), "quiet", nil)
		r.keeper.Claimed("quiet", "a")
		if n := r.counted(t)["n"]; n != 1 {
			t.Errorf("%d are counted, want 1", n)
		}
	})
}

// Without a timeout orphans are told of and stay.
func TestKeptForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(c *orphan.Config) { c.Timeout = 0 })
		r.keeper.Observed(t.Context(), pod("a", 1))
		pass(1000 * time.Hour)
		expect(t, "deletions", r.asked())
		if text := r.log.String(); !strings.Contains(text, "a-i1-exec-1") || !strings.Contains(text, "until somebody deletes them") {
			t.Errorf("told:\n%s", text)
		}
	})
}

// A deletion that is refused is told of.
func TestRefusedDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		r.keeper.Observed(t.Context(), pod("a", 1))
		pass(timeout + time.Second)
		r.keeper.Answered(t.Context(), application.PodDeleted{Executor: r.newest.Executor, Outcome: application.DeleteFailed, Text: "pods is forbidden"})
		r.keeper.Answered(t.Context(), application.PodDeleted{Executor: 99, Outcome: application.DeleteFailed, Text: "of nobody"})
		if text := r.log.String(); !strings.Contains(text, "pods is forbidden") || strings.Contains(text, "of nobody") {
			t.Errorf("told:\n%s", text)
		}
	})
}

func TestRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		why := errors.New("told to")
		r.cancel(why)
		if err := <-r.done; !errors.Is(err, why) {
			t.Errorf("Run returned %v", err)
		}
	})
	if _, err := orphan.New(orphan.Config{}); err == nil {
		t.Error("a keeper that knows nobody was made")
	}
}

// However pods come, go and are claimed: nothing is deleted that was not an orphan, under one uid, for the whole timeout.
func TestNeverTooSoon(t *testing.T) {
	type step struct {
		what, id int
		wait     time.Duration
	}
	steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{rapid.IntRange(0, 5).Draw(t, "what"), rapid.IntRange(1, 3).Draw(t, "id"), time.Duration(rapid.IntRange(0, 12).Draw(t, "minutes")) * time.Minute}
	}), 1, 30)
	rapid.Check(t, func(rt *rapid.T) {
		plan := steps.Draw(rt, "steps")
		var wrong string
		synctest.Test(t, func(t *testing.T) {
			since := map[string]time.Time{} // orphans by name and uid, and since when
			lives := map[int]int{}
			r := start(t, nil)
			show := func(id int) orphan.Pod {
				p := pod("a", snapshot.ID(id))
				p.Seen.UID = fmt.Sprintf("u%d.%d", id, lives[id])
				return p
			}
			key := func(p orphan.Pod) string { return "n/" + p.Seen.Name + " " + p.Seen.UID }
			for _, s := range plan {
				p := show(s.id)
				switch s.what {
				case 0, 1, 5:
					if s.what == 5 { // another one under the same name, and nobody saw the first one go
						delete(since, key(p))
						lives[s.id]++
						p = show(s.id)
					}
					r.keeper.Observed(t.Context(), p)
					if _, there := since[key(p)]; !there {
						since[key(p)] = time.Now()
					}
				case 2:
					p.Seen.Phase = snapshot.Deleted
					r.keeper.Observed(t.Context(), p)
					delete(since, key(p))
					lives[s.id]++
				case 3:
					r.keeper.Listed(t.Context(), "n", []orphan.Pod{p})
					began, there := since[key(p)]
					clear(since)
					if since[key(p)] = began; !there {
						since[key(p)] = time.Now()
					}
				case 4:
					r.keeper.Claimed("n", "a")
					clear(since)
				}
				pass(s.wait)
				for _, name := range r.asked() {
					if began, there := since[name]; !there || time.Since(began) < timeout {
						wrong = fmt.Sprintf("%s was deleted; orphans: %v", name, slices.Sorted(maps.Keys(since)))
					}
				}
				for name, began := range since {
					if time.Since(began) > timeout && !strings.Contains(r.log.String(), strings.Fields(strings.TrimPrefix(name, "n/"))[0]) {
						wrong = name + " was never told of"
					}
				}
			}
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}
