package actuator_test

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/retinue-sched/retinue/daemon/actuator"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

func deletion(p *corev1.Pod, id snapshot.ID) application.DeletePod {
	v, err := strconv.ParseUint(p.ResourceVersion, 10, 64)
	if err != nil {
		panic(err)
	}
	return application.DeletePod{Executor: id, Name: p.Name, UID: string(p.UID), Version: snapshot.Version(v), Grace: -1}
}

// A deletion hits the pod that the decision saw, or nothing.
func TestDeletePreconditions(t *testing.T) {
	for _, c := range []struct {
		name  string
		alter func(*rig, *application.DeletePod)
		want  string
		stays bool
	}{
		{"as it was seen", func(*rig, *application.DeletePod) {}, "a deleted 1 outcome 1", false},
		{"changed since", func(r *rig, _ *application.DeletePod) { r.bind("a-i1-exec-1") }, "a deleted 1 outcome 2", true},
		{"another life", func(_ *rig, d *application.DeletePod) { d.UID, d.Version = "other", 0 }, "a deleted 1 outcome 2", true},
		{"gone", func(_ *rig, d *application.DeletePod) { d.Name = "a-i1-exec-2" }, "a deleted 1 outcome 1", true},
		{"any version", func(r *rig, d *application.DeletePod) { r.bind("a-i1-exec-1"); d.Version, d.Grace = 0, 0 }, "a deleted 1 outcome 1", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, nil)
				eff := deletion(r.plant(ourPod(1)), 1)
				c.alter(r, &eff)
				r.act.Enqueue("a", eff)
				expect(t, "answers", r.heard(), c.want)
				if stays := r.find("a-i1-exec-1") != nil; stays != c.stays {
					t.Errorf("the pod stays: %v, want %v", stays, c.stays)
				}
			})
		})
	}
}

// A deletion whose answer was lost changes the pod itself: meeting that change is no reason to say that it was not carried out.
func TestDeletionMeetsItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		p := r.plant(ourPod(1))
		r.bind(p.Name)
		r.script("delete", commitThenHang)
		r.act.Enqueue("a", deletion(r.find(p.Name), 1))
		pass(time.Minute)
		expect(t, "answers", r.heard(), "a deleted 1 outcome 1")
		if got := r.find(p.Name); got == nil || got.DeletionTimestamp == nil {
			t.Errorf("pod = %v, want one that is going", got)
		}
	})
}

// Meeting another change after a lost answer is not taken for success.
func TestDeletionMeetsAnotherChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		p := r.plant(ourPod(1))
		r.script("delete", hang)
		r.act.Enqueue("a", deletion(p, 1))
		synctest.Wait()
		r.bind(p.Name)
		pass(time.Minute)
		expect(t, "answers", r.heard(), "a deleted 1 outcome 2")
	})
}

// A deletion is tried for a while, and then has failed; one that is refused has failed at once.
func TestDeletionFails(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		calls int
	}{
		{"out of order", apierrors.NewInternalError(errors.New("boom")), actuator.DefaultLimits().DeleteTries},
		{"not allowed", apierrors.NewForbidden(podResource, "x", errors.New(`User "u" cannot delete`)), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, nil)
				p := r.plant(ourPod(1))
				r.stick("delete "+p.Name, answering(c.err))
				r.act.Enqueue("a", deletion(p, 1))
				pass(time.Hour)
				expect(t, "answers", r.heard(), "a deleted 1 outcome 3")
				if n := len(r.asked()); n != c.calls {
					t.Errorf("%d calls, want %d", n, c.calls)
				}
			})
		})
	}
}

// A creation that waits is cancelled by a deletion: nothing is asked of the cluster, and both are answered.
func TestDeletionCancelsCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(c *actuator.Config) { c.Limits.Calls, c.Limits.MaxCalls = 1, 1 })
		r.script("create", slowly(time.Second))
		r.act.Enqueue("a", create(1), create(2))
		synctest.Wait()
		r.act.Enqueue("a", application.DeletePod{Executor: 2, Name: "a-i1-exec-2", Grace: -1})
		pass(time.Minute)
		expect(t, "answers", r.heard(), "a refused 2 class 5", "a deleted 2 outcome 1", "a created 1")
		expect(t, "calls", r.asked(), "create a-i1-exec-1")
	})
}

// A creation in flight is waited for, and then deleted; also if its answer is lost.
func TestDeletionWaitsForCreation(t *testing.T) {
	for name, first := range map[string]fault{"slow": slowly(time.Second), "lost": commitThenHang, "lost before": hang} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, nil)
				r.script("create", first)
				r.act.Enqueue("a", create(1))
				synctest.Wait()
				r.act.Enqueue("a", application.DeletePod{Executor: 1, Name: "a-i1-exec-1", Grace: -1})
				pass(time.Minute)
				expect(t, "answers", r.heard(), "a created 1", "a deleted 1 outcome 1")
				if r.find("a-i1-exec-1") != nil {
					t.Error("the pod is still there")
				}
			})
		})
	}
}

