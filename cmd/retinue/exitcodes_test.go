package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// calling are the commands that ask the daemon, each as it is meant to be used. @ stands for a folder with files that are in order.
var calling = []string{
	"apply -f @/app.yaml", "delete a", "delete app a", "describe a", "describe app a", "describe executor a 1", "describe task a t",
	"drain a 1", "drain executor a 1", "get apps", "get apps a", "get apps -w", "get executors --app a", "get executors --app a -w", "get policies", "get tasks --app a",
	"get tasks --app a -w", "kill executor a 1", "kill task a t", "logs a 1", "logs executor a 1", "logs task a t", "policy load direct --app a",
	"policy load @/module.wasm", "policy load nope --default", "policy rollback a", "policy rollback app a", "policy status", "policy status a", "policy status app a",
	"run --app a -- true", "run --app a --detach -- true", "scale a 1", "scale app a 1", "stop a", "stop app a",
}

// written are command lines that are wrong whatever the daemon would say, and what they lead to.
var written = map[string]int{
	"get apps --no-such-flag": exitUsage, "get nothing": exitUsage, "nothing": exitUsage, "apply -f @/nope.yaml": exitUsage, "apply": exitUsage,
	"delete": exitUsage, "delete app": exitUsage, "delete task a t": exitUsage, "describe a 1": exitUsage, "describe task a": exitUsage, "drain a x": exitUsage,
	"kill a 1": exitUsage, "kill task a": exitUsage, "logs a t": exitUsage, "policy load @/nope.wasm": exitUsage, "policy load a --mode scale": exitUsage,
	"policy test direct @/nope.yaml": exitUsage, "policy test nope @/app.yaml": exitNotFound, "run -- true": exitUsage, "run --app a": exitUsage,
	"run --app a --tasks @/twice.yaml": exitUsage, "run --app a --input @/large -- cat": exitUsage, "run --app a --input @/none -- cat": exitUsage,
	"help nothing": exitUsage, "help get nothing": exitUsage, "help get apps": exitOK, "help policy load": exitOK, "help help": exitOK, "run --app a --env X -- cat": exitUsage,
	"scale a": exitUsage, "scale a many": exitUsage, "stop": exitUsage, "version -o xml": exitUsage, "version": exitOK, "version -o json": exitOK, "help": exitOK,
	"help exit-codes": exitOK, "exit-codes": exitOK, "help manifest": exitOK, "manifest": exitOK, "get": exitOK, "local": exitOK, "policy": exitOK, "apply --dry-run -f @/app.yaml": exitOK, "completion bash": exitOK,
	"local status --dir @/none": exitFailed, "local kubeconfig --dir @/none": exitFailed, "local down --dir @/none": exitOK,
}

// Whatever the daemon answers, every command ends with the code that the table has for it.
func TestExitCodesOfAnswers(t *testing.T) {
	dir := files(t)
	for _, c := range []struct {
		answer codes.Code
		want   int
	}{
		{codes.NotFound, exitNotFound},
		{codes.PermissionDenied, exitRefused},
		{codes.Unauthenticated, exitRefused},
		{codes.InvalidArgument, exitUsage},
		{codes.FailedPrecondition, exitFailed},
		{codes.Internal, exitFailed},
		{codes.AlreadyExists, exitFailed},
		{codes.Unavailable, exitUnreachable},
		{codes.DeadlineExceeded, exitUnreachable},
		{codes.Canceled, exitInterrupted},
	} {
		socket := refusing(t, c.answer)
		for _, line := range calling {
			if code, _, complaint := called(t, dir, "--daemon unix://"+socket+" "+line); code != c.want || complaint == "" {
				t.Errorf("%s, answered %v: code %d, %q; want %d and a sentence", line, c.answer, code, complaint, c.want)
			}
		}
	}
}

// Where no daemon is, every command that needs one ends with 3.
func TestExitCodesWithoutADaemon(t *testing.T) {
	dir := files(t)
	var all sync.WaitGroup
	for _, line := range calling {
		all.Go(func() { // at once: each waits for a daemon that is perhaps starting
			if code, _, complaint := called(t, dir, "--daemon unix://"+dir+"/nobody "+line); code != exitUnreachable || !strings.Contains(complaint, "is retinued running?") {
				t.Errorf("%s: code %d, %q; want %d and what to do", line, code, complaint, exitUnreachable)
			}
		})
	}
	all.Wait()
}

// What is written wrongly ends with 2 before anybody is asked, and what needs nobody ends well.
func TestExitCodesOfWords(t *testing.T) {
	dir := files(t)
	socket := refusing(t, codes.Internal)
	for line, want := range written {
		code, out, complaint := called(t, dir, "--daemon unix://"+socket+" "+line)
		if code != want || (code == exitOK) != (complaint == "") || (code == exitOK && out == "") {
			t.Errorf("%s: code %d, %q; want %d", line, code, complaint, want)
		}
	}
}

// Every command is among those that are tried.
func TestExitCodesAreTriedOfAll(t *testing.T) {
	var tried []string
	for _, line := range calling {
		tried = append(tried, line+" ")
	}
	for line := range written {
		tried = append(tried, line+" ")
	}
	untried := map[string]bool{"retinue local up": true} // starts a process; scripts try it
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		line := strings.TrimPrefix(cmd.CommandPath(), "retinue") + " "
		if line == " " || untried[cmd.CommandPath()] || strings.HasPrefix(line, " completion") {
			return
		}
		if !slices.ContainsFunc(tried, func(t string) bool { return strings.HasPrefix(" "+t, line) }) {
			t.Errorf("no line tries%s", line)
		}
	}
	visit(newRoot(&program{streams: streams{out: &bytes.Buffer{}, err: &bytes.Buffer{}}}))
}

// The help has the table, and the table every code.
func TestExitCodesAreExplained(t *testing.T) {
	_, out, _ := called(t, "", "help exit-codes")
	for _, code := range []int{exitOK, exitFailed, exitUsage, exitUnreachable, exitNotFound, exitRefused, exitInterrupted} {
		if !strings.Contains(out, fmt.Sprintf("\n  %3d   ", code)) {
			t.Errorf("code %d is not explained in:\n%s", code, out)
		}
	}
}

// called runs the program with a line of words.
func called(t *testing.T, dir, line string) (code int, out, complaint string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	words := strings.Fields(strings.ReplaceAll(line, "@", dir))
	code = run(t.Context(), words, streams{in: strings.NewReader(""), out: &stdout, err: &stderr})
	return code, stdout.String(), stderr.String()
}

// files makes a folder of files that are in order, and of some that are not.
func files(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"app.yaml": "id: a\nprofiles: [{name: worker}]\n", "module.wasm": "any bytes", "large": strings.Repeat("x", 5<<20),
		"twice.yaml": "- {key: k, command: [a]}\n- {key: k, command: [b]}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// refusing is the socket of a daemon that answers every call with a code.
func refusing(t *testing.T, code codes.Code) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return status.Error(code, "the daemon's sentence") }))
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { server.Stop(); running.Wait() })
	return socket
}
