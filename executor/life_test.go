package executor_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/executor"
)

// An executor says who it is, and proves it.
func TestRegistration(t *testing.T) {
	d := newDaemon(t)
	run(t, d, func(c *executor.Config) { c.Version = "1.2" })
	s := d.next()
	r := s.register
	got := fmt.Sprint(r.GetApplication(), r.GetNamespace(), r.GetExecutor(), r.GetPodName(), r.GetPodUid(), r.GetSlots(), r.GetVersion(), len(r.GetHolds()), s.token)
	if want := fmt.Sprint("app", "default", 3, "app-i1-exec-3", "uid", 2, "1.2", 0, "[Bearer secret]"); got != want {
		t.Errorf("registered %v, want %v", got, want)
	}
}

// A sign of life comes in each interval, and tells of the memory and the disk in use.
func TestHeartbeat(t *testing.T) {
	d := newDaemon(t)
	x := run(t, d, nil)
	if err := os.WriteFile(filepath.Join(x.cfg.WorkDir, "data"), make([]byte, 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	s := d.knock()
	s.send(&apiv1.AttachResponse{Admitted: &apiv1.Admitted{HeartbeatInterval: durationpb.New(time.Millisecond)}})
	for range 2 {
		beat := receive(t, s.heard, "a heartbeat").GetHeartbeat()
		if beat.GetMemoryBytes() < 1<<20 || beat.GetDiskBytes() != 5000 {
			t.Errorf("heartbeat %v, want more than a megabyte and 5000 bytes", beat)
		}
	}
}

// A launch that comes twice is run once: while it runs, when it has ended, and when that is acknowledged.
func TestLaunchSeenTwice(t *testing.T) {
	d := newDaemon(t)
	run(t, d, func(c *executor.Config) { c.Slots = 1 })
	s := d.next()
	log := filepath.Join(t.TempDir(), "log")
	once := sh("echo ran >> " + log)
	s.launch(1, once)
	s.launch(1, once)
	s.end(1)
	s.launch(1, once)
	s.ack(1)
	s.launch(1, once)
	s.launch(2, sh("true")) // waits for the only slot behind the others
	s.end(2)
	if text, err := os.ReadFile(log); err != nil || string(text) != "ran\n" {
		t.Errorf("the log says %q, %v; want one run", text, err)
	}
}

// A kill that overtakes its launch is not lost.
func TestKillBeforeLaunch(t *testing.T) {
	d := newDaemon(t)
	run(t, d, nil)
	s := d.next()
	s.kill(1)
	s.launch(1, sh("echo ran"))
	if r := s.end(1); r.GetOutcome() != apiv1.Outcome_OUTCOME_KILLED || len(r.GetOutput()) > 0 {
		t.Errorf("got %v, want it killed without having run", r)
	}
}

// A kill finds a launch that waits for a slot.
func TestKillOfAWaitingLaunch(t *testing.T) {
	d := newDaemon(t)
	run(t, d, func(c *executor.Config) { c.Slots = 1 })
	s := d.next()
	log := filepath.Join(t.TempDir(), "log")
	s.launch(1, sh("sleep 1000"))
	s.launch(2, sh("echo ran >> "+log))
	s.started()
	s.kill(2)
	if r := s.end(2); r.GetOutcome() != apiv1.Outcome_OUTCOME_KILLED {
		t.Errorf("the waiting one: %v", r)
	}
	s.kill(1)
	s.end(1)
	s.launch(3, sh("true"))
	s.end(3) // there is one slot: the second would have run before
	if _, err := os.Stat(log); err == nil {
		t.Error("the second was told to be killed, and ran")
	}
	for _, r := range s.reports {
		if r.GetTask().GetTask() == 2 {
			t.Errorf("the second ended again: %v", r)
		}
	}
}

// The end of an attempt is told on every new session until it is acknowledged, and what runs goes on meanwhile.
func TestEndsAreResentUntilAcknowledged(t *testing.T) {
	d := newDaemon(t)
	run(t, d, nil)
	gate := fifo(t)
	s := d.next()
	s.launch(1, sh("echo result"))
	s.launch(2, sh("cat "+gate))
	s.end(1)
	s.hangUp(status.Error(codes.Unavailable, "a test"))
	for range 2 {
		s = d.next()
		if holds := s.register.GetHolds(); len(holds) != 2 {
			t.Fatalf("it holds %v, want both attempts", holds)
		}
		if r := s.end(1); string(r.GetOutput()) != "result\n" {
			t.Errorf("told again: %v", r)
		}
		s.send(&apiv1.AttachResponse{Reconnect: &apiv1.Reconnect{Reason: "a test"}})
	}
	s = d.next()
	s.ack(1)
	write(t, gate, "went on")
	if r := s.end(2); string(r.GetOutput()) != "went on" {
		t.Errorf("the one that ran meanwhile: %v", r)
	}
	s.ack(2)
	s.hangUp(status.Error(codes.Unavailable, "a test"))
	if s = d.next(); len(s.register.GetHolds()) != 0 {
		t.Errorf("it still holds %v", s.register.GetHolds())
	}
}

// What the daemon does not want any more is ended, and nothing is said about it.
func TestDiscard(t *testing.T) {
	d := newDaemon(t)
	run(t, d, nil)
	s := d.next()
	s.launch(1, sh("sleep 1000"))
	s.launch(2, sh("true"))
	s.started()
	s.end(2)
	s.hangUp(status.Error(codes.Aborted, "a test"))
	s = d.knock()
	s.send(&apiv1.AttachResponse{Admitted: &apiv1.Admitted{Discard: []*apiv1.TaskRef{taskRef(1), taskRef(2), taskRef(9)}}})
	s.launch(3, sh("true"))
	s.launch(4, sh("true"))
	s.report(func(r *apiv1.Report) bool {
		if id := r.GetTask().GetTask(); id < 3 && r.GetOutcome() != apiv1.Outcome_OUTCOME_STARTED {
			t.Errorf("told of a discarded attempt: %v", r)
		}
		return r.GetTask().GetTask() == 4 && r.GetOutcome() == apiv1.Outcome_OUTCOME_SUCCEEDED
	})
	s.launch(9, sh("true")) // discarding what was never given is not killing what will be
	if r := s.end(9); r.GetOutcome() != apiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("%v", r)
	}
}

// An executor that is drained finishes what runs, returns everything else, and waits to be stopped.
func TestDrainAndStop(t *testing.T) {
	d := newDaemon(t)
	x := run(t, d, func(c *executor.Config) { c.Slots = 1 })
	gate := fifo(t)
	s := d.next()
	s.launch(1, sh("cat "+gate))
	s.launch(2, sh("true"))
	s.started()
	s.send(&apiv1.AttachResponse{Drain: &apiv1.Drain{Reason: "too many"}})
	if r := s.end(2); r.GetOutcome() != apiv1.Outcome_OUTCOME_RETURNED {
		t.Errorf("the waiting one: %v", r)
	}
	s.launch(3, sh("true"))
	if r := s.end(3); r.GetOutcome() != apiv1.Outcome_OUTCOME_RETURNED || !strings.Contains(r.GetText(), "too many") {
		t.Errorf("the late one: %v", r)
	}
	write(t, gate, "")
	if r := s.end(1); r.GetOutcome() != apiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("the running one: %v", r)
	}
	s.send(&apiv1.AttachResponse{Stop: &apiv1.Stop{Reason: "enough"}})
	if err := x.end(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// Stopping ends what still runs.
func TestStopEndsTasks(t *testing.T) {
	d := newDaemon(t)
	x := run(t, d, nil)
	s := d.next()
	s.ready(1, stubborn)
	s.send(&apiv1.AttachResponse{Stop: &apiv1.Stop{Reason: "enough"}})
	if err := x.end(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if left, err := os.ReadDir(x.cfg.WorkDir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A refused executor does not come again.
func TestRefused(t *testing.T) {
	for _, code := range []codes.Code{codes.PermissionDenied, codes.Unauthenticated, codes.FailedPrecondition} {
		d := newDaemon(t)
		x := run(t, d, nil)
		d.knock().hangUp(status.Error(code, "executor 3 was given up"))
		err := x.end()
		if !errors.Is(err, executor.ErrRefused) || !strings.Contains(err.Error(), "was given up") || executor.ExitCode(err) != executor.ExitRefused {
			t.Errorf("%v: %v, want a refusal with its reason", code, err)
		}
	}
}

// An executor without a daemon ends itself, and what it runs, when the lease is over; not earlier.
func TestAbandoned(t *testing.T) {
	d := newDaemon(t)
	x := run(t, d, func(c *executor.Config) { c.Lease = time.Hour })
	s := d.knock()
	const lease = 300 * time.Millisecond
	s.send(&apiv1.AttachResponse{Admitted: &apiv1.Admitted{Lease: durationpb.New(lease)}})
	s.launch(1, sh("sleep 1000"))
	s.started()
	gone := time.Now()
	d.server.Stop()
	err := x.end()
	if !errors.Is(err, executor.ErrAbandoned) || executor.ExitCode(err) != executor.ExitAbandoned {
		t.Errorf("it ended with %v", err)
	}
	if lasted := time.Since(gone); lasted < lease {
		t.Errorf("it gave up after %v", lasted)
	}
}

// The lease also bounds the wait for a daemon that was never there, or that does not answer.
func TestNeverAdmitted(t *testing.T) {
	d := newDaemon(t)
	x := run(t, d, func(c *executor.Config) { c.Lease = 200 * time.Millisecond }) // the daemon takes the call and says nothing
	if err := x.end(); !errors.Is(err, executor.ErrAbandoned) {
		t.Errorf("a silent daemon: %v", err)
	}
	d.server.Stop()
	x = run(t, d, func(c *executor.Config) { c.Lease = 200 * time.Millisecond })
	if err := x.end(); !errors.Is(err, executor.ErrAbandoned) {
		t.Errorf("no daemon: %v", err)
	}
}

// A daemon that comes back in time finds the executor.
func TestDaemonRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daemon.sock")
	d := serve(t, path)
	run(t, d, nil)
	s := d.next()
	s.launch(1, sh("true"))
	s.end(1)
	d.server.Stop()
	d = serve(t, path)
	t.Cleanup(d.server.Stop)
	if r := d.next().end(1); r.GetOutcome() != apiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("%v", r)
	}
}

// An executor that is told to leave says so, returns what it is given, finishes what runs, and goes when the ends are acknowledged.
func TestLeave(t *testing.T) {
	d := newDaemon(t)
	x := run(t, d, func(c *executor.Config) { c.LeaveGrace = time.Hour })
	gate := fifo(t)
	s := d.next()
	s.launch(1, sh("cat "+gate))
	s.started()
	x.leave()
	if m := receive(t, s.heard, "word that it leaves"); m.GetLeave() == nil {
		t.Errorf("it said %v, want that it leaves", m)
	}
	s.launch(2, sh("true"))
	if r := s.end(2); r.GetOutcome() != apiv1.Outcome_OUTCOME_RETURNED {
		t.Errorf("given meanwhile: %v", r)
	}
	write(t, gate, "")
	if r := s.end(1); r.GetOutcome() != apiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("it did not finish its task: %v", r)
	}
	select {
	case err := <-x.ended:
		t.Fatalf("it went without an acknowledgement: %v", err)
	default:
	}
	s.ack(1, 2)
	if err := x.end(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// Grace has an end: what does not finish is given up, and that is told.
func TestLeaveWithoutGrace(t *testing.T) {
	d := newDaemon(t)
	x := run(t, d, func(c *executor.Config) { c.LeaveGrace, c.KillGrace = 0, 20*time.Millisecond })
	s := d.next()
	s.ready(1, stubborn)
	x.leave()
	if r := s.end(1); r.GetOutcome() != apiv1.Outcome_OUTCOME_RETURNED {
		t.Errorf("given up: %v", r)
	}
	s.ack(1)
	if err := x.end(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// An idle executor goes at once, and the daemon hears that it does.
func TestLeaveIdle(t *testing.T) {
	d := newDaemon(t)
	x := run(t, d, func(c *executor.Config) { c.LeaveGrace = time.Hour })
	s := d.next()
	x.leave()
	if m := receive(t, s.heard, "word that it leaves"); m.GetLeave() == nil {
		t.Errorf("it said %v, want that it leaves", m)
	}
	if err := x.end(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// A daemon that reads nothing holds up reports, but neither tasks nor orders; everything arrives when it reads again, in messages within bounds.
func TestSlowDaemon(t *testing.T) {
	d := newDaemon(t)
	run(t, d, func(c *executor.Config) { c.Slots = 4 })
	s := d.knock()
	s.send(&apiv1.AttachResponse{Admitted: &apiv1.Admitted{OutputLimitBytes: 1 << 30}})
	log := fifo(t)
	const n = 12
	for id := uint64(1); id <= n; id++ {
		s.launch(id, sh("head -c 3000000 /dev/zero; echo x > "+log))
	}
	reader, err := os.OpenFile(log, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for done := 0; done < n; { // all of them run although nobody reads the reports
		buffer := make([]byte, 64)
		k, err := reader.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		done += bytes.Count(buffer[:k], []byte("x"))
	}
	ends := 0
	for ends < n {
		for _, r := range receive(t, s.heard, "reports").GetReports() { // a message beyond the bound would break the stream
			if r.GetOutcome() == apiv1.Outcome_OUTCOME_SUCCEEDED {
				ends++
				if len(r.GetOutput()) != 2<<20 || !r.GetTruncated() {
					t.Errorf("%d bytes of output, want the most that fits", len(r.GetOutput()))
				}
			}
		}
	}
}

// An executor that is given far more than it has slots for returns the rest.
func TestFarTooManyLaunches(t *testing.T) {
	d := newDaemon(t)
	run(t, d, func(c *executor.Config) { c.Slots = 1 })
	s := d.next()
	s.launch(1, sh("sleep 1000"))
	m := &apiv1.AttachResponse{}
	for id := uint64(2); id < 1100; id++ {
		m.Launches = append(m.Launches, &apiv1.Launch{Task: taskRef(id), Spec: sh("true")})
	}
	s.send(m)
	if r := s.end(1099); r.GetOutcome() != apiv1.Outcome_OUTCOME_RETURNED {
		t.Errorf("the last: %v", r)
	}
}

// What is wrong with a configuration is told all at once, and never shows the token.
func TestConfig(t *testing.T) {
	_, err := executor.New(executor.Config{Address: "here", Token: "se cret", Slots: 5000, LeaveGrace: -1, CAFile: "/no/such"}, nil)
	for _, want := range []string{"address:", "application:", "namespace:", "executor:", "token:", "slots:", "lease:", "leaveGrace:", "caFile:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell of %s", err, want)
		}
	}
	cfg := executor.Config{Token: "canary"}
	text, marshalled := fmt.Sprintf("%v %+v %#v %s", cfg, cfg, cfg, cfg.Token), new(bytes.Buffer)
	if b, fault := cfg.Token.MarshalText(); fault == nil {
		marshalled.Write(b)
	}
	if strings.Contains(text+marshalled.String()+fmt.Sprint(err), "canary") || strings.Contains(err.Error(), "se cret") {
		t.Errorf("the token shows in %s", text)
	}
}
