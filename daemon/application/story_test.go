package application_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/plugins/elastic"
	"github.com/retinue-sched/retinue/sdk"
)

// Each story in testdata/stories comes true, word for word.
func TestStories(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "stories", "*"))
	if err != nil || len(files) < 12 {
		t.Fatalf("%d stories, error %v; want 12 at least", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s := &story{world: newWorld(plainConfig())}
			s.begin()
			datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
				t.Helper()
				if err := s.tell(d); err != nil {
					d.Fatalf(t, "%v", err)
				}
				return s.render(s.take()) + s.answer()
			})
		})
	}
}

// story is a world that is told what to do.
type story struct {
	*world
	asks bool   // questions to the policy are shown
	said string // answer to the newest command, beside the effects
}

func (s *story) answer() string {
	said := s.said
	s.said = ""
	return said
}

// tell carries out one command.
func (s *story) tell(d *datadriven.TestData) error {
	commands := map[string]func(*datadriven.TestData) error{
		"config": s.config, "targets": s.targets, "pod": s.pod, "attach": s.register, "detach": s.detach, "list": s.relist, "advance": s.wait,
		"submit": s.submitTasks, "report": s.report, "cancel": s.cancel, "let-go": s.letGo, "stop": s.stop, "policy": s.policy, "api": s.api,
		"status": s.status, "tasks": s.tasks, "watch": s.watch, "beat": s.beat, "leave": s.leave, "reconfigure": s.reconfigure,
		"refused": s.refused, "foreign": s.others,
	}
	command, ok := commands[d.Cmd]
	if !ok {
		return fmt.Errorf("%w: there is no command %s", errScript, d.Cmd)
	}
	return command(d)
}

// config begins the story anew with another configuration. With unlisted, the cluster has not been listed yet.
func (s *story) config(d *datadriven.TestData) error {
	cfg := plainConfig()
	if err := change(&cfg, d); err != nil {
		return err
	}
	s.world = newWorld(cfg)
	if !d.HasArg("unlisted") {
		s.begin()
	}
	return nil
}

// begin lists the cluster, which is empty, and waits until the first pass is over.
func (s *story) begin() {
	s.list()
	s.advance(time.Second)
	s.take()
}

func (s *story) reconfigure(d *datadriven.TestData) error {
	cfg := s.cfg
	cfg.Profiles = append([]application.Profile(nil), cfg.Profiles...)
	if err := change(&cfg, d); err != nil {
		return err
	}
	s.cfg = cfg
	s.request++
	s.step(application.Configure{Request: s.request, Config: cfg})
	return nil
}

func change(cfg *application.Config, d *datadriven.TestData) error {
	p := &cfg.Profiles[0]
	for _, arg := range d.CmdArgs {
		value := strings.Join(arg.Vals, ",")
		n, _ := strconv.ParseUint(value, 10, 32)
		duration, _ := time.ParseDuration(value)
		switch arg.Key {
		case "mode":
			cfg.Mode = map[string]application.Mode{"follow": application.Follow, "scale": application.Scale}[value]
		case "max":
			p.Max = uint32(n)
		case "min":
			p.Min = uint32(n)
		case "slots":
			p.Slots = uint32(n)
		case "target":
			p.Target = uint32(n)
		case "release-idle":
			p.ReleaseIdle = duration
		case "dynamic":
			p.Dynamic = application.Dynamic{Enabled: true, Backlog: duration, Sustained: duration, Ratio: 1}
		case "lifetime":
			cfg.MaxLifetime = n
		case "churn":
			cfg.Churn = uint32(n)
		case "incarnation":
			cfg.Incarnation = uint32(n)
		case "id":
			cfg.ID = value
		case "unlisted":
		default:
			return fmt.Errorf("%w: there is no setting %s", errScript, arg.Key)
		}
	}
	return nil
}

// refused answers a creation late: the pod certainly does not exist.
func (s *story) refused(d *datadriven.TestData) error {
	for _, id := range numbers(d) {
		s.step(application.PodRefused{Executor: id, Class: application.RefusedOther, Text: "cancelled before it was asked for"})
	}
	return nil
}

func (s *story) targets(d *datadriven.TestData) error {
	s.request++
	ev := application.SetTargets{Request: s.request}
	for _, arg := range d.CmdArgs {
		profile, err := strconv.ParseUint(arg.Key, 10, 32)
		count, err2 := strconv.ParseUint(strings.Join(arg.Vals, ""), 10, 32)
		if err != nil || err2 != nil {
			return fmt.Errorf("%w: targets wants profile=count", errScript)
		}
		ev.Targets = append(ev.Targets, snapshot.Target{Profile: snapshot.Profile(profile), Count: uint32(count)})
	}
	s.step(ev)
	return nil
}

var phases = map[string]snapshot.Phase{
	"pending": snapshot.Pending, "running": snapshot.Running, "terminating": snapshot.Terminating, "succeeded": snapshot.Succeeded,
	"failed": snapshot.Failed, "deleted": snapshot.Deleted,
}

