package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

func newDescribe(p *program) *cobra.Command {
	app := describing(p, "app APP", kindOfApp, "the name of an application", 1, func(ctx context.Context, c *client.Client, args []string) (string, error) {
		app, err := p.application(ctx, c, args[0])
		return describeApp(app), err
	})
	cmd := &cobra.Command{
		Use: "describe [app] APP", Short: "Tell all about one application, executor or task",
		Example: `  retinue describe app hello
  retinue describe executor hello 3
  retinue describe task hello task-7`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("say what to describe: `retinue describe app APP`, `retinue describe executor APP ID` or `retinue describe task APP KEY`")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return app.RunE(cmd, args)
		},
	}
	cmd.AddCommand(
		app,
		describing(p, "executor APP ID", kindOfExecutor, "an application and the number of one of its executors", 2,
			func(ctx context.Context, c *client.Client, args []string) (string, error) {
				return p.describeExecutor(ctx, c, args[0], args[1])
			}),
		describing(p, "task APP KEY", []string{"tasks"}, "an application and the key of one of its tasks", 2,
			func(ctx context.Context, c *client.Client, args []string) (string, error) {
				t, err := p.task(ctx, c, args[0], args[1], false)
				return describeTask(t), err
			}),
	)
	return cmd
}

// describing is a command that prints one text about the thing that its arguments name.
func describing(p *program, use string, aliases []string, what string, n int, tell func(context.Context, *client.Client, []string) (string, error)) *cobra.Command {
	name, _, _ := strings.Cut(use, " ")
	return &cobra.Command{
		Use: use, Aliases: aliases, Short: "Tell all about one " + name, Args: takes(n, n, what),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.connected(cmd.Context(), func(c *client.Client) error {
				ctx, cancel := p.request(cmd.Context())
				defer cancel()
				text, err := tell(ctx, c, args)
				if err == nil {
					p.printf("%s", text)
				}
				return err
			})
		},
	}
}

// takes wants from least to most arguments (any number if most is 0), and says what they should be.
func takes(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && (most == 0 || len(args) <= most) {
			return nil
		}
		return usagef("%s takes %s, and got %s: %s", cmd.CommandPath(), what, count(len(args), "argument"), cmd.UseLine())
	}
}

// application is one application, by the word that a person wrote for it.
func (p *program) application(ctx context.Context, c *client.Client, word string) (*apiv1.Application, error) {
	key := p.app(word)
	got, err := c.Applications.GetApplication(ctx, &apiv1.GetApplicationRequest{Application: key.id, Namespace: key.namespace})
	return got.GetApplication(), err
}

// task is one task of an application, with what it wrote if output is set.
func (p *program) task(ctx context.Context, c *client.Client, app, key string, output bool) (*apiv1.Task, error) {
	var found *apiv1.Task
	err := p.tasks(ctx, c, p.app(app), taskFilter{keys: []string{key}, output: output}, func(tasks []*apiv1.Task) error {
		for _, t := range tasks {
			found = t
		}
		return nil
	})
	if err == nil && found == nil {
		err = notFoundf("application %s has no task %s: `retinue get tasks --app %s` lists those there are", p.app(app), clean(key), p.app(app))
	}
	return found, err
}

// sheet is a text of names and values.
type sheet struct{ strings.Builder }

// line adds a value, unless there is none.
func (s *sheet) line(name, value string) {
	if value != "" {
		fmt.Fprintf(s, "%-14s %s\n", name+":", clean(value))
	}
}

func (s *sheet) title(text string) { fmt.Fprintf(s, "\n%s:\n", text) }

// indent adds a text below a title.
func (s *sheet) indent(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(s, "  %s", line)
	}
}

