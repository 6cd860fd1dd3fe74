package kube_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/version"

	"github.com/retinue-sched/retinue/daemon/cluster"
	"github.com/retinue-sched/retinue/daemon/cluster/kube"
	"github.com/retinue-sched/retinue/daemon/cluster/local/store"
	"github.com/retinue-sched/retinue/daemon/cluster/local/wire"
	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

// logReader writes a log for any pod.
type logReader struct{}

func (logReader) Logs(_ context.Context, p *corev1.Pod, opts corev1.PodLogOptions, out io.Writer) error {
	_, err := fmt.Fprintf(out, "%s tail=%d follow=%v\n", p.Name, *opts.TailLines, opts.Follow)
	return err
}

// server is an API server in memory behind the real wire protocol.
func server(t *testing.T) (*httptest.Server, *store.Store) {
	t.Helper()
	st := store.New(model.New(time.Now(), model.Config{Seed: 1}))
	done := make(chan struct{})
	handler, err := wire.New(st, wire.Config{
		Token: "token", Version: version.Info{GitVersion: "v1.37.0-test"}, Logs: logReader{}, Done: done,
		BookmarkEvery: 50 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewTLSServer(handler)
	t.Cleanup(func() {
		close(done)
		ts.Close()
	})
	return ts, st
}

// kubeconfig writes one for a server and returns its path.
func kubeconfig(t *testing.T, ts *httptest.Server, token string) string {
	t.Helper()
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ts.Certificate().Raw}))
	text := fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: here
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: u, user: {token: %q}}]
contexts: [{name: here, context: {cluster: c, user: u, namespace: default}}, {name: there, context: {cluster: c, user: u, namespace: kube-system}}]
`, ts.URL, ca, token)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func connect(t *testing.T, ts *httptest.Server, tune func(*kube.Config)) *kube.Cluster {
	t.Helper()
	cfg := kube.DefaultConfig()
	cfg.Kubeconfig = kubeconfig(t, ts, "token")
	if tune != nil {
		tune(&cfg)
	}
	c, err := kube.Connect(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func simple(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": name[:1]}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

func classIs(t *testing.T, what string, err error, want cluster.Class) {
	t.Helper()
	if got := cluster.ClassOf(err); got != want {
		t.Errorf("%s: error %v is of class %v, want %v", what, err, got, want)
	}
}

func TestPodsOverTheWire(t *testing.T) {
	ts, _ := server(t)
	c := connect(t, ts, func(c *kube.Config) { c.PageSize = 2 })
	ctx := t.Context()
	var last *corev1.Pod
	for _, name := range []string{"a1", "a2", "a3", "a4", "a5", "b1"} {
		made, err := c.Create(ctx, simple(name))
		if err != nil {
			t.Fatal(err)
		}
		if made.UID == "" || made.ResourceVersion == "" {
			t.Errorf("made %+v, want an identity", made.ObjectMeta)
		}
		last = made
	}
	_, err := c.Create(ctx, simple("a1"))
	classIs(t, "creating again", err, cluster.Exists)
	bad := simple("a6")
	bad.Spec.Containers[0].Name = "Not A Name"
	_, err = c.Create(ctx, bad)
	classIs(t, "creating what is not valid", err, cluster.Invalid)

	var names []string
	v, err := c.List(ctx, cluster.Query{Namespace: "default", Selector: "app=a"}, func(p *corev1.Pod) { names = append(names, p.Name) })
	if err != nil || v == "" {
		t.Errorf("list: version %q, error %v", v, err)
	}
	if diff := cmp.Diff([]string{"a1", "a2", "a3", "a4", "a5"}, names); diff != "" {
		t.Errorf("pages differ (-want +got):\n%s", diff)
	}
	p, err := c.Read(ctx, "default", "b1")
	if err != nil || p.UID != last.UID {
		t.Errorf("read %v, %v", p, err)
	}
	_, err = c.Read(ctx, "default", "nobody")
	classIs(t, "reading nobody", err, cluster.NotFound)

	gone := cluster.Deletion{Namespace: "default", Name: "b1", UID: "other", Grace: -1}
	classIs(t, "deleting another life", c.Delete(ctx, gone), cluster.Conflict)
	gone.UID, gone.Version = string(last.UID), "1"
	classIs(t, "deleting another version", c.Delete(ctx, gone), cluster.Conflict)
	gone.Version = last.ResourceVersion
	classIs(t, "deleting", c.Delete(ctx, gone), cluster.None)
	classIs(t, "deleting again", c.Delete(ctx, gone), cluster.NotFound)

	log, err := c.Logs(ctx, cluster.LogQuery{Namespace: "default", Name: "a1", Tail: 5})
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(log)
	if closed := log.Close(); err != nil || closed != nil || string(text) != "a1 tail=5 follow=false\n" {
		t.Errorf("log %q, %v, %v", text, err, closed)
	}
	if v, err := c.Version(ctx); err != nil || v != "v1.37.0-test" {
		t.Errorf("version %q, %v", v, err)
	}
}

func TestWatchOverTheWire(t *testing.T) {
	ts, st := server(t)
	c := connect(t, ts, nil)
	q := cluster.Query{Namespace: "default", Selector: "app=a"}
	from, err := c.List(t.Context(), q, func(*corev1.Pod) {})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := c.Watch(t.Context(), q, from)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for _, name := range []string{"a1", "b1", "a2"} {
		_, err = c.Create(t.Context(), simple(name))
		classIs(t, "creating "+name, err, cluster.None)
	}
	classIs(t, "deleting", c.Delete(t.Context(), cluster.Deletion{Namespace: "default", Name: "a1", Grace: 0}), cluster.None)
	var seen []string
	bookmarks := 0
	for deleted := false; !deleted || bookmarks == 0; {
		ev, broken := stream.Next(t.Context())
		if broken != nil {
			t.Fatal(broken)
		}
		if ev.Version == "" {
			t.Errorf("event %+v has no version", ev)
		}
		if ev.Kind == cluster.Bookmark {
			bookmarks++
			continue
		}
		deleted = ev.Kind == cluster.Deleted
		seen = append(seen, fmt.Sprint(ev.Kind, ev.Pod.Name))
	}
	if seen[0] != "1a1" || !slices.Contains(seen, "1a2") || seen[len(seen)-1] != "2a1" || slices.Contains(seen, "1b1") {
		t.Errorf("events = %v", seen)
	}

	st.Do(func(_ time.Time, m *model.Server) { m.Compact(m.Version()) })
	old, err := c.Watch(t.Context(), q, from)
	if err == nil {
		defer old.Close()
		_, err = old.Next(t.Context())
	}
	classIs(t, "watching from a version that is gone", err, cluster.Gone)

	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("told to")
	cancel(why)
	if _, err := stream.Next(ctx); err == nil {
		t.Error("Next goes on without its context")
	}
}

// A watch that the server ends in time has ended; one that is cut off is broken.
func TestWatchEnds(t *testing.T) {
	ts, _ := server(t)
	c := connect(t, ts, func(c *kube.Config) { c.WatchTimeout = time.Second })
	open := func() cluster.Stream {
		s, err := c.Watch(t.Context(), cluster.Query{Namespace: "default"}, "")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	end := func(s cluster.Stream) error {
		for {
			if _, err := s.Next(t.Context()); err != nil {
				return err
			}
		}
	}
	s := open()
	if err := end(s); !errors.Is(err, cluster.ErrEnded) {
		t.Errorf("a watch that lived its time ended with %v", err)
	}
	s.Close()
	s = open()
	ts.CloseClientConnections()
	if err := end(s); err == nil || errors.Is(err, cluster.ErrEnded) {
		t.Errorf("a watch that was cut off ended with %v", err)
	}
	s.Close()
}

// What a server does wrong is sorted, and asked for once.
func TestErrorsOverTheWire(t *testing.T) {
	var calls atomic.Int64
	respond := func(code int, header, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if header != "" {
				w.Header().Set("Retry-After", header)
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, text)
		}
	}
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    cluster.Class
		after   time.Duration
	}{
		{"throttled by priority and fairness", respond(429, "7", "Too many requests, please try again later."), cluster.Throttled, 7 * time.Second},
		{"unauthorized", respond(401, "", "Unauthorized"), cluster.Forbidden, 0},
		{"internal error", respond(500, "1", "boom"), cluster.Unknown, 0},
		{"a proxy's gateway timeout", respond(504, "", "<html>"), cluster.Unknown, 0},
		{"hangs", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() }, cluster.Unknown, 0},
		{"breaks off", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, cluster.Unknown, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls.Store(0)
			ts := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				c.handler(w, r)
			}))
			defer ts.Close()
			client := connect(t, ts, func(c *kube.Config) { c.Timeout = 300 * time.Millisecond })
			_, err := client.Create(t.Context(), simple("a1"))
			classIs(t, "creating", err, c.want)
			if c.after != 0 && cluster.RetryAfter(err) != c.after {
				t.Errorf("wait %v, want %v", cluster.RetryAfter(err), c.after)
			}
			if calls.Load() != 1 {
				t.Errorf("asked %d times, want once", calls.Load())
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	ts, _ := server(t)
	c := connect(t, ts, nil)
	ts.Close()
	_, err := c.Create(t.Context(), simple("a1"))
	classIs(t, "creating", err, cluster.Unavailable)
}

func TestWrongToken(t *testing.T) {
	ts, _ := server(t)
	c := connect(t, ts, func(cfg *kube.Config) { cfg.Kubeconfig = kubeconfig(t, ts, "wrong") })
	_, err := c.Create(t.Context(), simple("a1"))
	classIs(t, "creating", err, cluster.Forbidden)
}

// A real server answers in protobuf, as it was asked to.
func TestProtobuf(t *testing.T) {
	known := runtime.NewScheme()
	if err := corev1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	encoder := protobuf.NewSerializer(known, known)
	var accepted, sent string
	ts := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accepted, sent = r.Header.Get("Accept"), r.Header.Get("User-Agent")
		list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "42"}, Items: []corev1.Pod{*simple("a1")}}
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		if err := encoder.Encode(list, w); err != nil {
			t.Error(err)
		}
	}))
	defer ts.Close()
	c := connect(t, ts, func(c *kube.Config) { c.UserAgent = "retinued/test" })
	var names []string
	v, err := c.List(t.Context(), cluster.Query{Namespace: "default"}, func(p *corev1.Pod) { names = append(names, p.Name) })
	if err != nil || v != "42" || len(names) != 1 {
		t.Errorf("list: %v at %q, %v", names, v, err)
	}
	if !strings.HasPrefix(accepted, runtime.ContentTypeProtobuf) || sent != "retinued/test" {
		t.Errorf("asked for %q as %q", accepted, sent)
	}
}

// A warning is logged once, however often the server gives it.
func TestWarnings(t *testing.T) {
	ts := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Warning", `299 - "fractional byte value \"100m\" is invalid"`)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a1"}}`)
	}))
	defer ts.Close()
	var out bytes.Buffer
	cfg := kube.DefaultConfig()
	cfg.Kubeconfig = kubeconfig(t, ts, "token")
	c, err := kube.Connect(cfg, slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := c.Create(t.Context(), simple("a1")); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "fractional byte"); n != 1 {
		t.Errorf("logged %d times, want once:\n%s", n, out.String())
	}
}

