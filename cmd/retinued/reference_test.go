package main

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/retinue-sched/retinue/daemon"
)

var update = flag.Bool("update", false, "write docs/configuration.md anew")

const referenceFile = "../../docs/configuration.md"

// The reference of the configuration says what the code says: every key, its default, and the comment of its field.
// After a change: go test ./cmd/retinued -run Reference -update
func TestReferenceIsFresh(t *testing.T) {
	fresh := reference(t)
	if *update {
		if err := os.WriteFile(referenceFile, []byte(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != fresh {
		t.Errorf("%s is not what the code says; run: go test ./cmd/retinued -run Reference -update", referenceFile)
	}
}

func reference(t *testing.T) string {
	t.Setenv("HOME", "~") // the defaults are of whoever reads it
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("XDG_RUNTIME_DIR", "")
	var b strings.Builder
	b.WriteString(`# Configuration of retinued

Made from the code by ` + "`go test ./cmd/retinued -run Reference -update`" + `; a test keeps it fresh.

Every key may stand in a YAML file (` + "`--config`" + `, repeatable), in the environment (` + "`RETINUE_`" + `, two underscores for a dot, any case) or on the
command line (` + "`--key`" + `). Flags win over the environment, the environment over files, files over defaults. Unknown keys are refused.
` + "`retinued config print`" + ` shows what is in force. SIGHUP, or a change to a file, reloads; the log says which changed keys need a restart.
Where XDG_STATE_HOME is set, it stands for ~/.local/state below; the socket is in XDG_RUNTIME_DIR if that is set.
`)
	title := "-"
	for _, e := range entries(t) {
		if e.section != title {
			title = e.section
			fmt.Fprintf(&b, "\n## %s\n\n| key | default | meaning |\n|---|---|---|\n", cmp.Or(title, "At the top"))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", e.key, shown(e.value), strings.ReplaceAll(e.meaning, "|", "\\|"))
	}
	return b.String()
}

// entry is a key of the configuration.
type entry struct {
	section, key, meaning string
	value                 any // the default
}

// entries lists the keys in the order of the configuration's fields, those of a section behind those above it.
func entries(t *testing.T) []entry {
	docs := comments{t: t, seen: map[string]map[string]string{}}
	return section(nil, docs, "", reflect.TypeFor[daemon.Config](), reflect.ValueOf(defaults()))
}

func section(list []entry, docs comments, prefix string, typ reflect.Type, v reflect.Value) []entry {
	fields := docs.of(typ)
	var inner []int
	for i := range typ.NumField() {
		if typ.Field(i).Type.Kind() == reflect.Struct {
			inner = append(inner, i)
			continue
		}
		if notSettable(typ.Field(i)) {
			continue
		}
		name := typ.Field(i).Name
		if fields[name] == "" {
			docs.t.Errorf("%s.%s has no comment that says what it is for", typ, name)
		}
		list = append(list, entry{section: strings.TrimSuffix(prefix, "."), key: prefix + keyName(name), meaning: fields[name], value: v.Field(i).Interface()})
	}
	for _, i := range inner {
		list = section(list, docs, prefix+keyName(typ.Field(i).Name)+".", typ.Field(i).Type, v.Field(i))
	}
	return list
}

func shown(value any) string {
	switch value := value.(type) {
	case time.Duration:
		return "`" + value.String() + "`"
	case []string:
		return "`" + strings.Join(value, ",") + "`"
	case string:
		if value == "" {
			return "none"
		}
		return "`" + value + "`"
	default:
		return fmt.Sprintf("`%v`", value)
	}
}

// comments finds the comments of struct fields in the source.
type comments struct {
	t    *testing.T
	seen map[string]map[string]string // type → field → comment
}

func (c comments) of(typ reflect.Type) map[string]string {
	if found, ok := c.seen[typ.String()]; ok {
		return found
	}
	dir := filepath.Join("../..", strings.TrimPrefix(typ.PkgPath(), "github.com/retinue-sched/retinue"))
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		c.t.Fatal(err)
	}
	fields := map[string]string{}
	for _, name := range names {
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			c.t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == typ.Name() {
				if s, ok := spec.Type.(*ast.StructType); ok {
					fieldComments(fields, s)
				}
			}
			return true
		})
	}
	c.seen[typ.String()] = fields
	return fields
}

// fieldComments takes the comment above a field, or else the one behind it, or else that of the group it stands in.
func fieldComments(out map[string]string, s *ast.StructType) {
	known := map[string]bool{}
	for _, field := range s.Fields.List {
		for _, name := range field.Names {
			known[name.Name] = true
		}
	}
	for _, field := range s.Fields.List {
		text := field.Doc.Text()
		if text == "" {
			text = field.Comment.Text()
		}
		for _, name := range field.Names {
			out[name.Name] = strings.Join(strings.Fields(asKeys(meaningOf(name.Name, text), known)), " ")
		}
	}
}

// meaningOf is a comment without the name that it begins with: the key says it.
func meaningOf(name, text string) string {
	for _, beginning := range []string{" is ", " are ", " "} {
		if rest, ok := strings.CutPrefix(text, name+beginning); ok {
			return rest
		}
	}
	return text
}

var compound = regexp.MustCompile(`\b[A-Z][a-z]+[A-Z]\w*`)

// asKeys writes the fields that a comment names as the keys that readers know.
func asKeys(text string, fields map[string]bool) string {
	return compound.ReplaceAllStringFunc(text, func(word string) string {
		if fields[word] {
			return keyName(word)
		}
		return word
	})
}
