package daemon

import (
	"context"
	"strings"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/orphan"
	"github.com/retinue-sched/retinue/daemon/policy"
	"github.com/retinue-sched/retinue/daemon/runner"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/source"
	"github.com/retinue-sched/retinue/daemon/spec"
	"github.com/retinue-sched/retinue/hostabi"
)

// keyOf reads what runner.Key.String wrote. Neither part holds a slash.
func keyOf(app string) runner.Key {
	namespace, id, _ := strings.Cut(app, "/")
	return runner.Key{Namespace: namespace, ID: id}
}

// sink gives what a namespace's feed sees to the applications of that namespace, and what is nobody's to the keeper of orphans. An application that
// comes meanwhile is shown a list of its own soon, and so is the keeper.
type sink struct {
	namespace string
	set       *runner.Set
	orphans   *orphan.Keeper
}

// Observed passes one pod on.
func (s sink) Observed(app string, pod snapshot.Observation) {
	if !s.set.Post(runner.Key{Namespace: s.namespace, ID: app}, application.PodObserved{Pod: pod}) {
		s.orphans.Observed(context.Background(), orphan.Pod{Namespace: s.namespace, Application: app, Seen: pod})
	}
}

// Foreign passes on that there is a pod which is not ours. If nobody is in its way, nobody needs to know.
func (s sink) Foreign(app string, pod application.ForeignPod, gone bool) {
	s.set.Post(runner.Key{Namespace: s.namespace, ID: app}, application.ForeignObserved{Pod: pod, Gone: gone})
}

// Listed passes a list on to every application, also to those that have no pod in it.
func (s sink) Listed(l source.Listing) {
	known := map[string]bool{}
	for _, m := range s.set.All(s.namespace) {
		app := m.Key().ID
		known[app] = true
		m.Post(application.PodsListed{Version: l.Version, Pods: l.Of(app), Foreign: l.Foreign(app)})
	}
	var orphans []orphan.Pod
	for _, app := range l.Apps() {
		for _, seen := range l.Of(app) {
			if !known[app] {
				orphans = append(orphans, orphan.Pod{Namespace: s.namespace, Application: app, Seen: seen})
			}
		}
	}
	s.orphans.Listed(context.Background(), s.namespace, orphans)
}

// deciders lets applications ask the policy host.
type deciders struct{ host *policy.Host }

// Ask asks the application's policy.
func (d deciders) Ask(ctx context.Context, app runner.Key, hook hostabi.Hook, q runner.Question) runner.Answer {
	return answer(d.host.Ask(ctx, app.String(), hook, q))
}

// AskBuiltin asks the built-in policy.
func (d deciders) AskBuiltin(ctx context.Context, hook hostabi.Hook, q runner.Question) runner.Answer {
	return answer(d.host.Builtin(ctx, hook, q))
}

func answer(a policy.Answer) runner.Answer {
	return runner.Answer{Decision: a.Decision, Policy: a.Policy, By: a.By, Fault: a.Fault}
}

// bindings lets the driver bind policies.
type bindings struct{ *policy.Host }

func binding(b spec.Binding) policy.Binding {
	return policy.Binding{Policy: b.Policy, Settings: b.Settings}
}

// Try finds out whether a policy takes its settings.
func (b bindings) Try(ctx context.Context, to spec.Binding) error {
	return b.Host.Try(ctx, binding(to))
}

// Bind lets a policy decide for an application.
func (b bindings) Bind(ctx context.Context, app runner.Key, to spec.Binding, mode, before application.Mode) (policy.Module, string, error) {
	binding := binding(to)
	binding.Mode, binding.Before = spec.ModeName(mode), spec.ModeName(before)
	return b.Host.Bind(ctx, app.String(), binding)
}

// SetDefault lets a policy decide for applications without a binding.
func (b bindings) SetDefault(ctx context.Context, to spec.Binding) (policy.Module, string, error) {
	return b.Host.SetDefault(ctx, binding(to))
}

// Rollback goes back to the generation before.
func (b bindings) Rollback(ctx context.Context, app runner.Key) (policy.Module, application.Mode, string, error) {
	bound, replaced, err := b.Host.Rollback(ctx, app.String())
	if err != nil {
		return policy.Module{}, 0, "", err
	}
	mode, err := spec.ParseMode(bound.Mode) // it was made by ModeName
	return bound.Module, mode, replaced, err
}

// Bound is what decides for an application.
func (b bindings) Bound(app runner.Key) policy.Module { return b.Host.Bound(app.String()) }

// Forget drops an application's binding.
func (b bindings) Forget(app runner.Key) { b.Release(app.String()) }
