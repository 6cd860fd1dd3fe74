// Package guard decides how much of a policy's decision may be carried out.
//
// A policy is untrusted: whatever it answers, a Plan from Check
//
//   - creates no more than Limits allow, and nothing for an unknown profile;
//   - cancels only executors that are there, have not started running and are not registered;
//   - turns the drain of a busy executor into a drain when idle, unless the binding grants more;
//   - kills nothing unless the binding grants it;
//   - lets no executor go that would leave fewer of its profile than the floor;
//   - lets each executor go once at most.
//
// Each clip is a Violation with a rule and a text for people. What a policy asked for first gets first what there is of a shared bound.
//
// Releases count before creations: what is cancelled or killed makes room below the ceiling and among the pending at once, as its replacement
// need not wait for it. It makes no room below Max before the cluster shows its end.
package guard

import (
	"slices"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// Grants is what a policy binding allows beyond the ordinary.
type Grants struct {
	DrainBusy bool // a drain of a busy executor takes effect at once instead of when it is idle
	Kill      bool // executors may be killed
}

// ProfileLimits bounds what may be done to the executors of one profile.
type ProfileLimits struct {
	Profile    snapshot.Profile
	Ceiling    uint32 // most live executors, those that we told to end not counted: the target in mode follow, the maximum in mode scale; ^0: no bound
	Max        uint32 // most live executors, terminating ones included, whatever the mode; ^0: no bound
	Floor      uint32 // least executors that are neither terminating nor draining: releases stop here
	MaxPending uint32 // most executors requested or pending; 0: no bound
	AtOnce     uint32 // most creations by one decision, as while backing off; 0: no bound
	Blocked    string // why nothing may be created now (back-off after failures, stale state); empty: nothing is in the way
}

// Limits bounds what may be done in one application.
type Limits struct {
	Profiles     []ProfileLimits // ascending by Profile
	MaxPending   uint32          // over all profiles; 0: no bound
	LifetimeLeft uint64          // how many more executors may ever be created
	Churn        uint32          // how many more creations and releases this minute allows; ^0: no bound
	Grants       Grants
}

// Rule names a promise that a decision would have broken. The values are stable: they are labels of a metric.
type Rule string

// The rules.
const (
	UnknownProfile  Rule = "unknown-profile"
	UnknownExecutor Rule = "unknown-executor"
	OverCeiling     Rule = "over-ceiling"
	OverMax         Rule = "over-max"
	OverPending     Rule = "over-pending"
	OverAtOnce      Rule = "over-at-once"
	OverLifetime    Rule = "over-lifetime"
	OverChurn       Rule = "over-churn"
	BelowFloor      Rule = "below-floor"
	CreateBlocked   Rule = "create-blocked"
	CancelStarted   Rule = "cancel-started"
	ReleaseTwice    Rule = "release-twice"
	ReleaseMoot     Rule = "release-moot" // it has ended or is going already: more often a race that the policy lost than a fault
	DrainBusy       Rule = "drain-busy"
	KillNotGranted  Rule = "kill-not-granted"
	UnknownMode     Rule = "unknown-mode"
)

// Violation is one thing that a decision asked for and the guard refused or clipped.
type Violation struct {
	Rule   Rule
	Detail string
}

// Create is how many executors of a profile to ask for, with the hints of the policy.
type Create struct {
	Profile                      snapshot.Profile
	Count                        uint32
	Zone, Capacity, Node, Reason string
}

// Mode is how an executor is let go.
type Mode uint8

// The modes. DrainWhenIdle waits until it has nothing to do; no new task is assigned meanwhile in either drain.
const (
	Cancel        Mode = 1
	Drain         Mode = 2
	Kill          Mode = 3
	DrainWhenIdle Mode = 4
)

// Release is one executor to let go.
type Release struct {
	Executor snapshot.ID
	Mode     Mode
	Reason   string
}

// Plan is a decision that passed Check. Only this package can make a non-empty one.
type Plan struct {
	creates  []Create
	releases []Release
}

// Creates lists what to create, ascending by profile, then in the policy's order. It is a copy: a plan cannot be changed.
func (p Plan) Creates() []Create { return slices.Clone(p.creates) }

// Releases lists what to let go, ascending by executor. It is a copy: a plan cannot be changed.
func (p Plan) Releases() []Release { return slices.Clone(p.releases) }

// Empty reports whether there is nothing to do.
func (p Plan) Empty() bool { return len(p.creates) == 0 && len(p.releases) == 0 }
