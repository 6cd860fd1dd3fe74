package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retinue-sched/retinue/daemon/cluster/local"
)

// The exit code of a process becomes its container's, and decides the pod's phase.
func TestExitCodes(t *testing.T) {
	w := newWorld(t, local.Options{})
	for name, c := range map[string]struct {
		text   string
		phase  corev1.PodPhase
		code   int32
		reason string
	}{
		"zero":    {"exit 0", corev1.PodSucceeded, 0, "Completed"},
		"seven":   {"exit 7", corev1.PodFailed, 7, "Error"},
		"killed":  {"kill -9 $$$$", corev1.PodFailed, 137, "Error"},
		"orphans": {"(sleep 600 &); setsid sleep 600 & exit 0", corev1.PodSucceeded, 0, "Completed"},
	} {
		w.create(script(name, c.text))
		pod := w.ended(name)
		end := terminated(t, pod)
		if pod.Status.Phase != c.phase || end.ExitCode != c.code || end.Reason != c.reason || end.StartedAt.IsZero() || end.FinishedAt.Before(&end.StartedAt) {
			t.Errorf("%s: %s, %+v; want %+v", name, pod.Status.Phase, end, c)
		}
	}
}

// A command that cannot be run fails its container as a container runtime reports it.
func TestStartError(t *testing.T) {
	w := newWorld(t, local.Options{})
	pod := script("nosuch", "")
	pod.Spec.Containers[0].Command = []string{"nosuch-program"}
	w.create(pod)
	got := w.ended("nosuch")
	end := terminated(t, got)
	if got.Status.Phase != corev1.PodFailed || end.ExitCode != 128 || end.Reason != "StartError" ||
		!strings.HasSuffix(end.Message, `exec: "nosuch-program": executable file not found in $PATH`) {
		t.Errorf("got %s, %+v", got.Status.Phase, end)
	}
}

// Variables come from values, from other variables, from the pod, from config maps; arguments may use them.
func TestEnvironment(t *testing.T) {
	t.Setenv("SECRET_OF_THE_TERMINAL", "x")
	w := newWorld(t, local.Options{})
	_, err := w.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"COLOUR": "red", "SIZE": "9"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := script("env", `echo "$A|$B|$NAME|$SPACE|$IP|$COLOUR|$CPU|$(hostname -f >/dev/null; echo $HOSTNAME)|$1|$SECRET_OF_THE_TERMINAL|$OPTIONAL"; echo $UID_ >&2`)
	c := &pod.Spec.Containers[0]
	c.Args = []string{"sh", "$(A)-$(NOSUCH)-$$(A)"}
	c.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1500m")}
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	yes := true
	c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
	c.Env = []corev1.EnvVar{
		{Name: "A", Value: "one"},
		{Name: "B", Value: "$(A) two $(C)"},
		{Name: "NAME", ValueFrom: field("metadata.name")},
		{Name: "SPACE", ValueFrom: field("metadata.namespace")},
		{Name: "UID_", ValueFrom: field("metadata.uid")},
		{Name: "IP", ValueFrom: field("status.podIP")},
		{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "requests.cpu"}}},
		{Name: "OPTIONAL", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "nosuch", Optional: &yes}}},
	}
	created := w.create(pod)
	w.ended("env")
	log := w.logs("env", &corev1.PodLogOptions{})
	want := "one|one two $(C)|env|default|127.0.0.1|red|2|env|one-$(NOSUCH)-$(A)||\n"
	if !strings.Contains(log, want) || !strings.Contains(log, string(created.UID)) {
		t.Errorf("got  %qwant %q and %s", log, want, created.UID)
	}
}

// A container waits for a config map that it needs, and says so.
func TestMissingConfigMap(t *testing.T) {
	w := newWorld(t, local.Options{})
	pod := script("needy", "true")
	pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "nosuch"}}}}
	w.create(pod)
	got := w.until("needy", "waiting for its config map", func(p *corev1.Pod) bool {
		return p != nil && len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Waiting != nil &&
			p.Status.ContainerStatuses[0].State.Waiting.Reason == "CreateContainerConfigError"
	})
	if msg := got.Status.ContainerStatuses[0].State.Waiting.Message; got.Status.Phase != corev1.PodPending || !strings.Contains(msg, `configmaps "nosuch" not found`) {
		t.Errorf("phase %s, message %q", got.Status.Phase, msg)
	}
}

