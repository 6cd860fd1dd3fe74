package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	yaml "sigs.k8s.io/yaml/goyaml.v3"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// readManifest reads the applications in a file of YAML documents. The fields are those of the specification in camelCase, and no others.
// The error names the file and the line of everything that is wrong.
func readManifest(name string, content []byte) ([]*apiv1.ApplicationSpec, error) {
	m := manifest{file: name}
	var specs []*apiv1.ApplicationSpec
	m.documents(content, func(root *yaml.Node) {
		spec := &apiv1.ApplicationSpec{}
		m.message("", root, spec.ProtoReflect())
		specs = append(specs, spec)
	})
	if len(specs) == 0 && len(m.problems) == 0 {
		m.problems = append(m.problems, fmt.Errorf("%s: there is no application in it", name))
	}
	return specs, errors.Join(m.problems...)
}

// manifest is one file while it is read.
type manifest struct {
	file     string
	problems []error
}

// documents hands over the root of each document that has one.
func (m *manifest) documents(content []byte, do func(root *yaml.Node)) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			m.syntax(err)
			return // what follows a syntax error cannot be understood
		}
		if len(document.Content) > 0 && !isNull(document.Content[0]) { // or else it holds nothing but comments
			do(document.Content[0])
		}
	}
}

// add notes a problem. The path is that of a field, or empty for the document as a whole.
func (m *manifest) add(path string, node *yaml.Node, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = path + ": " + text
	}
	m.problems = append(m.problems, fmt.Errorf("%s:%d: %s", m.file, node.Line, text))
}

// syntax notes what the parser says, which begins with "yaml: line N: " where it knows the line.
func (m *manifest) syntax(err error) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		text = rest
	} else {
		text = " " + text
	}
	m.problems = append(m.problems, fmt.Errorf("%s:%s: this is not YAML", m.file, text))
}

// isNull reports whether a key was written without a value, which says nothing.
func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!null" }

// resolve follows an alias to what it stands for.
func resolve(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

// message fills msg from a map.
func (m *manifest) message(path string, node *yaml.Node, msg protoreflect.Message) {
	if node.Kind != yaml.MappingNode {
		m.add(path, node, "this is %s, and must be a map with the keys %s", kindOf(node), strings.Join(keysOf(msg.Descriptor()), ", "))
		return
	}
	seen := make(map[string]int, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], resolve(node.Content[i+1])
		at := clean(key.Value)
		if path != "" {
			at = path + "." + at
		}
		if line, twice := seen[key.Value]; twice {
			m.add(path, key, "the key %q is in line %d already", key.Value, line)
			continue
		}
		seen[key.Value] = key.Line
		field := msg.Descriptor().Fields().ByJSONName(key.Value)
		switch {
		case field == nil:
			m.add(path, key, "there is no key %q%s", key.Value, suggest(key.Value, keysOf(msg.Descriptor())))
		case !isNull(value):
			m.field(at, value, msg, field)
		}
	}
}

// field sets one field of msg.
func (m *manifest) field(path string, node *yaml.Node, msg protoreflect.Message, field protoreflect.FieldDescriptor) {
	switch {
	case field.IsMap():
		m.stringMap(path, node, msg.Mutable(field).Map())
	case field.IsList() && isEnv(field) && node.Kind == yaml.MappingNode:
		m.env(path, node, msg.Mutable(field).List())
	case field.IsList():
		m.list(path, node, msg.Mutable(field).List(), field)
	case holdsJSON(field) && node.Kind == yaml.MappingNode:
		if text, ok := m.jsonText(path, node); ok {
			msg.Set(field, protoreflect.ValueOfString(text))
		}
	case isDuration(field):
		if d, ok := m.duration(path, node); ok {
			msg.Set(field, protoreflect.ValueOfMessage(durationpb.New(d).ProtoReflect()))
		}
	case field.Kind() == protoreflect.MessageKind:
		m.message(path, node, msg.Mutable(field).Message())
	default:
		value, ok := m.scalar(path, node, field)
		if ok && isQuantity(field) && tooMuch(value.String()) {
			m.add(path, node, "%s is more than can be counted: write for example 500m or 2 for cpu, 512Mi or 4Gi for memory", quoted(node))
			return
		}
		if ok {
			msg.Set(field, value)
		}
	}
}

func (m *manifest) list(path string, node *yaml.Node, list protoreflect.List, field protoreflect.FieldDescriptor) {
	if node.Kind != yaml.SequenceNode {
		m.add(path, node, "this is %s, and must be a list", kindOf(node))
		return
	}
	for i, item := range node.Content {
		item = resolve(item)
		at := fmt.Sprintf("%s[%d]", path, i)
		if field.Kind() == protoreflect.MessageKind {
			m.message(at, item, list.AppendMutable().Message())
			continue
		}
		if value, ok := m.scalar(at, item, field); ok {
			list.Append(value)
		}
	}
}

// env reads environment variables that are written as a map, NAME: value.
func (m *manifest) env(path string, node *yaml.Node, list protoreflect.List) {
	m.pairs(path, node, func(name, value string) {
		list.Append(protoreflect.ValueOfMessage((&apiv1.EnvVar{Name: name, Value: value}).ProtoReflect()))
	})
}

func (m *manifest) stringMap(path string, node *yaml.Node, to protoreflect.Map) {
	m.pairs(path, node, func(name, value string) {
		to.Set(protoreflect.ValueOfString(name).MapKey(), protoreflect.ValueOfString(value))
	})
}

