package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

// runOptions is what `run` is told.
type runOptions struct {
	app, job, profile, each, input, directory, outputDir string
	env, files                                           []string
	timeout                                              time.Duration
	maxAttempts                                          uint32
	detach, quiet                                        bool
}

func newRun(p *program) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run --app APP [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command, or one for each line of a list, on an application's executors",
		Long: `Runs the command as a task on an executor and follows it to its end; its output comes out here.
With --each FILE (or - for standard input) there is a task for each line, in which {} stands for the line.
The exit code is the command's own for one task; for a list it is 0 if all succeeded and 1 if not.
Ctrl-C ends the tasks, except with --detach; a second one leaves at once.`,
		Example: `  retinue run --app hello -- echo hello
  ls *.txt | retinue run --app hello --each - -- wc -c {}`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("run takes a command: retinue run --app APP -- COMMAND [ARGUMENT...]")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.app == "" {
				return usagef("say on whose executors to run with --app")
			}
			job, err := o.tasks(args, p.in)
			if err != nil {
				return err
			}
			job.Namespace = p.namespace
			return p.connected(func(c *client.Client) error { return p.runJob(cmd.Context(), c, job, o) })
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.app, "app", "a", "", "application whose executors run it")
	flags.StringVar(&o.job, "job", "", "name of the job; the same name again picks up what was submitted before")
	flags.StringVar(&o.profile, "profile", "", "kind of executor; the first when empty")
	flags.StringVar(&o.each, "each", "", "file with a line for each task, or -")
	flags.StringVar(&o.input, "input", "", "file that is given to the command's standard input")
	flags.StringVar(&o.directory, "directory", "", "working directory on the executor; a fresh folder when empty")
	flags.StringArrayVarP(&o.env, "env", "e", nil, "environment variable NAME=VALUE; may be given several times")
	flags.StringArrayVar(&o.files, "file", nil, "file of the executor's file system made visible in the working directory, NAME=PATH; may be given several times")
	flags.DurationVar(&o.timeout, "timeout", 0, "how long a task may run; no bound when 0")
	flags.Uint32Var(&o.maxAttempts, "max-attempts", 0, "how often a task is tried; the application's default when 0")
	flags.StringVar(&o.outputDir, "output-dir", "", "folder into which each task's output goes, instead of here")
	flags.BoolVar(&o.detach, "detach", false, "do not wait; `retinue get tasks` shows how it goes")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	return cmd
}

// tasks makes the job.
func (o runOptions) tasks(command []string, stdin io.Reader) (client.Job, error) {
	base := &apiv1.TaskSpec{Profile: o.profile, Directory: o.directory, MaxAttempts: o.maxAttempts}
	if o.timeout > 0 {
		base.Timeout = durationpb.New(o.timeout)
	}
	for _, pair := range o.env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return client.Job{}, usagef("--env %q is not NAME=VALUE", pair)
		}
		base.Env = append(base.Env, &apiv1.EnvVar{Name: name, Value: value})
	}
	for _, pair := range o.files {
		name, path, ok := strings.Cut(pair, "=")
		if !ok {
			return client.Job{}, usagef("--file %q is not NAME=PATH", pair)
		}
		base.Files = append(base.Files, &apiv1.FileRef{Name: name, Path: path})
	}
	if o.input != "" {
		content, err := os.ReadFile(o.input)
		if err != nil {
			return client.Job{}, usagef("reading the input: %v", err)
		}
		base.Input = content
	}
	job := client.Job{Application: o.app, Name: o.job}
	lines, err := o.lines(stdin)
	if err != nil {
		return client.Job{}, err
	}
	if o.each == "" {
		job.Tasks = []*apiv1.TaskSpec{withLine(base, command, "")}
	}
	for _, line := range lines {
		job.Tasks = append(job.Tasks, withLine(base, command, line))
	}
	return job, nil
}

// withLine is a task for one line of a list.
func withLine(base *apiv1.TaskSpec, command []string, line string) *apiv1.TaskSpec {
	t := &apiv1.TaskSpec{
		Profile: base.GetProfile(), Directory: base.GetDirectory(), MaxAttempts: base.GetMaxAttempts(), Timeout: base.GetTimeout(),
		Env: base.GetEnv(), Files: base.GetFiles(), Input: base.GetInput(), Command: command,
	}
	if line != "" {
		t.Command = make([]string, len(command))
		for i, word := range command {
			t.Command[i] = strings.ReplaceAll(word, "{}", line)
		}
	}
	return t
}

// lines reads the list; empty lines are left out.
func (o runOptions) lines(stdin io.Reader) ([]string, error) {
	if o.each == "" {
		return nil, nil
	}
	in := stdin
	if o.each != "-" {
		file, err := os.Open(o.each)
		if err != nil {
			return nil, usagef("reading the list: %v", err)
		}
		defer func() { _ = file.Close() }() // it was only read
		in = file
	}
	var lines []string
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if line := scanner.Text(); strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, usagef("reading the list: %v", err)
	}
	if len(lines) == 0 {
		return nil, usagef("the list has no lines, so there is nothing to run")
	}
	return lines, nil
}

