package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// formats are what -o takes.
var formats = []string{"table", "wide", "json", "yaml", "name"}

// output is how the things of one kind are shown.
type output[T any] struct {
	plural  string // what several of them are called
	columns []column[T]
	name    func(T) string // kind/name, for -o name; also what tells one thing from another
	message func(T) proto.Message
}

// listing is what `get` is told, whatever it gets.
type listing struct {
	format string
	watch  bool
}

// flags adds what all listings have.
func (l *listing) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&l.format, "output", "o", "table", "how to show it: "+strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)) // fails only without the flag
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if !slices.Contains(formats, l.format) {
			return usagef("-o %s is not a format%s", l.format, suggest(l.format, formats))
		}
		return nil
	}
}

// watchFlag adds -w.
func (l *listing) watchFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&l.watch, "watch", "w", false, "go on, and show what changes until interrupted")
}

// show prints rows. As JSON and YAML it prints the answer they came with, or the row itself if one was asked for by name.
func (o output[T]) show(p *program, format string, rows []T, answer proto.Message, one bool) error {
	switch format {
	case "json", "yaml":
		if one && len(rows) == 1 {
			answer = o.message(rows[0])
		}
		text, err := marshal(answer, format)
		if err != nil {
			return err
		}
		p.printf("%s", text)
	case "name":
		for _, row := range rows {
			p.printf("%s\n", clean(o.name(row)))
		}
	default:
		if len(rows) == 0 {
			fmt.Fprintf(p.err, "there are no %s\n", o.plural)
			return nil
		}
		p.printf("%s", newTable(o.columns, format == "wide").lines(rows...))
	}
	return nil
}

// watcher shows rows as they change.
type watcher[T any] struct {
	output[T]
	p      *program
	format string
	table  *table[T]
	seen   map[string]string // what was shown last, by name
}

func (o output[T]) watcher(p *program, format string) *watcher[T] {
	return &watcher[T]{output: o, p: p, format: format, table: newTable(o.columns, format == "wide"), seen: make(map[string]string)}
}

// show prints those of the rows that differ from what was shown of them before.
func (w *watcher[T]) show(rows ...T) error {
	var changed []T
	for _, row := range rows {
		text, err := w.text(row)
		if err != nil {
			return err
		}
		name := w.name(row)
		if before, known := w.seen[name]; known && before == text {
			continue
		}
		w.seen[name] = text
		changed = append(changed, row)
		if !w.tabular() {
			w.p.printf("%s", text)
		}
	}
	if w.tabular() && len(changed) > 0 {
		w.p.printf("%s", w.table.lines(changed...))
	}
	return nil
}

func (w *watcher[T]) tabular() bool { return w.format == "table" || w.format == "wide" }

// text is a row as it is shown; two that look alike are one.
func (w *watcher[T]) text(row T) (string, error) {
	switch w.format {
	case "json":
		text, err := compact(w.message(row))
		return string(text), err
	case "yaml":
		text, err := marshal(w.message(row), w.format)
		return "---\n" + string(text), err
	case "name":
		return clean(w.name(row)) + "\n", nil
	default:
		return strings.Join(w.table.lasting(row), "\x00"), nil
	}
}

// names lists what was shown, in order.
func (w *watcher[T]) names() []string { return slices.Sorted(maps.Keys(w.seen)) }

// keep tells of everything that was shown and is not among what is there that it is gone.
func (w *watcher[T]) keep(there ...T) {
	names := make(map[string]bool, len(there))
	for _, row := range there {
		names[w.name(row)] = true
	}
	for _, name := range w.names() {
		if !names[name] {
			w.gone(name)
		}
	}
}

// gone tells that something is not there any more.
func (w *watcher[T]) gone(name string) {
	if _, known := w.seen[name]; !known {
		return
	}
	delete(w.seen, name)
	if w.tabular() {
		w.p.printf("%s is gone\n", clean(name))
	}
}

// marshal writes a message as JSON or YAML for programs.
func marshal(m proto.Message, format string) ([]byte, error) {
	text, err := jsonOf(m)
	if err != nil {
		return nil, fmt.Errorf("writing the answer as %s: %w", format, err)
	}
	if format == "yaml" {
		return yaml.JSONToYAML(text)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil { // protojson's own blanks differ from build to build
		return nil, fmt.Errorf("writing the answer as JSON: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// compact is a message as one line of JSON.
func compact(m proto.Message) ([]byte, error) {
	text, err := jsonOf(m)
	if err != nil {
		return nil, fmt.Errorf("writing a change as JSON: %w", err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		return nil, fmt.Errorf("writing a change as JSON: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// jsonOf is a message as JSON. Numbers and texts that are zero are written out, so that no program need know defaults, except in a specification:
// there, nothing was said of what is zero, and what holds instead is in the status.
func jsonOf(m proto.Message) ([]byte, error) {
	switch m := m.(type) {
	case *apiv1.Application:
		spec, err := protojson.Marshal(m.GetSpec())
		if err != nil {
			return nil, err
		}
		status, err := jsonOf(m.GetStatus())
		if err != nil {
			return nil, err
		}
		return json.Marshal(struct {
			Spec   json.RawMessage `json:"spec"`
			Status json.RawMessage `json:"status"`
		}{spec, status})
	case *apiv1.ListApplicationsResponse:
		list := make([]json.RawMessage, len(m.GetApplications()))
		for i, app := range m.GetApplications() {
			text, err := jsonOf(app)
			if err != nil {
				return nil, err
			}
			list[i] = text
		}
		return json.Marshal(map[string]any{"applications": list, "nextPageToken": m.GetNextPageToken()})
	default:
		return protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	}
}
