package actuator_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/retinue-sched/retinue/daemon/actuator"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

var (
	podResource = schema.GroupResource{Resource: "pods"}
	quotaError  = apierrors.NewForbidden(podResource, "x", errors.New("exceeded quota: small, requested: pods=1, used: pods=10, limited: pods=10"))
)

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differ (-want +got):\n%s", what, diff)
	}
}

// A creation is answered with what the cluster made.
func TestCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		r.act.Enqueue("a", create(1), application.Ended{}, create(2))
		expect(t, "answers", sorted(r.heard()), "a created 1", "a created 2")
		p := r.find("a-i1-exec-2")
		if p == nil || us.Whose(p) != "" {
			t.Fatalf("pod 2 = %v", p)
		}
		found := false
		for _, ev := range r.events["a"] {
			c := ev.(application.PodCreated)
			found = found || c.Executor == 2 && c.UID == string(p.UID) && fmt.Sprint(c.Version) == p.ResourceVersion
		}
		if !found {
			t.Errorf("no answer has uid %s and version %s: %+v", p.UID, p.ResourceVersion, r.events["a"])
		}
	})
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

// A pod of ours that is there already is taken for the one that was asked for; a foreign one is left alone and told of.
func TestNameIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		mine := r.plant(ourPod(1))
		foreign := ourPod(2)
		foreign.Labels[pod.LabelOwner] = them.Name()
		planted := r.plant(foreign)
		r.act.Enqueue("a", create(1))
		expect(t, "answers", r.heard(), "a created 1")
		if got := r.last().(application.PodCreated).UID; got != string(mine.UID) {
			t.Errorf("adopted uid %s, want %s", got, mine.UID)
		}
		r.act.Enqueue("a", create(2))
		expect(t, "answers", r.heard(), "a created 1", "a refused 2 class 6")
		if text := r.last().(application.PodRefused).Text; !strings.Contains(text, "another daemon") || !strings.Contains(text, them.Name()) {
			t.Errorf("the refusal does not say whose it is: %s", text)
		}
		if p := r.find("a-i1-exec-2"); p == nil || p.ResourceVersion != planted.ResourceVersion {
			t.Errorf("the foreign pod was touched: %v", p)
		}
	})
}

// A creation that was carried out and never answered is asked for again under its name, and made once.
func TestLostAnswerIsFoundOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		r.script("create", commitThenHang, answering(errors.New("connection reset by peer")), answering(apierrors.NewInternalError(errors.New("etcdserver: request timed out"))))
		r.act.Enqueue("a", create(1))
		if got := r.heard(); len(got) != 0 {
			t.Fatalf("answered before anything is known: %v", got)
		}
		pass(time.Minute)
		expect(t, "answers", r.heard(), "a created 1")
		if r.made["a-i1-exec-1"] != 1 {
			t.Errorf("made %d times, want once", r.made["a-i1-exec-1"])
		}
		name := " a-i1-exec-1"
		expect(t, "calls", r.asked(), "create"+name, "create"+name, "create"+name, "create"+name, "read"+name)
	})
}

// A cluster that is gone for hours is asked at a bounded rate, and the creation is still made.
func TestOutageOfHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		down := answering(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
		for id := range snapshot.ID(50) {
			r.stick("create "+pod.Name("a", 1, id+1), down)
			r.act.Enqueue("a", create(id+1))
		}
		pass(6 * time.Hour)
		if n := len(r.asked()); n < 6*60*2 || n > 6*60*60 {
			t.Errorf("%d calls in six hours: neither asked nor hammered is wanted", n)
		}
		r.world.mu.Lock()
		clear(r.always)
		r.world.mu.Unlock()
		pass(2 * time.Minute)
		if got := len(r.heard()); got != 50 {
			t.Errorf("%d of 50 answered after the outage", got)
		}
	})
}

// Admission is asked before the name is looked up, so a refusal after a lost answer is not believed until the pod was looked for.
func TestRefusalAfterLostAnswer(t *testing.T) {
	for _, c := range []struct {
		name  string
		first fault
		want  string
	}{
		{"the lost call made it", commitThenHang, "a created 1"},
		{"the lost call did not", hang, "a refused 1 class 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, nil)
				r.script("create", c.first, answering(quotaError))
				r.act.Enqueue("a", create(1))
				pass(time.Minute)
				expect(t, "answers", r.heard(), c.want)
			})
		})
	}
}

