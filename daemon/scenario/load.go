package scenario

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// maxFile bounds a file of stories, in bytes.
const maxFile = 4 << 20

// Load reads stories. The error names every place that is not what the format says, with the line and, for a key, the nearest one. Name is what
// the errors call the file.
func Load(r io.Reader, name string) ([]Scenario, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("reading %s: it has more than %d bytes", name, maxFile)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	rd := &reader{file: name}
	var list []Scenario
	if len(document.Content) == 0 {
		return nil, fmt.Errorf("reading %s: there is no scenario in it", name)
	}
	for _, n := range rd.list(document.Content[0], "a list of scenarios") {
		list = append(list, rd.scenario(n))
	}
	return list, errors.Join(rd.errs...)
}

func (rd *reader) scenario(n *yaml.Node) Scenario {
	s := Scenario{conf: defaultConf()}
	rd.fields(n, map[string]func(*yaml.Node){
		"name": func(v *yaml.Node) { s.Name = rd.text(v) },
		"conf": func(v *yaml.Node) { rd.conf(v, &s.conf) },
		"steps": func(v *yaml.Node) {
			for _, n := range rd.list(v, "a list of steps") {
				s.steps = append(s.steps, rd.step(n))
			}
		},
	})
	if s.Name == "" {
		rd.wrong(n, "the scenario has no name")
	}
	if len(s.steps) == 0 {
		rd.wrong(n, "scenario %q has no steps", s.Name)
	}
	return s
}

func (rd *reader) conf(n *yaml.Node, c *conf) {
	ms := func(to *time.Duration) func(*yaml.Node) {
		return func(v *yaml.Node) { *to = rd.milliseconds(v) }
	}
	count := func(to *uint32) func(*yaml.Node) {
		return func(v *yaml.Node) { *to = uint32(rd.number(v, 1, math.MaxUint32)) }
	}
	rd.fields(n, map[string]func(*yaml.Node){
		"batchSize":       count(&c.batchSize),
		"idleTimeout":     ms(&c.idleTimeout),
		"batchDelay":      ms(&c.batchDelay),
		"creationTimeout": ms(&c.creationTimeout),
		"maxPending":      count(&c.maxPending),
		"maxPendingPerRp": count(&c.maxPendingPerRp),
		"maximum":         func(v *yaml.Node) { c.maximum = uint64(rd.number(v, 1, math.MaxInt64)) },
		"failDeletes":     func(v *yaml.Node) { c.failDeletes = rd.yes(v) },
		"gate":            func(v *yaml.Node) { c.gate = rd.text(v) },
	})
}

func (rd *reader) step(n *yaml.Node) step {
	s := step{line: n.Line}
	rd.fields(n, map[string]func(*yaml.Node){
		"target":  func(v *yaml.Node) { s.target = rd.targets(v) },
		"pods":    func(v *yaml.Node) { s.pods = rd.pods(v) },
		"known":   func(v *yaml.Node) { s.known = new(rd.ids(v)) },
		"at":      func(v *yaml.Node) { s.at = new(rd.milliseconds(v)) },
		"advance": func(v *yaml.Node) { s.advance = rd.milliseconds(v) },
		"purge":   func(v *yaml.Node) { s.purge = rd.yes(v) },
		"pass":    func(v *yaml.Node) { s.pass = rd.yes(v) },
		"expect":  func(v *yaml.Node) { s.expect = rd.expectation(v) },
		"raises":  func(v *yaml.Node) { s.raises = rd.text(v) },
	})
	return s
}

func (rd *reader) expectation(n *yaml.Node) *expectation {
	x := &expectation{line: n.Line}
	number := func(to **int64) func(*yaml.Node) {
		return func(v *yaml.Node) { *to = new(rd.number(v, 0, math.MaxInt64)) }
	}
	groups := func(to **[][]int64) func(*yaml.Node) {
		return func(v *yaml.Node) {
			found := [][]int64{}
			for _, g := range rd.list(v, "a list of lists of executors") {
				found = append(found, rd.ids(g))
			}
			*to = &found
		}
	}
	rd.fields(n, map[string]func(*yaml.Node){
		"created":        func(v *yaml.Node) { x.created = new(rd.pairs(v)) },
		"total":          number(&x.total),
		"out":            number(&x.out),
		"deletes":        groups(&x.deletes),
		"timeoutDeletes": groups(&x.timeoutDeletes),
		"deleted":        func(v *yaml.Node) { x.deleted = rd.ids(v) },
		"notDeleted":     func(v *yaml.Node) { x.notDeleted = rd.ids(v) },
	})
	return x
}

// targets reads profile: executors. Numbers that make no sense are left to the core to refuse.
func (rd *reader) targets(n *yaml.Node) []pair {
	if n.Kind != yaml.MappingNode {
		rd.wrong(n, "expected profile: executors")
		return nil
	}
	targets := make([]pair, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		targets = append(targets, pair{rd.number(n.Content[i], 0, math.MaxUint32), rd.number(n.Content[i+1], math.MinInt32, math.MaxInt64)})
	}
	slices.SortStableFunc(targets, func(a, b pair) int { return int(a[0] - b[0]) })
	return targets
}

func (rd *reader) pods(n *yaml.Node) []pod {
	var pods []pod
	for _, n := range rd.list(n, "a list of [id, state, profile]") {
		parts := rd.list(n, "[id, state, profile]")
		if len(parts) < 2 || len(parts) > 3 {
			rd.wrong(n, "expected [id, state] or [id, state, profile], seen %d entries", len(parts))
			continue
		}
		p := pod{id: rd.number(parts[0], 1, math.MaxInt64), state: rd.text(parts[1])}
		if _, known := phases[p.state]; !known {
			rd.wrong(parts[1], "%q is no state of a pod%s", p.state, suggest(p.state, phases))
		}
		if len(parts) == 3 {
			p.profile = rd.number(parts[2], 0, math.MaxUint32)
		}
		pods = append(pods, p)
	}
	return pods
}

func (rd *reader) ids(n *yaml.Node) []int64 {
	ids := []int64{}
	for _, v := range rd.list(n, "a list of executors") {
		ids = append(ids, rd.number(v, 1, math.MaxInt64))
	}
	return ids
}

func (rd *reader) pairs(n *yaml.Node) []pair {
	pairs := []pair{}
	for _, v := range rd.list(n, "a list of [executor, profile]") {
		parts := rd.list(v, "[executor, profile]")
		if len(parts) != 2 {
			rd.wrong(v, "expected [executor, profile], seen %d entries", len(parts))
			continue
		}
		pairs = append(pairs, pair{rd.number(parts[0], 1, math.MaxInt64), rd.number(parts[1], 0, math.MaxUint32)})
	}
	return pairs
}
