package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/retinue-sched/retinue/sdk/client"
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

// exitError is an error with the code that the program ends with.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

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
	kind, text, fromCall := client.Explain(err)
	if !fromCall {
		return err
	}
	switch kind {
	case client.Canceled:
		return &exitError{code: exitInterrupted, err: errors.New("interrupted")}
	case client.Unreachable:
		return &exitError{code: exitUnreachable, err: fmt.Errorf(
			"the daemon does not answer at %s (%s): start one with `retinued`, or name another with --daemon", p.daemon.Address, text)}
	case client.Late:
		return &exitError{code: exitUnreachable, err: fmt.Errorf(
			"the daemon at %s did not answer within %v (%s): try again, or give it longer with --request-timeout", p.daemon.Address, p.timeout, text)}
	case client.NotFound:
		return &exitError{code: exitNotFound, err: errors.New(text)}
	case client.Refused:
		return &exitError{code: exitRefused, err: errors.New(text)}
	case client.Invalid:
		return &exitError{code: exitUsage, err: errors.New(text)}
	default:
		return &exitError{code: exitFailed, err: errors.New(text)}
	}
}

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
