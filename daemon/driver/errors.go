package driver

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/runner"
)

// refuse makes a status with a stable reason in its details and a sentence for people.
func refuse(code codes.Code, reason, format string, args ...any) error {
	st := status.New(code, fmt.Sprintf(format, args...))
	if detailed, err := st.WithDetails(&errdetails.ErrorInfo{Domain: "retinue", Reason: reason}); err == nil {
		st = detailed
	}
	return st.Err()
}

// notFound is the same sentence whether the thing is not there or may not be seen.
func notFound(key runner.Key) error {
	return refuse(codes.NotFound, "NO_SUCH_APPLICATION", "there is no application %s: `retinue get apps` lists those there are", key)
}

// refused turns an application's refusal into a status. Nothing refused is nil.
func refused(r application.Refusal) error {
	switch r.Code {
	case 0:
		return nil
	case application.RefusedNotFound:
		return refuse(codes.NotFound, "NOT_FOUND", "%s", r.Text)
	case application.RefusedFull:
		return refuse(codes.ResourceExhausted, "FULL", "%s", r.Text)
	case application.RefusedStopped:
		return refuse(codes.FailedPrecondition, "STOPPED", "%s", r.Text)
	case application.RefusedConflict:
		return refuse(codes.AlreadyExists, "CONFLICT", "%s", r.Text)
	default:
		return refuse(codes.InvalidArgument, "BAD_REQUEST", "%s", r.Text)
	}
}

// failed turns an error of the runner into a status.
func failed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, runner.ErrClosed):
		return refuse(codes.NotFound, "GONE", "%v: it was deleted meanwhile", err)
	case errors.Is(err, runner.ErrStopped):
		return refuse(codes.Unavailable, "RESTARTING", "%v", err)
	case errors.Is(err, runner.ErrSlow):
		return refuse(codes.ResourceExhausted, "TOO_SLOW", "%v", err)
	case errors.Is(err, context.DeadlineExceeded):
		return refuse(codes.DeadlineExceeded, "DEADLINE", "%v", err)
	case errors.Is(err, context.Canceled):
		return refuse(codes.Canceled, "CANCELED", "%v", err)
	default:
		return refuse(codes.Internal, "INTERNAL", "%v", err)
	}
}
