package local

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/version"

	"github.com/retinue-sched/retinue/daemon/cluster/local/kubelet"
	"github.com/retinue-sched/retinue/daemon/cluster/local/store"
	"github.com/retinue-sched/retinue/daemon/cluster/local/wire"
	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

// apiVersion is the release of Kubernetes whose answers the model gives.
const apiVersion = "v1.37.2"

// lastAnswers is how long requests that are being answered may take when the cluster ends.
const lastAnswers = 250 * time.Millisecond

// Serve runs a local cluster in this process until ctx is done; then it ends all pods and returns nil. ErrRunning is
// wrapped in its error when another cluster has the folder.
func Serve(ctx context.Context, o Options) error {
	o, err := o.complete()
	if err != nil {
		return fmt.Errorf("starting a local cluster: %w", err)
	}
	c := &cluster{options: o, at: places(o.Dir)}
	defer c.close()
	if err := c.open(ctx); err != nil {
		return fmt.Errorf("starting a local cluster in %s: %w", o.Dir, err)
	}
	if err := c.run(ctx); !errors.Is(err, context.Cause(ctx)) {
		return fmt.Errorf("running the local cluster in %s: %w", o.Dir, err)
	}
	return nil
}

// cluster is a local cluster in this process.
type cluster struct {
	options  Options
	at       places
	started  time.Time
	lock     *lock // one cluster in a folder
	fence    *lock // shared with every guard: free when nothing of any pod is left
	access   access
	listener net.Listener
}

func (c *cluster) close() {
	if c.listener != nil {
		c.listener.Close()
	}
	for _, l := range []*lock{c.fence, c.lock} {
		if l != nil {
			l.release()
		}
	}
}

// open takes the folder, waits until nothing of a killed predecessor is left, and opens the door.
func (c *cluster) open(ctx context.Context) (err error) {
	if err = os.MkdirAll(c.options.Dir, 0o700); err != nil {
		return err
	}
	if c.lock, err = takeLock(ctx, c.at.lock()); err != nil {
		return err
	}
	if c.lock == nil {
		return c.taken()
	}
	before, err := c.at.readFacts()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.options.Log.LogAttrs(ctx, slog.LevelWarn, "facts of the last cluster lost", slog.Any("error", err))
	}
	// At once, so that nobody takes the process of the last cluster for this one.
	if err = c.at.writeFacts(facts{PID: os.Getpid(), Port: before.Port}); err != nil {
		return err
	}
	if c.fence, err = waitLock(ctx, c.at.fence()); err != nil {
		return fmt.Errorf("waiting for the processes of an earlier cluster to end: %w", err)
	}
	c.started = time.Now()
	if c.access, err = openAccess(c.at.pki(), c.started); err != nil {
		return err
	}
	if c.listener, err = c.listen(ctx); err != nil {
		return err
	}
	return c.announce()
}

func (c *cluster) taken() error {
	holder := "another process"
	if f, err := c.at.readFacts(); err == nil {
		holder = fmt.Sprintf("process %d", f.PID)
	}
	return fmt.Errorf("%w (%s): use it, end it with `retinue local down`, or choose another folder with --dir", ErrRunning, holder)
}

// listen takes the port that was asked for, or else the one from last time, or else any.
func (c *cluster) listen(ctx context.Context) (net.Listener, error) {
	var conf net.ListenConfig
	on := func(port int) (net.Listener, error) {
		return conf.Listen(ctx, "tcp", net.JoinHostPort(kubelet.Address, strconv.Itoa(port)))
	}
	if c.options.Port != 0 {
		l, err := on(c.options.Port)
		if err != nil {
			return nil, fmt.Errorf("opening port %d: %w: choose another one, or none, with --port", c.options.Port, err)
		}
		return l, nil
	}
	if f, err := c.at.readFacts(); err == nil && f.Port > 0 {
		if l, err := on(f.Port); err == nil {
			return l, nil
		}
	}
	return on(0)
}

// announce writes down where the cluster is.
func (c *cluster) announce() error {
	f := facts{PID: os.Getpid(), Port: c.listener.Addr().(*net.TCPAddr).Port, Started: c.started}
	text, err := c.access.kubeconfig(f.url())
	if err != nil {
		return err
	}
	return errors.Join(c.at.writeFacts(f), writeFile(c.at.kubeconfig(), text))
}

func (f facts) url() string {
	return "https://" + net.JoinHostPort(kubelet.Address, strconv.Itoa(f.Port))
}

// run serves until ctx is done or a part fails. The pods end before the API does, so that clients see them end.
func (c *cluster) run(ctx context.Context) error {
	st := store.New(model.New(c.started, model.Config{
		Seed:         rand.Uint64(),
		FirstVersion: uint64(c.started.UnixMilli()), // above what an earlier cluster in this folder has told its clients
		Window:       c.options.Window,
		Admit:        kubelet.Admit,
	}))
	node := kubelet.New(st, kubelet.Config{
		Node: NodeName, Version: apiVersion, Executable: c.options.Executable, Dir: c.at.pods(), Fence: c.fence.file,
		MaxPods: c.options.MaxPods, CPU: c.options.CPU, Memory: c.options.Memory,
		LogBytes: c.options.LogBytes, StopGrace: c.options.StopGrace, Log: c.options.Log,
	})
	done := make(chan struct{})
	handler, err := wire.New(st, wire.Config{
		Token: c.access.token, Version: versionInfo(), Logs: node, Done: done, Log: c.options.Log,
	})
	if err != nil {
		return err
	}
	partsCtx, end := context.WithCancelCause(ctx)
	var parts sync.WaitGroup
	start := func(run func(context.Context) error) { parts.Go(func() { end(run(partsCtx)) }) } // the first to end, ends all
	server := c.server(handler)
	serving := make(chan error, 1)
	go func() { serving <- server.ServeTLS(c.listener, "", "") }()
	start(node.Run)
	start((&namespaces{store: st}).run)
	start(func(ctx context.Context) error {
		select {
		case failure := <-serving:
			return fmt.Errorf("serving the API: %w", failure)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	c.options.Log.LogAttrs(ctx, slog.LevelInfo, "local cluster ready", slog.String("address", c.listener.Addr().String()))
	if c.options.Ready != nil {
		c.options.Ready(c.status())
	}
	parts.Wait()
	err = context.Cause(partsCtx)
	close(done)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
	defer cancel()
	if server.Shutdown(closing) != nil {
		server.Close()
	}
	c.options.Log.LogAttrs(ctx, slog.LevelInfo, "local cluster ended", slog.Any("cause", err))
	return err
}

func (c *cluster) server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{c.access.certificate}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(c.options.Log.Handler(), slog.LevelDebug),
	}
}

func versionInfo() version.Info {
	return version.Info{
		Major: "1", Minor: "37", GitVersion: apiVersion + "+retinue", GitTreeState: "clean",
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}
