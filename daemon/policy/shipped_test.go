package policy

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/plugins/direct"
	"github.com/retinue-sched/retinue/plugins/elastic"
	"github.com/retinue-sched/retinue/plugins/modules"
	"github.com/retinue-sched/retinue/sdk"
)

// shippedHost returns a host whose cache all tests share: compiling what ships takes seconds, and a minute with the race detector.
func shippedHost(t testing.TB, change ...func(*Config)) *Host {
	t.Helper()
	return newHost(t, append(change, func(c *Config) { c.CacheDir = sharedCache })...)
}

// sharedCache is where compiled modules are kept while the tests run.
var sharedCache string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "retinue-modules-")
	if err != nil {
		panic(err)
	}
	sharedCache = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// A host that starts makes what ships ready, and its default policy decides as WebAssembly from then on.
func TestShippedPoliciesDecideInTheSandbox(t *testing.T) {
	h := shippedHost(t)
	h.prepare(t.Context())
	if err := h.Ready(); err != nil {
		t.Errorf("not ready: %v", err)
	}
	shipped := modules.Shipped()
	list := h.Modules()
	if len(list) != len(shipped) || len(list) == 0 {
		t.Fatalf("modules %+v, want %+v", list, shipped)
	}
	for i, m := range list {
		if m.Name != shipped[i].Name || m.Digest != shipped[i].Digest || !m.Shipped || len(m.Hooks) != 2 || m.Version == "" || m.Description == "" || m.Size < 1<<20 {
			t.Errorf("module %+v", m)
		}
	}
	for app, m := range map[string]string{"shop/plain": "direct", "shop/elastic": "elastic"} {
		want, _ := modules.Named(m)
		if m == "elastic" {
			if _, _, err := h.Bind(t.Context(), app, Binding{Policy: m, Settings: "{}"}); err != nil {
				t.Error(err)
			}
		}
		answer := h.Ask(t.Context(), app, hostabi.HookAllocate, wanting(3))
		if answer.Fault != "" || answer.By != want.Digest || answer.Policy != m {
			t.Errorf("%s: answer %+v, want one by %s", app, answer, want.Digest)
		}
	}
}

// Run ends with its context, and ends the host.
func TestRunEnds(t *testing.T) {
	h := newHost(t)
	ctx, stop := context.WithCancelCause(t.Context())
	over := errors.New("over")
	stop(over)
	if err := h.Run(ctx); !errors.Is(err, over) {
		t.Errorf("Run ended with %v", err)
	}
	if _, err := h.Load(t.Context(), "mine", guest{}.assemble(t)); !errors.Is(err, errClosed) {
		t.Errorf("loading after the end: %v", err)
	}
}

// A host that starts again finds what it compiled in its cache.
func TestCompiledModulesAreKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "modules")
	load := func() {
		h := newHost(t, func(c *Config) { c.CacheDir = dir })
		if _, err := h.Load(t.Context(), "mine", guest{}.assemble(t)); err != nil {
			t.Fatal(err)
		}
		if err := h.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	load()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing is kept: %v", err)
	}
	long := time.Unix(1_000_000_000, 0)
	for _, f := range files {
		if err := os.Chtimes(f, long, long); err != nil {
			t.Fatal(err)
		}
	}
	load()
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || !info.ModTime().Equal(long) {
			t.Errorf("%s was written again", filepath.Base(f))
		}
	}
}

// A cache into which others may write is not run.
func TestCacheOfOthersIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := openCache(dir); err == nil || !strings.Contains(err.Error(), "chmod go-w") || !strings.Contains(err.Error(), dir) {
		t.Errorf("error %v", err)
	}
	fresh := filepath.Join(t.TempDir(), "a", "b")
	if _, err := openCache(fresh); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(fresh); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("made with mode %v: %v", info.Mode(), err)
	}
}

