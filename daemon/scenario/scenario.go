// Package scenario runs stories about allocation against the real core, with a policy of the caller's choice.
//
// A story feeds pods, targets and registrations, lets passes happen, and says what must have been created and let go. The format is described
// at the head of testdata/spark_allocator.yaml.
//
// It promises that
//
//   - what decides is the policy and the core, nothing in between: the runner only answers for the cluster and keeps the clock;
//   - time passes only where a story says so, and no timer fires but the one that a pass is;
//   - a story that is not what the format says is refused, with its line and the nearest key.
package scenario

import (
	"time"
)

// Scenario is a story, read and checked.
type Scenario struct {
	Name  string
	conf  conf
	steps []step
}

// conf is the set-up.
type conf struct {
	batchSize       uint32
	idleTimeout     time.Duration
	batchDelay      time.Duration
	creationTimeout time.Duration
	maxPending      uint32 // 0: no bound
	maxPendingPerRp uint32 // 0: no bound
	maximum         uint64 // executors ever created; 0: no bound
	failDeletes     bool
	gate            string
}

func defaultConf() conf {
	return conf{
		batchSize: 5, idleTimeout: 10 * time.Second, batchDelay: time.Second, creationTimeout: 10 * time.Minute, gate: "all-seen",
	}
}

// step is done in the order of its fields. What is nil is not asked for.
type step struct {
	line    int
	target  []pair // profile, executors; ascending by profile
	pods    []pod
	known   *[]int64
	at      *time.Duration
	advance time.Duration
	purge   bool
	pass    bool
	expect  *expectation
	raises  string
}

// pair is two numbers that belong together.
type pair [2]int64

// pod is one pod as the cluster shows it.
type pod struct {
	id      int64
	state   string
	profile int64
}

// expectation is what must have happened since the one before. What is nil does not matter.
type expectation struct {
	line           int
	created        *[]pair // executor, profile
	total          *int64
	out            *int64
	deletes        *[][]int64
	timeoutDeletes *[][]int64
	deleted        []int64
	notDeleted     []int64
}
