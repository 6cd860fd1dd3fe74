package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/retinue-sched/retinue/daemon/allocator"
	"github.com/retinue-sched/retinue/daemon/policy"
	"github.com/retinue-sched/retinue/daemon/telemetry"
	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/plugins/direct"
	"github.com/retinue-sched/retinue/plugins/elastic"
	"github.com/retinue-sched/retinue/plugins/modules"
	"github.com/retinue-sched/retinue/sdk"
)

const (
	policyCalls = 400 // how often each question is asked
	surplus     = 100 // executors too many in the fleet that is too large
)

// policies measures a question about ten thousand executors to each shipped policy, as the daemon asks it: with every limit on.
func policies(ctx context.Context, _ settings) (rows []row, err error) {
	crowd, err := newCrowd(plenty)
	if err != nil {
		return nil, err
	}
	host, closeHost, err := openHost() //nolint:contextcheck // making a host waits for nothing
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeHost()) }()
	for _, m := range modules.Shipped() {
		if _, _, err := host.Bind(ctx, "default/app", policy.Binding{Policy: m.Name}); err != nil {
			return nil, err
		}
		for _, q := range questions(crowd.question) {
			asked, err := ask(ctx, host, m, q)
			if err != nil {
				return nil, fmt.Errorf("asking %s to %s: %w", m.Name, q.name, err)
			}
			rows = append(rows, asked...)
		}
	}
	return rows, nil
}

// question is what a policy is asked.
type question struct {
	name  string
	floor float64 // milliseconds; 0: none
	allocator.Input
}

// questions are about a fleet that works, of which policies see from the counters that there is nothing to do; about one that has been idle for a
// while and is too large, for which they must look at every executor; and about one of which as many go as may go at once.
func questions(idle *allocator.Input) []*question {
	idle.Decision.ElapsedMS += time.Hour.Milliseconds() // none has just become idle
	ask := func(name string, floor float64, hook hostabi.Hook, wanted uint32) *question {
		q := &question{name, floor, *idle}
		q.Hook, q.Profiles = hook, slices.Clone(idle.Profiles)
		p := &q.Profiles[0]
		p.RunningTasks, p.Target, p.Ceiling, p.ReleaseIdleMS = wanted*p.Slots, wanted, wanted, 1
		return q
	}
	live := idle.Profiles[0].Running
	return []*question{
		ask("allocate at rest", 2, hostabi.HookAllocate, live), ask("release at rest", 2, hostabi.HookRelease, live),
		ask(fmt.Sprintf("release %d", surplus), 2, hostabi.HookRelease, live-surplus), ask(fmt.Sprintf("release %d", sdk.MostAtOnce), 0, hostabi.HookRelease, 0),
	}
}

// openHost returns a host with the limits that a daemon has by default.
func openHost() (*policy.Host, func() error, error) {
	dir, err := os.MkdirTemp("", "retinue-bench-")
	if err != nil {
		return nil, nil, fmt.Errorf("making a folder for compiled modules: %w", err)
	}
	cfg := policy.DefaultConfig()
	cfg.CacheDir = dir
	signals, err := telemetry.New(telemetry.DefaultConfig())
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	host, err := policy.New(cfg, slog.New(slog.DiscardHandler), signals.Meter("policy"))
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return host, func() error { return errors.Join(host.Close(context.Background()), os.RemoveAll(dir)) }, nil
}

// ask asks one question again and again, and each time makes the view that it needs once more, to tell apart what that costs.
func ask(ctx context.Context, host *policy.Host, m modules.Module, q *question) ([]row, error) {
	projection, err := projectionOf(m, q.Hook)
	if err != nil {
		return nil, err
	}
	native, err := sdk.Native(natives[m.Name], nil)
	if err != nil {
		return nil, err
	}
	var view hostabi.View
	var block []byte
	var whole, views, calls, natively samples
	for i := range policyCalls + policyCalls/10 {
		began := time.Now()
		q.View(&view, projection)
		block = view.Encode(block[:0], projection)
		ready := time.Since(began)
		began = time.Now()
		if _, err := native.Call(q.Hook, block); err != nil {
			return nil, err
		}
		bare := time.Since(began)
		began = time.Now()
		answer := host.Ask(ctx, "default/app", q.Hook, q)
		d := time.Since(began)
		switch {
		case answer.Fault != "":
			return nil, errors.New(answer.Fault)
		case answer.By != m.Digest:
			return nil, fmt.Errorf("%s answered, not the module", answer.By)
		case i < policyCalls/10:
			continue // the instance is new and everything is cold
		}
		whole, views, calls = append(whole, d), append(views, ready), append(calls, d-ready)
		natively = append(natively, bare)
	}
	name := fmt.Sprintf("%s %s, 10,000 executors", m.Name, q.name)
	total := took(name+", p50", whole.median(), milliseconds)
	if q.floor > 0 {
		total = total.atMost(q.floor)
	}
	return []row{
		total,
		took("  p99", whole.quantile(0.99), milliseconds),
		took("  of it the view: filling and encoding, p50", views.median(), milliseconds),
		took("  and the rest, p50", calls.median(), milliseconds),
		measured("  over the same policy natively", over(calls, natively), times).noted("%v", natively.median()),
	}, nil
}

// natives are the shipped policies as plain Go.
var natives = map[string]sdk.Policy{"direct": &direct.Policy{}, "elastic": &elastic.Policy{}}

// projectionOf is the part of the view that a module asks for.
func projectionOf(m modules.Module, hook hostabi.Hook) (hostabi.Projection, error) {
	wasm, err := m.Wasm()
	if err != nil {
		return hostabi.Projection{}, err
	}
	manifest, err := hostabi.ReadManifest(wasm)
	if err != nil {
		return hostabi.Projection{}, err
	}
	return manifest.Projection(hook)
}
