package policy

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.uber.org/goleak"

	"github.com/retinue-sched/retinue/hostabi"
)

// numbered returns a module that always asks for n executors.
func numbered(t testing.TB, n uint32) []byte {
	decision := hostabi.EncodeDecision(nil, hostabi.Decision{Creates: []hostabi.Create{{Profile: 1, Count: n}}})
	return guest{
		bodies: map[string][]byte{hostabi.ExportAllocate: code(i64Const(packed(answerAt, len(decision))))},
		data:   map[uint32][]byte{answerAt: decision},
	}.assemble(t)
}

// load loads numbered modules under the names a, b, ...
func load(t testing.TB, h *Host, names ...string) map[string]Module {
	t.Helper()
	loaded := map[string]Module{}
	for i, name := range names {
		m, err := h.Load(t.Context(), name, numbered(t, uint32(i+1)))
		if err != nil {
			t.Fatal(err)
		}
		loaded[name] = m
	}
	return loaded
}

// bindTo lets a policy decide for shop/a and returns what it replaced.
func bindTo(t testing.TB, h *Host, policy, settings string) string {
	t.Helper()
	bound, replaced, err := h.Bind(t.Context(), "shop/a", Binding{Policy: policy, Settings: settings})
	if err != nil || bound.Name != policy {
		t.Fatalf("bound %+v: %v", bound, err)
	}
	return replaced
}

// asks returns who decides for an application.
func asks(t testing.TB, h *Host, app string) string {
	t.Helper()
	answer := h.Ask(t.Context(), app, hostabi.HookAllocate, wanting(9))
	if answer.Fault != "" {
		t.Errorf("%s: %s", app, answer.Fault)
	}
	return answer.Policy
}

// A policy takes over with the next question, and the one before is a rollback away.
func TestBindAndRollback(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	h := startHost(t, slog.DiscardHandler, reader)
	m := load(t, h, "a", "b", "c")
	if replaced := bindTo(t, h, "a", ""); replaced != builtinDigest || asks(t, h, "shop/a") != "a" {
		t.Errorf("a replaced %q", replaced)
	}
	if _, _, err := h.Rollback(t.Context(), "shop/a"); !errors.Is(err, ErrNoEarlier) {
		t.Errorf("rolling back the first: %v", err)
	}
	if replaced := bindTo(t, h, "b", ""); replaced != m["a"].Digest || asks(t, h, "shop/a") != "b" {
		t.Errorf("b replaced %q", replaced)
	}
	if replaced := bindTo(t, h, "c", ""); replaced != m["b"].Digest || asks(t, h, "shop/a") != "c" {
		t.Errorf("c replaced %q", replaced)
	}
	bound, replaced, err := h.Rollback(t.Context(), "shop/a")
	if err != nil || bound.Module.Name != "b" || replaced != m["c"].Digest || asks(t, h, "shop/a") != "b" {
		t.Errorf("rolled back to %+v from %q: %v", bound, replaced, err)
	}
	if bound, _, err := h.Rollback(t.Context(), "shop/a"); err != nil || bound.Module.Name != "c" || asks(t, h, "shop/a") != "c" {
		t.Errorf("rolled forward to %+v: %v", bound, err)
	}
	for result, want := range map[string]int64{swapDone: 3, swapBack: 2, swapRefused: 0} {
		if got := sum(t, reader, "retinue.policy.swaps", attribute.String("result", result)); got != want {
			t.Errorf("%d swaps counted as %s, want %d", got, result, want)
		}
	}
}

// A rollback brings back the mode, too, also one that was changed without changing the policy.
func TestRollbackBringsBackTheMode(t *testing.T) {
	h := newHost(t)
	load(t, h, "a", "b")
	for _, b := range []Binding{{Policy: "a", Mode: "follow"}, {Policy: "a", Mode: "scale"}, {Policy: "b", Mode: "follow"}} {
		if _, _, err := h.Bind(t.Context(), "shop/a", b); err != nil {
			t.Fatal(err)
		}
	}
	bound, _, err := h.Rollback(t.Context(), "shop/a")
	if err != nil || bound.Module.Name != "a" || bound.Mode != "scale" || bound.Application != "shop/a" || !bound.Own {
		t.Errorf("rolled back to %+v: %v", bound, err)
	}
	if _, _, err = h.SetDefault(t.Context(), Binding{Policy: "a"}); err != nil {
		t.Fatal(err)
	}
	asks(t, h, "shop/b") // the default decides, as far as the application says
	if _, _, err = h.Bind(t.Context(), "shop/b", Binding{Policy: "b", Mode: "scale", Before: "follow"}); err != nil {
		t.Fatal(err)
	}
	if bound, _, err = h.Rollback(t.Context(), "shop/b"); err != nil || bound.Module.Name != "a" || bound.Mode != "follow" {
		t.Errorf("rolled back to %+v: %v", bound, err)
	}
}

