// Package task holds an application's tasks: their queue, their attempts, and which slot each runs in.
//
// It promises:
//
//   - an accepted task reaches exactly one terminal state, and a terminal state never changes;
//   - a result is recorded once, however often it is reported; reports of superseded attempts are discarded;
//   - no task has more attempts that count than allowed, and a crashed executor costs exactly one attempt of each task it held;
//   - attempts that end through no fault of the task (it was given back, its executor was let go) do not count, but there is a bound to them, too;
//   - a task that has not succeeded by its deadline is not tried any more;
//   - the same key submitted again names the same task, for as long as the task is remembered.
//
// Execution is at least once; it is the recording of results that is exactly once.
//
// It is pure, everything that it lists is in a fixed order, and each change costs time in proportion to what changes, however many tasks wait.
package task

import (
	"time"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// ID is the number of a task in its application, in order of acceptance, from 1.
type ID uint64

// Ref names one attempt of a task. Attempts count from 1.
type Ref struct {
	Task    ID
	Attempt uint32
}

// State is where a task is in its life. The numbers are part of the wire contract.
//
//	          assign            started
//	Queued ──────────► Launched ────────► Running ──────► Succeeded | Failed
//	   ▲                  │                  │
//	   └──── retry ───────┴──────────────────┘
//	(any that is not terminal) ── cancel ──► Cancelled      ── deadline ──► Expired
type State uint8

// The states.
const (
	Queued    State = 1
	Launched  State = 2
	Running   State = 3
	Succeeded State = 4
	Failed    State = 5
	Cancelled State = 6
	Expired   State = 7
)

var stateNames = [...]string{"", "Queued", "Launched", "Running", "Succeeded", "Failed", "Cancelled", "Expired"}

// String returns the state's name.
func (s State) String() string {
	if s > 0 && int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "State(?)"
}

// Terminal reports whether a task in state s has ended.
func (s State) Terminal() bool { return s >= Succeeded }

// Spec is what a client asks to be run. It is never changed once accepted.
type Spec struct {
	Key         string // chosen by the client, unique in the application; the same key again is the same task
	Job         string // groups tasks; may be empty
	Profile     snapshot.Profile
	Command     []string // program and arguments; the program is looked up in the executor's PATH
	Env         []Env    // added to the executor's own environment, in order
	Input       []byte   // given to the program's standard input
	Directory   string   // working directory on the executor; empty: a fresh folder of its own
	Files       []File   // made visible in the working directory before the program starts
	MaxAttempts uint32   // 0: the application's default
	Timeout     time.Duration
	KillGrace   time.Duration // between asking and forcing the program to end; 0: the executor's default
	Deadline    time.Duration // between acceptance and the end, all attempts and all waiting counted; 0: no bound
}

// Env is one environment variable.
type Env struct{ Name, Value string }

// File makes the file at Path, as the executor sees it, visible as Name (a relative path) in the task's working directory.
type File struct{ Name, Path string }

// Launch is one attempt to be started on an executor.
type Launch struct {
	Ref  Ref
	Spec *Spec
}

// Outcome is how an attempt ended, as its executor reports it. The numbers are part of the wire contract.
type Outcome uint8

// The outcomes. Started is not an end.
const (
	OutcomeStarted   Outcome = 1 // the program runs
	OutcomeSucceeded Outcome = 2 // it exited with status 0
	OutcomeFailed    Outcome = 3 // it exited with another status or by a signal
	OutcomeKilled    Outcome = 4 // it was ended because the daemon asked for it
	OutcomeInvalid   Outcome = 5 // it cannot be started here or anywhere (no such program, missing file): retrying is pointless
	OutcomeTimeout   Outcome = 6 // it ran longer than its timeout
	OutcomeReturned  Outcome = 7 // not run, or given up, because the executor is leaving: costs no attempt
)

// Report is what an executor says about one attempt.
type Report struct {
	Ref       Ref
	Outcome   Outcome
	ExitCode  int32
	Text      string // one sentence for people when the attempt did not succeed
	Output    []byte // standard output, bounded
	Errors    []byte // tail of standard error, bounded
	Truncated bool   // Output was cut at the bound
	Took      time.Duration
}

// Info is a task as others may see it.
type Info struct {
	ID       ID
	Spec     *Spec
	State    State
	Attempt  uint32      // the newest attempt, 0 if none was made
	Executor snapshot.ID // of the newest attempt
	Accepted snapshot.Instant
	Started  snapshot.Instant // of the newest attempt
	Ended    snapshot.Instant
	Result   Report // of the attempt that ended the task, or of the newest failed one
}

// Loss is why an executor no longer runs what it was given.
type Loss struct {
	Text     string
	Blameful bool // the loss counts against the attempts of the tasks it held (a crash), or not (an eviction, a drain)
}
