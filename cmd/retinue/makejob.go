package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"
	yaml "sigs.k8s.io/yaml/goyaml.v3"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

// makeJob makes the job that the options and the command ask for.
func (o runOptions) makeJob(command []string, stdin io.Reader) (client.Job, error) {
	job := client.Job{Name: o.job}
	if err := o.consistent(command); err != nil {
		return job, err
	}
	base, err := o.base(stdin)
	if err != nil {
		return job, err
	}
	switch {
	case o.tasks != "":
		job.Tasks, err = o.fromFile(base, stdin)
	case o.each != "":
		job.Tasks, err = o.fromLines(base, command, stdin)
	default:
		base.Command = command
		job.Tasks = []*apiv1.TaskSpec{base}
	}
	return job, err
}

// consistent refuses options that do not go together.
func (o runOptions) consistent(command []string) error {
	switch {
	case o.tasks != "" && len(command) > 0:
		return usagef("the commands are in the file of --tasks, so there is none to be given here")
	case o.tasks == "" && len(command) == 0:
		return usagef("run takes a command: retinue run --app APP -- COMMAND [ARGUMENT...]")
	case o.deadline < 0:
		return usagef("--deadline %v is over before the task begins: leave it out if a task may take for ever", o.deadline)
	case o.input == "-" && (o.each == "-" || o.tasks == "-"):
		return usagef("standard input cannot be both the list and the input of its tasks")
	case o.each != "" && !slices.ContainsFunc(command, func(word string) bool { return strings.Contains(word, "{}") }):
		return usagef("no word of the command holds {}, which stands for the line of --each: all tasks would be the same")
	}
	return nil
}

// base is what the flags say of every task.
func (o runOptions) base(stdin io.Reader) (*apiv1.TaskSpec, error) {
	base := &apiv1.TaskSpec{Profile: o.profile, Directory: o.directory, MaxAttempts: o.maxAttempts}
	if o.timeout > 0 {
		base.Timeout = durationpb.New(o.timeout)
	}
	if o.deadline > 0 {
		base.Deadline = durationpb.New(o.deadline)
	}
	for _, pair := range o.env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, usagef("--env %q is not NAME=VALUE", pair)
		}
		base.Env = append(base.Env, &apiv1.EnvVar{Name: name, Value: value})
	}
	for _, pair := range o.files {
		name, path, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, usagef("--file %q is not NAME=PATH", pair)
		}
		base.Files = append(base.Files, &apiv1.FileRef{Name: name, Path: path})
	}
	if o.input != "" {
		content, err := readAll(o.input, stdin, apiv1.MaxMessage)
		if err != nil {
			return nil, usagef("reading the input: %w%s", err, inputHint(err))
		}
		base.Input = content
	}
	return base, nil
}

// inputHint says what to do instead with an input that cannot be read.
func inputHint(err error) string {
	if errors.Is(err, errTooLarge) {
		return ": put it where the executors are, and name it with --file"
	}
	return ": --input takes a file of this machine, or - for the standard input"
}

// errTooLarge reports that there is more to read than may be.
var errTooLarge = errors.New("it is too large")

// maxList bounds a list of tasks, in bytes, so that a wrong name does not fill the memory.
const maxList = 256 << 20

// readAll reads a file, or standard input if its name is a dash, of so many bytes at most.
func readAll(name string, stdin io.Reader, most int64) ([]byte, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // it was only read
		stdin = file
	} else {
		name = "the standard input"
	}
	content, err := io.ReadAll(io.LimitReader(stdin, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("%s has more than %d bytes: %w", name, most, errTooLarge)
	}
	return content, err
}

// fromLines makes a task for each line that is not empty.
func (o runOptions) fromLines(base *apiv1.TaskSpec, command []string, stdin io.Reader) ([]*apiv1.TaskSpec, error) {
	content, err := readAll(o.each, stdin, maxList)
	if err != nil {
		return nil, usagef("reading the list: %v", err)
	}
	var tasks []*apiv1.TaskSpec
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, len(content)+1)
	for lines.Scan() {
		if line := lines.Text(); strings.TrimSpace(line) != "" {
			t := completed(&apiv1.TaskSpec{Command: make([]string, len(command))}, base)
			for i, word := range command {
				t.Command[i] = strings.ReplaceAll(word, "{}", line)
			}
			tasks = append(tasks, t)
		}
	}
	if len(tasks) == 0 {
		return nil, usagef("the list has no lines, so there is nothing to run")
	}
	return tasks, nil
}

// completed fills in what a task does not say from what the flags say.
func completed(t, base *apiv1.TaskSpec) *apiv1.TaskSpec {
	if t.GetProfile() == "" {
		t.Profile = base.GetProfile()
	}
	if t.GetDirectory() == "" {
		t.Directory = base.GetDirectory()
	}
	if t.GetMaxAttempts() == 0 {
		t.MaxAttempts = base.GetMaxAttempts()
	}
	if t.GetTimeout() == nil {
		t.Timeout = base.GetTimeout()
	}
	if t.GetDeadline() == nil {
		t.Deadline = base.GetDeadline()
	}
	if t.GetInput() == nil {
		t.Input = base.GetInput()
	}
	own := t.GetEnv()
	t.Env = nil
	for _, e := range base.GetEnv() {
		if !slices.ContainsFunc(own, func(o *apiv1.EnvVar) bool { return o.GetName() == e.GetName() }) {
			t.Env = append(t.Env, e)
		}
	}
	t.Env = append(t.Env, own...)
	t.Files = append(slices.Clip(base.GetFiles()), t.GetFiles()...)
	return t
}

// fromFile reads tasks from documents of YAML, each a task or a list of tasks. The error names the line of everything that is wrong.
func (o runOptions) fromFile(base *apiv1.TaskSpec, stdin io.Reader) ([]*apiv1.TaskSpec, error) {
	content, err := readAll(o.tasks, stdin, maxList)
	if err != nil {
		return nil, usagef("reading the tasks: %v", err)
	}
	name := o.tasks
	if name == "-" {
		name = "standard input"
	}
	tasks, err := readTasks(name, content)
	if err != nil {
		return nil, usagef("%v", err)
	}
	for _, t := range tasks {
		completed(t, base)
	}
	return tasks, nil
}

func readTasks(name string, content []byte) ([]*apiv1.TaskSpec, error) {
	m := manifest{file: name}
	var tasks []*apiv1.TaskSpec
	keys := make(map[string]int) // the line of each
	one := func(path string, node *yaml.Node) {
		t := &apiv1.TaskSpec{}
		m.message(path, node, t.ProtoReflect())
		if t.GetJob() != "" {
			m.add(path, node, "the job is named with --job, for all tasks alike")
		}
		if len(t.GetCommand()) == 0 && node.Kind == yaml.MappingNode {
			m.add(path, node, "there is no command")
		}
		if line, twice := keys[t.GetKey()]; twice && t.GetKey() != "" {
			m.add(path, node, "the key %q is that of the task in line %d already", clean(t.GetKey()), line)
		}
		keys[t.GetKey()] = node.Line
		tasks = append(tasks, t)
	}
	m.documents(content, func(root *yaml.Node) {
		if root.Kind != yaml.SequenceNode {
			one("", root)
			return
		}
		for i, item := range root.Content {
			one(fmt.Sprintf("[%d]", i), resolve(item))
		}
	})
	if len(tasks) == 0 && len(m.problems) == 0 {
		m.problems = append(m.problems, fmt.Errorf("%s: there is no task in it", name))
	}
	return tasks, errors.Join(m.problems...)
}
