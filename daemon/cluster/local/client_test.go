package local_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/retinue-sched/retinue/daemon/cluster/local"
)

var (
	everything = metav1.ListOptions{}
	create     = metav1.CreateOptions{}
)

func podOf(t testing.TB, obj runtime.Object) *corev1.Pod {
	t.Helper()
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		t.Fatalf("not a pod: %v", obj)
	}
	return pod
}

// idle is a pod that no scheduler here takes: it never runs.
func idle(name string) *corev1.Pod {
	pod := script(name, "true")
	pod.Spec.SchedulerName = "nobody"
	return pod
}

// An informer of client-go lists, watches and, after an outage in which the history has moved on, finds its way back to
// what there is.
func TestInformerSurvivesExpiry(t *testing.T) {
	w := newWorld(t, local.Options{Window: 20})
	var network outage
	config := rest.CopyConfig(w.config)
	config.Wrap(network.wrap)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods()
	seen := make(chan string, 1000)
	_, err = informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { seen <- "+" + obj.(*corev1.Pod).Name },
		DeleteFunc: func(any) { seen <- "-" },
	})
	if err != nil {
		t.Fatal(err)
	}
	w.create(idle("first"))
	factory.Start(t.Context().Done())
	await(t, "first pod", seen)
	w.create(idle("second"))
	await(t, "second pod", seen)
	network.begin()
	for i := range 30 { // more than the window holds, while the informer hears nothing
		w.create(idle(fmt.Sprintf("later-%d", i)))
	}
	lists := network.lists.Load()
	network.end()
	for range 30 {
		await(t, "later pods", seen)
	}
	list, err := informer.Lister().List(labels.Everything())
	if err != nil || len(list) != 32 {
		t.Errorf("the informer knows %d pods, %v; want 32", len(list), err)
	}
	if network.lists.Load() == lists {
		t.Error("the informer did not list again: the history was not too short for it")
	}
}

// A watch says that it has fallen behind with 410 Expired; one from the list's version goes on.
func TestWatchExpires(t *testing.T) {
	w := newWorld(t, local.Options{Window: 5})
	first, err := w.CoreV1().Pods("default").List(t.Context(), everything)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		w.create(idle(fmt.Sprintf("p%d", i)))
	}
	watcher, err := w.CoreV1().Pods("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: first.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	event := <-watcher.ResultChan()
	if event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
		t.Errorf("got %s %v, want ERROR 410 Expired", event.Type, event.Object)
	}
}

// A watch ends when its client wants it to, with a bookmark of how far it came.
func TestWatchTimeoutAndBookmark(t *testing.T) {
	w := newWorld(t, local.Options{})
	one := int64(1)
	list, err := w.CoreV1().Pods("default").List(t.Context(), everything)
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := w.CoreV1().Pods("default").Watch(t.Context(), metav1.ListOptions{
		ResourceVersion: list.ResourceVersion, TimeoutSeconds: &one, AllowWatchBookmarks: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	var got []string
	for event := range watcher.ResultChan() {
		got = append(got, string(event.Type))
	}
	if took := time.Since(begin); len(got) == 0 || slices.ContainsFunc(got, func(s string) bool { return s != "BOOKMARK" }) || took > 20*time.Second {
		t.Errorf("got %v after %v, want bookmarks and the end after 1 s", got, took)
	}
}

// Writes behave through client-go as they do in the model: create, patch, status, conflict, delete with preconditions.
func TestWrites(t *testing.T) {
	w := newWorld(t, local.Options{})
	pods := w.CoreV1().Pods("default")
	made := w.create(idle("p"))
	if _, err := pods.Create(t.Context(), idle("p"), create); !apierrors.IsAlreadyExists(err) {
		t.Errorf("again: %v", err)
	}
	patched, err := pods.Patch(t.Context(), "p", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	if err != nil || patched.Labels["a"] != "b" {
		t.Errorf("patch: %v, %v", patched, err)
	}
	if _, err = pods.Update(t.Context(), made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update from an old state: %v", err)
	}
	patched.Status.Phase = corev1.PodRunning
	if patched, err = pods.UpdateStatus(t.Context(), patched, metav1.UpdateOptions{}); err != nil || patched.Status.Phase != corev1.PodRunning {
		t.Errorf("status: %v, %v", patched, err)
	}
	wrong := types.UID("wrong")
	err = pods.Delete(t.Context(), "p", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
	if !apierrors.IsConflict(err) {
		t.Errorf("delete of another incarnation: %v", err)
	}
	if err = pods.Delete(t.Context(), "p", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &made.UID}}); err != nil {
		t.Errorf("delete: %v", err)
	}
	if err = pods.Delete(t.Context(), "p", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("delete of nothing: %v", err)
	}
	w.create(idle("q"))
	if err = pods.DeleteCollection(t.Context(), metav1.DeleteOptions{}, everything); err != nil {
		t.Errorf("delete all: %v", err)
	}
}

// A client that prefers protobuf is understood, and answered in JSON.
func TestProtobufClient(t *testing.T) {
	w := newWorld(t, local.Options{})
	config := rest.CopyConfig(w.config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	pod, err := client.CoreV1().Pods("default").Create(t.Context(), idle("p"), create)
	if err != nil || pod.UID == "" {
		t.Fatalf("create: %v, %v", pod, err)
	}
	if err := client.CoreV1().Pods("default").Delete(t.Context(), "p", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}}); err != nil {
		t.Errorf("delete: %v", err)
	}
}

// Without the token nothing is shown but health and version.
func TestUnauthorized(t *testing.T) {
	w := newWorld(t, local.Options{})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // only who answers is in question
	defer client.CloseIdleConnections()
	for path, want := range map[string]int{
		"/healthz": 200, "/livez": 200, "/readyz": 200, "/version": 200,
		"/api/v1/pods": 401, "/api": 401, "/api/v1/namespaces/default/pods/p/log": 401, "/": 401,
	} {
		for _, token := range []string{"", "Bearer wrong", "Basic eDp5"} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.config.Host+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if token != "" {
				request.Header.Set("Authorization", token)
			}
			answer, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			var status metav1.Status
			if err := json.NewDecoder(answer.Body).Decode(&status); want == 401 && (err != nil || status.Reason != metav1.StatusReasonUnauthorized) {
				t.Errorf("%s: %v, %+v", path, err, status)
			}
			answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("%s with %q: %d, want %d", path, token, answer.StatusCode, want)
			}
		}
	}
}

