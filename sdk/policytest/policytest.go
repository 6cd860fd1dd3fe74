// Package policytest is for the tests of policies: it makes views, asks a policy natively, and says which of the
// guard's rules an answer would break.
//
// It promises that Random gives views that keep the contract, the same one for the same seed.
package policytest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/sdk"
)

// Asker is a policy that can be called: an sdk.NativePolicy, or a module in a sandbox.
type Asker interface {
	Call(hook hostabi.Hook, view []byte) ([]byte, error)
}

// New configures a policy with settings, or stops the test.
func New(t Test, p sdk.Policy, settings string) *sdk.NativePolicy {
	t.Helper()
	n, err := sdk.Native(p, []byte(settings))
	if err != nil {
		t.Fatalf("configuring the policy: %v", err)
	}
	return n
}

// Test is what this package needs of a testing.T.
type Test interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Ask shows v to the policy, with its profiles' numbers of executors as Count has them, and returns the answer. An
// error stops the test.
func Ask(t Test, p Asker, hook hostabi.Hook, v hostabi.View) hostabi.Decision {
	t.Helper()
	v.Hook, v.Profiles = hook, slices.Clone(v.Profiles)
	Count(&v)
	answer, err := p.Call(hook, v.Encode(nil, hostabi.Projection{}))
	if err != nil {
		t.Fatalf("asking about %v: %v", hook, err)
	}
	d, err := hostabi.DecodeDecision(answer)
	if err != nil {
		t.Fatalf("asking about %v: %v", hook, err)
	}
	return d
}

// Shuffled returns v with the rows of its tables in another order. A policy that answers by what is in a view, not
// by where, answers alike.
func Shuffled(v hostabi.View, seed uint64) hostabi.View {
	r := rand.New(rand.NewPCG(seed, 0))
	s := hostabi.View{Hook: v.Hook, Decision: v.Decision, Profiles: slices.Clone(v.Profiles), Executors: slices.Clone(v.Executors)}
	r.Shuffle(len(s.Profiles), func(i, j int) { s.Profiles[i], s.Profiles[j] = s.Profiles[j], s.Profiles[i] })
	r.Shuffle(len(s.Executors), func(i, j int) { s.Executors[i], s.Executors[j] = s.Executors[j], s.Executors[i] })
	return s
}

// Broken returns a sentence for each rule of the guard that d breaks as an answer about v.
func Broken(v hostabi.View, d hostabi.Decision) []string {
	c := checker{view: v, fleets: map[uint32]*fleet{}}
	c.countFleets()
	seen := map[uint64]bool{}
	for _, r := range d.Releases {
		if seen[r.Executor] {
			c.say("executor %d is released twice", r.Executor)
		}
		seen[r.Executor] = true
		c.release(r)
	}
	for _, r := range d.Creates {
		c.create(r)
	}
	c.bounds()
	return c.broken
}

// fleet is a profile as the guard counts it.
type fleet struct {
	row                        *hostabi.ProfileRow
	starting, running, staying int64 // running ones may be draining
	terminating, condemned     int64
	created, releasedStay      int64
}

// checker collects what is broken.
type checker struct {
	view   hostabi.View
	fleets map[uint32]*fleet
	broken []string
}

func (c *checker) say(format string, args ...any) {
	c.broken = append(c.broken, fmt.Sprintf(format, args...))
}

func (c *checker) countFleets() {
	for i := range c.view.Profiles {
		c.fleets[c.view.Profiles[i].ID] = &fleet{row: &c.view.Profiles[i]}
	}
	for _, e := range c.view.Executors {
		f := c.fleets[e.Profile]
		switch {
		case f == nil || e.Phase.Terminal():
		case e.Flags.Has(hostabi.FlagCondemned):
			f.condemned++
		case e.Phase == hostabi.PhaseTerminating:
			f.terminating++
		case e.Phase == hostabi.PhaseRunning:
			f.running++
			if !e.Flags.Has(hostabi.FlagDecommissioning) {
				f.staying++
			}
		default:
			f.starting++
			if !e.Flags.Has(hostabi.FlagDecommissioning) {
				f.staying++
			}
		}
	}
}

// release checks one release.
func (c *checker) release(r hostabi.Release) {
	i := slices.IndexFunc(c.view.Executors, func(e hostabi.ExecutorRow) bool { return e.ID == r.Executor })
	if i < 0 {
		c.say("executor %d is not in the view", r.Executor)
		return
	}
	e := c.view.Executors[i]
	f := c.fleets[e.Profile]
	switch {
	case f == nil:
		c.say("executor %d is of no profile in the view", e.ID)
		return
	case e.Phase >= hostabi.PhaseTerminating || e.Flags.Has(hostabi.FlagCondemned):
		c.say("executor %d leaves already", e.ID)
	case r.Mode == hostabi.Cancel && (e.Phase > hostabi.PhasePending || e.Flags.Has(hostabi.FlagRegistered)):
		c.say("executor %d is cancelled, but it has started", e.ID)
	case r.Mode == hostabi.Drain && e.BusySlots > 0:
		c.say("executor %d is drained, but it is busy", e.ID)
	case r.Mode == hostabi.Kill:
		c.say("executor %d is killed", e.ID)
	}
	f.releasedStay++
}

// create checks one row of creates.
func (c *checker) create(r hostabi.Create) {
	f := c.fleets[r.Profile]
	if f == nil {
		c.say("executors of profile %d are created, which is not in the view", r.Profile)
		return
	}
	f.created += int64(r.Count)
}

// bounds checks the sums.
func (c *checker) bounds() {
	starting, created := int64(0), int64(0)
	for _, f := range c.fleets {
		starting += f.starting
		created += f.created
		c.profileBounds(f)
	}
	if most := int64(c.view.Decision.MaxPending); most > 0 && created > 0 && starting+created > most {
		c.say("%d executors are starting and %d created, the bound is %d", starting, created, most)
	}
	slices.Sort(c.broken) // the fleets came in the order of a map
}

// profileBounds checks the sums of one profile.
func (c *checker) profileBounds(f *fleet) {
	if f.releasedStay > 0 && f.staying-f.releasedStay < int64(f.row.Floor) {
		c.say("profile %d: %d of %d are released, the floor is %d", f.row.ID, f.releasedStay, f.staying, f.row.Floor)
	}
	if f.created == 0 {
		return
	}
	over := func(what string, used int64, bound, none uint32) {
		if bound != none && used+f.created > int64(bound) {
			c.say("profile %d: %d are created beside %d, %s is %d", f.row.ID, f.created, used, what, bound)
		}
	}
	over("the ceiling", f.starting+f.running+f.terminating, f.row.Ceiling, hostabi.None)
	over("the maximum", f.starting+f.running+f.terminating+f.condemned, f.row.Max, hostabi.None)
	over("the bound on pending ones", f.starting, f.row.MaxPending, 0)
	over("the batch size", 0, f.row.BatchSize, hostabi.None)
	over("what the application may still create", 0, f.row.LifetimeLeft, hostabi.None)
	if f.row.BackoffUntilMS > c.view.Decision.ElapsedMS {
		c.say("profile %d: %d are created during its backoff", f.row.ID, f.created)
	}
}