// Volumes are folders that a variable names, shared by the containers of a pod and gone with it.
func TestVolumes(t *testing.T) {
	w := newWorld(t, local.Options{})
	pod := script("volumes", `cat "$RETINUE_MOUNT_SHARED_DIR/from-init" data/shared/from-init; pwd > "$RETINUE_MOUNT_SHARED_DIR/pwd"; cat data/shared/pwd`)
	pod.Spec.Volumes = []corev1.Volume{{Name: "shared-dir"}}
	mounts := []corev1.VolumeMount{{Name: "shared-dir", MountPath: "/data/shared"}}
	init := pod.Spec.Containers[0]
	init.Name, init.Command, init.VolumeMounts = "prepare", []string{"sh", "-c", `echo hello > data/shared/from-init`}, mounts
	pod.Spec.InitContainers = []corev1.Container{init}
	pod.Spec.Containers[0].VolumeMounts = mounts
	w.create(pod)
	if got := w.ended("volumes"); got.Status.Phase != corev1.PodSucceeded {
		t.Errorf("ended %s: %s", got.Status.Phase, w.logs("volumes", &corev1.PodLogOptions{}))
	}
	lines := strings.Split(w.logs("volumes", &corev1.PodLogOptions{}), "\n")
	if len(lines) != 4 || lines[0] != "hello" || lines[1] != "hello" || !strings.HasPrefix(lines[2], w.dir) {
		t.Fatalf("log %q", lines)
	}
	if err := w.CoreV1().Pods("default").Delete(t.Context(), "volumes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.gone("volumes")
	w.stop() // the folder is cleared away aside
	if left, err := os.ReadDir(filepath.Join(w.dir, "pods")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// An init container that fails fails the pod, and the containers after it never run.
func TestInitContainerFails(t *testing.T) {
	w := newWorld(t, local.Options{})
	pod := script("init", "touch "+filepath.Join(w.dir, "ran"))
	bad := pod.Spec.Containers[0]
	bad.Name, bad.Command = "prepare", []string{"sh", "-c", "exit 2"}
	pod.Spec.InitContainers = []corev1.Container{bad}
	w.create(pod)
	got := w.ended("init")
	if got.Status.Phase != corev1.PodFailed || got.Status.InitContainerStatuses[0].State.Terminated.ExitCode != 2 ||
		got.Status.ContainerStatuses[0].State.Waiting.Reason != "PodInitializing" {
		t.Errorf("got %+v", got.Status)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "ran")); err == nil {
		t.Error("the container ran")
	}
}

// A pod's last words are its termination message, or the end of its log when it fails and asks for that.
func TestTerminationMessage(t *testing.T) {
	w := newWorld(t, local.Options{})
	for name, c := range map[string]struct {
		text, want string
		policy     corev1.TerminationMessagePolicy
	}{
		"file":       {`printf "my words" > $RETINUE_TERMINATION_LOG; echo noise; exit 1`, "my words", corev1.TerminationMessageReadFile},
		"log":        {"echo first; echo last; exit 1", "first\nlast\n", corev1.TerminationMessageFallbackToLogsOnError},
		"log-unused": {"echo first; exit 0", "", corev1.TerminationMessageFallbackToLogsOnError},
		"none":       {"echo first; exit 1", "", corev1.TerminationMessageReadFile},
	} {
		pod := script(name, c.text)
		pod.Spec.Containers[0].TerminationMessagePolicy = c.policy
		w.create(pod)
		if got := terminated(t, w.ended(name)).Message; got != c.want {
			t.Errorf("%s: message %q, want %q", name, got, c.want)
		}
	}
}

// Logs can be asked for in part, and followed to their end.
func TestLogs(t *testing.T) {
	w := newWorld(t, local.Options{})
	w.create(script("talker", `for i in 1 2 3 4 5; do echo line $i; done`))
	w.ended("talker")
	n := func(n int64) *int64 { return &n }
	for want, opts := range map[string]corev1.PodLogOptions{
		"line 1\nline 2\nline 3\nline 4\nline 5\n": {},
		"line 4\nline 5\n":                         {TailLines: n(2)},
		"line 1\nli":                               {LimitBytes: n(9)},
		"":                                         {TailLines: n(0)},
	} {
		if got := w.logs("talker", &opts); got != want {
			t.Errorf("%+v: got %q, want %q", opts, got, want)
		}
	}
	stamp, rest, _ := strings.Cut(w.logs("talker", &corev1.PodLogOptions{Timestamps: true, TailLines: n(1)}), " ")
	if at, err := time.Parse(time.RFC3339Nano, stamp); err != nil || time.Since(at) > time.Minute || rest != "line 5\n" {
		t.Errorf("with time: %q %q, %v", stamp, rest, err)
	}
	gate := filepath.Join(t.TempDir(), "gate")
	w.create(script("slow", `echo before; while ! [ -e `+gate+` ]; do sleep 0.02; done; echo after`))
	w.running("slow")
	stream, err := w.CoreV1().Pods("default").GetLogs("slow", &corev1.PodLogOptions{Follow: true}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var got strings.Builder
	buffer := make([]byte, 100)
	for {
		read, end := stream.Read(buffer)
		got.Write(buffer[:read])
		if got.String() == "before\n" { // so it is followed, not read at the end
			if err = os.WriteFile(gate, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if end != nil {
			break
		}
	}
	if got.String() != "before\nafter\n" {
		t.Errorf("followed %q", got.String())
	}
	_, err = w.CoreV1().Pods("default").GetLogs("talker", &corev1.PodLogOptions{Container: "nosuch"}).Stream(t.Context())
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "container nosuch is not valid for pod talker") {
		t.Errorf("logs of an unknown container: %v", err)
	}
}

// What does not fit waits and says why, in a scheduler's words, and starts when there is room.
func TestUnschedulable(t *testing.T) {
	w := newWorld(t, local.Options{MaxPods: 2, CPU: resource.MustParse("2")})
	greedy := func(name, cpu string) *corev1.Pod {
		pod := script(name, "sleep 600")
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
		pod.Spec.TerminationGracePeriodSeconds = new(int64)
		return pod
	}
	w.create(greedy("first", "1500m"))
	w.running("first")
	w.create(greedy("second", "1"))
	refused := func(name string) string {
		pod := w.until(name, "refused", func(p *corev1.Pod) bool { return p != nil && len(p.Status.Conditions) > 0 })
		c := pod.Status.Conditions[0]
		return fmt.Sprintf("%s %s=%s %s: %s", pod.Status.Phase, c.Type, c.Status, c.Reason, c.Message)
	}
	want := "Pending PodScheduled=False Unschedulable: 0/1 nodes are available: 1 Insufficient cpu. " +
		"preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
	if diff := cmp.Diff(want, refused("second")); diff != "" {
		t.Errorf("second (-want +got):\n%s", diff)
	}
	w.create(greedy("third", "100m"))
	w.running("third")
	w.create(greedy("fourth", "100m"))
	if got := refused("fourth"); !strings.Contains(got, "0/1 nodes are available: 1 Too many pods.") {
		t.Errorf("fourth: %s", got)
	}
	if err := w.CoreV1().Pods("default").Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.running("second")
}

// OnFailure starts a container again until it succeeds; the run before is remembered.
func TestRestart(t *testing.T) {
	w := newWorld(t, local.Options{})
	mark := filepath.Join(t.TempDir(), "mark")
	pod := script("again", `if [ -e `+mark+` ]; then echo second; exit 0; fi; touch `+mark+`; echo first; exit 3`)
	pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	w.create(pod)
	got := w.ended("again")
	s := got.Status.ContainerStatuses[0]
	if got.Status.Phase != corev1.PodSucceeded || s.RestartCount != 1 || s.LastTerminationState.Terminated == nil || s.LastTerminationState.Terminated.ExitCode != 3 {
		t.Errorf("got %s, %+v", got.Status.Phase, s)
	}
	if now, before := w.logs("again", &corev1.PodLogOptions{}), w.logs("again", &corev1.PodLogOptions{Previous: true}); now != "second\n" || before != "first\n" {
		t.Errorf("logs %q, and of the run before %q", now, before)
	}
}

// A pod that is active for too long fails with DeadlineExceeded.
func TestActiveDeadline(t *testing.T) {
	w := newWorld(t, local.Options{})
	l := newLeash(t)
	pod := script("late", l.holders())
	one := int64(1)
	pod.Spec.ActiveDeadlineSeconds, pod.Spec.TerminationGracePeriodSeconds = &one, new(int64)
	w.create(pod)
	if got := w.ended("late"); got.Status.Phase != corev1.PodFailed || got.Status.Reason != "DeadlineExceeded" {
		t.Errorf("got %s %s", got.Status.Phase, got.Status.Reason)
	}
	await(t, "end of its processes", l.gone)
}

// A deleted pod's container gets SIGTERM and may take its time; the pod leaves the API when it has ended.
func TestGracefulDeletion(t *testing.T) {
	w := newWorld(t, local.Options{})
	trace := filepath.Join(t.TempDir(), "trace")
	l := newLeash(t)
	w.create(script("polite", `exec 9>`+l.path+`; trap 'echo terminated > `+trace+`; exit 0' TERM; echo up >&9; while :; do sleep 0.02; done`))
	await(t, "start", l.up)
	if err := w.CoreV1().Pods("default").Delete(t.Context(), "polite", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.gone("polite")
	if text, err := os.ReadFile(trace); err != nil || string(text) != "terminated\n" {
		t.Errorf("trace %q, %v: the container did not get SIGTERM before the pod was gone", text, err)
	}
}

// After the grace period everything of the pod is killed, what has escaped its group and session too, and not before.
func TestKillAfterGrace(t *testing.T) {
	w := newWorld(t, local.Options{})
	l := newLeash(t)
	w.create(script("deaf", l.holders()))
	await(t, "start", l.up)
	begin, grace := time.Now(), int64(1)
	if err := w.CoreV1().Pods("default").Delete(t.Context(), "deaf", metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
		t.Fatal(err)
	}
	pod, err := w.CoreV1().Pods("default").Get(t.Context(), "deaf", metav1.GetOptions{})
	if err != nil || pod.DeletionTimestamp == nil {
		t.Fatalf("while it ends: %v, %v", pod, err)
	}
	await(t, "end of its processes", l.gone)
	if took := time.Since(begin); took < time.Second {
		t.Errorf("killed after %v, want a grace of 1 s", took)
	}
	w.gone("deaf")
}

// A forced delete removes the pod at once and kills its processes.
func TestForcedDeletion(t *testing.T) {
	w := newWorld(t, local.Options{})
	l := newLeash(t)
	w.create(script("forced", l.holders()))
	await(t, "start", l.up)
	if err := w.CoreV1().Pods("default").Delete(t.Context(), "forced", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.CoreV1().Pods("default").Get(t.Context(), "forced", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after a forced delete: %v", err)
	}
	await(t, "end of its processes", l.gone)
}

// A pod that the local cluster cannot run is refused with the reason and what to do.
func TestAdmission(t *testing.T) {
	w := newWorld(t, local.Options{})
	for want, spoil := range map[string]func(*corev1.PodSpec){
		"spec.containers[0].command: Required value: the local cluster runs programs of this machine, not images: give the command": func(s *corev1.PodSpec) {
			s.Containers[0].Command = nil
		},
		`spec.volumes[0]: Forbidden: the local cluster cannot provide volume "v": use emptyDir, hostPath or configMap`: func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "x"}}}}
		},
	} {
		pod := script("bad", "true")
		spoil(&pod.Spec)
		_, err := w.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// A namespace takes its pods with it.
func TestNamespaceDeletion(t *testing.T) {
	w := newWorld(t, local.Options{})
	if _, err := w.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	l := newLeash(t)
	pod := script("p", l.holders())
	pod.Spec.TerminationGracePeriodSeconds = new(int64)
	if _, err := w.CoreV1().Pods("team").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "start", l.up)
	watcher, err := w.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=team"})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	if err := w.CoreV1().Namespaces().Delete(t.Context(), "team", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for event := range watcher.ResultChan() {
		if event.Type == "DELETED" {
			break
		}
	}
	await(t, "end of its processes", l.gone)
	if pods, err := w.CoreV1().Pods("team").List(t.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) != 0 {
		t.Errorf("left: %v, %v", pods, err)
	}
}
