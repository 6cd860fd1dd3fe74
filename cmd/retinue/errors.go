package main

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The exit codes. `retinue help exit-codes` explains them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitNotFound    = 4
	exitRefused     = 5
	exitInterrupted = 130
)

// exitError is an error with the code that the program ends with. An empty text has been said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// errSaid is what remains to be said when everything was said before.
var errSaid = errors.New("")

// usagef is an error in what a person wrote.
func usagef(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// failedf is an error in what was tried.
func failedf(format string, args ...any) error {
	return &exitError{code: exitFailed, err: fmt.Errorf(format, args...)}
}

// explain turns what a call came to into a sentence and an exit code.
func (p *program) explain(err error) error {
	if known := (*exitError)(nil); errors.As(err, &known) {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return &exitError{code: exitInterrupted, err: errors.New("interrupted")}
	}
	s, isStatus := status.FromError(err)
	if !isStatus {
		return err
	}
	code := exitFailed
	switch s.Code() {
	case codes.Canceled:
		return &exitError{code: exitInterrupted, err: errors.New("interrupted")}
	case codes.Unavailable:
		return &exitError{code: exitUnreachable, err: fmt.Errorf(
			"the daemon does not answer at %s (%s): start one with `retinued`, or name another with --daemon", p.daemon.Address, s.Message())}
	case codes.DeadlineExceeded:
		return &exitError{code: exitUnreachable, err: fmt.Errorf(
			"the daemon at %s did not answer within %v (%s): try again, or give it longer with --request-timeout", p.daemon.Address, p.timeout, s.Message())}
	case codes.NotFound:
		code = exitNotFound
	case codes.PermissionDenied, codes.Unauthenticated:
		code = exitRefused
	case codes.InvalidArgument:
		code = exitUsage
	}
	return &exitError{code: code, err: errors.New(s.Message())}
}

// sentence is what a person is told of an error; nothing if it has been said.
func sentence(err error) string { return err.Error() }

// exitCode is the program's exit code.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if known := (*exitError)(nil); errors.As(err, &known) {
		return known.code
	}
	if errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	return exitFailed
}
