package kube

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/retinue-sched/retinue/daemon/cluster"
)

// stream is a watch of client-go as package cluster wants it.
type stream struct {
	watch  watch.Interface
	cancel context.CancelFunc
	began  time.Time
	life   time.Duration
}

// Next implements cluster.Stream.
func (s *stream) Next(ctx context.Context) (cluster.Event, error) {
	select {
	case <-ctx.Done():
		return cluster.Event{}, context.Cause(ctx)
	case ev, ok := <-s.watch.ResultChan():
		if !ok {
			return cluster.Event{}, s.end()
		}
		return convert(ev)
	}
}

// end tells a watch that lived its time from one that was cut off: client-go closes both without a word.
func (s *stream) end() error {
	if time.Since(s.began) < s.life*9/10 {
		return fmt.Errorf("watching pods: %w", io.ErrUnexpectedEOF)
	}
	return cluster.ErrEnded
}

// Close implements cluster.Stream.
func (s *stream) Close() {
	s.cancel()
	s.watch.Stop()
}

func convert(ev watch.Event) (cluster.Event, error) {
	if ev.Type == watch.Error {
		return cluster.Event{}, fmt.Errorf("watching pods: %w", apierrors.FromObject(ev.Object))
	}
	p, ok := ev.Object.(*corev1.Pod)
	if !ok {
		return cluster.Event{}, fmt.Errorf("watching pods: the server sent %T, not a pod", ev.Object)
	}
	out := cluster.Event{Version: p.ResourceVersion, Pod: p}
	switch ev.Type {
	case watch.Added, watch.Modified:
		out.Kind = cluster.Changed
	case watch.Deleted:
		out.Kind = cluster.Deleted
	case watch.Bookmark:
		out.Kind, out.Pod = cluster.Bookmark, nil
	default:
		return cluster.Event{}, fmt.Errorf("watching pods: the server sent an event of unknown type %q", ev.Type)
	}
	return out, nil
}
