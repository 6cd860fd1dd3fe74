// Package daemon puts the parts together: it is the only package that knows them all.
//
// It promises that parts start in the order in which they need each other and stop in the reverse order, that the failure of one part stops all
// and is named, and that nothing runs once Run has returned: if a part does not end in time, Run names it and leaves it behind, and keeps the state
// folder until the process ends, so that no other daemon writes beside it.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/retinue-sched/retinue/daemon/actuator"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/cluster"
	"github.com/retinue-sched/retinue/daemon/cluster/kube"
	"github.com/retinue-sched/retinue/daemon/driver"
	"github.com/retinue-sched/retinue/daemon/orphan"
	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/policy"
	"github.com/retinue-sched/retinue/daemon/runner"
	"github.com/retinue-sched/retinue/daemon/source"
	"github.com/retinue-sched/retinue/daemon/spec"
	"github.com/retinue-sched/retinue/daemon/state"
	"github.com/retinue-sched/retinue/daemon/telemetry"
)

// Daemon is the parts of a daemon, ready to run.
type Daemon struct {
	cfg       Config
	log       *slog.Logger
	state     *state.Folder
	telemetry *telemetry.Telemetry
	policies  *policy.Host
	actuator  *actuator.Actuator
	feeds     []*source.Feed
	set       *runner.Set
	tokens    *driver.Tokens
	driver    *driver.Server
	listeners []driver.Listener
	admin     *telemetry.Admin
	keys      *driver.ExecutorKeys
	owner     pod.Owner
	orphans   *orphan.Keeper
}

