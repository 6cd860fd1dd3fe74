package hostabi_test

import (
	"strings"

	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/hostabi"
)

// text draws a text that a dictionary may hold; few of them, so that they repeat.
func text(t *rapid.T, label string) string {
	return rapid.SampledFrom([]string{"", "a", "node-17", "zürich", strings.Repeat("x", 300)}).Draw(t, label)
}

func drawDecision(t *rapid.T) hostabi.Decision {
	var d hostabi.Decision
	for range rapid.IntRange(0, 5).Draw(t, "creates") {
		d.Creates = append(d.Creates, hostabi.Create{
			Profile: rapid.Uint32().Draw(t, "profile"), Count: rapid.Uint32().Draw(t, "count"),
			Zone: text(t, "zone"), CapacityType: text(t, "capacity"), Node: text(t, "node"), Reason: text(t, "reason"),
		})
	}
	for range rapid.IntRange(0, 40).Draw(t, "releases") {
		d.Releases = append(d.Releases, hostabi.Release{
			Executor: rapid.Uint64().Draw(t, "executor"),
			Mode:     rapid.SampledFrom([]hostabi.ReleaseMode{hostabi.Cancel, hostabi.Drain, hostabi.Kill}).Draw(t, "mode"),
			Reason:   rapid.StringN(0, 20, 80).Draw(t, "reason"),
		})
	}
	d.NextCallMS = rapid.Int64Min(0).Draw(t, "next call")
	d.StateVersion = rapid.Uint32().Draw(t, "state version")
	d.State = drawState(t)
	d.Note = rapid.StringN(0, 50, 200).Draw(t, "note")
	return d
}

func drawState(t *rapid.T) []byte {
	if s := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "state"); len(s) > 0 {
		return s
	}
	return nil
}

func drawView(t *rapid.T) hostabi.View {
	v := hostabi.View{
		Hook: rapid.SampledFrom([]hostabi.Hook{hostabi.HookAllocate, hostabi.HookRelease}).Draw(t, "hook"),
		Decision: hostabi.DecisionRow{
			ID: rapid.Uint64().Draw(t, "id"), ElapsedMS: rapid.Int64().Draw(t, "elapsed"), WallMS: rapid.Int64().Draw(t, "wall"),
			Seed: rapid.Uint64().Draw(t, "seed"), Application: text(t, "application"), Trigger: hostabi.TriggerDemand,
			APIBudget: rapid.Uint32().Draw(t, "budget"), MaxPending: rapid.Uint32().Draw(t, "max pending"),
			StateVersion: rapid.Uint32().Draw(t, "state version"), State: drawState(t),
		},
		Profiles:  make([]hostabi.ProfileRow, rapid.IntRange(0, 4).Draw(t, "profiles")),
		Executors: make([]hostabi.ExecutorRow, rapid.SampledFrom([]int{0, 1, 63, 64, 65, 200}).Draw(t, "executors")),
	}
	for i := range v.Profiles {
		v.Profiles[i] = hostabi.ProfileRow{
			ID: uint32(i), Name: text(t, "name"), Target: rapid.Uint32().Draw(t, "target"),
			OldestQueuedMS: rapid.Int64().Draw(t, "oldest"), Mode: hostabi.ModeScale, FailuresOperator: rapid.Uint32().Draw(t, "failures"),
			Draining: rapid.Uint32().Draw(t, "draining"), Condemned: rapid.Uint32().Draw(t, "condemned"), Unseen: rapid.Uint32().Draw(t, "unseen"),
		}
	}
	salt := rapid.Uint64().Draw(t, "salt")
	for i := range v.Executors {
		v.Executors[i] = executor(uint64(i), salt)
	}
	return v
}

// sharedName is what nodes are named by the beginning of, so that some names share their first byte in memory.
var sharedName = strings.Repeat("node-", 8)

// executor returns a row whose every field depends on id and salt.
func executor(id, salt uint64) hostabi.ExecutorRow {
	n := (id + 1) * (salt | 1)
	return hostabi.ExecutorRow{
		ID: id, Profile: uint32(n % 5), Phase: hostabi.Phase(n%8 + 1), PendingReason: hostabi.PendingReason(n % 6),
		PhaseSinceMS: int64(n), CreatedAgoMS: int64(n * 3), Flags: hostabi.Flags(n % 16), BusySlots: uint32(n * 5),
		Slots: uint32(n * 7), Restarts: uint32(n * 9), IdleSinceMS: -int64(n), TasksDone: uint32(n * 11),
		TasksFailed: uint32(n * 13), MeanTaskMS: int64(n * 15), OutputBytesHeld: n * 17, PeakMemoryBytes: n * 19,
		DiskBytes: n * 21, OutputBytesWritten: n * 23, TotalTaskMS: int64(n * 25), Cost: int64(n * 27),
		Node: sharedName[:n%40], Zone: "zone-" + string(rune('a'+n%3)), CapacityType: []string{"", "spot"}[n%2],
	}
}
