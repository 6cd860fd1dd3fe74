package main

import (
	_ "embed" // the meanings of the keys
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// meanings has a line for each key: the key, a tab, and what it is for. It is made from the comments of the configuration's fields; a test keeps
// it fresh.
//
//go:embed meanings.tsv
var meanings string

// newFlags makes a flag for every key, beside --config. The defaults are those of a daemon that is told nothing.
func newFlags(name string) (*pflag.FlagSet, *[]string) {
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	flags.SortFlags = false
	files := flags.StringArrayP("config", "c", nil, "configuration `file`; may be given several times, later ones win")
	usage := usages()
	given := map[string]any{}
	collect(given, "", reflect.ValueOf(defaults()))
	for _, key := range keys {
		switch def := given[key].(type) {
		case bool:
			flags.Bool(key, def, usage[key])
		case time.Duration:
			flags.Duration(key, def, usage[key])
		case []string:
			flags.StringSlice(key, def, usage[key])
		default:
			flags.Var(&written{text: fmt.Sprint(def), kind: kindName(reflect.TypeOf(def))}, key, usage[key])
		}
	}
	return flags, files
}

// usages are the meanings of the keys.
func usages() map[string]string {
	out := make(map[string]string, len(keys))
	for line := range strings.Lines(meanings) {
		key, meaning, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		out[key] = strings.ReplaceAll(meaning, "`", "'") // backquotes would name the flag's value
	}
	return out
}

// written is the text of a flag, which is understood together with what comes from files and the environment.
type written struct{ text, kind string }

// String is the text.
func (w *written) String() string { return w.text }

// Set takes any text.
func (w *written) Set(text string) error {
	w.text = text
	return nil
}

// Type is what help calls the flag's value.
func (w *written) Type() string { return w.kind }

// kindName is a type as people call it.
func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "int"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "uint"
	case reflect.Float32, reflect.Float64:
		return "float"
	default:
		return t.Kind().String()
	}
}