// New takes the state folder, opens the listeners and readies every part. Nothing is served yet. The error names the setting that is wrong; after
// one nothing is left open. Close must be called if Run is not.
func New(cfg Config, log *slog.Logger) (ready *Daemon, err error) {
	if err = cfg.Validate(); err != nil {
		return nil, fmt.Errorf("checking the configuration:\n%w", err)
	}
	klog.SetSlogLogger(log.With(slog.String("from", "client-go"))) // client-go logs through klog, whatever one does
	d := &Daemon{cfg: cfg, log: log, tokens: driver.NewTokens()}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if d.state, err = state.Open(cfg.State); err != nil {
		return nil, err
	}
	if d.telemetry, err = telemetry.New(cfg.Telemetry); err != nil {
		return nil, fmt.Errorf("preparing telemetry: %w", err)
	}
	for _, prepare := range []func() error{
		func() error { return d.Reload(context.Background()) },
		d.listen, // before connect: executors are told the port
		d.connect,
		d.serve,
	} {
		if err := prepare(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// connect readies the parts that decide and act: policies, applications, and those who speak to the cluster.
func (d *Daemon) connect() error {
	reach, err := kube.Connect(d.cfg.Cluster, d.log)
	if err != nil {
		return err
	}
	hostCfg := d.cfg.Policy
	if hostCfg.CacheDir == "" {
		hostCfg.CacheDir = d.state.Path("modules")
	}
	if d.policies, err = policy.New(hostCfg, d.log, d.telemetry.Meter("policy")); err != nil {
		return fmt.Errorf("preparing policies: %w", err)
	}
	secret, err := d.state.Secret("executor.key")
	if err != nil {
		return err
	}
	d.keys, d.owner = driver.NewExecutorKeys(secret), pod.NewOwner(secret)
	d.set = runner.NewSet(runner.Carriers{
		Pods:     func(app runner.Key, effects ...application.Effect) { d.actuator.Enqueue(app.String(), effects...) },
		Sessions: func(app runner.Key, effect application.Effect) { d.driver.Carry(app, effect) },
		Policies: deciders{d.policies},
		Joined:   d.joined,
		Left:     d.left,
		// Each life of each application gets a number of its own: a name that was deleted and applied again must not meet its former executors.
		Incarnation: func() (uint32, error) { return d.state.NextIncarnation(d.shown) },
	}, d.log)
	d.actuator, err = actuator.New(actuator.Config{
		Cluster: reach, Build: d.build, Owner: d.owner, Limits: d.cfg.Actuator, Log: d.log, Meter: d.telemetry.Meter("actuator"), Answer: d.answered,
	})
	if err != nil {
		return err
	}
	if err := d.prepareOrphans(); err != nil {
		return err
	}
	for _, namespace := range d.cfg.Namespaces {
		feed, err := source.New(source.Config{
			Cluster: reach, Owner: d.owner, Namespace: namespace, Sink: sink{namespace, d.set, d.orphans}, Poll: d.cfg.Source.Poll, PollOnly: d.cfg.Source.PollOnly,
			Silence: d.cfg.Source.Silence, Backoff: d.cfg.Source.Backoff, MaxBackoff: d.cfg.Source.MaxBackoff,
			Log: d.log, Meter: d.telemetry.Meter("source"),
		})
		if err != nil {
			return err
		}
		d.feeds = append(d.feeds, feed)
	}
	return d.prepareDriver(reach)
}

// prepareOrphans readies what keeps the pods that no application claims. To the actuator they are an application without a name in each namespace.
func (d *Daemon) prepareOrphans() (err error) {
	for _, namespace := range d.cfg.Namespaces {
		d.actuator.Admit(runner.Key{Namespace: namespace}.String(), namespace)
	}
	d.orphans, err = orphan.New(orphan.Config{
		Namespaces: d.cfg.Namespaces, Timeout: d.cfg.Executors.OrphanTimeout, Clock: d.set.Now,
		Known: func(namespace, app string) bool {
			_, missing := d.set.Find(runner.Key{Namespace: namespace, ID: app})
			return missing == nil
		},
		Delete: func(namespace string, p application.DeletePod) {
			d.actuator.Enqueue(runner.Key{Namespace: namespace}.String(), p)
		},
		Log: d.log, Meter: d.telemetry.Meter("orphan"),
	})
	return err
}

// answered passes on what the actuator did to who asked for it.
func (d *Daemon) answered(app string, ev application.Event) {
	key := keyOf(app)
	if deleted, ok := ev.(application.PodDeleted); ok && key.ID == "" {
		d.orphans.Answered(context.Background(), deleted)
		return
	}
	d.set.Post(key, ev)
}

// shown reports whether some pod shows an incarnation, whoever made it.
func (d *Daemon) shown(incarnation uint32) bool {
	return slices.ContainsFunc(d.feeds, func(f *source.Feed) bool { return f.Shows(incarnation) })
}

func (d *Daemon) prepareDriver(logs cluster.Logs) error {
	var err error
	d.driver, err = driver.New(d.cfg.Driver, driver.Parts{
		Applications: d.set, Policies: bindings{d.policies}, Defaults: d.defaults(), Tokens: d.tokens, Credentials: d.keys,
		Logs: func(ctx context.Context, namespace, name string, tail int64, follow bool) (io.ReadCloser, error) {
			if tail <= 0 {
				tail = -1
			}
			return logs.Logs(ctx, cluster.LogQuery{Namespace: namespace, Name: name, Tail: tail, Follow: follow})
		},
		Log: d.log, Meter: d.telemetry.MeterProvider(), Tracer: d.telemetry.TracerProvider(),
	})
	return err
}

// defaults is what every application gets from the daemon's configuration.
func (d *Daemon) defaults() spec.Defaults {
	cfg, profile := d.cfg.Application.application()
	return spec.Defaults{
		Namespace: d.cfg.Namespaces[0], Namespaces: d.cfg.Namespaces, Seed: uint64(d.set.Now()),
		Config: cfg, Profile: profile, Image: d.cfg.Executors.Image,
		Pod: pod.Spec{
			Owner: d.owner, Address: d.executorsAddress(), Program: d.cfg.Executors.Program, CAFile: d.cfg.Executors.CAFile, Lease: d.cfg.Driver.Lease,
		},
	}
}

// serve readies what people and probes look at.
func (d *Daemon) serve() (err error) {
	checks := []telemetry.Check{{Name: "policies", Func: func(context.Context) error { return d.policies.Ready() }}}
	for i, feed := range d.feeds {
		checks = append(checks, telemetry.Check{Name: "pods-of-" + d.cfg.Namespaces[i], Func: func(context.Context) error {
			if _, listed := feed.Age(); !listed {
				return errors.New("the pods have not been listed yet")
			}
			return nil
		}})
	}
	checks = append(checks, telemetry.Check{Name: "driver", Func: func(context.Context) error { return d.driver.Ready() }})
	d.admin, err = d.telemetry.Admin(checks)
	return err
}

// Reload reads again what may change while the daemon runs: the token file. If it is wrong nothing changes. A file that holds no token any more is
// taken for one that is being written.
func (d *Daemon) Reload(ctx context.Context) error {
	file := d.cfg.Listen.TokenFile
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading listen.tokenFile: %w", err)
	}
	fresh := driver.NewTokens()
	if err := fresh.Replace(text); err != nil {
		return fmt.Errorf("reading listen.tokenFile %s:\n%w", file, err)
	}
	if before := d.tokens.Len(); fresh.Len() == 0 && before > 0 {
		return fmt.Errorf("reading listen.tokenFile %s: it holds no token, the %d from before stay in force: to let nobody in, leave a token that nobody has, or restart", file, before)
	}
	if err := d.tokens.Replace(text); err != nil {
		return fmt.Errorf("reading listen.tokenFile %s:\n%w", file, err)
	}
	d.log.LogAttrs(ctx, slog.LevelInfo, "tokens read", slog.Int("count", d.tokens.Len()))
	return nil
}

// Run runs the daemon until ctx is done, then stops its parts in order. It returns nil after a stop that was asked for, and an error that names them
// if parts did not end in time. The daemon must not be used afterwards.
func (d *Daemon) Run(ctx context.Context) error {
	s := sequence{log: d.log, patience: d.cfg.ShutdownGrace}
	add := func(name string, run func(context.Context) error) { s.parts = append(s.parts, part{name, run}) }
	add("telemetry", d.telemetry.Run)
	add("admin", d.admin.Run)
	add("policies", d.policies.Run)
	add("actuator", d.actuator.Run)
	add("orphans", d.orphans.Run)
	add("applications", d.set.Run)
	for i, feed := range d.feeds {
		add("pods of "+d.cfg.Namespaces[i], feed.Run)
	}
	add("driver", func(ctx context.Context) error { return d.driver.Run(ctx, d.listeners, d.cfg.ShutdownGrace/2) })
	for _, l := range d.listeners {
		d.log.LogAttrs(ctx, slog.LevelInfo, "listening", slog.String("network", l.Addr().Network()), slog.String("address", l.Addr().String()))
	}
	left, err := s.Run(ctx)
	if len(left) > 0 {
		// They may still write: the state folder stays ours until the process ends. What they hold is not touched behind their back.
		return errors.Join(err, fmt.Errorf("stopping: %s did not end within shutdownGrace (%v)", strings.Join(left, ", "), d.cfg.ShutdownGrace))
	}
	return errors.Join(err, d.Close()) //nolint:contextcheck // ctx is done, and yet all must be closed
}

// Addresses lists where the daemon listens, in the order socket, TCP.
func (d *Daemon) Addresses() []net.Addr {
	addrs := make([]net.Addr, len(d.listeners))
	for i, l := range d.listeners {
		addrs[i] = l.Addr()
	}
	return addrs
}

// Close lets go of everything that New opened, in the reverse order. Run does so itself. It must not be called while Run runs; more than once is no
// mistake. Telemetry holds nothing before it runs.
func (d *Daemon) Close() error {
	var errs []error
	if d.admin != nil {
		errs = append(errs, d.admin.Close())
	}
	if d.policies != nil {
		errs = append(errs, d.policies.Close(context.Background()))
	}
	for _, l := range slices.Backward(d.listeners) {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	d.listeners = nil
	if d.state != nil { // last: what is above may write there
		errs = append(errs, d.state.Close())
		d.state = nil
	}
	return errors.Join(errs...)
}

// build makes the pod that a CreatePod asks for.
func (d *Daemon) build(app string, c application.CreatePod) (*corev1.Pod, error) {
	m, err := d.set.Find(keyOf(app))
	if err != nil {
		return nil, err
	}
	key := m.Key()
	return pod.Build(m.Definition().Pod, pod.Instance{
		Executor: c.Executor, Profile: c.Profile, Name: c.Name, Zone: c.Zone, Capacity: c.Capacity, Node: c.Node,
		Token: d.keys.Token(key.Namespace, key.ID, uint64(c.Executor), c.Name),
	})
}

// joined makes a new application known to those who act for it.
func (d *Daemon) joined(app runner.Key) {
	d.actuator.Admit(app.String(), app.Namespace)
	d.orphans.Claimed(app.Namespace, app.ID)
	for i, feed := range d.feeds {
		if d.cfg.Namespaces[i] == app.Namespace {
			feed.Refresh()
		}
	}
}

// left forgets an application that is gone.
func (d *Daemon) left(app runner.Key) { d.actuator.Dismiss(app.String()) }
