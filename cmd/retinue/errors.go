package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/retinue-sched/retinue/sdk/client"
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

// notFoundf is an error about something that is not there.
func notFoundf(format string, args ...any) error {
	return &exitError{code: exitNotFound, err: fmt.Errorf(format, args...)}
}

// explain turns what a call came to into a sentence and an exit code. answers reports whether the daemon answers now; it is asked only if that
// makes a difference.
func (p *program) explain(err error, answers func() bool) error {
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
		return p.unreachable(text, answers)
	case client.Late:
		return &exitError{code: exitUnreachable, err: fmt.Errorf(
			"the daemon at %s did not answer within %v%s: try again, or give it longer with --request-timeout", p.daemon.Address, p.timeout, inBrackets(text))}
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

// inBrackets adds what the daemon said of its lateness. What the protocol says of it is no news.
func inBrackets(text string) string {
	if text == "" || strings.Contains(text, "context") {
		return ""
	}
	return " (" + text + ")"
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