// pod shows pods: pod ID... PHASE [code=N] [reason=TEXT] [unschedulable] [name=NAME].
func (s *story) pod(d *datadriven.TestData) error {
	var ids []snapshot.ID
	phase := snapshot.Phase(0)
	for _, arg := range d.CmdArgs {
		if id, err := strconv.ParseUint(arg.Key, 10, 64); err == nil {
			ids = append(ids, snapshot.ID(id))
		}
		if p, ok := phases[arg.Key]; ok {
			phase = p
		}
	}
	if phase == 0 || len(ids) == 0 {
		return fmt.Errorf("%w: pod wants ids and a phase", errScript)
	}
	for _, id := range ids {
		s.show(id, phase, func(o *snapshot.Observation) {
			if text, ok := argument(d, "code"); ok {
				code, _ := strconv.ParseInt(text, 10, 32)
				o.Exit = snapshot.Exit{Known: true, Code: int32(code)}
			}
			if text, ok := argument(d, "reason"); ok {
				o.Exit.Reason = text
			}
			if text, ok := argument(d, "name"); ok {
				o.Name = text
			}
			o.Deleting = o.Deleting || d.HasArg("deleting")
			o.Wait = snapshot.WaitNone
			if d.HasArg("unschedulable") {
				o.Wait, o.WaitText = snapshot.WaitUnschedulable, "0/3 nodes are available"
			}
		})
	}
	return nil
}

// others shows pods that are not this daemon's, or that they are gone. With unseen only the next list shows it.
func (s *story) others(d *datadriven.TestData) error {
	gone := d.HasArg("gone")
	for _, arg := range d.CmdArgs {
		if arg.Key == "gone" || arg.Key == "unseen" {
			continue
		}
		p := application.ForeignPod{Name: arg.Key, Whose: "another daemon's"}
		s.foreign = slices.DeleteFunc(s.foreign, func(f application.ForeignPod) bool { return f == p })
		if !gone {
			s.foreign = append(s.foreign, p)
		}
		if !d.HasArg("unseen") {
			s.step(application.ForeignObserved{Pod: p, Gone: gone})
		}
	}
	return nil
}

// argument is the value of key=value.
func argument(d *datadriven.TestData, key string) (string, bool) {
	for _, arg := range d.CmdArgs {
		if arg.Key == key {
			return strings.Join(arg.Vals, ","), true
		}
	}
	return "", false
}

// numbers are the arguments that are numbers.
func numbers(d *datadriven.TestData) []snapshot.ID {
	var ids []snapshot.ID
	for _, arg := range d.CmdArgs {
		if id, err := strconv.ParseUint(arg.Key, 10, 64); err == nil {
			ids = append(ids, snapshot.ID(id))
		}
	}
	return ids
}

// refs reads attempts as 3/1.
func refs(texts []string) []task.Ref {
	var refs []task.Ref
	for _, text := range texts {
		var r task.Ref
		if _, err := fmt.Sscanf(text, "%d/%d", &r.Task, &r.Attempt); err == nil {
			refs = append(refs, r)
		}
	}
	return refs
}

func (s *story) register(d *datadriven.TestData) error {
	var holds []task.Ref
	for _, arg := range d.CmdArgs {
		if arg.Key == "holds" {
			holds = refs(arg.Vals)
		}
	}
	for _, id := range numbers(d) {
		s.attach(id, holds...)
	}
	return nil
}

// current is the session of an executor: stories give each its newest.
func (s *story) current(id snapshot.ID) uint64 {
	return s.sessionOf[id]
}

func (s *story) detach(d *datadriven.TestData) error {
	for _, id := range numbers(d) {
		s.step(application.Detached{Executor: id, Session: s.current(id), Text: "the stream broke", Leaving: d.HasArg("leaving")})
	}
	return nil
}

func (s *story) beat(d *datadriven.TestData) error {
	for _, id := range numbers(d) {
		s.step(application.Beat{Executor: id, Session: s.current(id), Memory: 1 << 20})
	}
	return nil
}

func (s *story) leave(d *datadriven.TestData) error {
	for _, id := range numbers(d) {
		s.step(application.Leaving{Executor: id, Session: s.current(id), Text: "its pod is being ended"})
	}
	return nil
}

func (s *story) relist(*datadriven.TestData) error {
	s.list()
	return nil
}

func (s *story) wait(d *datadriven.TestData) error {
	if len(d.CmdArgs) == 0 {
		return fmt.Errorf("%w: advance wants a duration", errScript)
	}
	duration, err := time.ParseDuration(d.CmdArgs[0].Key)
	if err != nil {
		return fmt.Errorf("%w: %w", errScript, err)
	}
	s.advance(duration)
	return nil
}

func (s *story) submitTasks(d *datadriven.TestData) error {
	n := 1
	if ids := numbers(d); len(ids) > 0 {
		n = int(ids[0])
	}
	job, _ := argument(d, "job")
	prefix, ok := argument(d, "key")
	if !ok {
		prefix = fmt.Sprintf("k%d-", s.request)
	}
	text, _ := argument(d, "deadline")
	deadline, err := time.ParseDuration(cmp.Or(text, "0s"))
	if err != nil {
		return fmt.Errorf("%w: %w", errScript, err)
	}
	s.submit(prefix, job, n, deadline)
	return nil
}

