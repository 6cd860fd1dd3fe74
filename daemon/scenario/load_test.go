package scenario_test

import (
	"strings"
	"testing"

	"github.com/retinue-sched/retinue/daemon/scenario"
	"github.com/retinue-sched/retinue/hostabi"
)

// A file that is not what the format says is refused, with the line and what to write instead.
func TestLoadNamesWhatIsWrong(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"not YAML", "- name: [", "story.yaml"},
		{"nothing in it", "", "there is no scenario"},
		{"no list", "name: x", "story.yaml:1: expected a list of scenarios"},
		{"no name", "- steps:\n    - pass: true", "story.yaml:1: the scenario has no name"},
		{"no steps", "- name: x", `scenario "x" has no steps`},
		{"unknown key", "- name: x\n  step:\n    - pass: true", `story.yaml:2: unknown key "step"; did you mean "steps"?`},
		{"unknown key in a step", "- name: x\n  steps:\n    - pass: true\n    - purg: true", `story.yaml:4: unknown key "purg"; did you mean "purge"?`},
		{"no such key at all", "- name: x\n  steps:\n    - zzzzz: 1", `unknown key "zzzzz"; expected one of advance, at, expect,`},
		{"a key twice", "- name: x\n  steps:\n    - pass: true\n      pass: false", "story.yaml:4: key \"pass\" is there twice"},
		{"a pod's state", "- name: x\n  steps:\n    - pods: [[1, Runnng]]", `"Runnng" is no state of a pod; did you mean "Running"?`},
		{"a pod without a state", "- name: x\n  steps:\n    - pods: [[1]]", "story.yaml:3: expected [id, state] or [id, state, profile], seen 1 entries"},
		{"a number", "- name: x\n  conf: {batchSize: many}\n  steps:\n    - pass: true", "story.yaml:2: expected a whole number"},
		{"out of range", "- name: x\n  conf: {batchSize: 0}\n  steps:\n    - pass: true", "story.yaml:2: 0 is not between 1 and 4294967295"},
		{"yes", "- name: x\n  steps:\n    - pass: maybe", "story.yaml:3: expected true or false"},
		{"expectation", "- name: x\n  steps:\n    - expect: {deletes: [1]}", "story.yaml:3: expected a list of executors"},
		{"aliases", "- name: x\n  steps: &s\n    - pass: true\n- name: y\n  steps: *s", "story.yaml:5: expected a list of steps"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := scenario.Load(strings.NewReader(test.text), "story.yaml")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

// Every fault of a file is told, not the first one alone.
func TestLoadTellsAllFaults(t *testing.T) {
	_, err := scenario.Load(strings.NewReader("- nam: x\n  steps:\n    - puls: 1\n    - at: soon"), "f")
	if got := strings.Count(err.Error(), "\n") + 1; got != 4 {
		t.Errorf("%d faults told, want 4: %v", got, err)
	}
}

// A story that does not come true says which step, what was expected and what was seen.
func TestRunSaysWhatWasSeen(t *testing.T) {
	for _, test := range []struct{ name, steps, want string }{
		{"created", "[{target: {0: 2}}, {expect: {created: [[1,0]]}}]", `scenario "x", step 2 (line 2): created: expected [[1 0]], seen [[1 0] [2 0]]`},
		{"total", "[{target: {0: 2}}, {expect: {total: 3}}]", "total: expected 3, seen 2"},
		{"out", "[{target: {0: 2}}, {expect: {out: 0}}]", "out: expected 0, seen 2"},
		{"deletes", "[{target: {0: 1}}, {advance: 20000}, {target: {0: 0}}, {expect: {deletes: []}}]", "deletes: expected [], seen [[1]]"},
		{"no deletes", "[{target: {0: 1}}, {expect: {deletes: [[1]]}}]", "deletes: expected [[1]], seen []"},
		{"timeouts", "[{target: {0: 1}}, {advance: 600001, pass: true}, {expect: {timeoutDeletes: []}}]", "timeoutDeletes: expected [], seen [[1]]"},
		{"deleted", "[{target: {0: 1}}, {expect: {deleted: [1]}}]", "deleted: expected executor 1 to be refused as released, seen that it is not"},
		{"not deleted", "[{target: {0: 1}}, {advance: 20000}, {target: {0: 0}}, {expect: {notDeleted: [1]}}]", "notDeleted: expected executor 1 not to be refused"},
		{"a refusal that nobody expects", "[{known: [7]}]", "registering executor 7"},
		{"a refusal that does not come", "[{target: {0: 1}, raises: no}]", "raises: expected"},
		{"another refusal", "[{known: [7], raises: full}]", `raises: expected a message with "full", seen: `},
		{"a clock that runs backwards", "[{at: 10}, {at: 5}]", "at: the clock stands at 10 ms already"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := scenario.Run(t.Context(), load(t, "- name: x\n  steps: "+test.steps), nativeDirect)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

// What a step says that it is refused with, it may be refused with.
func TestRefusalsCanBeExpected(t *testing.T) {
	for _, steps := range []string{"[{known: [7], raises: registering executor 7}]", "[{target: {0: -1}, raises: expected a number}]"} {
		if err := scenario.Run(t.Context(), load(t, "- name: x\n  steps: "+steps), nativeDirect); err != nil {
			t.Error(err)
		}
	}
}

// A deletion that fails leaves the executor in the count.
func TestFailedDeletesAreTold(t *testing.T) {
	const text = "- name: x\n  conf: {failDeletes: true}\n" +
		"  steps: [{target: {0: 1}}, {advance: 20000}, {target: {0: 0}}, {expect: {deletes: [[1]], out: 1, notDeleted: [1]}}]"
	if err := scenario.Run(t.Context(), load(t, text), nativeDirect); err != nil {
		t.Error(err)
	}
}

// A policy that breaks the contract fails the story, and does not stop the runner.
func TestBrokenPoliciesFailTheStory(t *testing.T) {
	s := load(t, "- name: x\n  steps: [{target: {0: 1}}]")
	garbage := func(string) (scenario.Policy, error) { return answering("garbage"), nil }
	if err := scenario.Run(t.Context(), s, scenario.Subject{Configure: garbage}); err == nil || !strings.Contains(err.Error(), "reading the policy's answer") {
		t.Errorf("error %v, want one about the answer", err)
	}
	if err := scenario.Run(t.Context(), load(t, "- name: x\n  conf: {gate: none}\n  steps: [{pass: true}]"), nativeDirect); err == nil {
		t.Error("settings that the policy refuses are no error")
	}
}

// What a story sets for one policy does not reach another that knows nothing of it, and what no policy knows is refused.
func TestSettingsReachWhoKnowsThem(t *testing.T) {
	story := "- name: x\n  conf: {gate: window}\n  steps: [{target: {0: 1}}, {expect: {created: [[1,0]]}}]"
	for _, test := range []struct {
		known []string
		want  string
	}{{[]string{"gate", "other"}, `{"gate":"window"}`}, {[]string{"idle"}, `{}`}, {nil, `{}`}} {
		var got string
		subject := scenario.Subject{Settings: test.known, Configure: func(settings string) (scenario.Policy, error) {
			got = settings
			return nativeDirect.Configure(settings)
		}}
		if err := scenario.Run(t.Context(), load(t, story), subject); err != nil || got != test.want {
			t.Errorf("a policy that knows %v was configured with %s (%v), want %s", test.known, got, err, test.want)
		}
	}
	if _, err := scenario.Load(strings.NewReader(strings.Replace(story, "gate", "gait", 1)), "f"); err == nil || !strings.Contains(err.Error(), `did you mean "gate"?`) {
		t.Errorf("a key that nobody knows gave %v, want a complaint", err)
	}
}

// answering is a policy that always says the same.
type answering string

func (a answering) Call(hostabi.Hook, []byte) ([]byte, error) { return []byte(a), nil }

func load(t *testing.T, text string) scenario.Scenario {
	t.Helper()
	list, err := scenario.Load(strings.NewReader(text), "f")
	if err != nil || len(list) != 1 {
		t.Fatalf("%d scenarios, error %v", len(list), err)
	}
	return list[0]
}
