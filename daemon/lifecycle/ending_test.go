package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retinue-sched/retinue/daemon/lifecycle"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

func exited(code int32, reason string) snapshot.Executor {
	phase := snapshot.Failed
	if code == 0 {
		phase = snapshot.Succeeded
	}
	return snapshot.Executor{ID: 7, Phase: phase, Node: "node-1", Exit: snapshot.Exit{Known: true, Code: code, Reason: reason}}
}

func ended(phase snapshot.Phase, change func(*snapshot.Executor)) snapshot.Executor {
	e := snapshot.Executor{ID: 7, Phase: phase, Node: "node-1"}
	if change != nil {
		change(&e)
	}
	return e
}

// What each end means: whose fault it is, whether it counts as a failed start, and what people read.
func TestClassify(t *testing.T) {
	oom := exited(137, "OOMKilled")
	killed := exited(137, "Error")
	condemned := exited(143, "Error")
	condemned.Condemned = true
	deleted := exited(143, "Error")
	deleted.Deleting = true
	drained := exited(0, "Completed")
	drained.Load.Draining = true
	preempted := exited(143, "PreemptionByScheduler")
	preempted.Deleting = true
	talking := exited(1, "Error")
	talking.Exit.Message = "no such file: x"
	cases := map[string]struct {
		e          snapshot.Executor
		registered bool
		want       lifecycle.Ending
	}{
		"running":                      {ended(snapshot.Running, nil), true, lifecycle.Ending{}},
		"terminating":                  {ended(snapshot.Terminating, nil), true, lifecycle.Ending{}},
		"ended by itself":              {exited(0, "Completed"), true, lifecycle.Ending{Class: lifecycle.Finished, Blameful: true, Text: "executor 7 ended by itself without an error, though nobody had asked it to"}},
		"error while working":          {talking, true, lifecycle.Ending{Class: lifecycle.Application, Blameful: true, Text: "executor 7 failed; exit code 1 (an error; the log says which): no such file: x"}},
		"error at the start":           {exited(1, ""), false, lifecycle.Ending{Class: lifecycle.Application, Blameful: true, Startup: true, Text: "executor 7 failed; exit code 1 (an error; the log says which)"}},
		"failed, nothing known":        {ended(snapshot.Failed, nil), true, lifecycle.Ending{Class: lifecycle.Application, Blameful: true, Text: "executor 7 failed"}},
		"killed from outside":          {killed, true, lifecycle.Ending{Class: lifecycle.Application, Blameful: true, Text: "executor 7 failed; exit code 137 (SIGKILL: killed from outside, often for want of memory)"}},
		"out of memory":                {oom, true, lifecycle.Ending{Class: lifecycle.OutOfMemory, Blameful: true, Text: "executor 7 used more memory than its limit and was killed; raise the limit of its profile or give it fewer slots; exit code 137 (SIGKILL: killed from outside, often for want of memory); reason OOMKilled"}},
		"told to end":                  {condemned, true, lifecycle.Ending{Class: lifecycle.Released, Text: "executor 7 was let go; exit code 143 (SIGTERM: told to end)"}},
		"told to end, never started":   {ended(snapshot.Deleted, func(e *snapshot.Executor) { e.Condemned = true }), false, lifecycle.Ending{Class: lifecycle.Released, Text: "executor 7 was let go"}},
		"drained":                      {drained, true, lifecycle.Ending{Class: lifecycle.Released, Text: "executor 7 was let go; exit code 0 (no error)"}},
		"deleted, seen to be going":    {deleted, true, lifecycle.Ending{Class: lifecycle.Deleted, Text: "executor 7 was deleted by a person or by another controller; exit code 143 (SIGTERM: told to end)"}},
		"deleted all at once":          {ended(snapshot.Deleted, nil), false, lifecycle.Ending{Class: lifecycle.Deleted, Text: "executor 7 was deleted by a person or by another controller"}},
		"preempted":                    {preempted, true, lifecycle.Ending{Class: lifecycle.Disruption, Text: "executor 7 was taken away by the cluster; exit code 143 (SIGTERM: told to end); node node-1; reason PreemptionByScheduler"}},
		"evicted":                      {ended(snapshot.Failed, func(e *snapshot.Executor) { e.Exit.Reason, e.Exit.Message = "Evicted", "the node was low on memory" }), true, lifecycle.Ending{Class: lifecycle.Disruption, Text: "executor 7 was taken away by the cluster; node node-1; reason Evicted: the node was low on memory"}},
		"no room after all":            {ended(snapshot.Failed, func(e *snapshot.Executor) { e.Exit.Reason = "OutOfcpu" }), false, lifecycle.Ending{Class: lifecycle.Disruption, Startup: true, Text: "executor 7 was taken away by the cluster; node node-1; reason OutOfcpu"}},
		"node lost":                    {ended(snapshot.Failed, func(e *snapshot.Executor) { e.Exit.Reason = "DeletionByPodGC" }), true, lifecycle.Ending{Class: lifecycle.NodeLost, Text: "executor 7 is gone with its node; node node-1; reason DeletionByPodGC"}},
		"never appeared":               {ended(snapshot.Lost, nil), false, lifecycle.Ending{Class: lifecycle.Unseen, Text: "executor 7 was asked for and never appeared; the cluster may be slow, or something removes its pods"}},
		"image, named":                 {ended(snapshot.Failed, func(e *snapshot.Executor) { e.Exit.Reason = "StartError" }), false, lifecycle.Ending{Class: lifecycle.Image, Startup: true, Text: "executor 7 could not be started; check the image and the command in the pod template; reason StartError"}},
		"image, by what it waited for": {ended(snapshot.Failed, func(e *snapshot.Executor) { e.Wait, e.WaitText = snapshot.WaitImage, "no such tag" }), false, lifecycle.Ending{Class: lifecycle.Image, Startup: true, Text: "executor 7 could not be started; check the image and the command in the pod template; no such tag"}},
		"command not found":            {exited(127, "Error"), false, lifecycle.Ending{Class: lifecycle.Image, Startup: true, Text: "executor 7 could not be started; check the image and the command in the pod template; exit code 127 (the command was not found)"}},
		"127 after it worked":          {exited(127, "Error"), true, lifecycle.Ending{Class: lifecycle.Application, Blameful: true, Text: "executor 7 failed; exit code 127 (the command was not found)"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, lifecycle.Classify(c.e, c.registered)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A refused creation counts as a failed start and says what to do.
func TestNotCreated(t *testing.T) {
	want := lifecycle.Ending{Class: lifecycle.Quota, Startup: true, Text: "executor 7 was not created: a quota is used up; raise it, or wait for others to end: pods=10"}
	if diff := cmp.Diff(want, lifecycle.NotCreated(7, lifecycle.Quota, "pods=10")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	texts := make(map[string]bool)
	for _, c := range []lifecycle.Class{lifecycle.Invalid, lifecycle.Quota, lifecycle.Admission, lifecycle.Forbidden, lifecycle.Taken, 0} {
		texts[lifecycle.NotCreated(7, c, "").Text] = true
	}
	if len(texts) != 6 {
		t.Errorf("some refusals have the same text: %v", texts)
	}
}

// A name that is taken is no failed start: the next executor has another name.
func TestTakenNameIsNoFailedStart(t *testing.T) {
	if e := lifecycle.NotCreated(7, lifecycle.Taken, "it is theirs"); e.Startup || e.Blameful || e.Class != lifecycle.Taken {
		t.Errorf("got %+v", e)
	}
}

// Every class has a name of its own.
func TestClassNames(t *testing.T) {
	names := make(map[string]bool)
	for c := lifecycle.Finished; c <= lifecycle.Taken; c++ {
		names[c.String()] = true
	}
	if len(names) != 14 || names[lifecycle.Class(0).String()] || names[lifecycle.Class(99).String()] {
		t.Errorf("names: %v", names)
	}
}

// Exit codes have a text each, whatever their number.
func TestExitTexts(t *testing.T) {
	for code, want := range map[int32]string{
		0: "no error", 2: "wrong usage; check the command's arguments", 42: "a code of the program's own", -1: "a code of the program's own",
		126: "the command cannot be executed: permission, or built for another machine",
		128: "a code of the program's own", 139: "SIGSEGV: it crashed on a bad memory access", 166: "signal 38",
		255: "an error without a code of its own; the log may say which",
	} {
		if got := lifecycle.Exit(code); got != want {
			t.Errorf("%d: %q, want %q", code, got, want)
		}
	}
}
