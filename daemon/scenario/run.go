package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/retinue-sched/retinue/hostabi"
)

// Policy answers encoded views with encoded decisions: an sdk.NativePolicy, or a module in a sandbox.
type Policy interface {
	Call(hook hostabi.Hook, view []byte) ([]byte, error)
}

// Configure makes a fresh policy with settings, a JSON object. Each story gets its own.
type Configure func(settings string) (Policy, error)

// Subject is what stories are told of.
type Subject struct {
	Configure Configure
	// Settings names the settings that the policy knows. What a story sets beside them is for other policies, and left out.
	Settings []string
}

// Run tells a story. The error names the story, the step, what was expected and what was seen; it is nil if all came as the story says.
func Run(ctx context.Context, s Scenario, subject Subject) error {
	settings, err := s.conf.settings(subject.Settings)
	if err != nil {
		return fmt.Errorf("scenario %q: %w", s.Name, err)
	}
	policy, err := subject.Configure(settings)
	if err != nil {
		return fmt.Errorf("scenario %q: configuring the policy with %s: %w", s.Name, settings, err)
	}
	w := newWorld(s, policy)
	if err := w.begin(); err != nil {
		return fmt.Errorf("scenario %q: %w", s.Name, err)
	}
	for i := range s.steps {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := w.do(&s.steps[i]); err != nil {
			return fmt.Errorf("scenario %q, step %d (line %d): %w", s.Name, i+1, s.steps[i].line, err)
		}
	}
	return nil
}

// settings are those for a policy that knows some, as JSON.
func (c conf) settings(known []string) (string, error) {
	out := map[string]string{}
	if slices.Contains(known, "gate") {
		out["gate"] = c.gate
	}
	text, err := json.Marshal(out)
	return string(text), err
}

// do takes one step.
func (w *world) do(s *step) error {
	err := w.act(s)
	switch {
	case s.raises == "" && err != nil:
		return err
	case s.raises != "" && err == nil:
		return fmt.Errorf("raises: expected a message with %q, but the step was not refused", s.raises)
	case s.raises != "" && !strings.Contains(err.Error(), s.raises):
		return fmt.Errorf("raises: expected a message with %q, seen: %w", s.raises, err)
	case s.expect == nil:
		return nil
	}
	return w.check(s.expect)
}

// act does what a step says, in the order that the format gives.
func (w *world) act(s *step) error {
	if s.target != nil {
		if err := w.setTargets(s.target); err != nil {
			return err
		}
	}
	for _, p := range s.pods {
		if err := w.show(p); err != nil {
			return err
		}
	}
	if s.known != nil {
		if err := w.register(*s.known); err != nil {
			return err
		}
	}
	if err := w.passTime(s); err != nil {
		return err
	}
	if s.purge {
		if err := w.list(); err != nil {
			return err
		}
	}
	if s.pass {
		return w.pass()
	}
	return nil
}

// check compares what happened since the check before with what was expected.
func (w *world) check(x *expectation) error {
	seen := w.seen
	w.seen = record{created: []pair{}, deletes: [][]int64{}, timeoutDeletes: [][]int64{}}
	var wrong []string
	differs := func(what string, expected, seen any) {
		wrong = append(wrong, fmt.Sprintf("%s: expected %v, seen %v", what, expected, seen))
	}
	if x.created != nil && !slices.Equal(*x.created, seen.created) {
		differs("created", *x.created, seen.created)
	}
	if x.total != nil && *x.total != w.total {
		differs("total", *x.total, w.total)
	}
	if out := int64(w.app.Snapshot().Total().Unregistered); x.out != nil && *x.out != out {
		differs("out", *x.out, out)
	}
	if x.deletes != nil && !slices.EqualFunc(*x.deletes, seen.deletes, slices.Equal) {
		differs("deletes", *x.deletes, seen.deletes)
	}
	if x.timeoutDeletes != nil && !slices.EqualFunc(*x.timeoutDeletes, seen.timeoutDeletes, slices.Equal) {
		differs("timeoutDeletes", *x.timeoutDeletes, seen.timeoutDeletes)
	}
	for _, id := range x.deleted {
		if !w.released(id) {
			differs("deleted", fmt.Sprintf("executor %d to be refused as released", id), "that it is not")
		}
	}
	for _, id := range x.notDeleted {
		if w.released(id) {
			differs("notDeleted", fmt.Sprintf("executor %d not to be refused as released", id), "that it is")
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s", strings.Join(wrong, "; "))
	}
	return nil
}
