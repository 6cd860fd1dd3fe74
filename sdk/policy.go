// Package sdk is for authors of allocation policies in Go. A policy is a plain value that is asked with a View
// and answers into a Result; the same value runs natively, in tests, and as a WebAssembly module.
//
// It promises that
//
//   - a view's columns are read in place, without a copy;
//   - a panic in a policy becomes an error with its stack, not a dead module;
//   - settings are strict: an unknown key, a wrong type or a value out of range is an error that names the key.
//
// A policy must be a function of view, state and settings alone: in the sandbox nothing that it keeps in memory
// outlives a call. State that must, goes through Result.SetState.
package sdk

import (
	"errors"
	"runtime"
	"strconv"

	"github.com/retinue-sched/retinue/hostabi"
)

// Policy is what Register and Native take. It must also be an Allocator, a Releaser or both.
type Policy interface {
	// Configure takes the settings, once, before anything is asked. It is called with none, too.
	Configure(Settings) error
}

// Allocator answers how many executors of which profile to ask for.
type Allocator interface {
	Allocate(*View, *Result) error
}

// Releaser answers which executors to let go.
type Releaser interface {
	Release(*View, *Result) error
}

// NativePolicy is a configured policy that runs in this process. It is not safe for concurrent use.
type NativePolicy struct {
	policy Policy
	result Result
	encode hostabi.DecisionEncoder
	answer []byte
}

// Native configures p with settings, a JSON object or nothing, and returns it ready to be called.
func Native(p Policy, settings []byte) (*NativePolicy, error) {
	n := &NativePolicy{policy: p}
	if len(n.Hooks()) == 0 {
		return nil, errors.New("the policy answers nothing: give it a method Allocate or Release")
	}
	if err := n.configure(settings); err != nil {
		return nil, err
	}
	return n, nil
}

// Hooks returns the hooks that the policy answers, in the order of their numbers.
func (n *NativePolicy) Hooks() []hostabi.Hook {
	var hooks []hostabi.Hook
	if _, ok := n.policy.(Allocator); ok {
		hooks = append(hooks, hostabi.HookAllocate)
	}
	if _, ok := n.policy.(Releaser); ok {
		hooks = append(hooks, hostabi.HookRelease)
	}
	return hooks
}

// Call asks the policy about an encoded view and returns its encoded decision, which stays valid until the next
// call. A panic of the policy is returned as an error with its stack.
func (n *NativePolicy) Call(hook hostabi.Hook, view []byte) (answer []byte, err error) {
	defer recovered(&err)
	block, err := hostabi.ParseBlock(view)
	if err != nil {
		return nil, err
	}
	v := newView(block)
	n.result.reset()
	if err := n.ask(hook, v); err != nil {
		return nil, err
	}
	if v.missing != "" {
		return nil, errors.New("the policy reads " + v.missing + ", which is not in the view: name it in the manifest")
	}
	n.answer = n.encode.Encode(n.answer[:0], n.result.decision)
	if len(n.answer) > hostabi.MaxDecisionSize {
		return nil, errors.New("the decision has " + strconv.Itoa(len(n.answer)) + " bytes, more than the limit of " +
			strconv.Itoa(hostabi.MaxDecisionSize) + ": release fewer executors in one call")
	}
	return n.answer, nil
}

// ask calls the method for hook.
func (n *NativePolicy) ask(hook hostabi.Hook, v *View) error {
	switch hook {
	case hostabi.HookAllocate:
		if a, ok := n.policy.(Allocator); ok {
			return a.Allocate(v, &n.result)
		}
	case hostabi.HookRelease:
		if r, ok := n.policy.(Releaser); ok {
			return r.Release(v, &n.result)
		}
	}
	return errors.New("the policy does not answer " + hook.String())
}

// configure hands settings to the policy.
func (n *NativePolicy) configure(settings []byte) (err error) {
	defer recovered(&err)
	s, err := ParseSettings(settings)
	if err != nil {
		return err
	}
	return n.policy.Configure(s)
}

// recovered is deferred where a policy's code runs: it turns a panic into an error.
func recovered(err *error) {
	p := recover()
	if p == nil {
		return
	}
	stack := make([]byte, hostabi.MaxErrorSize)
	*err = errors.New("panic: " + panicText(p) + "\n" + string(stack[:runtime.Stack(stack, false)]))
}

// panicText returns what was panicked with; fmt would add half a megabyte to a module.
func panicText(p any) string {
	switch p := p.(type) {
	case error:
		return p.Error()
	case string:
		return p
	case interface{ String() string }:
		return p.String()
	default:
		return "a value without text"
	}
}
