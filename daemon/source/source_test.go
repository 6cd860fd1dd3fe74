package source_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/cluster"
	"github.com/retinue-sched/retinue/daemon/cluster/model"
	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/source"
)

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differ (-want +got):\n%s", what, diff)
	}
}

// last is the end of what was shown. Where a list and a watch begin at one moment, the watch may show a pod before the list does, or leave it out.
func last(shown []string) []string { return shown[max(0, len(shown)-1):] }

// A list comes first, in order, for all applications; then what happens.
func TestListThenWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.create(executor("b", 10))
		w.create(executor("b", 2))
		w.create(executor("a", 1))
		r := start(t, w, nil)
		expect(t, "shown", r.heard(), "list: a 1 Pending, b 2 Pending, b 10 Pending,")
		w.create(executor("a", 3))
		w.run("b-i1-exec-2")
		w.delete("a-i1-exec-1")
		expect(t, "shown", r.heard(), "a 3 Pending", "b 2 Running", "a 1 Terminating", "a 1 Deleted")
		if _, ok := r.feed.Age(); !ok {
			t.Error("the feed does not know that it has listed")
		}
	})
}

// An empty list is news too: who has no pods is told so.
func TestEmptyListIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newWorld(), nil)
		expect(t, "shown", r.heard(), "list:")
	})
}

// While all is well a list is taken from time to time, and a watch that came to its regular end goes on where it was.
func TestQuietDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := start(t, w, nil)
		for range 6 {
			pass(10 * time.Minute)
			w.cut(cluster.ErrEnded)
		}
		pass(time.Second)
		if lists, watches := w.asked(); lists != 3 || len(watches) != 7 {
			t.Errorf("%d lists and %d watches in an hour, want 3 and 7", lists, len(watches))
		}
		w.create(executor("a", 1))
		expect(t, "shown last", last(r.heard()), "a 1 Pending")
	})
}

// After a watch that broke there is a list, and nothing is lost or told twice.
func TestBrokenWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := start(t, w, nil)
		r.heard()
		w.cut(errCut)
		synctest.Wait()
		w.create(executor("a", 1)) // while nobody watches
		pass(time.Second)
		expect(t, "shown last", last(r.heard()), "list: a 1 Pending,")
		w.run("a-i1-exec-1")
		expect(t, "shown", r.heard(), "a 1 Running")
	})
}

// A watch whose place in history is gone goes on from a new list.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := start(t, w, nil)
		r.heard()
		w.cut(errCut)
		synctest.Wait()
		w.create(executor("a", 1))
		w.create(executor("a", 2))
		w.do(func(s *model.Server) error { s.Compact(s.Version()); return nil })
		pass(3 * time.Second)
		w.create(executor("a", 3))
		expect(t, "shown last", last(r.heard()), "a 3 Pending")
		_, watches := w.asked()
		if first, last := watches[0], watches[len(watches)-1]; first == last {
			t.Errorf("watched from %s again, though it is gone", last)
		}
	})
}

// A server that answers 410 to everything is asked at a bounded rate, and the lists go on.
func TestGoneForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for range 10_000 {
			w.openErr = append(w.openErr, apierrors.NewResourceExpired("too old resource version"))
		}
		start(t, w, nil)
		pass(time.Hour)
		lists, watches := w.asked()
		if len(watches) > 300 || lists > 300 || lists < 60 {
			t.Errorf("%d lists and %d watches in an hour", lists, len(watches))
		}
	})
}

// A watch that shows nothing, not even a bookmark, is taken for dead; what it missed comes with a list.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := start(t, w, nil)
		r.heard()
		w.spoil(func(w *world) { w.streams[0].mute = true })
		w.create(executor("a", 1))
		pass(source.DefaultConfig().Silence - time.Second)
		expect(t, "shown while it is silent", r.heard())
		pass(3 * time.Second)
		expect(t, "shown last", last(r.heard()), "list: a 1 Pending,")
		w.run("a-i1-exec-1")
		expect(t, "shown", r.heard(), "a 1 Running")
	})
}

// Bookmarks are a sign of life, and they move the place from which a watch goes on.
func TestBookmarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := start(t, w, func(c *source.Config) { c.Poll = 0 })
		r.heard()
		w.do(func(s *model.Server) error {
			_, err := s.Create(time.Now(), model.Ref{Resource: "configmaps", Namespace: namespace}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.CreateOptions{})
			return err
		})
		pass(time.Hour)
		if lists, watches := w.asked(); lists != 1 || len(watches) != 1 {
			t.Errorf("%d lists and %d watches though bookmarks came", lists, len(watches))
		}
		w.cut(cluster.ErrEnded)
		synctest.Wait()
		if _, watches := w.asked(); watches[0] == watches[1] {
			t.Errorf("the second watch begins where the first did: %v", watches)
		}
		if age, _ := r.feed.Age(); age > time.Minute {
			t.Errorf("last sign of life %v ago", age)
		}
	})
}

// A list older than what was seen before it began is not delivered: a server that lags must not make pods of the past appear.
func TestOldListIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.create(executor("a", 1))
		r := start(t, w, nil)
		r.heard()
		w.spoil(func(w *world) { w.lag = w.server.Version() })
		w.delete("a-i1-exec-1")
		expect(t, "shown", r.heard(), "a 1 Terminating", "a 1 Deleted")
		r.feed.Refresh()
		pass(10 * time.Minute)
		expect(t, "shown by a server that lags", r.heard())
		w.spoil(func(w *world) { w.lag = 0 })
		pass(time.Minute)
		expect(t, "shown", r.heard(), "list:")
	})
}

