package policy

import "github.com/retinue-sched/retinue/hostabi"

// fleet is a question about executors of one profile.
type fleet struct {
	executors []hostabi.ExecutorRow
	profile   hostabi.ProfileRow
	decision  hostabi.DecisionRow
}

func (f *fleet) View(v *hostabi.View, _ hostabi.Projection) {
	v.Decision = f.decision
	v.Profiles = append(v.Profiles[:0], f.profile)
	v.Executors = append(v.Executors[:0], f.executors...)
}

// wanting is a question that the built-in policy answers by asking for n executors.
func wanting(n uint32) *fleet {
	return &fleet{
		decision: hostabi.DecisionRow{
			ID: 1, ElapsedMS: 1000, WallMS: 1_700_000_000_000, Seed: 7, Application: "shop/a", Trigger: hostabi.TriggerTargets, APIBudget: hostabi.None,
		},
		profile: hostabi.ProfileRow{
			ID: 1, Name: "default", Target: n, Ceiling: n, Max: 2 * n, Slots: 1, OldestQueuedMS: -1, BatchSize: n,
			LifetimeLeft: hostabi.None, Mode: hostabi.ModeFollow, CreationTimeoutMS: 60_000, IdleTimeoutMS: 60_000,
		},
	}
}

// many is how many executors make a big question.
const many = 500

// big is a question with many executors; all of them are wanted, and two more.
func big() *fleet { return running(many) }

// running is a question about n busy executors, to which the built-in policy adds two.
func running(n uint32) *fleet {
	f := wanting(n + 2)
	f.profile.Running, f.profile.Registered, f.profile.Busy = n, n, n
	for id := range uint64(n) {
		f.executors = append(f.executors, hostabi.ExecutorRow{
			ID: id + 1, Profile: 1, Phase: hostabi.PhaseRunning, Flags: hostabi.FlagRegistered, Slots: 1, BusySlots: 1, IdleSinceMS: -1,
			Node: "node-a", Zone: "zone-a",
		})
	}
	return f
}