// What decides already is not made again; other settings are another generation; what does not work changes nothing.
func TestBindingTheSameIsNoWork(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	h := startHost(t, slog.DiscardHandler, reader)
	m := load(t, h, "a")
	bindTo(t, h, "a", `{"gate": "window"}`)
	if replaced := bindTo(t, h, "a", " {\"gate\":\n\"window\"} "); replaced != "" {
		t.Errorf("the same again replaced %q", replaced)
	}
	if bound, replaced, err := h.Bind(t.Context(), "shop/a", Binding{Policy: m["a"].Digest, Settings: `{"gate":"window"}`}); err != nil || replaced != "" || bound.Digest != m["a"].Digest {
		t.Errorf("the same by digest: %+v replaced %q: %v", bound, replaced, err)
	}
	if replaced := bindTo(t, h, "a", `{}`); replaced != m["a"].Digest {
		t.Errorf("other settings replaced %q", replaced)
	}
	for settings, want := range map[string]string{
		"[]": "not an object", "{": "not JSON", "{} {}": "not JSON", `{"x":"` + strings.Repeat("x", hostabi.MaxSettingsSize) + `"}`: "more than the limit",
	} {
		_, _, err := h.Bind(t.Context(), "shop/a", Binding{Policy: "a", Settings: settings})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "binding application shop/a to policy a: ") {
			t.Errorf("settings %.9s: %v, want %q", settings, err, want)
		}
	}
	if got := asks(t, h, "shop/a"); got != "a" {
		t.Errorf("%s decides", got)
	}
	if got := sum(t, reader, "retinue.policy.swaps", attribute.String("result", swapUnchanged)); got != 2 {
		t.Errorf("%d swaps counted as unchanged, want 2", got)
	}
}

// Settings that a module refuses leave the old generation in charge, and say why.
func TestRefusedSettingsChangeNothing(t *testing.T) {
	h := newHost(t)
	load(t, h, "a")
	bindTo(t, h, "a", "")
	picky := guest{bodies: map[string][]byte{hostabi.ExportConfigure: code( // takes empty settings only
		localGet(1), i32Const(2), []byte{0x46, 0xad})}} // eq, extend
	if _, err := h.Load(t.Context(), "picky", picky.assemble(t)); err != nil {
		t.Fatal(err)
	}
	_, _, err := h.Bind(t.Context(), "shop/a", Binding{Policy: "picky", Settings: `{"a":1}`})
	if err == nil || !strings.Contains(err.Error(), "it refused its settings: oops") {
		t.Errorf("error %v", err)
	}
	none := guest{without: []string{hostabi.ExportConfigure}}
	if _, err = h.Load(t.Context(), "none", none.assemble(t)); err != nil {
		t.Fatal(err)
	}
	if _, _, err = h.Bind(t.Context(), "shop/a", Binding{Policy: "none", Settings: `{"a":1}`}); err == nil || !strings.Contains(err.Error(), "it takes no settings") {
		t.Errorf("error %v", err)
	}
	if got := asks(t, h, "shop/a"); got != "a" {
		t.Errorf("%s decides", got)
	}
}

// The default decides for those who have chosen nothing, and only for them.
func TestDefault(t *testing.T) {
	h := newHost(t)
	m := load(t, h, "a", "b", "c")
	asks(t, h, "shop/early") // known before there is a default
	bindTo(t, h, "a", "")
	set := func(policy, want string) {
		t.Helper()
		bound, replaced, err := h.SetDefault(t.Context(), Binding{Policy: policy})
		if err != nil || bound.Name != policy || replaced != want {
			t.Errorf("default %+v replaced %q: %v, want %q", bound, replaced, err, want)
		}
	}
	set("b", builtinDigest)
	if err := h.Ready(); err != nil {
		t.Errorf("not ready: %v", err)
	}
	for app, want := range map[string]string{"shop/early": "b", "shop/late": "b", "shop/a": "a"} {
		if got := asks(t, h, app); got != want {
			t.Errorf("%s decides for %s, want %s", got, app, want)
		}
	}
	set("c", m["b"].Digest)
	if _, _, err := h.SetDefault(t.Context(), Binding{Policy: "nowhere"}); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown default: %v", err)
	}
	want := []Bound{
		{"shop/a", m["a"], "{}", "", true}, {"shop/early", m["c"], "{}", "", false}, {"shop/late", m["c"], "{}", "", false},
	}
	if diff := cmp.Diff(want, h.Bindings()); diff != "" {
		t.Errorf("bindings (-want +got)\n%s", diff)
	}
	for app, want := range map[string]string{"shop/a": "a", "shop/late": "c", "shop/unheard": "c"} {
		if got := h.Bound(app); got.Name != want {
			t.Errorf("bound for %s: %+v, want %s", app, got, want)
		}
	}
	if len(h.Bindings()) != 3 {
		t.Error("asking who decides makes a binding")
	}
}