// A creation whose answer was lost is not cancelled while it waits for its next try: its pod may be there.
func TestDeletionOfAnUnknownCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		r.script("create", commitThenHang)
		r.act.Enqueue("a", create(1))
		pass(actuator.DefaultLimits().Timeout)
		r.act.Enqueue("a", application.DeletePod{Executor: 1, Name: "a-i1-exec-1", Grace: -1})
		pass(time.Minute)
		expect(t, "answers", r.heard(), "a created 1", "a deleted 1 outcome 1")
		if r.find("a-i1-exec-1") != nil {
			t.Error("the pod is still there")
		}
	})
}

// A creation that certainly was not carried out is not tried again once it is not wanted.
func TestDeletionEndsRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		throttled := apierrors.NewTooManyRequests("slow down", 1)
		r.script("create", answering(throttled))
		r.act.Enqueue("a", create(1))
		synctest.Wait()
		r.act.Enqueue("a", application.DeletePod{Executor: 1, Name: "a-i1-exec-1"})
		pass(time.Minute)
		expect(t, "answers", r.heard(), "a refused 1 class 5", "a deleted 1 outcome 1")
		expect(t, "calls", r.asked(), "create a-i1-exec-1")
	})
}

// Without a uid a pod is found by name, and deleted only if it is ours.
func TestDeleteByName(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*corev1.Pod)
		stays bool
	}{
		{"ours", func(*corev1.Pod) {}, false},
		{"a copy", func(p *corev1.Pod) { p.Annotations[pod.AnnotationIntent] = "x" }, true},
		{"another daemon's", func(p *corev1.Pod) { p.Labels[pod.LabelOwner] = them.Name() }, true},
		{"no label of an owner", func(p *corev1.Pod) { delete(p.Labels, pod.LabelOwner) }, true},
		{"another executor", func(p *corev1.Pod) { p.Labels[pod.LabelExecutor] = "2" }, true},
		{"no labels", func(p *corev1.Pod) { p.Labels = nil }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, nil)
				p := ourPod(1)
				c.spoil(p)
				r.plant(p)
				r.act.Enqueue("a", application.DeletePod{Executor: 1, Name: p.Name, Grace: -1})
				expect(t, "answers", r.heard(), "a deleted 1 outcome 1")
				if stays := r.find(p.Name) != nil; stays != c.stays {
					t.Errorf("the pod stays: %v, want %v", stays, c.stays)
				}
			})
		})
	}
}

// Pods of two lives that have the same number are two: neither's deletion stands for the other's.
func TestOneNumberOfTwoLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		mine := r.plant(ourPod(1))
		former := ourPod(1)
		former.Name = "a-i0-exec-1"
		former = r.plant(former)
		r.script("delete", slowly(time.Second), slowly(time.Second))
		r.act.Enqueue("a", deletion(mine, 1), deletion(former, 1))
		pass(time.Minute)
		expect(t, "answers", sorted(r.heard()), "a deleted 1 outcome 1", "a deleted 1 outcome 1")
		if p, q := r.find(mine.Name), r.find(former.Name); p != nil || q != nil {
			t.Errorf("still there: %v, %v", p, q)
		}
		names := map[string]bool{}
		for _, ev := range r.events["a"] {
			names[ev.(application.PodDeleted).Name] = true
		}
		if !names[mine.Name] || !names[former.Name] {
			t.Errorf("answered for %v", names)
		}
	})
}

// Who wants a pod gone at once need not wait for a gentle deletion to have been answered.
func TestLaterDeletionReplacesEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		p := r.plant(ourPod(1))
		r.bind(p.Name)
		r.script("delete", slowly(time.Second))
		gentle := deletion(p, 1)
		gentle.Version = 0
		r.act.Enqueue("a", gentle)
		synctest.Wait()
		now := gentle
		now.Grace = 0
		r.act.Enqueue("a", now)
		pass(time.Minute)
		expect(t, "answers", r.heard(), "a deleted 1 outcome 1", "a deleted 1 outcome 1")
		if r.find(p.Name) != nil {
			t.Error("the pod is still there")
		}
	})
}

// Deletions never wait for creations, however many hang.
func TestDeletionsAreNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		for id := range snapshot.ID(200) {
			r.stick("create "+pod.Name("a", 1, id+1), hang)
			r.act.Enqueue("a", create(id+1))
		}
		p := r.plant(ourPod(999))
		r.act.Enqueue("a", deletion(p, 999))
		expect(t, "answers", r.heard(), "a deleted 999 outcome 1")
	})
}
