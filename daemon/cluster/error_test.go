package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/retinue-sched/retinue/daemon/cluster"
)

var pods = schema.GroupResource{Resource: "pods"}

// status is an error with a bare code and a message, as proxies and webhooks answer.
func status(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

// Each error means one thing to who called. Whatever leaves open whether the call was carried out is Unknown.
func TestClassOf(t *testing.T) {
	forbidden := func(text string) error { return apierrors.NewForbidden(pods, "x", errors.New(text)) }
	for _, c := range []struct {
		name string
		err  error
		want cluster.Class
	}{
		{"none", nil, cluster.None},
		{"exists", apierrors.NewAlreadyExists(pods, "x"), cluster.Exists},
		{"not found", apierrors.NewNotFound(pods, "x"), cluster.NotFound},
		{"conflict", apierrors.NewConflict(pods, "x", errors.New("the UID in the precondition does not match")), cluster.Conflict},
		{"expired", apierrors.NewResourceExpired("too old resource version"), cluster.Gone},
		{"gone", status(410, metav1.StatusReasonGone, "gone"), cluster.Gone},
		{"invalid", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "x", nil), cluster.Invalid},
		{"too large", apierrors.NewRequestEntityTooLargeError("3 MB"), cluster.Invalid},
		{"quota", forbidden("exceeded quota: q, requested: pods=1"), cluster.Quota},
		{"quota needs limits", forbidden("failed quota: q: must specify limits.cpu"), cluster.Quota},
		{"limit range", forbidden("maximum cpu usage per Container is 1, but limit is 2"), cluster.Admission},
		{"namespace ends", forbidden("unable to create new content in namespace x because it is being terminated"), cluster.Admission},
		{"no right", forbidden(`User "system:serviceaccount:a:b" cannot create resource "pods" in API group "" in the namespace "x"`), cluster.Forbidden},
		{"unauthorized", apierrors.NewUnauthorized("x"), cluster.Forbidden},
		{"a policy says no", status(422, metav1.StatusReasonInvalid, `pods "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request`), cluster.Admission},
		{"a webhook says no", status(400, "", `admission webhook "w" denied the request: no`), cluster.Admission},
		{"a webhook is away", apierrors.NewInternalError(errors.New(`failed calling webhook "w": timeout`)), cluster.Admission},
		{"throttled", apierrors.NewTooManyRequests("slow", 3), cluster.Throttled},
		{"throttled, no reason", status(429, "", ""), cluster.Throttled},
		{"internal error", apierrors.NewInternalError(errors.New("etcdserver: request timed out")), cluster.Unknown},
		{"server timeout", apierrors.NewServerTimeout(pods, "create", 1), cluster.Unknown},
		{"gateway timeout", apierrors.NewTimeoutError("x", 1), cluster.Unknown},
		{"service unavailable", apierrors.NewServiceUnavailable("x"), cluster.Unknown},
		{"method not allowed", apierrors.NewMethodNotSupported(pods, "create"), cluster.Other},
		{"deadline", context.DeadlineExceeded, cluster.Unknown},
		{"reset", &net.OpError{Op: "read", Err: syscall.ECONNRESET}, cluster.Unknown},
		{"end of file", io.ErrUnexpectedEOF, cluster.Unknown},
		{"refused", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, cluster.Unavailable},
		{"no such host", &net.DNSError{Err: "no such host", Name: "x"}, cluster.Unavailable},
		{"wrapped", fmt.Errorf("creating pod x: %w", apierrors.NewAlreadyExists(pods, "x")), cluster.Exists},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := cluster.ClassOf(c.err); got != c.want {
				t.Errorf("class %v, want %v", got, c.want)
			}
		})
	}
}

func TestRetryAfterAndText(t *testing.T) {
	err := fmt.Errorf("creating pod x: %w", apierrors.NewTooManyRequests("slow down", 3))
	if got := cluster.RetryAfter(err); got != 3*time.Second {
		t.Errorf("wait %v, want 3s", got)
	}
	if got := cluster.Text(err); got != "slow down" {
		t.Errorf("text %q, want the cluster's own", got)
	}
	if got := cluster.RetryAfter(io.EOF); got != 0 {
		t.Errorf("wait %v after an error that asks for none", got)
	}
}