// While policies take turns every question is answered, by one of them, each by exactly one.
func TestSwapsDropNoDecision(t *testing.T) {
	const askers, questions, swaps = 4, 200, 60
	reader := sdkmetric.NewManualReader()
	h := startHost(t, slog.DiscardHandler, reader, func(c *Config) { c.Deadline = time.Minute })
	m := load(t, h, "a", "b", "c")
	counts := map[string]uint32{m["a"].Digest: 1, m["b"].Digest: 2, m["c"].Digest: 3}
	bindTo(t, h, "a", "")
	var work sync.WaitGroup
	for range askers {
		work.Go(func() {
			for range questions {
				answer := h.Ask(t.Context(), "shop/a", hostabi.HookAllocate, wanting(9))
				if answer.Fault != "" || len(answer.Decision.Creates) != 1 || counts[answer.By] != answer.Decision.Creates[0].Count {
					t.Errorf("answer %+v", answer)
				}
			}
		})
	}
	work.Go(func() {
		for i := range swaps {
			if i%5 == 4 {
				if _, _, err := h.Rollback(t.Context(), "shop/a"); err != nil {
					t.Error(err)
				}
				continue
			}
			if _, _, err := h.Bind(t.Context(), "shop/a", Binding{Policy: string(rune('a' + i%3))}); err != nil {
				t.Error(err)
			}
		}
	})
	work.Go(func() {
		for range swaps {
			h.Bindings()
			h.Bound("shop/a")
			h.Modules()
		}
	})
	work.Wait()
	if got := sum(t, reader, "retinue.policy.decisions", attribute.String("result", string(byModule))); got != askers*questions {
		t.Errorf("%d decisions counted, want %d", got, askers*questions)
	}
	if got := sum(t, reader, "retinue.policy.instances", attribute.KeyValue{}); got > 2*warm {
		t.Errorf("%d instances live on, want at most those of the one in charge and of the one before", got)
	}
}

// A module whose name went to another lives as long as something needs it.
func TestModulesAreForgotten(t *testing.T) {
	h := newHost(t)
	first := load(t, h, "a")["a"]
	bindTo(t, h, "a", "")
	for n := range uint32(30) {
		if _, err := h.Load(t.Context(), "a", numbered(t, n+2)); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.Modules(); len(got) != 2 || asks(t, h, "shop/a") != "a" || h.Bound("shop/a").Digest != first.Digest {
		t.Errorf("modules %+v", got)
	}
	bindTo(t, h, "a", "")
	if got := h.Modules(); len(got) != 2 {
		t.Errorf("with the first a rollback away: %+v", got)
	}
	h.Release("shop/a")
	if got := h.Modules(); len(got) != 1 || got[0].Digest == first.Digest {
		t.Errorf("with the application gone: %+v", got)
	}
	if got := h.Bindings(); len(got) != 0 {
		t.Errorf("bindings %+v", got)
	}
}

// Many swaps leave no goroutine and no instance behind.
func TestSwapsLeakNothing(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	h := startHost(t, slog.DiscardHandler, reader)
	load(t, h, "a", "b")
	others := goleak.IgnoreCurrent()
	for i := range 200 {
		bindTo(t, h, string(rune('a'+i%2)), "")
		asks(t, h, "shop/a")
	}
	h.Release("shop/a")
	if got := sum(t, reader, "retinue.policy.instances", attribute.KeyValue{}); got != 0 {
		t.Errorf("%d instances live on", got)
	}
	known := 0
	h.engine.worlds.of.Range(func(any, any) bool { known++; return true })
	if known != 0 {
		t.Errorf("%d worlds are kept", known)
	}
	goleak.VerifyNone(t, others)
}

// One application's endless loop holds up no other application.
func TestLoopHoldsUpNobody(t *testing.T) {
	h := newHost(t, func(c *Config) { c.Fuel, c.Deadline = 1<<60, time.Second })
	bind(t, h, "shop/loop", deciding(forever).assemble(t))
	load(t, h, "a")
	bindTo(t, h, "a", "")
	looping := make(chan Answer, 1)
	started := make(chan struct{})
	go func() {
		close(started)
		looping <- h.Ask(t.Context(), "shop/loop", hostabi.HookAllocate, big())
	}()
	<-started
	for answered := 0; ; answered++ {
		select {
		case loop := <-looping:
			if loop.Fault == "" || loop.Took < h.cfg.Deadline {
				t.Errorf("the loop answered %+v", loop)
			}
			if answered < 5 {
				t.Errorf("%d questions were answered while the loop ran for %v", answered, loop.Took)
			}
			return
		default:
			asks(t, h, "shop/a")
		}
	}
}