// kubectl works as a user expects.
func TestKubectl(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("no kubectl on this machine")
	}
	w := newWorld(t, local.Options{})
	file := filepath.Join(t.TempDir(), "pod.yaml")
	manifest := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  restartPolicy: Never\n" +
		"  containers: [{name: main, image: local, command: [sh, -c, 'echo hello']}]\n"
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte(strings.Replace(manifest, "restartPolicy", "restartPolice", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  string
		wants []string
	}{
		{"apply -f " + file, []string{"pod/p created"}},
		{"apply -f " + bad, []string{`unknown field "spec.restartPolice"`}},
		{"wait --for=jsonpath={.status.phase}=Succeeded pod/p --timeout=30s", []string{"condition met"}},
		{"get pods", []string{"NAME", "READY", "STATUS", "RESTARTS", "AGE", "p ", "0/1", "Completed"}},
		{"get pods -o wide", []string{"NODE", "127.0.0.1", "local"}},
		{"get pod p -o yaml", []string{"phase: Succeeded", "kind: Pod", "exitCode: 0"}},
		{"get pods -o name", []string{"pod/p"}},
		{"get all", []string{"pod/p"}},
		{"describe pod p", []string{"Exit Code:    0", "Scheduled", "Successfully assigned default/p to local", "Started container main"}},
		{"logs p", []string{"hello"}},
		{"get events", []string{"LAST SEEN", "pod/p"}},
		{"get nodes", []string{"local", "Ready"}},
		{"get pods -l a=b", []string{"No resources found"}},
		{"get pods --watch --output-watch-events --request-timeout=1s", []string{"EVENT", "ADDED", "Completed"}},
		{"label pod p a=b", []string{"pod/p labeled"}},
		{"delete pod p", []string{`pod "p" deleted`}},
		{"get pod p", []string{`pods "p" not found`}},
		{"create configmap c --from-literal=a=b", []string{"configmap/c created"}},
		{"version", []string{"Server Version: v1.37"}},
		{"api-resources", []string{"pods", "po", "true", "Pod"}},
	} {
		cmd := exec.CommandContext(bounded(t), "kubectl", strings.Fields(c.args)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(w.dir, "kubeconfig"), "HOME="+w.dir)
		out, err := cmd.CombinedOutput()
		for _, want := range c.wants {
			if !strings.Contains(string(out), want) {
				t.Errorf("kubectl %s: no %q in\n%s(%v)", c.args, want, out, err)
			}
		}
	}
}
