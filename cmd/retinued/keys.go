package main

import (
	"iter"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/retinue-sched/retinue/daemon"
	"github.com/retinue-sched/retinue/daemon/spell"
	"github.com/retinue-sched/retinue/sdk/client"
)

// What can be set, found by looking at the configuration's type, so that no list can be forgotten when a field is added.
var (
	keys          = slices.Sorted(mapKeys(keyTypes))
	keyTypes      = leaves() // key → default value
	canonicalKeys = foldedKeys()
)

func leaves() map[string]any {
	out := map[string]any{}
	collect(out, "", reflect.ValueOf(daemon.DefaultConfig()))
	return out
}

func collect(out map[string]any, prefix string, v reflect.Value) {
	for i := range v.NumField() {
		if notSettable(v.Type().Field(i)) {
			continue
		}
		key := prefix + keyName(v.Type().Field(i).Name)
		if f := v.Field(i); f.Kind() == reflect.Struct {
			collect(out, key+".", f)
		} else {
			out[key] = f.Interface()
		}
	}
}

// notSettable is true for what the program fills in itself.
func notSettable(f reflect.StructField) bool { return f.Tag.Get("koanf") == "-" }

func foldedKeys() map[string]string {
	out := make(map[string]string, len(keyTypes))
	for key := range keyTypes {
		out[strings.ToLower(key)] = key
	}
	return out
}

// keyName turns a field's name into a key: Batch is batch, CAFile is caFile.
func keyName(field string) string {
	runes := []rune(field)
	for i := range runes {
		if i > 0 && i+1 < len(runes) && unicode.IsLower(runes[i+1]) {
			break
		}
		if unicode.IsLower(runes[i]) {
			break
		}
		runes[i] = unicode.ToLower(runes[i])
	}
	return string(runes)
}

func isSection(key string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(strings.ToLower(k), strings.ToLower(key)+".") })
}

func isEmpty(value any) bool {
	if value == nil {
		return true
	}
	v := reflect.ValueOf(value)
	return v.Kind() == reflect.Map && v.Len() == 0
}

// suggestion names the known key that is nearest to one that is not, if one is near.
func suggestion(key string) string {
	folded := strings.ToLower(key)
	best, distance := "", max(3, len(key)/3)+1
	for _, known := range keys {
		if d := spell.Distance(folded, strings.ToLower(known)); d < distance {
			best, distance = known, d
		}
	}
	if best == "" { // perhaps the name is right and the section is missing
		for _, known := range keys {
			if strings.HasSuffix(strings.ToLower(known), "."+folded) {
				best = known
				break
			}
		}
	}
	if best == "" {
		return " (`retinued config print` shows all)"
	}
	return ": did you mean " + best + "?"
}

func mapKeys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

// tree is the configuration as nested maps with canonical keys, for printing.
func tree(v reflect.Value) map[string]any {
	out := map[string]any{}
	for i := range v.NumField() {
		if notSettable(v.Type().Field(i)) {
			continue
		}
		f := v.Field(i)
		key := keyName(v.Type().Field(i).Name)
		switch value := f.Interface().(type) {
		case time.Duration:
			out[key] = value.String()
		default:
			if f.Kind() == reflect.Struct {
				out[key] = tree(f)
			} else {
				out[key] = value
			}
		}
	}
	return out
}

// defaultSocket is where clients look when they are told nothing.
func defaultSocket() string { return strings.TrimPrefix(client.DefaultAddress(), "unix://") }

// defaultState is where a user's programs keep what must outlive them.
func defaultState() string {
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "retinue", "retinued")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "/var/lib/retinue/retinued"
	}
	return filepath.Join(home, ".local", "state", "retinue", "retinued")
}
