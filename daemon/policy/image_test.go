package policy

import (
	"encoding/binary"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/retinue-sched/retinue/hostabi"
)

// remembering returns a guest that answers with how often it was asked, and does something else besides.
func remembering(besides ...[]byte) guest {
	state := "????"
	decision := hostabi.EncodeDecision(nil, hostabi.Decision{State: []byte(state)})
	at := int32(answerAt + strings.Index(string(decision), state))
	count := slices.Concat(i32Const(at), i32Const(scratchAt), load32, i32Const(1), add, store32, // answer: one more than was remembered
		i32Const(scratchAt), i32Const(at), load32, store32) // remember that
	g := guest{bodies: map[string][]byte{hostabi.ExportAllocate: code(
		slices.Concat(append([][]byte{count}, besides...)...), i64Const(packed(answerAt, len(decision))))}}
	g.data = map[uint32][]byte{answerAt: decision}
	return g
}

// A call leaves nothing behind, wherever the image is kept, also if it grew its memory or failed; and what it cost is one instance at most.
func TestCallsLeaveNothingBehind(t *testing.T) {
	for name, copies := range map[string]bool{"by page": false, "by copying": true} {
		for besides, instructions := range map[string][]byte{
			"nothing else": nil, "growing": slices.Concat(i32Const(3), grow, drop), "failing when asked much": whenBig(trap),
		} {
			t.Run(name+" "+besides, func(t *testing.T) {
				reader := sdkmetric.NewManualReader()
				h := startHost(t, slog.DiscardHandler, reader, func(c *Config) { c.Deadline = time.Minute })
				h.engine.copies = copies
				bind(t, h, "shop/a", remembering(instructions).assemble(t))
				for range 5 {
					answer := h.Ask(t.Context(), "shop/a", hostabi.HookAllocate, wanting(1))
					if answer.Fault != "" || binary.LittleEndian.Uint32(answer.Decision.State) != 1 {
						t.Fatalf("answer %+v, want that it is the first", answer)
					}
					if besides == "failing when asked much" {
						h.Ask(t.Context(), "shop/a", hostabi.HookAllocate, big())
					}
				}
				if n := sum(t, reader, "retinue.policy.instances", attribute.KeyValue{}); n > warm {
					t.Errorf("%d instances live on", n)
				}
			})
		}
	}
}

// The same question takes the same fuel, however often it is asked and on both engines, with what the host does for the guest.
func TestFuelIsTheSameEverywhere(t *testing.T) {
	g := remembering(repeated(3_000, i32Const(0), i32Const(100), callTo(0), drop))
	g.imports = []hostFunction{host(t, wasiModule, "random_get")}
	wasm := g.assemble(t)
	var first int64
	for _, interpreter := range []bool{false, true} {
		h := newHost(t, func(c *Config) { c.Interpreter, c.Deadline, c.StartTimeout = interpreter, time.Minute, time.Minute })
		bind(t, h, "shop/a", wasm)
		for range 3 {
			answer := h.Ask(t.Context(), "shop/a", hostabi.HookAllocate, running(300))
			if answer.Fault != "" || answer.Fuel < 3_000 || first != 0 && answer.Fuel != first {
				t.Errorf("interpreter %v: it took %d ticks, before %d: %s", interpreter, answer.Fuel, first, answer.Fault)
			}
			first = answer.Fuel
		}
	}
}

// Policies that rest give up their instances, and answer as before when they are asked again.
func TestRestingPoliciesKeepNoInstances(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	h := startHost(t, slog.DiscardHandler, reader, func(c *Config) { c.Warm = 2 })
	m := bind(t, h, "shop/a", remembering().assemble(t))
	apps := []string{"shop/a", "shop/b", "shop/c", "shop/d"}
	for n, app := range apps {
		if _, _, err := h.Bind(t.Context(), app, Binding{Policy: m.Name, Settings: `{"n":` + string(rune('0'+n)) + `}`}); err != nil {
			t.Fatal(err)
		}
	}
	if n := sum(t, reader, "retinue.policy.instances", attribute.KeyValue{}); n > 2*warm {
		t.Errorf("%d instances live on of policies that were bound and not asked", n)
	}
	for range 3 {
		for _, app := range apps {
			if answer := h.Ask(t.Context(), app, hostabi.HookAllocate, wanting(1)); answer.Fault != "" || answer.By != m.Digest {
				t.Errorf("%s: %+v", app, answer)
			}
		}
	}
	if n := sum(t, reader, "retinue.policy.instances", attribute.KeyValue{}); n > 2*warm {
		t.Errorf("%d instances live on, of two policies", n)
	}
}

// Applications with the same policy and settings share instances, and one that looks at many executors needs no more of them.
func TestApplicationsShareInstances(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	h := startHost(t, slog.DiscardHandler, reader)
	m := bind(t, h, "shop/a", remembering().assemble(t))
	if _, _, err := h.Bind(t.Context(), "shop/b", Binding{Policy: m.Name}); err != nil {
		t.Fatal(err)
	}
	for _, q := range []*fleet{wanting(1), big(), running(4 * many), wanting(1)} {
		for _, app := range []string{"shop/a", "shop/b"} {
			if answer := h.Ask(t.Context(), app, hostabi.HookAllocate, q); answer.Fault != "" || binary.LittleEndian.Uint32(answer.Decision.State) != 1 {
				t.Errorf("%s: %+v", app, answer)
			}
		}
	}
	if n := sum(t, reader, "retinue.policy.instances", attribute.KeyValue{}); n != 1 {
		t.Errorf("%d instances live on, one is enough", n)
	}
}

// Trying a policy says whether it takes its settings, and changes nothing.
func TestTryChangesNothing(t *testing.T) {
	h := shippedHost(t)
	if err := h.Try(t.Context(), Binding{Policy: "direct", Settings: `{"gate":"window"}`}); err != nil {
		t.Error(err)
	}
	for _, b := range []Binding{{Policy: "direct", Settings: `{"gat":1}`}, {Policy: "nowhere"}, {Policy: "direct", Settings: "[]"}} {
		if err := h.Try(t.Context(), b); err == nil || !strings.HasPrefix(err.Error(), "trying policy "+b.Policy+": ") {
			t.Errorf("%+v: %v", b, err)
		}
	}
	if got := h.Bindings(); len(got) != 0 {
		t.Errorf("bindings %+v", got)
	}
}
