package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
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
	var b strings.Builder
	b.WriteString(`# Configuration of retinued

Made from the code by ` + "`go test ./cmd/retinued -run Reference -update`" + `; a test keeps it fresh.

Every key may stand in a YAML file (` + "`--config`" + `, repeatable), in the environment (` + "`RETINUE_`" + `, two underscores for a dot, any case) or on the
command line (` + "`--key`" + `). Flags win over the environment, the environment over files, files over defaults. Unknown keys are refused.
` + "`retinued config print`" + ` shows what is in force. SIGHUP, or a change to a file, reloads; the log says which changed keys need a restart.
`)
	docs := comments{t: t, seen: map[string]map[string]string{}}
	section(&b, docs, "", reflect.TypeFor[daemon.Config](), reflect.ValueOf(daemon.DefaultConfig()))
	return b.String()
}

func section(b *strings.Builder, docs comments, prefix string, typ reflect.Type, v reflect.Value) {
	fields := docs.of(typ)
	title := strings.TrimSuffix(prefix, ".")
	if title == "" {
		title = "At the top"
	}
	fmt.Fprintf(b, "\n## %s\n\n| key | default | meaning |\n|---|---|---|\n", title)
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
		doc := fields[name]
		if doc == "" {
			docs.t.Errorf("%s.%s has no comment that says what it is for", typ, name)
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %s |\n", prefix, keyName(name), shown(v.Field(i).Interface()), strings.ReplaceAll(doc, "|", "\\|"))
	}
	for _, i := range inner {
		section(b, docs, prefix+keyName(typ.Field(i).Name)+".", typ.Field(i).Type, v.Field(i))
	}
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
	for _, field := range s.Fields.List {
		text := field.Doc.Text()
		if text == "" {
			text = field.Comment.Text()
		}
		for _, name := range field.Names {
			out[name.Name] = strings.Join(strings.Fields(strings.TrimPrefix(text, name.Name+" is ")), " ")
		}
	}
}
