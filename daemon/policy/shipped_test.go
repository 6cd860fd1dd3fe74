package policy

import (
	"testing"

	"github.com/retinue-sched/retinue/hostabi"
)

// fleet is a question with n executors of one profile.
type fleet struct {
	executors []hostabi.ExecutorRow
	profile   hostabi.ProfileRow
	decision  hostabi.DecisionRow
}

func (f *fleet) View(v *hostabi.View) {
	v.Decision = f.decision
	v.Profiles = append(v.Profiles[:0], f.profile)
	v.Executors = append(v.Executors[:0], f.executors...)
}

// wanting is a question that the built-in policy answers by asking for n executors.
func wanting(n uint32) *fleet {
	return &fleet{
		decision: hostabi.DecisionRow{ID: 1, ElapsedMS: 1000, WallMS: 1_700_000_000_000, Seed: 7, Application: "shop/a", Trigger: hostabi.TriggerTargets, APIBudget: hostabi.None},
		profile: hostabi.ProfileRow{
			ID: 1, Name: "default", Target: n, Ceiling: n, Max: 2 * n, Slots: 1, OldestQueuedMS: -1, BatchSize: n,
			LifetimeLeft: hostabi.None, Mode: hostabi.ModeFollow, CreationTimeoutMS: 60_000, IdleTimeoutMS: 60_000,
		},
	}
}

// big is a question with many executors, all of them wanted and two more.
func big() *fleet {
	f := wanting(many + 2)
	f.profile.Running, f.profile.Registered, f.profile.Busy = many, many, many
	for id := range uint64(many) {
		f.executors = append(f.executors, hostabi.ExecutorRow{
			ID: id + 1, Profile: 1, Phase: hostabi.PhaseRunning, Flags: hostabi.FlagRegistered, Slots: 1, BusySlots: 1, IdleSinceMS: -1,
		})
	}
	return f
}

// The default policy of a plain host decides as a WebAssembly module.
func TestDefaultDecidesInTheSandbox(t *testing.T) {
	h := newHost(t)
	if _, _, err := h.SetDefault(t.Context(), h.cfg.Default); err != nil {
		t.Fatal(err)
	}
	answer := h.Ask(t.Context(), "shop/a", hostabi.HookAllocate, wanting(3))
	if answer.Fault != "" || answer.By != h.Modules()[0].Digest || len(answer.Decision.Creates) != 1 || answer.Decision.Creates[0].Count != 3 {
		t.Errorf("answer %+v, want 3 executors asked for by %s", answer, h.Modules()[0].Digest)
	}
}
