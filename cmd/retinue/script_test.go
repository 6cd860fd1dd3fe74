package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/cluster/local"
	"github.com/retinue-sched/retinue/test/fleet"
)

// The programs do what the scripts say: with a real cluster, a real daemon and real executors where a script starts them.
func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the programs and runs fleets; left out with -short")
	}
	bin := t.TempDir()
	if err := fleet.Build(t.Context(), bin, "cmd/retinue", "cmd/retinued", "cmd/retinue-executor"); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               func(env *testscript.Env) error { return setUp(t, env, bin) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "await": await, "answers": answers,
		},
	})
}

// scriptVariables are what a script's programs are told. They stand in a list because a command of ours cannot ask a script for all of them.
var scriptVariables = []string{
	"PATH", "HOME", "TMPDIR", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "RETINUE_DAEMON", "RETINUE_STATE", "RETINUE_LISTEN__SOCKET",
	"RETINUE_EXECUTORS__PROGRAM", "RETINUE_CLUSTER__KUBECONFIG", "RETINUE_TELEMETRY__ADDRESS",
}

// setUp points the programs at a folder of the script's own, and ends the cluster there however the script ends.
func setUp(t *testing.T, env *testscript.Env, bin string) error {
	in := func(name string) string { return filepath.Join(env.WorkDir, name) }
	env.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	tree, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	env.Setenv("TREE", tree)
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("XDG_STATE_HOME", in("state"))
	env.Setenv("XDG_RUNTIME_DIR", "")
	env.Setenv("RETINUE_DAEMON", "unix://"+in("d.sock"))
	env.Setenv("RETINUE_STATE", in("retinued"))
	env.Setenv("RETINUE_LISTEN__SOCKET", in("d.sock"))
	env.Setenv("RETINUE_EXECUTORS__PROGRAM", filepath.Join(bin, "retinue-executor"))
	env.Setenv("RETINUE_CLUSTER__KUBECONFIG", in("c/kubeconfig"))
	env.Setenv("RETINUE_TELEMETRY__ADDRESS", "")
	env.Setenv("RETINUE_POLICY__INTERPRETER", "true") // compiling takes its time, cannot be broken off, and is not what is tested here
	env.Setenv("RETINUE_POLICY__STARTTIMEOUT", "20s") // uncompiled modules start slowly
	env.Setenv("RETINUE_APPLICATION__DECISIONDEADLINE", "30s")
	env.Defer(func() {
		const bound = time.Minute
		ctx, cancel := context.WithTimeout(context.Background(), bound) // the test's own context may be over
		defer cancel()
		if status, err := local.Inspect(ctx, in("c")); err != nil || !status.Running {
			return
		}
		if err := local.Down(ctx, in("c")); err != nil {
			t.Errorf("ending the local cluster: %v", err)
		}
	})
	return nil
}

// exits CODE PROGRAM ARGS... runs a program that must end with a code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(ts.Exec(args[1], args[2:]...), &exit) {
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%q ended with %d, want %d", args[1:], got, want)
	}
}

// await REGEXP PROGRAM ARGS... runs a program that goes on, until a line of its output matches. Then it interrupts the program, which must say so by its
// exit code.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await REGEXP PROGRAM ARGS...")
	}
	wanted, err := regexp.Compile(args[0])
	ts.Check(err)
	const bound = time.Minute
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	program, err := exec.LookPath(filepath.Join(filepath.Dir(ts.Getenv("RETINUE_EXECUTORS__PROGRAM")), args[1]))
	ts.Check(err)
	cmd := exec.CommandContext(ctx, program, args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range scriptVariables {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	seen := matched(ts, out, wanted)
	ts.Check(cmd.Process.Signal(os.Interrupt))
	err = cmd.Wait()
	if !seen {
		ts.Fatalf("%q never wrote a line like %s; it ended with %v: %s", args[1:], wanted, err, &complaints)
	}
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		ts.Fatalf("%q was interrupted and ended with %d, want %d: %s", args[1:], code, exitInterrupted, &complaints)
	}
}

func matched(ts *testscript.TestScript, out io.Reader, wanted *regexp.Regexp) bool {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		ts.Logf("%s", lines.Text())
		if wanted.MatchString(lines.Text()) {
			return true
		}
	}
	return false
}

// answers waits until the daemon answers.
func answers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: answers")
	}
	conn, err := grpc.NewClient(ts.Getenv("RETINUE_DAEMON"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	ts.Check(err)
	defer func() { _ = conn.Close() }()
	const bound = time.Minute
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	_, err = apiv1.NewApplicationServiceClient(conn).ListApplications(ctx, &apiv1.ListApplicationsRequest{}, grpc.WaitForReady(true))
	ts.Check(err)
}
