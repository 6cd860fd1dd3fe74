package daemon

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/retinue-sched/retinue/daemon/actuator"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/cluster/kube"
	"github.com/retinue-sched/retinue/daemon/driver"
	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/policy"
	"github.com/retinue-sched/retinue/daemon/source"
	"github.com/retinue-sched/retinue/daemon/telemetry"
)

// Config is everything about a daemon that can be set. The names of its fields, in camelCase, are the keys of a configuration file.
type Config struct {
	// Namespaces are those whose pods the daemon keeps. An application that names none is in the first.
	Namespaces []string
	// State is the folder for the little that must outlive the process.
	State string
	// ShutdownGrace is how long calls and writes may take to end after SIGTERM.
	ShutdownGrace time.Duration

	Listen      Listen
	Executors   Executors
	Cluster     kube.Config
	Source      Source
	Actuator    actuator.Limits
	Driver      driver.Config
	Policy      policy.Config
	Application Application
	Telemetry   telemetry.Config
}

// Source says how pods are followed.
type Source struct {
	// Poll is the time between lists that nothing called for; they repair what a watch may have lost. 0: none.
	Poll time.Duration
	// PollOnly does without a watch, for clusters that do not grant it.
	PollOnly bool
	// Silence is the time after which a watch is taken for dead.
	Silence time.Duration
	// Backoff is the first pause after a call went wrong; it doubles up to MaxBackoff.
	Backoff time.Duration
	// MaxBackoff is the longest pause.
	MaxBackoff time.Duration
}

// Application is the defaults and bounds of every application.
type Application struct {
	// Batch is how long to gather changes before asking the policy, so that a burst of pod events costs one decision.
	Batch time.Duration
	// Resync is the longest without asking the policy, so that it may act on the passing of time alone.
	Resync time.Duration
	// DecisionDeadline is the longest to wait for a policy's answer before the built-in one is asked.
	DecisionDeadline time.Duration
	// Churn is the most creations and releases of executors a minute. 0: no bound.
	Churn uint32

	// Slots is how many tasks an executor runs at once, where its profile does not say.
	Slots uint32
	// BatchSize is the most executors to ask for at once, where the profile does not say.
	BatchSize uint32
	// IdleTimeout is the age below which a request for an executor is not cancelled, where the profile does not say.
	IdleTimeout time.Duration
	// CreationTimeout is how long an executor may stay unseen before it is given up, where the profile does not say.
	CreationTimeout time.Duration
	// Backlog is how long tasks wait before dynamic allocation adds executors, where the profile does not say.
	Backlog time.Duration

	// MaxTaskAttempts is how often a task is tried, where neither it nor its application says.
	MaxTaskAttempts uint32
	// MaxQueued is the most tasks of an application that are accepted and not ended.
	MaxQueued uint32
	// QueuedBytes bounds the commands, input and environment of those tasks. 0: no bound.
	QueuedBytes uint64
	// RetainTasks is how many ended tasks of an application are kept to be looked at.
	RetainTasks uint32
	// RetainBytes bounds the output kept with them.
	RetainBytes uint64
	// SessionTimeout is the silence after which an executor is lost. It is at least three heartbeats.
	SessionTimeout time.Duration
	// ReattachGrace is how long an executor whose stream broke may come back before its tasks are given to others.
	ReattachGrace time.Duration
	// ReturnTimeout is how long an executor that is lost may take to come back before its pod is deleted and it is replaced. The default is an
	// executor's lease (driver.lease) and the time that a pod gets to end: one that can end by itself has done so by then.
	ReturnTimeout time.Duration

	// FailureThreshold is how many start-up failures of a profile within FailureWindow begin a back-off.
	FailureThreshold uint32
	// FailureWindow is how long a start-up failure counts.
	FailureWindow time.Duration
	// BackoffInitial is the first pause between creations in a back-off; it doubles up to BackoffMax.
	BackoffInitial time.Duration
	// BackoffMax is the longest pause.
	BackoffMax time.Duration
}

// DefaultConfig suits one machine, or a cluster of a few thousand executors.
func DefaultConfig() Config {
	return Config{
		Namespaces:    []string{"default"},
		ShutdownGrace: 20 * time.Second,
		Executors:     Executors{Program: "retinue-executor", Image: "retinue-executor", OrphanTimeout: 10 * time.Minute},
		Cluster:       kube.DefaultConfig(),
		Source:        defaultSource(),
		Actuator:      actuator.DefaultLimits(),
		Driver:        driver.DefaultConfig(),
		Policy:        policy.DefaultConfig(),
		Telemetry:     telemetry.DefaultConfig(),
		Application: Application{
			Batch: 20 * time.Millisecond, Resync: 10 * time.Second, DecisionDeadline: 10 * time.Second,
			Slots: 1, BatchSize: 20, IdleTimeout: time.Minute, CreationTimeout: 10 * time.Minute, Backlog: time.Second,
			MaxTaskAttempts: 4, MaxQueued: 1_000_000, QueuedBytes: 1 << 30, RetainTasks: 100_000, RetainBytes: 256 << 20,
			SessionTimeout: 40 * time.Second, ReattachGrace: 20 * time.Second, ReturnTimeout: driver.DefaultConfig().Lease + pod.DefaultGrace,
			FailureThreshold: 3, FailureWindow: 10 * time.Minute, BackoffInitial: 10 * time.Second, BackoffMax: 2 * time.Minute,
		},
	}
}

