// Package local is a Kubernetes cluster of one node on one machine, without Kubernetes: the model of an API server behind
// the real wire protocol, and a kubelet that runs pods as processes.
//
// It promises:
//
//   - client-go and kubectl work with it through the kubeconfig that it writes, for the resources that Retinue uses;
//   - it outlives the program that started it: Up starts a process of its own, Down ends it;
//   - only one runs in a folder, and only on 127.0.0.1, open to who can read the folder's kubeconfig;
//   - when it ends, by Down, by a signal or by SIGKILL, no process of any pod is left.
//
// What it keeps is in memory: a cluster that is started again is empty. The kubeconfig stays valid.
//
// The program that hosts it must call Entered before anything else, since it is started again as the cluster and as the
// guards of containers:
//
//	func main() {
//		if code, entered := local.Entered(); entered {
//			os.Exit(code)
//		}
//		...
//	}
package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/retinue-sched/retinue/daemon/cluster/local/guard"
)

// ErrRunning reports that another local cluster has the folder.
var ErrRunning = errors.New("a local cluster is running there already")

// NodeName is the name of the only node.
const NodeName = "local"

// Options say how a local cluster is set up. The zero value of each field has a meaning.
type Options struct {
	// Dir is the folder for all state; DefaultDir() when empty.
	Dir string
	// Port on 127.0.0.1 for the API; when 0 the one that this folder had last, or any that is free.
	Port int
	// MaxPods is how many pods run at once; 110 when 0.
	MaxPods int
	// CPU and Memory are what the node offers to requests. They are counted, not enforced. When zero: eight for each core of
	// the machine, so that a fleet that mostly waits fits, and 64Gi.
	CPU, Memory resource.Quantity
	// LogBytes is when a container's log is rotated, once; 4 MiB when 0.
	LogBytes int64
	// StopGrace is how long containers may take to end when the cluster ends; 5 s when 0.
	StopGrace time.Duration
	// Executable is the program to start as cluster and as guards; the running one when empty. It must call Entered.
	Executable string
	// Window is how many changes a watch may be behind; 10,000 when 0.
	Window int

	// Log gets what an operator should know; nothing is logged when nil. Up ignores it: its cluster logs to a file.
	Log *slog.Logger `json:"-"`
	// Out gets sentences for people from Up; may be nil.
	Out io.Writer `json:"-"`
	// Ready is called by Serve once the cluster can be used; may be nil.
	Ready func(Status) `json:"-"`
}

// Validate reports everything that is wrong with the options.
func (o Options) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(o.Port >= 0 && o.Port <= 65535, "port: %d is not between 0 and 65535", o.Port)
	check(o.MaxPods >= 0, "max pods: %d is negative", o.MaxPods)
	check(o.CPU.Sign() >= 0, "cpu: %s is negative", o.CPU.String())
	check(o.Memory.Sign() >= 0, "memory: %s is negative", o.Memory.String())
	check(o.LogBytes >= 0, "log bytes: %d is negative", o.LogBytes)
	check(o.StopGrace >= 0, "stop grace: %v is negative", o.StopGrace)
	check(o.Window >= 0, "window: %d is negative", o.Window)
	return errors.Join(errs...)
}

// complete fills in what the zero values stand for.
func (o Options) complete() (Options, error) {
	if err := o.Validate(); err != nil {
		return o, err
	}
	dir, err := folder(o.Dir)
	if err != nil {
		return o, err
	}
	o.Dir = dir
	if o.MaxPods == 0 {
		o.MaxPods = 110
	}
	if o.CPU.IsZero() {
		o.CPU = *resource.NewQuantity(int64(8*runtime.NumCPU()), resource.DecimalSI)
	}
	if o.Memory.IsZero() {
		o.Memory = resource.MustParse("64Gi")
	}
	if o.LogBytes == 0 {
		o.LogBytes = 4 << 20
	}
	if o.StopGrace == 0 {
		o.StopGrace = 5 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Executable == "" {
		o.Executable, err = self()
	}
	return o, err
}

// self is the running program, also when its file has been replaced or removed, as that of `go run` is.
func self() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// DefaultDir is $XDG_STATE_HOME/retinue/local, or ~/.local/state/retinue/local.
func DefaultDir() (string, error) {
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "retinue", "local"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("choosing a folder for the local cluster: %w: pass one with --dir", err)
	}
	return filepath.Join(home, ".local", "state", "retinue", "local"), nil
}

func folder(dir string) (string, error) {
	if dir == "" {
		return DefaultDir()
	}
	return filepath.Abs(dir)
}

// serverArgv0 is the name under which a program is started as a cluster.
const serverArgv0 = "retinue-local"

// Entered runs the part of a local cluster that this process was started as, and returns its exit code; entered is false
// when the process is something else, which is then up to main.
func Entered() (code int, entered bool) {
	switch os.Args[0] {
	case guard.Argv0:
		return guard.Main(), true
	case serverArgv0:
		return serveHidden(), true
	}
	return 0, false
}

// places are the files in a cluster's folder.
type places string

func (p places) in(name string) string { return filepath.Join(string(p), name) }

func (p places) kubeconfig() string { return p.in("kubeconfig") }
func (p places) log() string        { return p.in("log") }
func (p places) lock() string       { return p.in("lock") }
func (p places) fence() string      { return p.in("fence") }
func (p places) facts() string      { return p.in("cluster.json") }
func (p places) pods() string       { return p.in("pods") }
func (p places) pki() string        { return p.in("pki") }

// facts is what a running cluster writes down about itself. It stays when the cluster has ended.
type facts struct {
	PID     int
	Port    int
	Started time.Time
}

func (p places) readFacts() (facts, error) {
	var f facts
	text, err := os.ReadFile(p.facts())
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return f, fmt.Errorf("reading %s: %w", p.facts(), err)
	}
	return f, nil
}

func (p places) writeFacts(f facts) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return writeFile(p.facts(), text)
}

// writeFile replaces a file as a whole, readable by its owner only.
func writeFile(path string, content []byte) error {
	next := path + ".next"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
