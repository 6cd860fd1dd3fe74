package daemon_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon"
	"github.com/retinue-sched/retinue/daemon/cluster"
	"github.com/retinue-sched/retinue/daemon/cluster/kube"
	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/sdk/client"
)

// running is a daemon at work, and a client of it.
type running struct {
	*client.Client
	cfg   daemon.Config
	stop  func()
	ended chan error
}

// run starts a daemon, and ends it with the test.
func run(t *testing.T, cfg daemon.Config) *running {
	t.Helper()
	d, err := daemon.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Config{Address: "unix://" + cfg.Listen.Socket})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{Client: c, cfg: cfg, ended: make(chan error, 1)}
	go func() { r.ended <- d.Run(ctx) }()
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-r.ended; err != nil {
			t.Errorf("the daemon ended with %v", err)
		}
		_ = c.Close()
	}
	t.Cleanup(r.stop)
	becomesReady(t, cfg.Telemetry.Address, r.ended)
	return r
}

// apply has two executors kept for application twin.
func (r *running) apply(t *testing.T) {
	t.Helper()
	_, err := r.Applications.ApplyApplication(t.Context(), &apiv1.ApplyApplicationRequest{Spec: &apiv1.ApplicationSpec{
		Id: "twin", Profiles: []*apiv1.ProfileSpec{{Target: 2, Max: 8}},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// status is how application twin is.
func (r *running) status(t *testing.T) *apiv1.ApplicationStatus {
	t.Helper()
	got, err := r.Applications.GetApplication(t.Context(), &apiv1.GetApplicationRequest{Application: "twin"})
	if err != nil {
		t.Fatal(err)
	}
	return got.GetApplication().GetStatus()
}

// foreign is what the condition of twin says of pods that are not this daemon's, empty if there are none.
func (r *running) foreign(t *testing.T) string {
	t.Helper()
	for _, c := range r.status(t).GetConditions() {
		if c.GetType() == "ForeignPods" && c.GetStatus() {
			return c.GetMessage()
		}
	}
	return ""
}

// onlooker sees all pods of the cluster, whosever they are.
type onlooker struct{ *kube.Cluster }

func lookAt(t *testing.T, kubeconfig string) onlooker {
	t.Helper()
	cfg := kube.DefaultConfig()
	cfg.Kubeconfig = kubeconfig
	reach, err := kube.Connect(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return onlooker{reach}
}

// names lists the pods that are there.
func (o onlooker) names(t *testing.T) []string {
	t.Helper()
	var out []string
	_, err := o.List(t.Context(), cluster.Query{Namespace: "default"}, func(p *corev1.Pod) {
		if p.DeletionTimestamp == nil {
			out = append(out, p.Name)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// eventually waits until what is told about the world is what is wanted.
func eventually(t *testing.T, want string, tell func() string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(time.Minute)
	for {
		got := tell()
		if got == want {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("it is %s, want %s", got, want)
		}
	}
}

func (o onlooker) become(t *testing.T, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprint(want), func() string { return fmt.Sprint(o.names(t)) })
}

// Two daemons keep an application of the same name in one namespace. Each has its own executors, sees the other's as foreign, and leaves them alone,
// also when it ends its own.
func TestTwoDaemons(t *testing.T) {
	kubeconfig, end := kubernetes(t)
	t.Cleanup(end)
	all := lookAt(t, kubeconfig)
	one, two := run(t, settings(t, kubeconfig)), run(t, settings(t, kubeconfig))
	one.apply(t)
	all.become(t, "twin-i1-exec-1", "twin-i1-exec-2")
	eventually(t, "[2]", func() string { return foreignPods(t, two) })
	two.apply(t)
	all.become(t, "twin-i1-exec-1", "twin-i1-exec-2", "twin-i2-exec-1", "twin-i2-exec-2")
	eventually(t, "[2]", func() string { return foreignPods(t, one) })
	for name, r := range map[string]*running{"twin-i2-exec-1": one, "twin-i1-exec-1": two} {
		eventually(t, "true", func() string { return fmt.Sprint(strings.Contains(r.foreign(t), name)) })
		if p := r.status(t).GetProfiles()[0]; p.GetRequested()+p.GetPending() != 2 || p.GetTerminating() != 0 {
			t.Errorf("executors: %v", p)
		}
	}
	if _, err := two.Applications.DeleteApplication(t.Context(), &apiv1.DeleteApplicationRequest{Application: "twin"}); err != nil {
		t.Fatal(err)
	}
	all.become(t, "twin-i1-exec-1", "twin-i1-exec-2")
	eventually(t, "", func() string { return one.foreign(t) })
}

// foreignPods is what the gauge of foreign pods says.
func foreignPods(t *testing.T, r *running) string { return gauge(t, r, "retinue_pods_foreign") }

// gauge is the values of a gauge.
func gauge(t *testing.T, r *running, name string) string {
	t.Helper()
	_, body := get(t, "http://"+r.cfg.Telemetry.Address+"/metrics")
	var values []string
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, name) {
			values = append(values, line[strings.LastIndexByte(line, ' ')+1:len(line)-1])
		}
	}
	return fmt.Sprint(values)
}

// The state folder is lost. The application that is applied again has its executors at once; those of before are named, left alone, and not waited for.
func TestStateFolderIsLost(t *testing.T) {
	kubeconfig, end := kubernetes(t)
	t.Cleanup(end)
	all := lookAt(t, kubeconfig)
	cfg := settings(t, kubeconfig)
	before := run(t, cfg)
	before.apply(t)
	all.become(t, "twin-i1-exec-1", "twin-i1-exec-2")
	before.stop()
	if err := os.RemoveAll(cfg.State); err != nil {
		t.Fatal(err)
	}
	after := run(t, cfg)
	after.apply(t)
	all.become(t, "twin-i1-exec-1", "twin-i1-exec-2", "twin-i2-exec-1", "twin-i2-exec-2")
	text := after.foreign(t)
	if !strings.Contains(text, "twin-i1-exec-1, twin-i1-exec-2") || !strings.Contains(text, "from before its state folder was lost") {
		t.Errorf("the condition says %q", text)
	}
	for _, c := range after.status(t).GetConditions() {
		if c.GetReason() == "Settled" {
			t.Errorf("two executors are wanted and not there, and yet: %v", c)
		}
	}
}

// The daemon starts again and nobody applies the application any more. Its pods are counted, and deleted when the timeout is over; those of others
// with the same labels stay.
func TestOrphansAreDeleted(t *testing.T) {
	kubeconfig, end := kubernetes(t)
	t.Cleanup(end)
	all := lookAt(t, kubeconfig)
	cfg := settings(t, kubeconfig)
	before := run(t, cfg)
	before.apply(t)
	all.become(t, "twin-i1-exec-1", "twin-i1-exec-2")
	before.stop()
	for name, label := range map[string]string{"theirs": "0123456789abcdef", "unmarked": "", "imitation": ours(t, all)} {
		p, err := all.Read(t.Context(), "default", "twin-i1-exec-1")
		if err != nil {
			t.Fatal(err)
		}
		p.Name, p.UID, p.ResourceVersion, p.Labels[pod.LabelOwner] = name, "", "", label
		if label == "" {
			delete(p.Labels, pod.LabelOwner)
		}
		if _, err := all.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	again := run(t, cfg) // ten minutes are long: nothing is deleted
	eventually(t, "[2] [3]", func() string { return gauge(t, again, "retinue_pods_orphaned") + " " + foreignPods(t, again) })
	again.stop()
	all.become(t, "imitation", "theirs", "twin-i1-exec-1", "twin-i1-exec-2", "unmarked")
	cfg.Executors.OrphanTimeout = time.Millisecond
	hasty := run(t, cfg)
	all.become(t, "imitation", "theirs", "unmarked")
	eventually(t, "[0] [3]", func() string { return gauge(t, hasty, "retinue_pods_orphaned") + " " + foreignPods(t, hasty) })
}

// ours is the label of the daemon that made the pods.
func ours(t *testing.T, all onlooker) string {
	t.Helper()
	p, err := all.Read(t.Context(), "default", "twin-i1-exec-1")
	if err != nil {
		t.Fatal(err)
	}
	return p.Labels[pod.LabelOwner]
}
