package hostabi_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retinue-sched/retinue/hostabi"
)

var update = flag.Bool("update", false, "write the golden vectors instead of comparing with them")

// vector is a golden file: hexadecimal bytes, sixteen a line, with comments that say what they mean. A first line
// "refused: TEXT" says that the bytes are refused with a message that holds TEXT.
type vector struct {
	name    string
	bytes   []byte
	refusal string
}

// vectors returns the golden files.
func vectors(t testing.TB) []vector {
	t.Helper()
	files, err := filepath.Glob("testdata/*.hex")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no golden vectors: %v", err)
	}
	var list []vector
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v := vector{name: strings.TrimSuffix(filepath.Base(file), ".hex")}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if rest, ok := strings.CutPrefix(line, "refused: "); ok {
				v.refusal = rest
				continue
			}
			line, _, _ = strings.Cut(line, "#")
			b, err := hex.DecodeString(strings.Join(strings.Fields(line), ""))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			v.bytes = append(v.bytes, b...)
		}
		list = append(list, v)
	}
	return list
}

// goldenView and goldenDecision are what the golden vectors view and decision mean.
func goldenView() hostabi.View {
	return hostabi.View{
		Hook: hostabi.HookAllocate,
		Decision: hostabi.DecisionRow{
			ID: 42, ElapsedMS: 61_000, WallMS: 1_767_225_600_000, Seed: 0x0123456789abcdef, Application: "etl-7",
			Trigger: hostabi.TriggerTargets, APIBudget: 16, MaxPending: 10, StateVersion: 3, State: []byte("abc"),
		},
		Profiles: []hostabi.ProfileRow{
			{
				ID: 0, Name: "small", Target: 3, Floor: 1, Ceiling: 3, Max: 6, Pending: 1, Running: 1, Registered: 1, Busy: 1, Slots: 4,
				QueuedTasks: 9, RunningTasks: 2, OldestQueuedMS: 1500, MaxPending: 5, BatchSize: 20, LifetimeLeft: hostabi.None,
				Mode: hostabi.ModeFollow, CreationTimeoutMS: 600_000, IdleTimeoutMS: 60_000, FailuresOOM: 1,
			},
		},
		Executors: []hostabi.ExecutorRow{
			{
				ID: 1, Phase: hostabi.PhaseRunning, PhaseSinceMS: 4000, CreatedAgoMS: 58_000, Flags: hostabi.FlagRegistered, BusySlots: 2, Slots: 4,
				IdleSinceMS: -1, TasksDone: 7, MeanTaskMS: 1_500_000_000, TotalTaskMS: 10_500, Node: "n1", Zone: "z1", CapacityType: "spot", Cost: 250_000,
			},
			{
				ID: 2, Phase: hostabi.PhasePending, PhaseSinceMS: 60_000, CreatedAgoMS: 1200, Slots: 4, IdleSinceMS: -1,
				PendingReason: hostabi.PendingUnschedulable, Zone: "z1",
			},
		},
	}
}

func goldenDecision() hostabi.Decision {
	return hostabi.Decision{
		Creates:    []hostabi.Create{{Profile: 0, Count: 2, Zone: "z1", Reason: "target 3, live 1"}, {Profile: 4, Count: 1, CapacityType: "spot", Node: "n1"}},
		Releases:   []hostabi.Release{{Executor: 2, Mode: hostabi.Cancel, Reason: "over target"}, {Executor: 9, Mode: hostabi.Drain, Reason: "over target"}},
		NextCallMS: 8801, StateVersion: 4, State: []byte{1, 2, 3}, Note: "two short",
	}
}

// The bytes of views and decisions are frozen: the golden vectors are what other languages are written against.
func TestGoldenVectors(t *testing.T) {
	view := goldenView()
	projected := hostabi.Projection{}.With(hostabi.TableDecision, hostabi.DecisionID).
		With(hostabi.TableProfiles, hostabi.ProfilesID, hostabi.ProfilesTarget).
		With(hostabi.TableExecutors, hostabi.ExecutorsID, hostabi.ExecutorsPhase)
	written := map[string][]byte{
		"view":           view.Encode(nil, hostabi.Projection{}),
		"view-projected": view.Encode(nil, projected),
		"decision":       hostabi.EncodeDecision(nil, goldenDecision()),
		"decision-empty": hostabi.EncodeDecision(nil, hostabi.Decision{}),
	}
	if *update {
		for name, b := range written {
			if err := os.WriteFile("testdata/"+name+".hex", annotated(t, name, b), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	seen := 0
	for _, v := range vectors(t) {
		if b, ok := written[v.name]; ok {
			seen++
			if !bytes.Equal(b, v.bytes) {
				t.Errorf("%s: the bytes are not the golden ones:\n%s", v.name, cmp.Diff(hex.Dump(v.bytes), hex.Dump(b)))
			}
		}
	}
	if seen != len(written) {
		t.Errorf("there are %d golden vectors, want %d", seen, len(written))
	}
}

// The golden vectors mean what goldenView and goldenDecision say, in a greased form, too.
func TestGoldenMeaning(t *testing.T) {
	for _, v := range vectors(t) {
		switch v.name {
		case "view":
			got, err := hostabi.DecodeView(grease(t, v.bytes))
			if diff := cmp.Diff(goldenView(), got, sameView); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", v.name, err, diff)
			}
		case "decision":
			got, err := hostabi.DecodeDecision(grease(t, v.bytes))
			if diff := cmp.Diff(goldenDecision(), got); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", v.name, err, diff)
			}
		}
	}
}

// annotated returns b in hexadecimal, with what each part is.
func annotated(t *testing.T, name string, b []byte) []byte {
	t.Helper()
	block, err := hostabi.ParseBlock(b)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# %s: what it means is in vectors_test.go\n", name)
	at := 0
	for _, part := range block.Parts() {
		dump(&out, b[at:part.At], "")
		dump(&out, b[part.At:part.At+part.Length], part.Name)
		at = part.At + part.Length
	}
	dump(&out, b[at:], "")
	return out.Bytes()
}

// dump writes b, sixteen bytes a line, and what it is behind the first.
func dump(out *bytes.Buffer, b []byte, what string) {
	if what == "" && len(b) > 0 {
		what = "padding"
	}
	for i := 0; i < len(b); i += 16 {
		line := fmt.Sprintf("% x", b[i:min(i+16, len(b))])
		if i == 0 {
			line = fmt.Sprintf("%-48s # %s", line, what)
		}
		fmt.Fprintln(out, line)
	}
}
