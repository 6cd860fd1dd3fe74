package local

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Status is what can be told about a cluster from outside.
type Status struct {
	// Dir is the cluster's folder, Kubeconfig and Log are files in it.
	Dir, Kubeconfig, Log string
	// Running reports whether a process has the folder; Ready whether it answers.
	Running, Ready bool
	// PID, URL and Started are those of the running cluster.
	PID     int
	URL     string
	Started time.Time
	// Pods counts the pods by phase.
	Pods map[corev1.PodPhase]int
}

// status is what the cluster itself knows without asking.
func (c *cluster) status() Status {
	s := Status{Dir: c.options.Dir, Kubeconfig: c.at.kubeconfig(), Log: c.at.log(), Running: true, Ready: true}
	if f, err := c.at.readFacts(); err == nil {
		s.PID, s.URL, s.Started = f.PID, f.url(), f.Started
	}
	return s
}

// Inspect tells about the cluster in dir (DefaultDir() when empty). That none is running is not an error.
func Inspect(ctx context.Context, dir string) (Status, error) {
	dir, err := folder(dir)
	if err != nil {
		return Status{}, err
	}
	at := places(dir)
	s := Status{Dir: dir, Kubeconfig: at.kubeconfig(), Log: at.log()}
	if s.Running, err = held(at.lock()); err != nil || !s.Running {
		return s, err
	}
	f, err := at.readFacts()
	if err != nil || !f.alive() {
		return s, nil //nolint:nilerr // it has only just taken the folder
	}
	s.PID, s.URL, s.Started = f.PID, f.url(), f.Started
	pods, err := countPods(ctx, at, f)
	if err != nil {
		return s, nil //nolint:nilerr // running and not ready is a status too
	}
	s.Ready, s.Pods = true, pods
	return s, nil
}

// alive reports whether the process that wrote the facts is still there. It tells those of a running cluster from
// those that an earlier one left.
func (f facts) alive() bool { return f.PID > 0 && syscall.Kill(f.PID, 0) == nil }

// settledFacts waits until the process that has the lock has written who it is.
func (p places) settledFacts(ctx context.Context) (facts, error) {
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		f, err := p.readFacts()
		if err == nil && f.alive() {
			return f, nil
		}
		if there, _ := held(p.lock()); !there {
			return f, err
		}
		select {
		case <-ctx.Done():
			return f, errors.Join(err, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

var errEnded = errors.New("it has ended")

// waitReady waits until the cluster that has the folder answers.
func waitReady(ctx context.Context, dir string) error {
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		s, err := Inspect(ctx, dir)
		switch {
		case err != nil:
			return err
		case s.Ready:
			return nil
		case !s.Running:
			return fmt.Errorf("%w: see %s", errEnded, s.Log)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// countPods asks the cluster, as any client does.
func countPods(ctx context.Context, at places, f facts) (map[corev1.PodPhase]int, error) {
	a, err := readAccess(at.pki(), time.Now())
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url()+"/api/v1/pods", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("listing pods: %s", answer.Status)
	}
	var pods corev1.PodList
	if err := json.NewDecoder(io.LimitReader(answer.Body, 1<<30)).Decode(&pods); err != nil {
		return nil, err
	}
	count := map[corev1.PodPhase]int{}
	for i := range pods.Items {
		count[pods.Items[i].Status.Phase]++
	}
	return count, nil
}
