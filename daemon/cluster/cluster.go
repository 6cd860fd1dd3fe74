// Package cluster is what the daemon asks of Kubernetes: to list and watch executor pods, to create and delete them, and to read their logs.
//
// Adapters promise:
//
//   - a call is tried once: when to try again is for the caller to decide, who alone knows what else waits;
//   - a list is as new as the call or newer, whole, and of one version;
//   - an error says, through ClassOf, whether the call has certainly not been carried out.
package cluster

import (
	"context"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Query names the pods that a list or a watch is about.
type Query struct {
	Namespace string
	Selector  string // of labels; empty: all
}

// Lister lists pods.
type Lister interface {
	// List gives each pod to a function, which must not keep it, and returns the version of the list. If it fails, pods may have been given
	// already: start afresh. The class Gone says that the list took longer than the cluster keeps a version.
	List(ctx context.Context, q Query, each func(*corev1.Pod)) (version string, err error)
}

// Watcher watches pods.
type Watcher interface {
	// Watch shows what happens to pods after a version. The class Gone says that the cluster no longer knows: list again. The stream ends
	// by itself after some minutes, as ErrEnded says; ctx ends it as well.
	Watch(ctx context.Context, q Query, version string) (Stream, error)
}

// Stream is what a watch shows.
type Stream interface {
	// Next waits for the next event. It returns ErrEnded when the stream came to its regular end, and else what broke it, or the cause of ctx.
	Next(ctx context.Context) (Event, error)
	// Close ends the stream. It may be called at any time, and more than once.
	Close()
}

// Event is a change to a pod, or a bookmark.
type Event struct {
	Kind    Kind
	Version string
	Pod     *corev1.Pod // nil for bookmarks
}

// Kind is what happened.
type Kind uint8

// The kinds.
const (
	Changed  Kind = 1 // added or modified
	Deleted  Kind = 2 // or no longer selected
	Bookmark Kind = 3 // nothing: a sign of life, and a version from which to go on
)

// Writer creates, reads and deletes pods.
type Writer interface {
	// Create makes a pod and returns it as the cluster has it.
	Create(ctx context.Context, p *corev1.Pod) (*corev1.Pod, error)
	// Read returns a pod as it is now.
	Read(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	// Delete asks for a pod to go. A precondition that does not hold is an error of class Conflict.
	Delete(ctx context.Context, d Deletion) error
}

// Deletion names a pod that is to go, and what must be true of it.
type Deletion struct {
	Namespace, Name string
	UID             string        // precondition; empty: none
	Version         string        // precondition; empty: none
	Grace           time.Duration // rounded up to seconds; negative: as the pod says
}

// Logs reads what containers wrote.
type Logs interface {
	Logs(ctx context.Context, q LogQuery) (io.ReadCloser, error)
}

// LogQuery says which part of a log is wanted.
type LogQuery struct {
	Namespace, Name string
	Container       string // empty: the only one
	Follow          bool
	Previous        bool  // of the container's former life
	Tail            int64 // the last lines; negative: all
	Limit           int64 // bytes; 0: no bound
	Timestamps      bool
	Since           time.Duration // 0: from the beginning
}
