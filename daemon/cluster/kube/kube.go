// Package kube is the way to a Kubernetes API server, a real one or the local cluster.
//
// It promises, beside what package cluster asks of an adapter:
//
//   - nothing waits here: no throttle of its own, and no call that has no deadline (logs that are followed aside);
//   - answers may be protobuf or JSON, whichever the server speaks;
//   - a warning of the server is logged once, not once for each call.
package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/retinue-sched/retinue/daemon/cluster"
)

// Config says which cluster, and how to speak to it.
type Config struct {
	Kubeconfig string // file; empty: KUBECONFIG, then ~/.kube/config, then the service account of the pod that this runs in
	Context    string // of the kubeconfig; empty: its current one
	Namespace  string // empty: that of the context, of the service account, or "default"
	UserAgent  string // so that an audit log tells who it was

	Timeout      time.Duration // the longest that a call may take
	PageSize     int64         // pods in one answer of a list
	WatchTimeout time.Duration // how long a watch lives at least before the server ends it; at most twice as long
}

// DefaultConfig is a Config for most clusters.
func DefaultConfig() Config {
	return Config{UserAgent: "retinue", Timeout: 15 * time.Second, PageSize: 500, WatchTimeout: 5 * time.Minute}
}

// Validate reports everything that is wrong with a Config.
func (c Config) Validate() error {
	var errs []error
	if c.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("timeout: %v is not positive", c.Timeout))
	}
	if c.PageSize < 0 {
		errs = append(errs, fmt.Errorf("pageSize: %d is negative", c.PageSize))
	}
	if c.WatchTimeout < time.Second {
		errs = append(errs, fmt.Errorf("watchTimeout: %v is less than a second", c.WatchTimeout))
	}
	return errors.Join(errs...)
}

// Cluster speaks to one API server. It implements Lister, Watcher, Writer and Logs of package cluster.
type Cluster struct {
	cfg       Config
	namespace string
	host      string
	client    *rest.RESTClient
	params    runtime.ParameterCodec
	log       *slog.Logger
}

// Connect finds out how to reach a cluster. It does not call it.
func Connect(cfg Config, log *slog.Logger) (*Cluster, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configuring the cluster: %w", err)
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = cfg.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: cfg.Context}
	overrides.Context.Namespace = cfg.Namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	restConfig, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("finding the cluster: none is configured; name a kubeconfig, set KUBECONFIG, or start one with `retinue local up`")
	}
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster's namespace: %w", err)
	}
	return connect(cfg, restConfig, namespace, log)
}

func connect(cfg Config, restConfig *rest.Config, namespace string, log *slog.Logger) (*Cluster, error) {
	known := runtime.NewScheme() // of one API group only: the whole of Kubernetes would cost a minute of compiling and 20 MB
	if err := corev1.AddToScheme(known); err != nil {
		return nil, fmt.Errorf("preparing to speak to the cluster: %w", err)
	}
	restConfig = rest.CopyConfig(restConfig)
	restConfig.APIPath = "/api"
	restConfig.GroupVersion = &corev1.SchemeGroupVersion
	restConfig.NegotiatedSerializer = serializer.NewCodecFactory(known).WithoutConversion()
	restConfig.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	restConfig.ContentType = runtime.ContentTypeJSON // every server reads it; only what it sends in bulk is worth more
	restConfig.UserAgent = cfg.UserAgent
	restConfig.QPS = -1    // the budget is the caller's and the server's (priority and fairness), not hidden here
	restConfig.Timeout = 0 // it would end watches; each call has its own
	restConfig.WarningHandlerWithContext = &warnings{log: log}
	client, err := rest.RESTClientFor(restConfig)
	if err != nil {
		return nil, fmt.Errorf("preparing to speak to the cluster: %w", err)
	}
	return &Cluster{cfg: cfg, namespace: namespace, host: restConfig.Host, client: client, params: runtime.NewParameterCodec(known), log: log}, nil
}

// Namespace is the one that is meant where none is named.
func (c *Cluster) Namespace() string { return c.namespace }

// Host is the address of the API server.
func (c *Cluster) Host() string { return c.host }

// Version asks the API server for its version: the cheapest proof that it can be reached and takes our credential.
func (c *Cluster) Version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	body, err := c.once(c.client.Get().AbsPath("/version")).Do(ctx).Raw()
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", c.host, err)
	}
	var v version.Info
	if err := json.Unmarshal(body, &v); err != nil {
		return "", fmt.Errorf("reading the version of %s: %w", c.host, err)
	}
	return v.GitVersion, nil
}

// once keeps client-go from trying again by itself: it does so ten times, and sleeps for as long as the server says.
func (c *Cluster) once(r *rest.Request) *rest.Request { return r.MaxRetries(0) }

func (c *Cluster) pods(r *rest.Request, namespace string) *rest.Request {
	return c.once(r).Namespace(namespace).Resource("pods")
}

// List implements cluster.Lister. It leaves the version unset, which asks for what is true now.
func (c *Cluster) List(ctx context.Context, q cluster.Query, each func(*corev1.Pod)) (string, error) {
	opts := metav1.ListOptions{LabelSelector: q.Selector, Limit: c.cfg.PageSize}
	for {
		page, err := c.page(ctx, q.Namespace, &opts)
		if err != nil {
			return "", fmt.Errorf("listing pods of namespace %s: %w", q.Namespace, err)
		}
		for i := range page.Items {
			each(&page.Items[i])
		}
		if page.Continue == "" {
			return page.ResourceVersion, nil
		}
		opts.Continue = page.Continue
	}
}

func (c *Cluster) page(ctx context.Context, namespace string, opts *metav1.ListOptions) (*corev1.PodList, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	var page corev1.PodList
	err := c.pods(c.client.Get(), namespace).VersionedParams(opts, c.params).Do(ctx).Into(&page)
	return &page, err
}

// Watch implements cluster.Watcher.
func (c *Cluster) Watch(ctx context.Context, q cluster.Query, from string) (cluster.Stream, error) {
	life := (c.cfg.WatchTimeout + rand.N(c.cfg.WatchTimeout)).Truncate(time.Second) // at random, so that many daemons' watches do not end together
	opts := metav1.ListOptions{
		LabelSelector: q.Selector, ResourceVersion: from, Watch: true, AllowWatchBookmarks: true, TimeoutSeconds: new(int64(life / time.Second)),
	}
	ctx, cancel := context.WithCancel(ctx)
	began := time.Now()
	w, err := c.pods(c.client.Get(), q.Namespace).VersionedParams(&opts, c.params).Watch(ctx)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watching pods of namespace %s from version %s: %w", q.Namespace, from, err)
	}
	return &stream{watch: w, cancel: cancel, began: began, life: life}, nil
}
