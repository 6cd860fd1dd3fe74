package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// readyWord is what a started cluster says once it can be used; anything else is why it cannot.
const readyWord = "ready"

// Up starts a local cluster as a process of its own, which outlives this one, and returns once it can be used. When one
// is running in the folder already it says so on o.Out and succeeds.
func Up(ctx context.Context, o Options) error {
	o, err := o.complete()
	if err != nil {
		return fmt.Errorf("starting a local cluster: %w", err)
	}
	if err = os.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("starting a local cluster: %w", err)
	}
	word := "started"
	for {
		err = spawn(ctx, o)
		if err == nil {
			break
		}
		if there, _ := held(places(o.Dir).lock()); !there {
			return fmt.Errorf("starting a local cluster in %s: %w", o.Dir, err)
		}
		word = "running already"
		err = waitReady(ctx, o.Dir)
		if err == nil {
			break
		}
		if !errors.Is(err, errEnded) { // one that was just ending makes room for ours
			return fmt.Errorf("waiting for the local cluster in %s: %w", o.Dir, err)
		}
	}
	at := places(o.Dir)
	f, err := at.readFacts()
	if err != nil {
		return fmt.Errorf("looking at the local cluster in %s: %w", o.Dir, err)
	}
	fmt.Fprintf(o.Out, "local cluster %s at %s (process %d)\nexport KUBECONFIG=%s\n", word, f.url(), f.PID, at.kubeconfig())
	return nil
}

// spawn starts the cluster's process and waits for its word.
func spawn(ctx context.Context, o Options) error {
	if there, err := held(places(o.Dir).lock()); there || err != nil {
		return errors.Join(err, ErrRunning)
	}
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	log, err := openLog(places(o.Dir).log())
	if err != nil {
		return err
	}
	defer log.Close()
	word, child, err := os.Pipe()
	if err != nil {
		return err
	}
	defer word.Close()
	cmd := exec.Command(o.Executable)
	cmd.Args = []string{serverArgv0}
	cmd.Dir = o.Dir
	cmd.Stdin = bytes.NewReader(text)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{child}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives this process, and its terminal
	err = cmd.Start()
	child.Close()
	if err != nil {
		return err
	}
	said, err := listenFor(ctx, word)
	switch {
	case err != nil:
		return errors.Join(err, cmd.Process.Kill(), ignoreExit(cmd.Wait()))
	case said == readyWord:
		return cmd.Process.Release()
	case said == "":
		said = fmt.Sprintf("it ended without a word: see %s", places(o.Dir).log())
	}
	return errors.Join(errors.New(said), ignoreExit(cmd.Wait()))
}

func ignoreExit(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil
	}
	return err
}

func listenFor(ctx context.Context, word *os.File) (string, error) {
	stop := context.AfterFunc(ctx, func() { word.Close() })
	said, err := io.ReadAll(word)
	if !stop() {
		return "", context.Cause(ctx)
	}
	return strings.TrimSpace(string(said)), err
}

// mostLog is the size from which a log is put aside when a cluster starts.
const mostLog = 4 << 20

func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > mostLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// serveHidden is the life of the process that Up starts: options on standard input, its word on descriptor 3.
func serveHidden() int {
	word := os.NewFile(3, "word")
	syscall.CloseOnExec(3)
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	say := func(text string) {
		fmt.Fprintln(word, text)
		word.Close()
	}
	var o Options
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		say(fmt.Sprintf("reading the options: %v", err))
		return 1
	}
	o.Log = log
	o.Ready = func(Status) { say(readyWord) }
	if err := Serve(ctx, o); err != nil {
		log.LogAttrs(ctx, slog.LevelError, "local cluster failed", slog.Any("error", err))
		say(err.Error())
		return 1
	}
	return 0
}