func TestConnect(t *testing.T) {
	ts, _ := server(t)
	c := connect(t, ts, nil)
	if c.Namespace() != "default" || c.Host() != ts.URL {
		t.Errorf("namespace %q, host %q", c.Namespace(), c.Host())
	}
	if c := connect(t, ts, func(c *kube.Config) { c.Context = "there" }); c.Namespace() != "kube-system" {
		t.Errorf("namespace of another context is %q", c.Namespace())
	}
	if c := connect(t, ts, func(c *kube.Config) { c.Namespace = "mine" }); c.Namespace() != "mine" {
		t.Errorf("a namespace that was given is %q", c.Namespace())
	}
	refuse := func(want string, tune func(*kube.Config)) {
		t.Helper()
		cfg := kube.DefaultConfig()
		tune(&cfg)
		if _, err := kube.Connect(cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want one with %q", err, want)
		}
	}
	refuse("no-such-file", func(c *kube.Config) { c.Kubeconfig = filepath.Join(t.TempDir(), "no-such-file") })
	refuse("elsewhere", func(c *kube.Config) { c.Kubeconfig, c.Context = kubeconfig(t, ts, "token"), "elsewhere" })
	refuse("timeout: 0s", func(c *kube.Config) { c.Timeout = 0 })
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	refuse("retinue local up", func(*kube.Config) {})
}