// What the cluster refuses is refused with its reason, and not tried again.
func TestRefusalClasses(t *testing.T) {
	status := func(code int32, message string) error {
		s := apierrors.NewGenericServerResponse(int(code), "create", podResource, "x", message, 0, true)
		s.ErrStatus.Message = message
		return s
	}
	for _, c := range []struct {
		name string
		err  error
		want application.RefusalClass
	}{
		{"invalid", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "x", nil), application.RefusedInvalid},
		{"bad request", apierrors.NewBadRequest("no"), application.RefusedInvalid},
		{"quota", quotaError, application.RefusedQuota},
		{"pod security", apierrors.NewForbidden(podResource, "x", errors.New(`violates PodSecurity "restricted:latest"`)), application.RefusedAdmission},
		{"webhook says no", status(400, `admission webhook "w" denied the request: no`), application.RefusedAdmission},
		{"webhook is away", status(500, `failed calling webhook "w": no endpoints`), application.RefusedAdmission},
		{"no right", apierrors.NewForbidden(podResource, "", errors.New(`User "u" cannot create resource "pods" in API group "" in the namespace "batch"`)), application.RefusedForbidden},
		{"no credential", apierrors.NewUnauthorized("expired"), application.RefusedForbidden},
		{"no namespace", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "batch"), application.RefusedOther},
		{"not allowed", status(405, "no"), application.RefusedOther},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, nil)
				r.script("create", answering(c.err))
				r.act.Enqueue("a", create(1))
				pass(time.Hour)
				got, ok := r.last().(application.PodRefused)
				if !ok || got.Class != c.want || got.Text == "" {
					t.Errorf("answer = %+v, want a refusal of class %d with a text", r.last(), c.want)
				}
				if n := len(r.asked()); n != 1 {
					t.Errorf("asked %d times, want once: %v", n, r.asked())
				}
			})
		})
	}
}

// A pod that cannot be built is not asked for.
func TestBuildError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(c *actuator.Config) {
			c.Build = func(string, application.CreatePod) (*corev1.Pod, error) { return nil, errors.New("no such profile") }
		})
		r.act.Enqueue("a", create(1))
		expect(t, "answers", r.heard(), "a refused 1 class 1")
		expect(t, "calls", r.asked())
	})
}

// The pause that the cluster asks for is kept for creations of all applications, and deletions go on meanwhile.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		old := r.plant(ourPod(9))
		r.script("create", answering(apierrors.NewTooManyRequests("slow down", 20)))
		r.act.Enqueue("a", create(1))
		synctest.Wait()
		r.act.Enqueue("b", create(1))
		r.act.Enqueue("a", application.DeletePod{Executor: 9, Name: old.Name, UID: string(old.UID)})
		pass(19 * time.Second)
		expect(t, "answers", r.heard(), "a deleted 9 outcome 1")
		pass(2 * time.Second)
		expect(t, "answers", sorted(r.heard()), "a created 1", "a deleted 9 outcome 1", "b created 1")
	})
}

// However much is asked for, only so many calls are in flight, and the number grows while all goes well.
func TestCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		for id := range snapshot.ID(400) {
			r.stick("create "+pod.Name("a", 1, id+1), slowly(100*time.Millisecond))
			r.act.Enqueue("a", create(id+1))
		}
		pass(50 * time.Millisecond)
		if got := r.peak(); got != 8 {
			t.Errorf("%d calls in flight at first, want 8", got)
		}
		pass(time.Minute)
		if got := len(r.heard()); got != 400 {
			t.Errorf("%d of 400 answered", got)
		}
		if got := r.peak(); got != 16 {
			t.Errorf("%d calls in flight at most, want 16", got)
		}
	})
}

// One that asks for much waits its turn with one that asks for little.
func TestApplicationsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(c *actuator.Config) { c.Limits.Calls, c.Limits.MaxCalls = 1, 1 })
		r.script("create", slices.Repeat([]fault{slowly(time.Second)}, 40)...)
		for id := range snapshot.ID(30) {
			r.act.Enqueue("a", create(id+1))
		}
		r.act.Enqueue("b", create(1), create(2))
		pass(5 * time.Second)
		if got := r.heard(); !slices.Contains(got, "b created 1") || !slices.Contains(got, "b created 2") {
			t.Errorf("b waits behind all of a: %v", got)
		}
	})
}