// Validate reports everything that is wrong, each with its key.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	within := func(section string, err error) {
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				errs = append(errs, fmt.Errorf("%s.%s", section, line))
			}
		}
	}
	check(len(c.Namespaces) > 0, "namespaces: there is none")
	for i, namespace := range c.Namespaces {
		for _, text := range validation.IsDNS1123Label(namespace) {
			check(false, "namespaces[%d]: %q is not valid: %s", i, namespace, text)
		}
	}
	check(c.State != "", "state: no folder is given")
	check(c.ShutdownGrace > 0, "shutdownGrace: %v is not positive", c.ShutdownGrace)
	within("listen", c.Listen.validate())
	within("executors", c.Executors.validate(c.Listen))
	within("cluster", c.Cluster.Validate())
	within("source", c.Source.validate())
	within("actuator", c.Actuator.Validate())
	within("driver", c.Driver.Validate())
	within("policy", c.Policy.Validate())
	within("telemetry", c.Telemetry.Validate())
	within("application", c.Application.validate(c.Driver.HeartbeatInterval))
	if slowest := c.Policy.Deadline + c.Policy.StartTimeout; c.Application.DecisionDeadline > 0 && c.Application.DecisionDeadline <= slowest {
		check(false, "application.decisionDeadline: %v is not longer than policy.deadline and policy.startTimeout together (%v): an answer that is in time for the one would be late for the other",
			c.Application.DecisionDeadline, slowest)
	}
	return errors.Join(errs...)
}

func defaultSource() Source {
	d := source.DefaultConfig()
	return Source{Poll: d.Poll, Silence: d.Silence, Backoff: d.Backoff, MaxBackoff: d.MaxBackoff}
}

func (s Source) validate() error {
	var errs []error
	if s.Poll < 0 || (s.PollOnly && s.Poll == 0) {
		errs = append(errs, fmt.Errorf("poll: %v is not an interval", s.Poll))
	}
	if s.Silence <= 0 {
		errs = append(errs, fmt.Errorf("silence: %v is not positive", s.Silence))
	}
	if s.Backoff <= 0 || s.MaxBackoff < s.Backoff {
		errs = append(errs, fmt.Errorf("backoff: %v up to %v (maxBackoff) is not a range of positive durations", s.Backoff, s.MaxBackoff))
	}
	return errors.Join(errs...)
}

func (a Application) validate(heartbeat time.Duration) error {
	var errs []error
	positive := func(name string, d time.Duration) {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("%s: %v is not positive", name, d))
		}
	}
	positive("batch", a.Batch)
	positive("decisionDeadline", a.DecisionDeadline)
	positive("idleTimeout", a.IdleTimeout)
	positive("creationTimeout", a.CreationTimeout)
	positive("backlog", a.Backlog)
	positive("reattachGrace", a.ReattachGrace)
	positive("returnTimeout", a.ReturnTimeout)
	positive("failureWindow", a.FailureWindow)
	positive("backoffInitial", a.BackoffInitial)
	if a.Resync < a.Batch {
		errs = append(errs, fmt.Errorf("resync: %v is shorter than batch (%v)", a.Resync, a.Batch))
	}
	if a.BackoffMax < a.BackoffInitial {
		errs = append(errs, fmt.Errorf("backoffMax: %v is shorter than backoffInitial (%v)", a.BackoffMax, a.BackoffInitial))
	}
	if a.SessionTimeout < 3*heartbeat {
		errs = append(errs, fmt.Errorf("sessionTimeout: %v is shorter than three heartbeats (%v): healthy executors would be lost", a.SessionTimeout, 3*heartbeat))
	}
	some := func(name string, n uint32) {
		if n == 0 {
			errs = append(errs, fmt.Errorf("%s: 0 is not positive", name))
		}
	}
	some("slots", a.Slots)
	some("batchSize", a.BatchSize)
	some("maxTaskAttempts", a.MaxTaskAttempts)
	some("maxQueued", a.MaxQueued)
	some("failureThreshold", a.FailureThreshold)
	return errors.Join(errs...)
}

// application makes the defaults of an application's configuration.
func (a Application) application() (application.Config, application.Profile) {
	cfg := application.Config{
		Churn: a.Churn, Batch: a.Batch, Resync: a.Resync, DecisionDeadline: a.DecisionDeadline,
		MaxTaskAttempts: a.MaxTaskAttempts, MaxQueued: a.MaxQueued, QueuedBytes: a.QueuedBytes, RetainTasks: a.RetainTasks, RetainBytes: a.RetainBytes,
		SessionTimeout: a.SessionTimeout, ReattachGrace: a.ReattachGrace, ReturnTimeout: a.ReturnTimeout,
		Failures: application.FailureBudget{Threshold: a.FailureThreshold, Window: a.FailureWindow, Initial: a.BackoffInitial, Max: a.BackoffMax},
	}
	profile := application.Profile{
		Slots: a.Slots, BatchSize: a.BatchSize, IdleTimeout: a.IdleTimeout, CreationTimeout: a.CreationTimeout,
		Dynamic: application.Dynamic{Backlog: a.Backlog, Sustained: a.Backlog, Ratio: 1},
	}
	return cfg, profile
}