// A list that overtakes the watch says it all: what the watch then shows of the past is kept back.
func TestListOvertakesWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := start(t, w, nil)
		r.heard()
		w.spoil(func(w *world) { w.streams[0].mute = true })
		w.create(executor("a", 1))
		w.delete("a-i1-exec-1")
		r.feed.Refresh()
		expect(t, "shown", r.heard(), "list:")
		w.spoil(func(w *world) { w.streams[0].mute = false })
		w.create(executor("a", 2))
		expect(t, "shown", r.heard(), "a 2 Pending")
	})
}

// A server that ends each watch at once, as if it were its regular end, is not asked without pause.
func TestWatchesThatEndAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for range 10_000 {
			w.openErr = append(w.openErr, cluster.ErrEnded)
		}
		start(t, w, nil)
		pass(time.Hour)
		if lists, watches := w.asked(); len(watches) > 300 || lists > 300 {
			t.Errorf("%d lists and %d watches in an hour", lists, len(watches))
		}
	})
}

// Lists that fail are tried again with growing pauses, and the watch shows the pods meanwhile.
func TestListErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := start(t, w, nil)
		r.heard()
		w.spoil(func(w *world) {
			for range 10 {
				w.listErr = append(w.listErr, apierrors.NewInternalError(errors.New("boom")))
			}
		})
		r.feed.Refresh()
		pass(time.Second)
		w.create(executor("a", 1))
		expect(t, "shown", r.heard(), "a 1 Pending")
		pass(9 * time.Second)
		if lists, _ := w.asked(); lists > 1+8 {
			t.Errorf("%d lists in ten seconds: the pauses do not grow", lists)
		}
		pass(10 * time.Minute)
		expect(t, "shown", r.heard(), "list: a 1 Pending,")
	})
}

// A pod with our labels that names no executor spoils neither list nor watch, and is complained of once.
func TestForeignPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		bad := executor("a", 7)
		bad.Labels[pod.LabelExecutor] = "EXECID"
		w.create(bad)
		w.create(executor("a", 1))
		var log bytes.Buffer
		r := start(t, w, func(c *source.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		expect(t, "shown", r.heard(), "list: a 1 Pending,")
		w.run("a-i1-exec-7")
		w.run("a-i1-exec-1")
		pass(2 * time.Hour)
		if n := strings.Count(log.String(), "left out"); n != 1 || !strings.Contains(log.String(), "EXECID") {
			t.Errorf("complained %d times, want once with the label's value:\n%s", n, log.String())
		}
	})
}

// Without a watch the lists alone show the pods.
func TestPollOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := start(t, w, func(c *source.Config) { c.PollOnly, c.Poll = true, 30*time.Second })
		r.heard()
		w.create(executor("a", 1))
		pass(31 * time.Second)
		expect(t, "shown", r.heard(), "list: a 1 Pending,")
		if _, watches := w.asked(); len(watches) != 0 {
			t.Errorf("watched from %v", watches)
		}
	})
}

// Run ends with its cause and leaves nothing running (the bubble would not end).
func TestRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newWorld(), nil)
		why := errors.New("told to")
		r.cancel(why)
		if err := <-r.done; !errors.Is(err, why) {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestValidate(t *testing.T) {
	err := source.Config{Poll: -1, PollOnly: true}.Validate()
	if err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("error = %v, want four lines", err)
	}
}

// Whatever happens to pods, their labels, lists and watches: once the trouble is over, who listens knows what is.
func TestWhoListensKnowsWhatIs(t *testing.T) {
	type step struct {
		kind, id int
		wait     time.Duration
	}
	steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{rapid.IntRange(0, 9).Draw(t, "kind"), rapid.IntRange(1, 4).Draw(t, "id"), time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond}
	}), 1, 40)
	rapid.Check(t, func(rt *rapid.T) {
		plan := steps.Draw(rt, "steps")
		var wrong string
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			r := start(t, w, nil)
			synctest.Wait()
			there := map[int]bool{}
			for _, s := range plan {
				if name := pod.Name("a", 1, snapshot.ID(s.id)); s.kind == 9 && there[s.id] && r.knows(name) {
					w.edit(name, edits["no owner"])
					w.edit(name, edits["no number"])
				}
				play(w, there, s.kind, s.id)
				if s.wait > 0 {
					pass(s.wait)
				}
			}
			pass(15 * time.Minute)
			wrong = differs(r, w)
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// play makes one thing happen.
func play(w *world, there map[int]bool, kind, id int) {
	name := pod.Name("a", 1, snapshot.ID(id))
	switch {
	case kind <= 1 && !there[id]:
		w.create(executor("a", snapshot.ID(id)))
		there[id] = true
	case kind == 2 && there[id]:
		w.run(name)
	case kind == 3 && there[id]:
		w.delete(name)
		there[id] = false
	case kind == 4:
		w.cut(errCut)
	case kind == 5:
		w.cut(cluster.ErrEnded)
	case kind == 6:
		w.do(func(s *model.Server) error { s.Compact(s.Version()); return nil })
		w.cut(errCut)
	case kind == 7:
		w.spoil(func(w *world) {
			if n := len(w.streams); n > 0 {
				w.streams[n-1].mute = true
			}
		})
	case kind == 8:
		w.spoil(func(w *world) {
			w.listErr = append(w.listErr, apierrors.NewInternalError(errors.New("boom")))
			w.openErr = append(w.openErr, apierrors.NewTooManyRequests("slow down", 1))
		})
	}
}

// differs says how what a listener knows differs from what is.
func differs(r *rig, w *world) string {
	r.heard()
	w.spoil(func(w *world) { w.listErr = nil })
	is := map[string]snapshot.Phase{}
	if _, err := w.List(context.Background(), cluster.Query{Namespace: namespace}, func(p *corev1.Pod) {
		is[p.Name] = pod.State(p, "").Phase
	}); err != nil {
		return err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Diff(is, r.phases)
}
