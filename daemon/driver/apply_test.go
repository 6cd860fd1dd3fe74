package driver

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/runner"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/spec"
)

func binding(b *apiv1.PolicyBinding) func(*apiv1.ApplicationSpec) {
	return func(s *apiv1.ApplicationSpec) { s.Policy = b }
}

// Applying changes who decides, and how, whatever part of the binding changed; without one, the default decides.
func TestApplyRebinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAlone(t)
		for _, b := range []*apiv1.PolicyBinding{
			{Policy: "other", Settings: `{"n":1}`}, {Policy: "other", Settings: `{"n":2}`}, {Policy: "direct"}, {}, {Policy: "other"}, nil,
		} {
			if err := a.apply(t, "app", binding(b)); err != nil {
				t.Fatal(err)
			}
			want := spec.Binding{Policy: b.GetPolicy(), Settings: b.GetSettings()}
			if got := a.shelf.of("app"); got != want || a.app.Definition().Binding != want {
				t.Errorf("%v is bound and %v defined, want %v", got, a.app.Definition().Binding, want)
			}
		}
		before := a.shelf.tried
		if err := a.apply(t, "app", nil); err != nil || a.shelf.tried != before {
			t.Errorf("what does not change was bound again, or %v", err)
		}
		if n := len(a.shelf.bound); n != 0 {
			t.Errorf("%d bindings are left of an application that follows the default: %v", n, a.shelf.bound)
		}
	})
}

// What is refused, by the policy or by the application, changes neither.
func TestRefusedApplyChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAlone(t)
		bound := spec.Binding{Policy: "other"}
		if err := a.apply(t, "app", binding(&apiv1.PolicyBinding{Policy: "other"})); err != nil {
			t.Fatal(err)
		}
		for name, change := range map[string]func(*apiv1.ApplicationSpec){
			"unknown policy":          binding(&apiv1.PolicyBinding{Policy: "nope"}),
			"wrong settings":          binding(&apiv1.PolicyBinding{Policy: "other", Settings: "{"}),
			"settings without policy": binding(&apiv1.PolicyBinding{Settings: "{}"}),
			"profile renamed": func(s *apiv1.ApplicationSpec) {
				s.Policy, s.Profiles[0].Name = &apiv1.PolicyBinding{Policy: "direct"}, "q"
			},
			"profile renamed, default": func(s *apiv1.ApplicationSpec) { s.Policy, s.Profiles[0].Name = nil, "q" },
		} {
			err := a.apply(t, "app", func(s *apiv1.ApplicationSpec) {
				s.Profiles[0].Target = 7
				change(s)
			})
			if status.Code(err) != codes.InvalidArgument {
				t.Errorf("%s: got %v", name, err)
			}
			def := a.app.Definition()
			if got := a.shelf.of("app"); got != bound || def.Binding != bound || def.Source.GetPolicy().GetPolicy() != "other" {
				t.Errorf("%s: %v is bound and %v defined", name, got, def.Binding)
			}
			if target := def.Config.Profiles[0].Target; target != 0 {
				t.Errorf("%s: the target is %d", name, target)
			}
		}
		for _, id := range []string{"new", "newer"} {
			if err := a.apply(t, id, binding(&apiv1.PolicyBinding{Policy: "nope"})); status.Code(err) != codes.InvalidArgument {
				t.Errorf("got %v", err)
			}
			if _, err := a.parts.Applications.Find(runner.Key{Namespace: "default", ID: id}); err == nil {
				t.Errorf("application %s was created without its policy", id)
			}
		}
		if n := len(a.shelf.bound); n != 1 {
			t.Errorf("there are bindings %v", a.shelf.bound)
		}
	})
}

// Of several that create the same application one does; the others change nothing of it, nor of its policy.
func TestOneCreatesAnApplication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAlone(t)
		release := a.shelf.holds("Bind") // all of them come while the first is still at it
		ended := make(chan error, 5)
		for i := range 5 {
			go func() {
				src := &apiv1.ApplicationSpec{
					Id: "new", Profiles: []*apiv1.ProfileSpec{{}}, Policy: &apiv1.PolicyBinding{Policy: "other", Settings: fmt.Sprint(i)},
				}
				_, err := a.apps.ApplyApplication(everything(t), &apiv1.ApplyApplicationRequest{Spec: src, MustBeNew: true})
				ended <- err
			}()
		}
		synctest.Wait()
		release()
		created := 0
		for range 5 {
			switch err := <-ended; status.Code(err) {
			case codes.OK:
				created++
			case codes.AlreadyExists:
			default:
				t.Errorf("got %v", err)
			}
		}
		m, err := a.parts.Applications.Find(runner.Key{Namespace: "default", ID: "new"})
		if err != nil {
			t.Fatal(err)
		}
		if got := a.shelf.of("new"); created != 1 || a.shelf.tried != 1 || got != m.Definition().Binding {
			t.Errorf("%d created it, %d bound it, %v is bound and %v defined", created, a.shelf.tried, got, m.Definition().Binding)
		}
	})
}

