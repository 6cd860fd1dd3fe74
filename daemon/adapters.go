package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/policy"
	"github.com/retinue-sched/retinue/daemon/runner"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/source"
	"github.com/retinue-sched/retinue/daemon/spec"
	"github.com/retinue-sched/retinue/hostabi"
)

// keyOf reads what runner.Key.String wrote. Neither part holds a slash.
func keyOf(app string) runner.Key {
	namespace, id, _ := strings.Cut(app, "/")
	return runner.Key{Namespace: namespace, ID: id}
}

// joined makes a new application known to those who act for it.
func (d *Daemon) joined(app runner.Key) {
	d.actuator.Admit(app.String(), app.Namespace)
	for i, feed := range d.feeds {
		if d.cfg.Namespaces[i] == app.Namespace {
			feed.Refresh()
		}
	}
}

// left forgets an application that is gone.
func (d *Daemon) left(app runner.Key) { d.actuator.Dismiss(app.String()) }

// intent is the token of an executor's creation: who made it, and which it is. A pod under the same name that does not carry it is not ours.
func (d *Daemon) intent(app string, id snapshot.ID) string {
	key := keyOf(app)
	sum := sha256.Sum256([]byte("intent\n" + d.keys.Token(key.Namespace, key.ID, uint64(id), "")))
	return hex.EncodeToString(sum[:8])
}

// sink gives what a namespace's feed sees to the applications of that namespace.
type sink struct {
	namespace string
	set       *runner.Set
}

// Observed passes one pod on.
func (s sink) Observed(app string, pod snapshot.Observation) {
	s.set.Post(runner.Key{Namespace: s.namespace, ID: app}, application.PodObserved{Pod: pod})
}

// Listed passes a list on to every application, also to those that have no pod in it.
func (s sink) Listed(l source.Listing) {
	for _, m := range s.set.All(s.namespace) {
		m.Post(application.PodsListed{Version: l.Version, Pods: l.Of(m.Key().ID)})
	}
}

// deciders lets applications ask the policy host.
type deciders struct{ host *policy.Host }

// Ask asks the application's policy.
func (d deciders) Ask(ctx context.Context, app runner.Key, hook hostabi.Hook, q runner.Question) runner.Answer {
	return answer(d.host.Ask(ctx, app.String(), hook, q))
}

// AskBuiltin asks the built-in policy.
func (d deciders) AskBuiltin(ctx context.Context, hook hostabi.Hook, q runner.Question) runner.Answer {
	return answer(d.host.Builtin(ctx, hook, q))
}

func answer(a policy.Answer) runner.Answer {
	return runner.Answer{Decision: a.Decision, Policy: a.Policy, By: a.By, Fault: a.Fault}
}

// bindings lets the driver bind policies.
type bindings struct{ *policy.Host }

func binding(b spec.Binding) policy.Binding {
	return policy.Binding{Policy: b.Policy, Settings: b.Settings}
}

// Bind lets a policy decide for an application.
func (b bindings) Bind(ctx context.Context, app runner.Key, to spec.Binding) (policy.Module, string, error) {
	return b.Host.Bind(ctx, app.String(), binding(to))
}

// SetDefault lets a policy decide for applications without a binding.
func (b bindings) SetDefault(ctx context.Context, to spec.Binding) (policy.Module, string, error) {
	return b.Host.SetDefault(ctx, binding(to))
}

// Rollback goes back to the generation before.
func (b bindings) Rollback(ctx context.Context, app runner.Key) (policy.Module, string, error) {
	return b.Host.Rollback(ctx, app.String())
}

// Bound is what decides for an application.
func (b bindings) Bound(app runner.Key) policy.Module { return b.Host.Bound(app.String()) }

// Forget drops an application's binding.
func (b bindings) Forget(app runner.Key) { b.Host.Release(app.String()) }

// listenUnix opens a Unix socket that only its owner can use. A socket that a dead daemon left is replaced, one that answers is not.
func listenUnix(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of listen.socket: %w", err)
	}
	conn, err := net.Dial("unix", path)
	switch {
	case err == nil:
		_ = conn.Close()
		return nil, fmt.Errorf("listening on listen.socket %s: another program answers there: stop it, or choose another path", path)
	case errors.Is(err, syscall.ECONNREFUSED):
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("removing the socket %s that a dead daemon left: %w", path, err)
		}
	}
	// The mode must be right from the first moment, and the process's umask belongs to everybody: so the socket is made under a name that
	// nobody knows, given its mode, and then moved to its place.
	temp := filepath.Join(filepath.Dir(path), fmt.Sprintf(".s%d", os.Getpid()))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temp, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listening on listen.socket %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(temp, 0o600), os.Rename(temp, path)); err != nil {
		return nil, errors.Join(fmt.Errorf("listening on listen.socket %s: %w", path, err), l.Close(), os.Remove(temp))
	}
	return &socket{UnixListener: l, path: path}, nil
}

// socket is a Unix socket that was moved to its place.
type socket struct {
	*net.UnixListener
	path string
}

// Addr is where clients find it.
func (s *socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// Close also removes the socket's name.
func (s *socket) Close() error {
	err := s.UnixListener.Close()
	if err == nil {
		_ = os.Remove(s.path)
	}
	return err
}