// describeApp tells all about an application.
func describeApp(a *apiv1.Application) string {
	s := &sheet{}
	status := a.GetStatus()
	s.line("Name", a.GetSpec().GetId())
	s.line("Namespace", a.GetSpec().GetNamespace())
	s.line("Status", appState(a))
	s.line("Mode", status.GetMode())
	s.line("Age", age(status.GetCreatedAt()))
	for _, name := range slices.Sorted(maps.Keys(a.GetSpec().GetLabels())) {
		s.line("Label", name+"="+a.GetSpec().GetLabels()[name])
	}
	s.title("Profiles")
	s.indent(newTable(profileColumns, false).lines(status.GetProfiles()...))
	t := status.GetTasks()
	s.title("Tasks")
	fmt.Fprintf(s, "  %d accepted: %d queued, %d launched, %d running, %d succeeded, %d failed, %d cancelled, %d expired; %s\n",
		t.GetAccepted(), t.GetQueued(), t.GetLaunched(), t.GetRunning(), t.GetSucceeded(), t.GetFailed(), t.GetCancelled(), t.GetExpired(), count(t.GetRetried(), "retry"))
	s.title("Policy")
	s.indent(policyStatus(a))
	if len(status.GetConditions()) > 0 {
		s.title("Conditions")
		s.indent(newTable(conditionColumns, false).lines(status.GetConditions()...))
	}
	if len(status.GetNotices()) > 0 {
		s.title("Notices")
		s.indent(newTable(noticeColumns, false).lines(status.GetNotices()...))
	}
	return s.String()
}

var profileColumns = []column[*apiv1.ProfileStatus]{
	{title: "NAME", cell: (*apiv1.ProfileStatus).GetName},
	{title: "TARGET", cell: func(s *apiv1.ProfileStatus) string { return fmt.Sprint(s.GetTarget()) }},
	{title: "BOUNDS", cell: func(s *apiv1.ProfileStatus) string {
		if s.GetMax() == 0 {
			return fmt.Sprintf("%d..", s.GetMin())
		}
		return fmt.Sprintf("%d..%d", s.GetMin(), s.GetMax())
	}},
	{title: "STARTING", cell: func(s *apiv1.ProfileStatus) string { return fmt.Sprint(s.GetRequested() + s.GetPending()) }},
	{title: "RUNNING", cell: func(s *apiv1.ProfileStatus) string { return fmt.Sprint(s.GetRunning()) }},
	{title: "READY", cell: func(s *apiv1.ProfileStatus) string { return fmt.Sprint(s.GetRegistered()) }},
	{title: "ENDING", cell: func(s *apiv1.ProfileStatus) string { return fmt.Sprint(s.GetTerminating()) }},
	{title: "SLOTS", cell: func(s *apiv1.ProfileStatus) string { return fmt.Sprintf("%d/%d", s.GetBusySlots(), s.GetSlots()) }},
	{title: "QUEUED", cell: func(s *apiv1.ProfileStatus) string { return fmt.Sprint(s.GetQueuedTasks()) }},
	{title: "PEAK", cell: func(s *apiv1.ProfileStatus) string { return fmt.Sprint(s.GetPeak()) }},
	{title: "CREATED", cell: func(s *apiv1.ProfileStatus) string { return fmt.Sprint(s.GetCreated()) }},
}

var conditionColumns = []column[*apiv1.Condition]{
	{title: "TYPE", cell: (*apiv1.Condition).GetType},
	{title: "HOLDS", cell: func(c *apiv1.Condition) string { return yesNo(c.GetStatus()) }},
	{title: "SINCE", cell: func(c *apiv1.Condition) string { return age(c.GetSince()) }},
	{title: "REASON", cell: (*apiv1.Condition).GetReason},
	{title: "MESSAGE", cell: (*apiv1.Condition).GetMessage},
}

var noticeColumns = []column[*apiv1.Notice]{
	{title: "AGO", cell: func(n *apiv1.Notice) string { return age(n.GetAt()) }},
	{title: "TIMES", cell: func(n *apiv1.Notice) string { return fmt.Sprint(n.GetCount()) }},
	{title: "KIND", cell: (*apiv1.Notice).GetKind},
	{title: "EXECUTOR", cell: func(n *apiv1.Notice) string { return numberOrNothing(n.GetExecutor()) }},
	{title: "TEXT", cell: (*apiv1.Notice).GetText},
}