// An application that is created while its forerunner is being forgotten keeps its policy.
func TestSuccessorKeepsItsPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAlone(t)
		release := a.shelf.holds("Forget")
		ended := make(chan error, 2)
		go func() {
			_, err := a.apps.DeleteApplication(everything(t), &apiv1.DeleteApplicationRequest{Application: "app"})
			ended <- err
		}()
		synctest.Wait() // it is about to forget the binding
		go func() { ended <- a.apply(t, "app", binding(&apiv1.PolicyBinding{Policy: "other"})) }()
		synctest.Wait()
		release()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if got := a.shelf.of("app"); got.Policy != "other" {
			t.Errorf("%v is bound", got)
		}
	})
}

// A policy that is bound while the application is deleted is not left to the next one of its name.
func TestBindingEndsWithItsApplication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAlone(t)
		release := a.shelf.holds("Bind")
		ended := make(chan error, 2)
		go func() {
			_, err := (&policyService{Server: a.Server}).BindPolicy(everything(t), &apiv1.BindPolicyRequest{
				Application: "app", Binding: &apiv1.PolicyBinding{Policy: "other"},
			})
			ended <- err
		}()
		synctest.Wait() // it has found the application
		go func() {
			_, err := a.apps.DeleteApplication(everything(t), &apiv1.DeleteApplicationRequest{Application: "app"})
			ended <- err
		}()
		synctest.Wait()
		release()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if n := len(a.shelf.bound); n != 0 {
			t.Errorf("there are bindings %v and no application", a.shelf.bound)
		}
	})
}

// Who does not get a turn in time leaves, and the turn goes to the next.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		key := runner.Key{ID: "app"}
		back, err := turns.take(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if other, otherErr := turns.take(t.Context(), runner.Key{ID: "other"}); otherErr != nil {
			t.Fatal(otherErr)
		} else {
			other()
		}
		hasty, cancel := soon(t)
		defer cancel()
		if _, err = turns.take(hasty, key); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("got %v while another has the turn", err)
		}
		next := make(chan func(), 1)
		go func() {
			late, _ := turns.take(t.Context(), key)
			next <- late
		}()
		synctest.Wait()
		if len(next) != 0 {
			t.Fatal("two have the turn")
		}
		back()
		(<-next)()
		if n := len(turns.queues); n != 0 {
			t.Errorf("%d queues are left", n)
		}
	})
}

func soon(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), time.Second)
}

func setTarget(n uint32) func(uint64) application.Event {
	return func(request uint64) application.Event {
		return application.SetTargets{Request: request, Targets: []snapshot.Target{{Count: n}}}
	}
}

// An answer shows what the call has done.
func TestAnswersAreFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAlone(t)
		target := func(app *apiv1.Application) uint32 { return app.GetStatus().GetProfiles()[0].GetTarget() }
		scaled, err := a.apps.ScaleApplication(everything(t), &apiv1.ScaleApplicationRequest{Application: "app", Targets: map[string]uint32{"p": 3}})
		if err != nil || target(scaled.GetApplication()) != 3 {
			t.Errorf("scaling answered %v, %v", scaled, err)
		}
		if _, err = a.app.Call(t.Context(), setTarget(4)); err != nil {
			t.Fatal(err)
		}
		list, err := a.apps.ListApplications(everything(t), &apiv1.ListApplicationsRequest{})
		if err != nil || target(list.GetApplications()[0]) != 4 {
			t.Errorf("the list is %v, %v", list, err)
		}
		applied, err := a.apps.ApplyApplication(everything(t), &apiv1.ApplyApplicationRequest{Spec: &apiv1.ApplicationSpec{
			Id: "app", Profiles: []*apiv1.ProfileSpec{{Name: "p", Max: 100, Target: 5}},
		}})
		if err != nil || target(applied.GetApplication()) != 5 {
			t.Errorf("applying answered %v, %v", applied, err)
		}
	})
}
