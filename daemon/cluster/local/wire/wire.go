// Package wire serves a model over the Kubernetes wire protocol: what client-go and kubectl ask of an API server, for the
// resources that the model keeps.
//
//   - JSON goes out always; JSON, YAML and protobuf come in. Clients that prefer another encoding get JSON, which all of
//     them read.
//   - Nothing but the version and the health of the server is shown to a client without the token.
//   - Watches are streamed, honour timeoutSeconds, and carry bookmarks for clients that ask for them.
//   - kubectl get prints tables, and kubectl apply checks fields, as with a real server.
//
// Not served, and said so: server-side apply, exec, attach, port-forward.
package wire

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/version"

	"github.com/retinue-sched/retinue/daemon/cluster/local/store"
	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

// LogReader reads what a container has written. The kubelet does.
type LogReader interface {
	Logs(ctx context.Context, pod *corev1.Pod, opts corev1.PodLogOptions, out io.Writer) error
}

// Config is what a server needs beside the objects.
type Config struct {
	// Token is what clients must show. It is kept as a digest only.
	Token string
	// Version is told at /version.
	Version version.Info
	// Logs serves the log subresource of pods.
	Logs LogReader
	// Done ends all watches, so that the server can be shut down.
	Done <-chan struct{}
	// BookmarkEvery is how often a quiet watch tells its version; a minute when 0.
	BookmarkEvery time.Duration
	// Log gets what an operator should know.
	Log *slog.Logger
}

// Server is an http.Handler. Make one with New.
type Server struct {
	config  Config
	store   *store.Store
	token   [sha256.Size]byte
	codecs  runtime.NegotiatedSerializer // reads objects in any encoding that a client sends
	catalog catalog
}

// New returns a server for the objects in st.
func New(st *store.Store, config Config) (*Server, error) {
	if config.BookmarkEvery <= 0 {
		config.BookmarkEvery = time.Minute
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	s := &Server{config: config, store: st, token: sha256.Sum256([]byte(config.Token))}
	s.codecs = serializer.NewCodecFactory(scheme).WithoutConversion()
	st.Do(func(_ time.Time, m *model.Server) { s.catalog = newCatalog(m.Resources()) })
	s.config.Token = ""
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.recovered(w, r)
	if !public(r.URL.Path) && !s.allowed(r) {
		writeError(w, apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	if rest, ok := strings.CutPrefix(path, "/api/v1/"); ok {
		s.serveResource(w, r, rest) //nolint:contextcheck // it travels in the request
		return
	}
	s.serveAbout(w, r, path)
}

// recovered keeps a request that meets a fault of ours from ending the cluster, and all pods with it.
func (s *Server) recovered(w http.ResponseWriter, r *http.Request) {
	fault := recover()
	if fault == nil {
		return
	}
	s.config.Log.LogAttrs(r.Context(), slog.LevelError, "request met a fault", slog.String("method", r.Method),
		slog.String("path", r.URL.Path), slog.Any("fault", fault), slog.String("stack", string(debug.Stack())))
	writeError(w, apierrors.NewInternalError(fmt.Errorf("the server met a fault: its log tells more: %v", fault)))
}

// public reports whether anybody may ask: what probes and version checks ask, as with a real server.
func public(path string) bool {
	for _, open := range []string{"/healthz", "/livez", "/readyz", "/version"} {
		if path == open || strings.HasPrefix(path, open+"/") {
			return true
		}
	}
	return false
}

func (s *Server) allowed(r *http.Request) bool {
	shown, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	digest := sha256.Sum256([]byte(strings.TrimSpace(shown)))
	return ok && subtle.ConstantTimeCompare(digest[:], s.token[:]) == 1
}

// serveAbout answers what is not an object: health, version, discovery, schemas.
func (s *Server) serveAbout(w http.ResponseWriter, r *http.Request, path string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		writeError(w, notServed(r))
		return
	}
	switch {
	case path == "/version":
		writeJSON(w, http.StatusOK, s.config.Version)
	case public(path):
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, "ok") //nolint:errcheck // the client has gone
	case path == "/api":
		writeJSON(w, http.StatusOK, apiVersions(r.Host))
	case path == "/apis":
		writeJSON(w, http.StatusOK, apiGroups())
	case path == "/api/v1":
		writeJSON(w, http.StatusOK, s.catalog.list())
	case path == "/openapi/v3":
		writeJSON(w, http.StatusOK, openAPIIndex())
	case path == "/openapi/v3/api/v1":
		writeJSON(w, http.StatusOK, s.catalog.openAPI())
	default:
		writeError(w, notServed(r))
	}
}
