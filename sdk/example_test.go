package sdk_test

import (
	"fmt"

	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/sdk"
)

// atLeast is the smallest useful policy: it asks for what is missing. As a module its package main would hold
// func init() { sdk.Register(atLeast{}) } and an empty main.
type atLeast struct{}

func (atLeast) Configure(s sdk.Settings) error { return s.Decode() }

func (atLeast) Allocate(v *sdk.View, r *sdk.Result) error {
	targets, ids := v.Profiles.Target(), v.Profiles.ID()
	for _, f := range sdk.Fleets(v, nil) {
		if missing := sdk.Minus(targets[f.Row], f.Live()); missing > 0 {
			r.Create(ids[f.Row], min(missing, sdk.Headroom(v, &f)), "below target")
		}
	}
	return nil
}

func Example() {
	policy, err := sdk.Native(atLeast{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	view := hostabi.View{Hook: hostabi.HookAllocate, Profiles: []hostabi.ProfileRow{
		{ID: 3, Target: 5, Ceiling: hostabi.None, Max: hostabi.None, BatchSize: 2, LifetimeLeft: hostabi.None},
	}}
	answer, err := policy.Call(hostabi.HookAllocate, view.Encode(nil, hostabi.Projection{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	decision, err := hostabi.DecodeDecision(answer)
	fmt.Println(decision.Creates, err)
	// Output: [{3 2    below target}] <nil>
}
