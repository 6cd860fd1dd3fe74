// Package guard runs one container of a local cluster as a process and promises that nobody is left behind:
//
//   - when the container's process ends, whatever it started ends with it, also what has left its session;
//   - when the host that asked for the container ends, however it ends, the container and all it started end too;
//   - what the container writes is kept in a file of bounded size, each line with its time and its stream.
//
// For each container the host starts its own program once more as a guard, a small process that does nothing but this.
// Host and guard hold the two ends of a pipe: the host's orders go through it, and its end is the order to kill.
//
// On Linux a guard adopts the orphans below it, so that nothing escapes. Elsewhere it kills the container's process
// group, which a process that makes a group of its own has left.
package guard

import (
	"syscall"
	"time"
)

// Argv0 is the name under which a program is started as a guard. A program that hosts a local cluster looks at
// os.Args[0] before anything else and calls Main when it is this.
const Argv0 = "retinue-local-guard"

// Spec is what a guard runs.
type Spec struct {
	// Argv is the command and its arguments. A command without a slash is looked up in the PATH of Env.
	Argv []string
	// Env is the whole environment, as NAME=value.
	Env []string
	// Dir is the folder to start in.
	Dir string
	// Log is the file that takes the output; LogBytes is when it is rotated, to one older file beside it.
	Log      string
	LogBytes int64
}

// Exit says how a container ended.
type Exit struct {
	// Code is the exit code, or 128 + the number of the signal that killed the process.
	Code int
	// Signal killed the process; 0 when it exited by itself.
	Signal syscall.Signal
	// At is when the container's own process ended.
	At time.Time
	// Lost says that the guard itself was killed, and how the process ended is not known.
	Lost bool
}

// report is a line from guard to host: first that the process runs or why it does not, then how it ended.
type report struct {
	Started *time.Time `json:"started,omitempty"`
	PID     int        `json:"pid,omitempty"`
	Refused string     `json:"refused,omitempty"`
	Ended   *Exit      `json:"ended,omitempty"`
}

// Orders to a guard, one byte each. The end of the pipe means orderKill.
const (
	orderTerminate = 't' // SIGTERM to the container's process
	orderKill      = 'k' // SIGKILL to all
)