func (p *program) describeExecutor(ctx context.Context, c *client.Client, app, word string) (string, error) {
	ids, err := executorIDs([]string{word})
	if err != nil {
		return "", err
	}
	members, err := p.executors(ctx, c, p.app(app), ids)
	if err != nil {
		return "", err
	}
	var running []unit
	f := taskFilter{states: []apiv1.TaskState{apiv1.TaskState_TASK_STATE_LAUNCHED, apiv1.TaskState_TASK_STATE_RUNNING}}
	err = p.tasks(ctx, c, p.app(app), f, func(tasks []*apiv1.Task) error {
		for _, t := range tasks {
			if t.GetExecutor() == ids[0] {
				running = append(running, unit{Task: t})
			}
		}
		return nil
	})
	return describeExecutor(members[0], running), err
}

func describeExecutor(m member, running []unit) string {
	s := &sheet{}
	s.line("Executor", fmt.Sprint(m.GetId()))
	s.line("Application", m.app.String())
	s.line("Profile", m.GetProfile())
	s.line("Phase", m.GetPhase()+", for "+age(m.GetSince()))
	s.line("Ready", executorReady(m))
	s.line("Why", m.GetText())
	s.line("Pod", m.GetPodName())
	s.line("UID", m.GetPodUid())
	s.line("Node", m.GetNode())
	s.line("Age", age(m.GetAskedAt()))
	s.line("Slots", fmt.Sprintf("%d of %d busy", m.GetBusy(), m.GetSlots()))
	s.line("Tasks ended", fmt.Sprintf("%d, and %s", m.GetDone(), count(m.GetFailed(), "failed attempt")))
	if len(running) > 0 {
		s.title("Running")
		s.indent(newTable(taskOutput(false).columns, false).lines(running...))
	}
	return s.String()
}

func describeTask(t *apiv1.Task) string {
	s := &sheet{}
	s.line("Task", t.GetKey())
	s.line("Number", fmt.Sprint(t.GetId()))
	s.line("Job", t.GetJob())
	s.line("Profile", t.GetProfile())
	s.line("State", stateName(t.GetState()))
	s.line("Attempt", fmt.Sprint(t.GetAttempt()))
	s.line("Executor", numberOrNothing(t.GetExecutor()))
	s.line("Accepted", ago(age(t.GetAcceptedAt())))
	s.line("Started", ago(age(t.GetStartedAt())))
	s.line("Ended", ago(age(t.GetEndedAt())))
	s.line("Deadline", taskDeadline(t))
	words := make([]string, len(t.GetCommand()))
	for i, word := range t.GetCommand() {
		words[i] = quoteWord(word)
	}
	s.line("Command", strings.Join(words, " "))
	if r := t.GetResult(); !tried(t) {
		s.line("Why", r.GetText())
	} else {
		s.title("Newest attempt that ended")
		s.line("  Outcome", strings.ToLower(strings.TrimPrefix(r.GetOutcome().String(), "OUTCOME_")))
		s.line("  Exit code", fmt.Sprint(r.GetExitCode()))
		s.line("  Took", short(r.GetTook().AsDuration()))
		s.line("  Text", r.GetText())
		if len(r.GetErrors()) > 0 {
			s.title("End of its standard error")
			for line := range strings.Lines(string(r.GetErrors())) {
				s.indent(clean(strings.TrimRight(line, "\n")) + "\n")
			}
		}
	}
	return s.String()
}

// taskDeadline says by when a task must have ended, and how long that is from now.
func taskDeadline(t *apiv1.Task) string {
	if t.GetDeadlineAt() == nil {
		return ""
	}
	text := fmt.Sprintf("%v after it was accepted", t.GetDeadlineAt().AsTime().Sub(t.GetAcceptedAt().AsTime()))
	if left := timeLeft(t); left != "" {
		text += ", " + left + " left"
	}
	return text
}

func ago(text string) string {
	if text == "" {
		return ""
	}
	return text + " ago"
}

// quoteWord shows where a word of a command begins and ends, if that is not plain.
func quoteWord(word string) string {
	if word == "" || strings.ContainsAny(word, " \t\n\"'\\") {
		return strconv.Quote(word)
	}
	return word
}