// One whose calls hang leaves room for another.
func TestHangingApplicationLeavesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		for id := range snapshot.ID(100) {
			r.stick("create "+pod.Name("a", 1, id+1), hang)
			r.stick("create "+pod.Name("b", 1, id+1), slowly(10*time.Millisecond))
			r.act.Enqueue("a", create(id+1))
			r.act.Enqueue("b", create(id+1))
		}
		pass(10 * time.Second) // before the first of a has timed out
		if got := len(r.heard()); got != 100 {
			t.Errorf("%d of b's 100 are done while a hangs", got)
		}
	})
}

// A creation that never succeeds does not keep later ones of its application waiting.
func TestOneBadPodStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(c *actuator.Config) { c.Limits.Calls, c.Limits.MaxCalls = 1, 1 })
		r.stick("create a-i1-exec-1", answering(apierrors.NewInternalError(errors.New("boom"))))
		for id := range snapshot.ID(20) {
			r.act.Enqueue("a", create(id+1))
		}
		pass(time.Minute)
		if got := len(r.heard()); got != 19 {
			t.Errorf("%d answers, want 19", got)
		}
	})
}

// An effect that was asked for again before it was answered is one effect.
func TestAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		r.script("create", slowly(time.Second))
		r.act.Enqueue("a", create(1), create(1))
		pass(500 * time.Millisecond)
		r.act.Enqueue("a", create(1))
		pass(time.Minute)
		expect(t, "answers", r.heard(), "a created 1")
		expect(t, "calls", r.asked(), "create a-i1-exec-1")
	})
}

// What waits for an application that is gone is dropped, and what is in flight is not answered.
func TestDismiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(c *actuator.Config) { c.Limits.Calls, c.Limits.MaxCalls = 1, 1 })
		r.script("create", hang)
		r.act.Enqueue("a", create(1), create(2))
		synctest.Wait()
		r.act.Dismiss("a")
		r.act.Enqueue("a", create(3))
		r.act.Enqueue("b", create(1))
		pass(time.Hour)
		expect(t, "answers", r.heard(), "b created 1")
		expect(t, "calls", r.asked(), "create a-i1-exec-1", "create b-i1-exec-1")
	})
}

// With nothing to do, nothing is done.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		r.act.Enqueue("a", create(1))
		pass(time.Second)
		before := len(r.asked())
		pass(48 * time.Hour)
		if after := len(r.asked()); after != before {
			t.Errorf("%d calls while idle", after-before)
		}
	})
}

// Told to end, Run lets calls in flight end, answers for them, and starts no more.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(c *actuator.Config) { c.Limits.Calls, c.Limits.MaxCalls = 2, 2 })
		r.stick("create a-i1-exec-1", slowly(2*time.Second))
		r.stick("create a-i1-exec-2", hang)
		r.act.Enqueue("a", create(1), create(2), create(3))
		synctest.Wait()
		why := errors.New("told to")
		began := time.Now()
		r.cancel(why)
		if err := <-r.done; !errors.Is(err, why) {
			t.Errorf("Run returned %v, want its cause", err)
		}
		if took := time.Since(began); took != actuator.DefaultLimits().Drain {
			t.Errorf("Run took %v to end, want the drain time for the call that hangs", took)
		}
		expect(t, "answers", r.heard(), "a created 1")
		expect(t, "calls", sorted(r.asked()), "create a-i1-exec-1", "create a-i1-exec-2")
	})
}

func TestNewRefuses(t *testing.T) {
	if _, err := actuator.New(actuator.Config{Limits: actuator.DefaultLimits()}); err == nil {
		t.Error("a config without a cluster is accepted")
	}
	_, err := actuator.New(actuator.Config{Cluster: &world{}, Build: buildPod, Owner: us, Answer: func(string, application.Event) {}})
	if err == nil || strings.Count(err.Error(), "\n") < 3 {
		t.Errorf("limits of zero: %v, want every fault told", err)
	}
}