// pairs reads a map of texts.
func (m *manifest) pairs(path string, node *yaml.Node, add func(name, value string)) {
	if node.Kind != yaml.MappingNode {
		m.add(path, node, "this is %s, and must be a map", kindOf(node))
		return
	}
	seen := make(map[string]int, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], resolve(node.Content[i+1])
		at := path + "." + clean(key.Value)
		line, twice := seen[key.Value]
		seen[key.Value] = key.Line
		switch {
		case twice:
			m.add(path, key, "the key %q is in line %d already", key.Value, line)
		case value.Kind != yaml.ScalarNode:
			m.add(at, value, "this is %s, and must be a text", kindOf(value))
		case isNull(value):
			add(key.Value, "")
		default:
			add(key.Value, value.Value)
		}
	}
}

// jsonText is a map as JSON.
func (m *manifest) jsonText(path string, node *yaml.Node) (string, bool) {
	var value map[string]any
	err := node.Decode(&value)
	if err == nil {
		var text []byte
		if text, err = json.Marshal(value); err == nil {
			return string(text), true
		}
	}
	m.add(path, node, "this cannot be written as JSON: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	return "", false
}

func (m *manifest) duration(path string, node *yaml.Node) (time.Duration, bool) {
	d, err := time.ParseDuration(node.Value)
	if node.Kind == yaml.ScalarNode && err == nil && (d != 0 || node.Value != "0") {
		return d, true
	}
	m.add(path, node, "%s is not a duration: write a number with a unit, such as 10s or 1m30s", quoted(node))
	return 0, false
}

// scalar reads a text, a number or a truth. A text may look like anything: `cpu: 1` is a text.
func (m *manifest) scalar(path string, node *yaml.Node, field protoreflect.FieldDescriptor) (protoreflect.Value, bool) {
	if node.Kind == yaml.ScalarNode {
		if value, err := parseScalar(node, field.Kind()); err == nil {
			return value, true
		}
	}
	m.add(path, node, "%s is not %s", quoted(node), wanted[field.Kind()])
	return protoreflect.Value{}, false
}

// wanted says for people what the kinds of field hold that a specification, or a task, has.
var wanted = map[protoreflect.Kind]string{
	protoreflect.StringKind: "a text", protoreflect.BytesKind: "a text", protoreflect.BoolKind: "true or false", protoreflect.DoubleKind: "a number",
	protoreflect.Uint32Kind: "a whole number from 0 to 4294967295", protoreflect.Uint64Kind: "a whole number of 0 or more",
}

func parseScalar(node *yaml.Node, kind protoreflect.Kind) (protoreflect.Value, error) {
	switch kind {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(node.Value), nil
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(node.Value)), nil
	case protoreflect.BoolKind:
		return decoded(node, protoreflect.ValueOfBool)
	case protoreflect.DoubleKind:
		return decoded(node, protoreflect.ValueOfFloat64)
	case protoreflect.Uint32Kind:
		return whole(node, protoreflect.ValueOfUint32)
	case protoreflect.Uint64Kind:
		return whole(node, protoreflect.ValueOfUint64)
	default:
		return protoreflect.Value{}, fmt.Errorf("fields of kind %v cannot be written in a manifest", kind)
	}
}

func decoded[T any](node *yaml.Node, wrap func(T) protoreflect.Value) (protoreflect.Value, error) {
	var value T
	if err := node.Decode(&value); err != nil {
		return protoreflect.Value{}, err
	}
	return wrap(value), nil
}

// whole reads a number without a fraction, which the decoder would cut off.
func whole[T uint32 | uint64](node *yaml.Node, wrap func(T) protoreflect.Value) (protoreflect.Value, error) {
	if node.ShortTag() != "!!int" {
		return protoreflect.Value{}, fmt.Errorf("%s is not whole", node.Value)
	}
	return decoded(node, wrap)
}

// holdsJSON is true for texts that are JSON; a manifest may write them as a map.
func holdsJSON(field protoreflect.FieldDescriptor) bool {
	switch field.FullName() {
	case "retinue.v1.ProfileSpec.pod_template", "retinue.v1.PolicyBinding.settings":
		return true
	}
	return false
}

// isQuantity is true for texts that are quantities of Kubernetes.
func isQuantity(field protoreflect.FieldDescriptor) bool {
	switch field.FullName() {
	case "retinue.v1.ProfileSpec.cpu", "retinue.v1.ProfileSpec.cpu_limit", "retinue.v1.ProfileSpec.memory":
		return true
	}
	return false
}

func isDuration(field protoreflect.FieldDescriptor) bool {
	return field.Kind() == protoreflect.MessageKind && field.Message().FullName() == proto.MessageName((*durationpb.Duration)(nil))
}

func isEnv(field protoreflect.FieldDescriptor) bool {
	return field.Kind() == protoreflect.MessageKind && field.Message().FullName() == proto.MessageName((*apiv1.EnvVar)(nil))
}

// keysOf lists the keys of a message as they are written.
func keysOf(message protoreflect.MessageDescriptor) []string {
	fields := message.Fields()
	keys := make([]string, fields.Len())
	for i := range keys {
		keys[i] = fields.Get(i).JSONName()
	}
	return keys
}

func kindOf(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	default:
		return "the value " + quoted(node)
	}
}

// quoted is a value as it may be repeated to a person.
func quoted(node *yaml.Node) string {
	if node.Kind != yaml.ScalarNode {
		return kindOf(node)
	}
	const most = 60
	text := clean(node.Value)
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return fmt.Sprintf("%q", text)
}
