package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	yaml "sigs.k8s.io/yaml/goyaml.v3"

	"github.com/retinue-sched/retinue/daemon/spell"
)

// reader turns nodes into values and takes down what is wrong with them.
type reader struct {
	file string
	errs []error
}

// maxComplaints is how many faults are told; nobody reads more.
const maxComplaints = 20

func (rd *reader) wrong(n *yaml.Node, format string, args ...any) {
	if len(rd.errs) < maxComplaints {
		rd.errs = append(rd.errs, fmt.Errorf("%s:%d: %s", rd.file, n.Line, fmt.Sprintf(format, args...)))
	}
}

// fields hands each value of a map to the reader of its key.
func (rd *reader) fields(n *yaml.Node, readers map[string]func(*yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		rd.wrong(n, "expected a map with some of %s", spelled(readers))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read, known := readers[key.Value]
		switch {
		case !known:
			rd.wrong(key, "unknown key %q%s", key.Value, suggest(key.Value, readers))
			continue
		case seen[key.Value]:
			rd.wrong(key, "key %q is there twice", key.Value)
		}
		seen[key.Value] = true
		read(value)
	}
}

func (rd *reader) list(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		rd.wrong(n, "expected %s", what)
		return nil
	}
	return n.Content
}

func (rd *reader) text(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		rd.wrong(n, "expected a text")
	}
	return n.Value
}

func (rd *reader) yes(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || (n.Value != "true" && n.Value != "false") {
		rd.wrong(n, "expected true or false")
	}
	return n.Value == "true"
}

func (rd *reader) number(n *yaml.Node, least, most int64) int64 {
	v, err := strconv.ParseInt(n.Value, 10, 64)
	switch {
	case n.Kind != yaml.ScalarNode || err != nil:
		rd.wrong(n, "expected a whole number")
	case v < least || v > most:
		rd.wrong(n, "%d is not between %d and %d", v, least, most)
	}
	return min(max(v, least), most)
}

func (rd *reader) milliseconds(n *yaml.Node) time.Duration {
	const century = 100 * 366 * 24 * 60 * 60 * 1000
	return time.Duration(rd.number(n, 0, century)) * time.Millisecond
}

// spelled lists keys.
func spelled[V any](keys map[string]V) string {
	text := ""
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if text != "" {
			text += ", "
		}
		text += key
	}
	return text
}

// suggest names the key that was probably meant, or else all.
func suggest[V any](word string, keys map[string]V) string {
	best, least := "", len(word)/2+1
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if d := spell.Distance(word, key); d < least {
			best, least = key, d
		}
	}
	if best == "" {
		return "; expected one of " + spelled(keys)
	}
	return fmt.Sprintf("; did you mean %q?", best)
}
