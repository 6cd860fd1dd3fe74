package policy

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/retinue-sched/retinue/hostabi"
)

// looking returns a guest that answers with the clocks, a random number and its environment as state.
func looking(t *testing.T) guest {
	state := strings.Repeat("?", 8+8+8+8+64)
	decision := hostabi.EncodeDecision(nil, hostabi.Decision{State: []byte(state)})
	at := int32(answerAt + strings.Index(string(decision), state))
	const random, clock, environSizes, environ = 0, 1, 2, 3
	g := guest{
		data: map[uint32][]byte{answerAt: decision},
		bodies: map[string][]byte{hostabi.ExportAllocate: code(
			i32Const(0), i64Const(0), i32Const(at), callTo(clock), drop,
			i32Const(1), i64Const(0), i32Const(at+8), callTo(clock), drop,
			i32Const(at+16), i32Const(8), callTo(random), drop,
			i32Const(at+24), i32Const(at+28), callTo(environSizes), drop,
			i32Const(scratchAt), i32Const(at+32), callTo(environ), drop,
			i64Const(packed(answerAt, len(decision))))},
	}
	for _, name := range []string{"random_get", "clock_time_get", "environ_sizes_get", "environ_get"} {
		g.imports = append(g.imports, host(t, wasiModule, name))
	}
	return g
}

// The world of an instance is made from its question: the same question shows it the same world, whoever asks and whatever came before.
func TestWorldFollowsTheQuestion(t *testing.T) {
	h := newHost(t)
	m := bind(t, h, "shop/a", looking(t).assemble(t))
	if _, _, err := h.Bind(t.Context(), "shop/b", Binding{Policy: m.Digest}); err != nil {
		t.Fatal(err)
	}
	see := func(app string, elapsed, wall int64, seed uint64) []byte {
		q := wanting(1)
		q.decision.ElapsedMS, q.decision.WallMS, q.decision.Seed = elapsed, wall, seed
		answer := h.Ask(t.Context(), app, hostabi.HookAllocate, q)
		if answer.Fault != "" || answer.By != m.Digest {
			t.Fatalf("answer %+v", answer)
		}
		return answer.Decision.State
	}
	state := see("shop/a", 5000, 1_700_000_000_000, 7)
	if wall := binary.LittleEndian.Uint64(state); wall != 1_700_000_000_000*1e6 {
		t.Errorf("the time of day is %d", wall)
	}
	if elapsed := binary.LittleEndian.Uint64(state[8:]); elapsed != 5000*1e6 {
		t.Errorf("the clock is at %d", elapsed)
	}
	want := "GOGC=100\x00GOMEMLIMIT=" + fmt.Sprint((64<<20)/10*6) + "\x00"
	if got := string(state[32 : 32+len(want)]); got != want || binary.LittleEndian.Uint32(state[24:]) != 2 || int(binary.LittleEndian.Uint32(state[28:])) != len(want) {
		t.Errorf("the environment is %q", got)
	}
	other := see("shop/a", 6000, 1_700_000_001_000, 8)
	if slices.Equal(state[16:24], other[16:24]) {
		t.Error("another seed gives the same numbers")
	}
	see("shop/b", 1, 2, 3) // what came before must not show
	if again := see("shop/b", 5000, 1_700_000_000_000, 7); !slices.Equal(state, again) {
		t.Errorf("the same question shows %x, then %x", state, again)
	}
	if elapsed := binary.LittleEndian.Uint64(see("shop/b", 0, 0, 1)[8:]); elapsed == 0 {
		t.Error("the clock is at 0")
	}
}

// Waiting lets time pass at once.
func TestPollLetsTimePass(t *testing.T) {
	w := newWorld("sha256:0123456789abcdef", 64<<20)
	w.begin(1000, 5000, 1)
	w.sleep(3e9)
	if w.now(1) != 4000e6 || w.now(0) != 8000e6 {
		t.Errorf("after 3 s: %d, %d", w.now(1), w.now(0))
	}
	w.begin(2000, 6000, 1)
	if w.now(1) != 2000e6 || w.now(0) != 6000e6 {
		t.Errorf("the next question finds the clocks at %d, %d: nothing of the one before may show", w.now(1), w.now(0))
	}
	w.sleep(1 << 63)
	if w.now(1) < 2000e6 {
		t.Errorf("a wait without end turns the clock back to %d", w.now(1))
	}
}

