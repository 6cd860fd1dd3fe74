package kube

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/retinue-sched/retinue/daemon/cluster"
)

// Create implements cluster.Writer.
func (c *Cluster) Create(ctx context.Context, p *corev1.Pod) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	var made corev1.Pod
	if err := c.pods(c.client.Post(), p.Namespace).Body(p).Do(ctx).Into(&made); err != nil {
		return nil, fmt.Errorf("creating pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return &made, nil
}

// Read implements cluster.Writer.
func (c *Cluster) Read(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	var p corev1.Pod
	if err := c.pods(c.client.Get(), namespace).Name(name).Do(ctx).Into(&p); err != nil {
		return nil, fmt.Errorf("reading pod %s/%s: %w", namespace, name, err)
	}
	return &p, nil
}

// Delete implements cluster.Writer.
func (c *Cluster) Delete(ctx context.Context, d cluster.Deletion) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	if err := c.pods(c.client.Delete(), d.Namespace).Name(d.Name).Body(deleteOptions(d)).Do(ctx).Error(); err != nil {
		return fmt.Errorf("deleting pod %s/%s: %w", d.Namespace, d.Name, err)
	}
	return nil
}

func deleteOptions(d cluster.Deletion) *metav1.DeleteOptions {
	opts := &metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}}
	if d.UID != "" || d.Version != "" {
		opts.Preconditions = &metav1.Preconditions{}
	}
	if d.UID != "" {
		opts.Preconditions.UID = new(types.UID(d.UID))
	}
	if d.Version != "" {
		opts.Preconditions.ResourceVersion = new(d.Version)
	}
	if d.Grace >= 0 {
		opts.GracePeriodSeconds = new(int64((d.Grace + time.Second - 1) / time.Second))
	}
	return opts
}

// Logs implements cluster.Logs. A log that is followed ends when its container does, or with ctx.
func (c *Cluster) Logs(ctx context.Context, q cluster.LogQuery) (io.ReadCloser, error) {
	opts := corev1.PodLogOptions{Container: q.Container, Follow: q.Follow, Previous: q.Previous, Timestamps: q.Timestamps}
	if q.Tail >= 0 {
		opts.TailLines = new(q.Tail)
	}
	if q.Limit > 0 {
		opts.LimitBytes = new(q.Limit)
	}
	if q.Since > 0 {
		opts.SinceSeconds = new(int64((q.Since + time.Second - 1) / time.Second))
	}
	body, err := c.pods(c.client.Get(), q.Namespace).Name(q.Name).SubResource("log").VersionedParams(&opts, c.params).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the log of pod %s/%s: %w", q.Namespace, q.Name, err)
	}
	return body, nil
}