// runJob submits the job and follows it.
func (p *program) runJob(ctx context.Context, c *client.Client, job client.Job, o runOptions) error {
	if o.detach {
		name, err := c.Submit(ctx, job)
		if err != nil {
			return err
		}
		p.printf("job %s: %d tasks submitted; see `retinue get tasks --app %s --job %s`\n", name, len(job.Tasks), job.Application, name)
		return nil
	}
	if o.outputDir != "" {
		if err := os.MkdirAll(o.outputDir, 0o755); err != nil {
			return usagef("making the folder for output: %v", err)
		}
	}
	f := &followed{p: p, o: o, job: job, progress: newProgress(p.err, len(job.Tasks), o.quiet || len(job.Tasks) == 1)}
	job.Name = client.JobName(job.Name)
	job.Changed = f.changed
	stop := f.progress.fleet(ctx, c, job)
	err := c.Run(ctx, job)
	stop()
	f.progress.done()
	if ctx.Err() != nil {
		return p.interrupted(c, job)
	}
	if errors.Is(err, client.ErrIncomplete) {
		return f.failure()
	}
	return errors.Join(err, f.err)
}

// interrupted ends the tasks of a job that a person no longer wants.
func (p *program) interrupted(c *client.Client, job client.Job) error {
	ctx, cancel := p.request(context.Background())
	defer cancel()
	got, err := c.Tasks.CancelTasks(ctx, &apiv1.CancelTasksRequest{Application: job.Application, Namespace: job.Namespace, Job: job.Name})
	if err != nil {
		return &exitError{code: exitInterrupted, err: fmt.Errorf("interrupted; job %s goes on, because ending it did not work: %w", job.Name, p.explain(err))}
	}
	return &exitError{code: exitInterrupted, err: fmt.Errorf("interrupted: %d tasks of job %s are ended", got.GetCount(), job.Name)}
}

// followed is what is seen of a job.
type followed struct {
	p        *program
	o        runOptions
	job      client.Job
	progress *progress
	failed   []*apiv1.Task // the first few
	err      error         // of writing output
}

// shownFailures is how many failed tasks are told of one by one.
const shownFailures = 10

// changed sees one task's change, on one goroutine.
func (f *followed) changed(t *apiv1.Task) {
	f.progress.see(t)
	if t.GetState() < apiv1.TaskState_TASK_STATE_SUCCEEDED {
		return
	}
	if t.GetState() != apiv1.TaskState_TASK_STATE_SUCCEEDED && len(f.failed) < shownFailures {
		f.failed = append(f.failed, t)
	}
	if err := f.write(t); err != nil && f.err == nil {
		f.err = failedf("writing the output of task %s: %v", t.GetKey(), err)
	}
}

func (f *followed) write(t *apiv1.Task) error {
	output := t.GetResult().GetOutput()
	if t.GetResult().GetTruncated() {
		fmt.Fprintf(f.p.err, "retinue: the output of task %s was cut at %d bytes\n", clean(t.GetKey()), len(output))
	}
	if f.o.outputDir != "" {
		name := strings.Map(func(r rune) rune {
			if r == '/' || r == os.PathSeparator || r == 0 {
				return '_'
			}
			return r
		}, t.GetKey())
		return os.WriteFile(filepath.Join(f.o.outputDir, name), output, 0o644)
	}
	f.progress.clear()
	if _, err := f.p.out.Write(output); err != nil {
		return err
	}
	if len(f.job.Tasks) == 1 {
		_, err := f.p.err.Write(t.GetResult().GetErrors())
		return err
	}
	return nil
}

// failure tells which tasks failed and why. The exit code of a single command is the command's.
func (f *followed) failure() error {
	if len(f.job.Tasks) == 1 && len(f.failed) == 1 {
		t := f.failed[0]
		code := int(t.GetResult().GetExitCode())
		if code <= 0 || code > 255 {
			code = exitFailed
		}
		return &exitError{code: code, err: errors.New(taskFailure(t))}
	}
	var b strings.Builder
	for _, t := range f.failed {
		fmt.Fprintf(&b, "%s\n", taskFailure(t))
	}
	fmt.Fprintf(&b, "%d of %d tasks did not succeed", f.progress.unsuccessful(), len(f.job.Tasks))
	return failedf("%s", b.String())
}

func taskFailure(t *apiv1.Task) string {
	state := strings.ToLower(strings.TrimPrefix(t.GetState().String(), "TASK_STATE_"))
	text := clean(t.GetResult().GetText())
	if text == "" {
		text = fmt.Sprintf("exit code %d", t.GetResult().GetExitCode())
	}
	return fmt.Sprintf("task %s %s after %d attempts: %s", clean(t.GetKey()), state, t.GetAttempt(), text)
}
