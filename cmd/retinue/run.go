package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

// runOptions is what `run` is told.
type runOptions struct {
	app, job, profile, each, tasks, input, directory, outputDir string
	env, files                                                  []string
	timeout, deadline                                           time.Duration
	maxAttempts                                                 uint32
	detach, quiet                                               bool
}

// list is true for a job that may have many tasks, even if it has one.
func (o runOptions) list() bool { return o.each != "" || o.tasks != "" }

func newRun(p *program) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run --app APP [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command, or one for each line of a list, on an application's executors",
		Long: `Runs the command as a task on an executor and follows it to its end; its output comes out here.
A task starts in a fresh, empty folder: name files by absolute paths, or say with --directory where it shall start.
With --each FILE (or - for standard input) there is a task for each line, in which {} stands for the line.
With --tasks FILE (or -) the tasks are those in a file of YAML or JSON: a list, or a document for each, with the keys of a task
(key, command, env, input, files, directory, profile, timeout, deadline, maxAttempts, killGrace); flags count for tasks that do not say otherwise.
A task succeeds if its command ends with exit code 0. One that fails is tried again, 4 times in all unless its application says
otherwise (maxTaskAttempts); --max-attempts 1 tries it once.
The exit code is the command's own for one command; for a list it is 0 if all succeeded and 1 if not.
Ctrl-C ends the tasks, except with --detach; a second one leaves at once.`,
		Example: `  retinue run --app hello -- echo hello
  ls *.txt | retinue run --app hello --directory "$PWD" --each - -- wc -c {}
  ls "$PWD"/*.txt | retinue run --app hello --each - --max-attempts 1 -- grep -c word {}
  retinue run --app hello --tasks tasks.yaml --output-dir out`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.app == "" {
				return usagef("say on whose executors to run with --app")
			}
			job, err := o.makeJob(args, p.in)
			if err != nil {
				return err
			}
			key := p.app(o.app)
			job.Application, job.Namespace = key.id, key.namespace
			return p.connected(cmd.Context(), func(c *client.Client) error { return p.runJob(cmd.Context(), c, job, o) })
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.app, "app", "a", "", "application whose executors run it")
	flags.StringVar(&o.job, "job", "", "name of the job, made up when empty; the same name again picks up what was submitted before")
	flags.StringVar(&o.profile, "profile", "", "kind of executor; the first when empty")
	flags.StringVar(&o.each, "each", "", "file with a line for each task, or -")
	flags.StringVar(&o.tasks, "tasks", "", "file with tasks in YAML or JSON, or -")
	flags.StringVar(&o.input, "input", "", "file that is given to the command's standard input, or -")
	flags.StringVar(&o.directory, "directory", "", "working directory on the executor; a fresh folder when empty")
	flags.StringArrayVarP(&o.env, "env", "e", nil, "environment variable NAME=VALUE; may be given several times")
	flags.StringArrayVar(&o.files, "file", nil, "file of the executor's file system made visible in the working directory, NAME=PATH; may be given several times")
	flags.DurationVar(&o.timeout, "timeout", 0, "how long each attempt of a task may run; no bound when 0")
	flags.DurationVar(&o.deadline, "deadline", 0, "by when a task must have ended, counted from its submission over all waiting and all attempts; no bound when 0")
	flags.Uint32Var(&o.maxAttempts, "max-attempts", 0, "how often a task is tried; the application's default when 0")
	flags.StringVar(&o.outputDir, "output-dir", "", "folder into which each task's output goes, instead of here")
	flags.BoolVar(&o.detach, "detach", false, "do not wait; see how it goes with: retinue get tasks")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	exclude(cmd, [2]string{"each", "tasks"}, [2]string{"detach", "output-dir"})
	return cmd
}

// runJob submits the job and follows it.
func (p *program) runJob(ctx context.Context, c *client.Client, job client.Job, o runOptions) error {
	if err := p.there(ctx, c, job); err != nil {
		return err
	}
	if o.detach {
		name, err := c.Submit(ctx, job)
		if err != nil {
			return p.refusal(ctx, c, job, err)
		}
		p.printf("job %s: %s submitted; see `retinue get tasks --app %s --job %s`\n", name, count(len(job.Tasks), "task"), o.app, name)
		return nil
	}
	if o.outputDir != "" {
		if err := os.MkdirAll(o.outputDir, 0o755); err != nil {
			return usagef("making the folder for output: %v", err)
		}
	}
	job.Name = client.JobName(job.Name)
	f := &followed{p: p, o: o, job: job, progress: newProgress(p.err, len(job.Tasks), o.quiet)}
	f.progress.passing = !o.list()
	job.Changed = f.changed
	stop := f.progress.fleet(ctx, c, job)
	err := c.Run(ctx, job)
	stop()
	f.progress.close(err)
	if err != nil && ctx.Err() != nil {
		return p.interrupted(context.WithoutCancel(ctx), c, job)
	}
	if errors.Is(err, client.ErrIncomplete) {
		err = f.failure()
	}
	return errors.Join(p.refusal(ctx, c, job, err), f.err)
}

// blamed makes what the client found wrong with a job, before it called anybody, an error in what a person wrote.
func blamed(err error) error {
	if known := (*exitError)(nil); err == nil || errors.As(err, &known) {
		return err
	}
	if _, _, fromCall := client.Explain(err); fromCall || errors.Is(err, context.Canceled) {
		return err
	}
	return usagef("%w", err)
}

// there asks for the application once, because a job waits for a daemon that goes away in the middle, and would for one that was never there.
func (p *program) there(ctx context.Context, c *client.Client, job client.Job) error {
	ctx, cancel := p.request(ctx)
	defer cancel()
	got, err := c.Applications.GetApplication(ctx, &apiv1.GetApplicationRequest{Application: job.Application, Namespace: job.Namespace})
	if err != nil {
		return err
	}
	return working(got.GetApplication())
}

// interrupted ends the tasks of a job that a person no longer wants.
func (p *program) interrupted(ctx context.Context, c *client.Client, job client.Job) error {
	fmt.Fprintf(p.err, "retinue: interrupted: ending the tasks of job %s; once more leaves at once\n", job.Name)
	ctx, cancel := p.request(ctx)
	defer cancel()
	got, err := c.Tasks.CancelTasks(ctx, &apiv1.CancelTasksRequest{Application: job.Application, Namespace: job.Namespace, Job: job.Name})
	if err != nil {
		return &exitError{code: exitInterrupted, err: fmt.Errorf("interrupted; job %s goes on, because ending it did not work: %w", job.Name, p.explain(err, func() bool { return p.answers(ctx, c) }))}
	}
	return &exitError{code: exitInterrupted, err: fmt.Errorf("interrupted: what had not ended of job %s was told to end: %s", job.Name, count(got.GetCount(), "task"))}
}
