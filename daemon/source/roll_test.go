package source_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retinue-sched/retinue/daemon/cluster/model"
	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/source"
)

// edits are what people do to the metadata of a pod.
var edits = map[string]func(*corev1.Pod){
	"no owner":             func(p *corev1.Pod) { delete(p.Labels, pod.LabelOwner) },
	"another owner":        func(p *corev1.Pod) { p.Labels[pod.LabelOwner] = them.Name() },
	"no number":            func(p *corev1.Pod) { delete(p.Labels, pod.LabelExecutor) },
	"another number":       func(p *corev1.Pod) { p.Labels[pod.LabelExecutor] = "2" },
	"no number at all":     func(p *corev1.Pod) { p.Labels[pod.LabelExecutor] = "EXECID" },
	"another application":  func(p *corev1.Pod) { p.Labels[pod.LabelApp] = "b" },
	"another life":         func(p *corev1.Pod) { p.Labels[pod.LabelIncarnation] = "2" },
	"another profile":      func(p *corev1.Pod) { p.Labels[pod.LabelProfile] = "9" },
	"no token":             func(p *corev1.Pod) { p.Annotations = nil },
	"only the application": func(p *corev1.Pod) { p.Labels = map[string]string{pod.LabelApp: "a"} },
}

// edit changes the metadata of a pod, as people may.
func (w *world) edit(name string, change func(*corev1.Pod)) {
	w.do(func(s *model.Server) error {
		obj, err := s.Read(ref(name))
		if err != nil {
			return err
		}
		p := obj.(*corev1.Pod).DeepCopy()
		change(p)
		_, err = s.Update(time.Now(), ref(name), p, metav1.UpdateOptions{})
		return err
	})
}

// ledger is what a feed logs and counts.
type ledger struct {
	log    bytes.Buffer
	reader *sdkmetric.ManualReader
}

func (l *ledger) keep(c *source.Config) {
	l.reader = sdkmetric.NewManualReader()
	c.Log = slog.New(slog.NewTextHandler(&l.log, nil))
	c.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(l.reader)).Meter("")
}

// toldOnce checks that one edit is logged, once, and that nobody's pod is taken for another's.
func (l *ledger) toldOnce(t *testing.T) {
	t.Helper()
	if n := strings.Count(l.log.String(), "were edited"); n != 1 || strings.Count(l.log.String(), "a-i1-exec-1") < 1 {
		t.Errorf("the edit is logged %d times, want once with the pod's name:\n%s", n, l.log.String())
	}
	if strings.Contains(l.log.String(), "left") {
		t.Errorf("the pod is said to be left alone, or out:\n%s", l.log.String())
	}
	if n := foreign(t, l.reader); n != 0 {
		t.Errorf("%d foreign pods are counted, want none", n)
	}
}

// A pod that a watch showed as ours stays the executor that it was, whatever its labels say later, until it is gone. The lists in between agree.
func TestEditedPodIsWatchedOn(t *testing.T) {
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, l := newWorld(), &ledger{}
				r := start(t, w, l.keep)
				r.heard()
				w.create(executor("a", 1))
				expect(t, "shown", r.heard(), "a 1 Pending")
				w.edit("a-i1-exec-1", edit)
				w.run("a-i1-exec-1")
				expect(t, "shown", r.heard(), "a 1 Pending", "a 1 Running")
				r.feed.Refresh()
				expect(t, "shown", r.heard(), "list: a 1 Running,")
				if !r.feed.Shows(1) || r.feed.Shows(2) {
					t.Errorf("shows life 1: %v, life 2: %v", r.feed.Shows(1), r.feed.Shows(2))
				}
				w.delete("a-i1-exec-1")
				expect(t, "shown", r.heard(), "a 1 Terminating", "a 1 Deleted")
				l.toldOnce(t)
			})
		})
	}
}

// What holds for a watch holds for lists alone.
func TestEditedPodIsListedOn(t *testing.T) {
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, l := newWorld(), &ledger{}
				w.create(executor("a", 1))
				r := start(t, w, func(c *source.Config) { c.PollOnly = true; l.keep(c) })
				expect(t, "shown", r.heard(), "list: a 1 Pending,")
				w.edit("a-i1-exec-1", edit)
				w.run("a-i1-exec-1")
				for range 3 {
					r.feed.Refresh()
					expect(t, "shown", r.heard(), "list: a 1 Running,")
				}
				w.delete("a-i1-exec-1")
				r.feed.Refresh()
				expect(t, "shown", r.heard(), "list:")
				l.toldOnce(t)
			})
		})
	}
}

// A pod that was edited and deleted while nobody watched is gone from the next list, and one that was only edited is not.
func TestEditedPodsAfterABrokenWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.create(executor("a", 1))
		w.create(executor("a", 2))
		r := start(t, w, nil)
		r.heard()
		w.cut(errCut)
		synctest.Wait()
		w.edit("a-i1-exec-1", edits["no owner"])
		w.edit("a-i1-exec-2", edits["another owner"])
		w.delete("a-i1-exec-1")
		w.run("a-i1-exec-2")
		pass(time.Second)
		expect(t, "shown last", last(r.heard()), "list: a 2 Running,")
	})
}

// A list that shows an edited pod that went while the list was under way shows it as ours; a pod that came meanwhile, which the list lacks, stays
// ours after an edit as well.
func TestEditsDuringAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.create(executor("a", 1))
		r := start(t, w, nil)
		r.heard()
		w.edit("a-i1-exec-1", edits["no owner"])
		expect(t, "shown", r.heard(), "a 1 Pending")
		w.spoil(func(w *world) {
			w.during = func() {
				w.delete("a-i1-exec-1")
				w.create(executor("a", 2))
				pass(time.Second)
			}
		})
		r.feed.Refresh()
		pass(5 * time.Second)
		expect(t, "shown", r.heard(), "a 1 Terminating", "a 1 Deleted", "a 2 Pending", "list: a 1 Pending,")
		w.edit("a-i1-exec-2", edits["another owner"])
		w.run("a-i1-exec-2")
		expect(t, "shown", r.heard(), "a 2 Pending", "a 2 Running")
	})
}

// A daemon that starts anew knows nothing but what the labels say.
func TestEditedPodAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.create(executor("a", 1))
		first := start(t, w, nil)
		first.heard()
		w.edit("a-i1-exec-1", edits["no owner"])
		expect(t, "shown at first", first.heard(), "a 1 Pending")
		second := start(t, w, nil)
		expect(t, "shown after a restart", second.heard(), "list: a foreign a-i1-exec-1,")
	})
}

// A UID stands for one pod: another of the same name is judged by its own labels. And nobody makes a pod ours with our label alone.
func TestAnotherPodOfAnEditedOnesName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.create(executor("a", 1))
		r := start(t, w, nil)
		r.heard()
		w.delete("a-i1-exec-1")
		r.heard()
		stranger := theirs("a", 1)
		stranger.Annotations[pod.AnnotationIntent] = "0123456789abcdef"
		w.create(stranger)
		w.edit("a-i1-exec-1", func(p *corev1.Pod) { p.Labels[pod.LabelOwner] = us.Name() })
		w.run("a-i1-exec-1")
		expect(t, "shown", r.heard(), "a foreign a-i1-exec-1 there", "a foreign a-i1-exec-1 there", "a foreign a-i1-exec-1 there")
	})
}