// Memory grows to its limit and not a page further.
func TestMemoryEndsAtItsLimit(t *testing.T) {
	const limit = 9 << 20
	state := "????"
	decision := hostabi.EncodeDecision(nil, hostabi.Decision{State: []byte(state)})
	at := int32(answerAt + strings.Index(string(decision), state))
	onePage := slices.Concat([]byte{0x03, 0x40}, i32Const(1), grow, i32Const(-1), []byte{0x47, 0x0d, 0x00, 0x0b})
	g := deciding(onePage, i32Const(at), []byte{0x3f, 0x00, 0x36, 2, 0}, i64Const(packed(answerAt, len(decision))), giveBack) // size, store
	g.data = map[uint32][]byte{answerAt: decision}
	h := newHost(t, func(c *Config) { c.MemoryLimit, c.Deadline = limit, time.Minute })
	bind(t, h, "shop/a", g.assemble(t))
	answer := h.Ask(t.Context(), "shop/a", hostabi.HookAllocate, big())
	if answer.Fault != "" {
		t.Fatal(answer.Fault)
	}
	if pages := binary.LittleEndian.Uint32(answer.Decision.State); pages != limit/pageSize {
		t.Errorf("it grew to %d pages, the limit is %d", pages, limit/pageSize)
	}
}

// What a module measures is counted under its own names, of which it has a few.
func TestModuleMetrics(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	h := startHost(t, slog.DiscardHandler, reader)
	record := func(kind int32, at, size int, value int64) []byte {
		return slices.Concat(i32Const(kind), i32Const(int32(at)), i32Const(int32(size)), i64Const(value), callTo(0))
	}
	g := deciding(
		record(metricCounter, answerAt, 5, 3), record(metricCounter, answerAt, 5, 4), record(metricCounter, answerAt, 5, -1),
		record(metricGauge, answerAt+5, 4, 10), record(metricGauge, answerAt+5, 4, -2), record(metricGauge, answerAt, 9, 1),
		record(9, answerAt, 5, 1), record(metricCounter, answerAt+9, 1, 1), record(metricCounter, 1<<30, 4, 1),
	)
	g.imports = []hostFunction{host(t, "retinue", "metric")}
	g.data = map[uint32][]byte{answerAt: []byte("growslead\n")}
	bind(t, h, "shop/a", g.assemble(t))
	for range 2 {
		if answer := h.Ask(t.Context(), "shop/a", hostabi.HookAllocate, big()); answer.Fault != "" {
			t.Fatal(answer.Fault)
		}
	}
	label := attribute.String("metric", "grows")
	if got := sum(t, reader, "retinue.policy.module.counter", label); got != 14 {
		t.Errorf("the counter is at %d, want 14", got)
	}
	if got := sum(t, reader, "retinue.policy.module.gauge", attribute.String("metric", "lead")); got != -2 {
		t.Errorf("the gauge is at %d, want -2", got)
	}
	if got := sum(t, reader, "retinue.policy.module.dropped", attribute.KeyValue{}); got != 6 { // a negative count, no kind, no name; twice
		t.Errorf("%d values were dropped, want 6", got)
	}
}

// A module has so many names for its metrics, and no more.
func TestModuleMetricNamesAreCapped(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	h := startHost(t, slog.DiscardHandler, reader)
	v := newVoice("mine", h.log, h.meters)
	w := newWorld("sha256:0123456789abcdef", 64<<20)
	for i := range 3 * maxMetrics {
		w.measure(metricCounter, fmt.Sprintf("m%d", i), 1)
	}
	v.pass(t.Context(), w)
	if got := len(points(t, reader, "retinue.policy.module.counter")); got != maxMetrics {
		t.Errorf("%d names, want %d", got, maxMetrics)
	}
}

// A policy written in stock Go that uses much of the standard library runs; nothing of the world is there for it.
func TestStockGoInTheSandbox(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles much of the standard library for another machine")
	}
	wasm := filepath.Join(t.TempDir(), "probe.wasm")
	build := exec.Command("go", "build", "-buildvcs=false", "-buildmode=c-shared", "-o", wasm, "./testdata/probe")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	bare, err := os.ReadFile(wasm)
	if err != nil {
		t.Fatal(err)
	}
	module, err := hostabi.AppendManifest(bare, hostabi.Manifest{
		Name: "probe", Version: "1", ABI: hostabi.ABIRange{Major: hostabi.ABIMajor}, Hooks: []string{"allocate"},
	})
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t)
	bind(t, h, "shop/a", module)
	answer := h.Ask(t.Context(), "shop/a", hostabi.HookAllocate, wanting(1))
	if answer.Fault != "" {
		t.Fatal(answer.Fault)
	}
	want := strings.Join([]string{
		"args 0", "env GOGC GOMEMLIMIT", "time 2023-11-14T22:13:20Z", "slept 2s", "open Not supported", "listing Not supported", "mkdir Not supported",
		"dial refused", `json {"a":1}`, "stdin Not supported",
	}, "\n")
	if diff := cmp.Diff(want, answer.Decision.Note); diff != "" {
		t.Errorf("what it saw (-want +got)\n%s", diff)
	}
}
