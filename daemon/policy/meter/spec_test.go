package meter

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
)

// specification returns the folder of the engine's copy of the WebAssembly specification's tests.
func specification(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("the specification's tests take seconds")
	}
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	spec := filepath.Join(strings.TrimSpace(string(dir)), "internal", "integration_test", "spectest")
	if _, statErr := os.Stat(spec); err != nil || statErr != nil {
		t.Skip("the engine's source is not there, so neither are the specification's tests")
	}
	return spec
}

// Of every module in the specification's tests, valid or not, that Parse lets through, the engine takes the metered form if and only if it
// takes the plain one.
func TestSpecificationIsJudgedAlike(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(specification(t), "*", "testdata", "*.wasm"))
	if err != nil || len(files) < 1_000 {
		t.Fatalf("%d modules, %v", len(files), err)
	}
	runtime := newEngine(t, interpreter()).Runtime
	valid, invalid := 0, 0
	for _, file := range files {
		plain, readErr := os.ReadFile(file)
		if readErr != nil {
			t.Fatal(readErr)
		}
		m, parseErr := wasm.Parse(plain, wasm.DefaultLimits())
		if parseErr != nil {
			continue
		}
		metered, rewriteErr := Rewrite(m, DefaultConfig())
		if rewriteErr != nil {
			t.Fatalf("%s: %v", file, rewriteErr)
		}
		plainErr, meteredErr := compile(t.Context(), runtime, plain), compile(t.Context(), runtime, metered.Wasm)
		switch {
		case (plainErr == nil) != (meteredErr == nil):
			t.Errorf("%s: the engine says of the plain module: %v; of the metered one: %v", filepath.Base(file), plainErr, meteredErr)
		case plainErr == nil:
			valid++
		default:
			invalid++
		}
	}
	if valid < 1_000 || invalid < 100 {
		t.Errorf("only %d valid modules and %d invalid ones got as far as the meter", valid, invalid)
	}
}

// command is a step of a test of the specification.
type command struct {
	Type, Filename string
	Action         struct {
		Type, Field string
		Args        []struct {
			Type  string
			Value json.RawMessage
		}
	}
}

// call returns the call that a command makes, if it is one with plain numbers.
func (c command) call() (call, bool) {
	asked := call{name: c.Action.Field}
	if c.Action.Type != "invoke" || c.Type != "assert_return" && c.Type != "assert_trap" && c.Type != "action" {
		return asked, false
	}
	for _, arg := range c.Action.Args {
		n, err := strconv.ParseUint(strings.Trim(string(arg.Value), `"`), 10, 64)
		if err != nil || arg.Type == "externref" || arg.Type == "funcref" {
			return asked, false
		}
		asked.args = append(asked.args, n)
	}
	return asked, true
}

// Every call of the specification's tests to a module that stands alone gives the same with a meter and without, and costs the same on both
// engines.
func TestSpecificationIsAnsweredAlike(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(specification(t), "v2", "testdata", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	plain := newEngine(t, compiler())
	metered := []*engine{newEngine(t, compiler()), newEngine(t, interpreter())}
	asked := 0
	for _, file := range files {
		text, readErr := os.ReadFile(file)
		if readErr != nil {
			t.Fatal(readErr)
		}
		var script struct{ Commands []command }
		if err := json.Unmarshal(text, &script); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var module *trio
		for n, c := range script.Commands {
			if c.Type == "module" {
				module.close()
				module = newTrio(t, filepath.Join(filepath.Dir(file), c.Filename), plain, metered)
			}
			if asks, ok := c.call(); ok && module != nil {
				asked++
				module.compare(t, filepath.Base(file)+" "+strconv.Itoa(n), asks)
			}
		}
		module.close()
	}
	if asked < 10_000 {
		t.Errorf("only %d calls were made", asked)
	}
}

// trio is a module: plain, and metered on both engines.
type trio [3]*instance

// newTrio returns nothing if the module needs others, or is refused.
func newTrio(t *testing.T, file string, plain *engine, metered []*engine) *trio {
	t.Helper()
	binary, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := wasm.Parse(binary, wasm.DefaultLimits())
	if err != nil || len(m.Imports) > 0 || compile(t.Context(), plain.Runtime, binary) != nil {
		return nil
	}
	form, err := Rewrite(m, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	if probe, instantiateErr := plain.Instantiate(t.Context(), binary); instantiateErr != nil {
		return nil // its segments reach past an end
	} else if err = probe.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &trio{plain.instantiate(t, binary, nil), metered[0].instantiate(t, form.Wasm, form), metered[1].instantiate(t, form.Wasm, form)}
}

func (m *trio) close() {
	if m != nil {
		for _, i := range m {
			_ = i.Close(context.Background())
		}
	}
}

func (m *trio) compare(t *testing.T, where string, asks call) {
	t.Helper()
	if m[0].ExportedFunction(asks.name) == nil {
		return // the command is for another module, by its name
	}
	want, got, other := m[0].do(asks), m[1].do(asks), m[2].do(asks)
	if got.Ticks != other.Ticks || got.Ticks < 1 {
		t.Errorf("%s: %s%v costs %d ticks on the compiler and %d on the interpreter", where, asks.name, asks.args, got.Ticks, other.Ticks)
	}
	got.Ticks = 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s%v: metering makes a difference (-plain +metered):\n%s", where, asks.name, asks.args, diff)
	}
}