// In the sandbox the shipped policies decide byte for byte as they do natively, whatever they are shown.
func TestSandboxChangesNoDecision(t *testing.T) {
	h := shippedHost(t, func(c *Config) { c.Deadline = time.Minute })
	for name, policy := range map[string]sdk.Policy{"direct": &direct.Policy{}, "elastic": &elastic.Policy{}} {
		t.Run(name, func(t *testing.T) {
			native, err := sdk.Native(policy, nil)
			if err != nil {
				t.Fatal(err)
			}
			m, _, err := h.library.find(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			i, f := h.engine.start(t.Context(), m, noSettings, 1<<20)
			if f != nil {
				t.Fatal(f)
			}
			defer i.close(t.Context())
			rapid.Check(t, func(t *rapid.T) {
				view := anyView.Draw(t, "view")
				for _, view.Hook = range hooks() {
					wanted, nativeErr := native.Call(view.Hook, view.Encode(nil, hostabi.Projection{}))
					i.world.begin(view.Decision.ElapsedMS, view.Decision.WallMS, view.Decision.Seed)
					i.restore(i.image)
					i.ticks = 0
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					got, f := i.answer(ctx, view.Hook, view.Encode(nil, m.projections[view.Hook]))
					cancel()
					if nativeErr != nil || f != nil {
						t.Fatalf("%v: natively %v, in the sandbox %v", view.Hook, nativeErr, f)
					}
					if !bytes.Equal(wanted, got) {
						t.Fatalf("%v: natively %x, in the sandbox %x", view.Hook, wanted, got)
					}
				}
			})
		})
	}
}

// anyView draws views of up to three profiles and forty executors.
var anyView = rapid.Custom(func(t *rapid.T) hostabi.View {
	small := rapid.Uint32Range(0, 30)
	age := rapid.Int64Range(0, 200_000)
	orNone := rapid.OneOf(small, rapid.Just[uint32](hostabi.None))
	v := hostabi.View{Decision: hostabi.DecisionRow{
		ID: 9, ElapsedMS: 200_000, WallMS: age.Draw(t, "wall"), Seed: rapid.Uint64().Draw(t, "seed"), Application: "shop/a",
		Trigger: hostabi.Trigger(rapid.IntRange(1, 5).Draw(t, "trigger")), APIBudget: orNone.Draw(t, "budget"), MaxPending: small.Draw(t, "max pending"),
	}}
	for id := range uint32(rapid.IntRange(0, 3).Draw(t, "profiles")) {
		v.Profiles = append(v.Profiles, hostabi.ProfileRow{
			ID: id + 1, Name: "profile", Target: small.Draw(t, "target"), Floor: small.Draw(t, "floor"), Ceiling: orNone.Draw(t, "ceiling"),
			Max: orNone.Draw(t, "max"), Slots: small.Draw(t, "slots"), QueuedTasks: small.Draw(t, "queued"), RunningTasks: small.Draw(t, "running"),
			OldestQueuedMS: age.Draw(t, "oldest") - 1, MaxPending: small.Draw(t, "pending"), BatchSize: small.Draw(t, "batch"),
			LifetimeLeft: orNone.Draw(t, "left"), BackoffUntilMS: age.Draw(t, "backoff") * 2, Mode: hostabi.Mode(rapid.IntRange(1, 2).Draw(t, "mode")),
			CreationTimeoutMS: age.Draw(t, "creation"), IdleTimeoutMS: age.Draw(t, "idle"), ReleaseIdleMS: age.Draw(t, "release"),
		})
	}
	if len(v.Profiles) == 0 {
		return v
	}
	for id := range uint64(rapid.IntRange(0, 40).Draw(t, "executors")) {
		row := drawExecutor(t, id+1, uint32(len(v.Profiles)))
		v.Executors = append(v.Executors, row)
		count(&v.Profiles[row.Profile-1], row)
	}
	return v
})

func drawExecutor(t *rapid.T, id uint64, profiles uint32) hostabi.ExecutorRow {
	age := rapid.Int64Range(0, 200_000)
	return hostabi.ExecutorRow{
		ID: id, Profile: rapid.Uint32Range(1, profiles).Draw(t, "profile"), Phase: hostabi.Phase(rapid.IntRange(1, 8).Draw(t, "phase")),
		PhaseSinceMS: age.Draw(t, "since"), CreatedAgoMS: age.Draw(t, "created"), Flags: hostabi.Flags(rapid.IntRange(0, 15).Draw(t, "flags")),
		BusySlots: rapid.Uint32Range(0, 2).Draw(t, "busy"), Slots: 2, IdleSinceMS: age.Draw(t, "idle") - 1, Node: "node-1", Zone: "zone-a",
	}
}

// count adds an executor to its profile's numbers.
func count(p *hostabi.ProfileRow, e hostabi.ExecutorRow) {
	switch e.Phase {
	case hostabi.PhaseRequested:
		p.Requested++
	case hostabi.PhasePending:
		p.Pending++
	case hostabi.PhaseRunning:
		p.Running++
	case hostabi.PhaseTerminating:
		p.Terminating++
	case hostabi.PhaseSucceeded, hostabi.PhaseFailed, hostabi.PhaseDeleted, hostabi.PhaseLost:
	}
	switch {
	case !e.Flags.Has(hostabi.FlagRegistered):
	case e.BusySlots > 0:
		p.Registered++
		p.Busy++
	default:
		p.Registered++
		p.Idle++
	}
}