var outcomes = map[string]task.Outcome{
	"started": task.OutcomeStarted, "ok": task.OutcomeSucceeded, "failed": task.OutcomeFailed, "killed": task.OutcomeKilled,
	"invalid": task.OutcomeInvalid, "returned": task.OutcomeReturned,
}

// report is: report EXECUTOR OUTCOME TASK/ATTEMPT...
func (s *story) report(d *datadriven.TestData) error {
	ids := numbers(d)
	if len(ids) == 0 || len(d.CmdArgs) < 3 {
		return fmt.Errorf("%w: report wants an executor, an outcome and attempts", errScript)
	}
	outcome, ok := outcomes[d.CmdArgs[1].Key]
	if !ok {
		return fmt.Errorf("%w: %s is no outcome", errScript, d.CmdArgs[1].Key)
	}
	ev := application.Reported{Executor: ids[0], Session: s.current(ids[0])}
	for _, arg := range d.CmdArgs[2:] {
		for _, ref := range refs([]string{arg.Key}) {
			ev.Reports = append(ev.Reports, task.Report{Ref: ref, Outcome: outcome, Took: time.Second})
		}
	}
	s.step(ev)
	return nil
}

func (s *story) cancel(d *datadriven.TestData) error {
	job, _ := argument(d, "job")
	s.request++
	s.step(application.Cancel{Request: s.request, Job: job})
	return nil
}

func (s *story) letGo(d *datadriven.TestData) error {
	s.request++
	s.step(application.ReleaseExecutors{Request: s.request, Executors: numbers(d), Kill: d.HasArg("kill"), Text: "Ada said so"})
	return nil
}

func (s *story) stop(d *datadriven.TestData) error {
	s.request++
	s.step(application.Stop{Request: s.request, KeepExecutors: d.HasArg("keep")})
	return nil
}

func (s *story) watch(d *datadriven.TestData) error {
	job, _ := argument(d, "job")
	s.request++
	s.step(application.WatchTasks{Request: s.request, Watch: 7, Job: job})
	return nil
}

// policy says who decides: direct, elastic, silent (never answers), faulty (the shell had the built-in one answer), or greedy (asks for all).
func (s *story) policy(d *datadriven.TestData) error {
	s.asks = d.HasArg("show")
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "direct":
			s.decide = asked(nativeDirect(), "direct", "sha256:direct")
		case "elastic":
			p, err := sdk.Native(&elastic.Policy{}, []byte(`{"idle": "20s"}`))
			if err != nil {
				return err
			}
			s.decide = asked(p, "elastic", "sha256:elastic")
		case "silent":
			direct := asked(nativeDirect(), "direct", "native:direct")
			s.decide = func(a application.AskPolicy) (application.Decided, bool) {
				d, _ := direct(a)
				d.Fault = "the policy did not answer in time"
				return d, a.Builtin
			}
		case "faulty":
			direct := asked(nativeDirect(), "direct", "native:direct")
			s.decide = func(a application.AskPolicy) (application.Decided, bool) {
				d, _ := direct(a)
				d.Fault = "unreachable executed"
				return d, true
			}
		case "greedy":
			s.decide = greedy
		case "bound":
			s.step(application.PolicyBound{Policy: "elastic", By: "sha256:elastic", Mode: application.Scale})
		case "show":
		default:
			return fmt.Errorf("%w: there is no policy %s", errScript, arg.Key)
		}
	}
	return nil
}

// greedy wants a thousand executors, and to kill every one that it is shown.
func greedy(a application.AskPolicy) (application.Decided, bool) {
	d := application.Decided{Number: a.Number, Policy: "greedy", By: "sha256:greedy"}
	d.Decision.Creates = []hostabi.Create{{Profile: 0, Count: 1000}, {Profile: 9, Count: 1}}
	for e := range a.Input.Snapshot.All() {
		d.Decision.Releases = append(d.Decision.Releases, hostabi.Release{Executor: uint64(e.ID), Mode: hostabi.Kill})
	}
	return d, true
}

// api says how the cluster answers: api [slow|quick] [refuse=quota|invalid|none] [delete=ok|changed|failed].
func (s *story) api(d *datadriven.TestData) error {
	s.slow = d.HasArg("slow")
	if text, ok := argument(d, "refuse"); ok {
		s.refuse = map[string]application.RefusalClass{"quota": application.RefusedQuota, "invalid": application.RefusedInvalid, "taken": application.RefusedTaken}[text]
	}
	if text, ok := argument(d, "delete"); ok {
		s.deletes = map[string]application.DeleteOutcome{
			"ok": application.DeleteAccepted, "changed": application.DeleteChanged, "failed": application.DeleteFailed,
		}[text]
	}
	return nil
}
