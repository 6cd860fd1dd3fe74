package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/executor"
)

// asProgram makes the test binary be the program.
const asProgram = "RETINUE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

func variables(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

// Flags win over the environment, and the environment over the defaults.
func TestConfigure(t *testing.T) {
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"RETINUE_ADDRESS": "10.0.0.1:443", "RETINUE_APPLICATION": "app", "RETINUE_NAMESPACE": "ns", "RETINUE_EXECUTOR_ID": "18446744073709551615",
		"RETINUE_TOKEN": "from-env", "RETINUE_POD_NAME": "pod", "RETINUE_POD_UID": "uid", "RETINUE_SLOTS": "4", "RETINUE_LEASE": "90s", "RETINUE_CA_FILE": "/ca",
	}
	got, _, err := configure([]string{"--slots=2", "--token-file", tokenFile}, variables(env), nil)
	want := executor.DefaultConfig()
	want.Address, want.Application, want.Namespace, want.Executor, want.Token = "10.0.0.1:443", "app", "ns", 1<<64-1, "from-file"
	want.PodName, want.PodUID, want.Slots, want.Lease, want.CAFile, want.Alone, want.Version = "pod", "uid", 2, 90*time.Second, "/ca", true, got.Version
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v; configuration (-want +got):\n%s", err, diff)
	}
	if got, _, err := configure(nil, variables(env), nil); err != nil || got.Token != "from-env" || got.Slots != 4 {
		t.Errorf("from the environment alone: %v, %v", got, err)
	}
}

// What is wrong is said in one sentence, with its own exit code.
func TestWrongUsage(t *testing.T) {
	for _, test := range []struct {
		args []string
		env  map[string]string
		want string
		code int
	}{
		{[]string{"--no-such"}, nil, "unknown flag: --no-such", 2},
		{[]string{"extra"}, nil, `unexpected argument "extra"`, 2},
		{[]string{"--log-level=loud"}, nil, `--log-level is "loud"`, 2},
		{[]string{"--log-format=xml"}, nil, `--log-format is "xml"`, 2},
		{nil, map[string]string{"RETINUE_SLOTS": "many"}, `RETINUE_SLOTS is "many", which is not a number`, 1},
		{nil, map[string]string{"RETINUE_LEASE": "5"}, `RETINUE_LEASE is "5", which is not a duration`, 1},
		{[]string{"--token-file=/no/such"}, nil, "reading the token: open /no/such", 1},
		{nil, nil, "address:", 1},
	} {
		err := run(t.Context(), test.args, variables(test.env), new(bytes.Buffer), new(bytes.Buffer))
		if err == nil || !strings.Contains(err.Error(), test.want) || exitCode(err) != test.code {
			t.Errorf("%v %v: %v (exit code %d), want %q and %d", test.args, test.env, err, exitCode(err), test.want, test.code)
		}
	}
}

// --version and --help need nothing else.
func TestVersionAndHelp(t *testing.T) {
	for _, test := range []struct{ flag, want string }{{"--version", "retinue-executor "}, {"--help", "RETINUE_ADDRESS"}} {
		out := new(bytes.Buffer)
		if err := run(t.Context(), []string{test.flag}, variables(nil), out, out); err != nil || !strings.Contains(out.String(), test.want) {
			t.Errorf("%s: %v, %q", test.flag, err, out)
		}
	}
}

// server hands each session to the test and ends it as the test says.
type server struct {
	apiv1.UnimplementedExecutorServiceServer
	serve func(apiv1.ExecutorService_AttachServer) error
}

func (s *server) Attach(stream apiv1.ExecutorService_AttachServer) error { return s.serve(stream) }

// program runs the real program against a daemon that does what serve does, and returns its exit code and what it said.
func program(t *testing.T, serve func(apiv1.ExecutorService_AttachServer, *os.Process) error) (code int, said string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "daemon.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "--log-format=json")
	cmd.Env = append(os.Environ(), asProgram+"=1", "RETINUE_ADDRESS=unix://"+socket, "RETINUE_APPLICATION=app", "RETINUE_NAMESPACE=ns",
		"RETINUE_EXECUTOR_ID=3", "RETINUE_TOKEN=canary", "RETINUE_LEASE=300ms")
	output := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = output, output
	started := make(chan *os.Process, 1)
	grpcServer := grpc.NewServer()
	apiv1.RegisterExecutorServiceServer(grpcServer, &server{serve: func(stream apiv1.ExecutorService_AttachServer) error {
		process := <-started
		started <- process
		return serve(stream, process)
	}})
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = grpcServer.Serve(listener)
	}()
	defer func() {
		grpcServer.Stop()
		<-served
	}()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started <- cmd.Process
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), output.String()
}

// The exit code tells how it ended, and the token is in nothing that it says.
func TestExitCodes(t *testing.T) {
	admitted := &apiv1.AttachResponse{Admitted: &apiv1.Admitted{Session: 1}}
	for name, test := range map[string]struct {
		serve func(apiv1.ExecutorService_AttachServer, *os.Process) error
		code  int
		said  string
	}{
		"stopped": {func(s apiv1.ExecutorService_AttachServer, _ *os.Process) error {
			if err := s.Send(admitted); err != nil {
				return err
			}
			if err := s.Send(&apiv1.AttachResponse{Stop: &apiv1.Stop{Reason: "enough"}}); err != nil {
				return err
			}
			<-s.Context().Done()
			return nil
		}, 0, "enough"},
		"refused": {func(apiv1.ExecutorService_AttachServer, *os.Process) error {
			return status.Error(codes.PermissionDenied, "executor 3 was given up")
		}, 3, "retinue-executor: the daemon refused this executor: executor 3 was given up"},
		"abandoned": {func(apiv1.ExecutorService_AttachServer, *os.Process) error {
			return status.Error(codes.Unavailable, "not now")
		}, 4, "retinue-executor: the daemon is gone: it was not reached for the lease of 300ms"},
		"terminated": {func(s apiv1.ExecutorService_AttachServer, p *os.Process) error {
			if err := s.Send(admitted); err != nil {
				return err
			}
			if err := p.Signal(syscall.SIGTERM); err != nil {
				return err
			}
			for {
				m, err := s.Recv()
				if m.GetRegister() != nil {
					continue
				}
				if err != nil || m.GetLeave() == nil {
					t.Errorf("after SIGTERM it said %v, %v; want that it leaves", m, err)
				}
				return nil
			}
		}, 0, "executor leaves"},
	} {
		code, said := program(t, test.serve)
		if code != test.code || !strings.Contains(said, test.said) {
			t.Errorf("%s: exit code %d, want %d with %q; it said:\n%s", name, code, test.code, test.said, said)
		}
		if strings.Contains(said, "canary") {
			t.Errorf("%s: the token shows: %s", name, said)
		}
	}
}
