package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// key is a key of what `apply` reads.
type key struct {
	path, kind string
	usual      string // what holds if the key is left out
	meaning    string
}

// told is what a person must know of a key. The usual value is that of a daemon whose own configuration says nothing else.
type told struct{ usual, meaning string }

// keysTold has every key of a specification by its path, and no other.
var keysTold = map[string]told{
	"id":              {"made up", "name of the application: small letters, digits and dashes. It goes into the names of the pods"},
	"namespace":       {"the daemon's first", "namespace of its pods, one of those that the daemon serves"},
	"maxPending":      {"0: no bound", "most executors of all profiles that are asked for and do not run yet"},
	"maxLifetime":     {"0: no bound", "most executors that the application may ever create"},
	"mode":            {"follow", "how far the policy's word goes. `follow`: a client, or dynamicAllocation, says how many executors are wanted, and the policy fills that. `scale`: the policy sizes the fleet itself between min and max; targets are kept for follow"},
	"maxTaskAttempts": {"4", "how often a task is tried that does not say itself; 1 tries none again"},
	"labels":          {"none", "labels of the pods; those under retinue.dev are the daemon's own"},
	"annotations":     {"none", "annotations of the pods"},

	"policy.policy":   {"the daemon's default", "who decides how many executors to create, and which to let go: a name (`retinue get policies`) or sha256:DIGEST"},
	"policy.settings": {"none", "settings of the policy, which says itself what it knows"},

	"profiles[].name":            {"default", "name of this kind of executor"},
	"profiles[].slots":           {"1", "how many tasks an executor runs at once"},
	"profiles[].target":          {"0", "how many executors are wanted in mode follow, at least min. Applied again with another number, it takes the place of what `retinue scale` said"},
	"profiles[].min":             {"0", "fewest executors that are kept"},
	"profiles[].max":             {"0: no bound", "most executors; dynamicAllocation needs it"},
	"profiles[].maxPending":      {"0: no bound", "most executors of this profile that are asked for and do not run yet"},
	"profiles[].batchSize":       {"20", "most executors that are asked for at once"},
	"profiles[].idleTimeout":     {"1m0s", "a request for an executor that is younger than this is not cancelled, though it be no longer wanted"},
	"profiles[].creationTimeout": {"10m0s", "an executor that was asked for and is not seen for longer is given up"},
	"profiles[].releaseIdle":     {"0s: never", "an executor that has been idle for longer, and is more than is wanted, may be let go. Without it a lower target ends no executor"},
	"profiles[].image":           {"the daemon's executors.image", "image of the executor's container"},
	"profiles[].command":         {"the daemon's executors.program", "command of the executor's container"},
	"profiles[].env":             {"none", "environment of the executors, and of the tasks on them; a list of name and value will do, too. Only executors that are created after a change get it"},
	"profiles[].cpu":             {"none", "cpu that an executor asks of the cluster, for example 500m or 2"},
	"profiles[].cpuLimit":        {"none", "most cpu that an executor may use"},
	"profiles[].memory":          {"none", "memory that an executor asks for and may not go beyond, for example 512Mi or 4Gi"},
	"profiles[].podTemplate":     {"none", "a pod, as in Kubernetes, from which every pod of this profile starts"},

	"profiles[].dynamicAllocation.enabled":                 {"false", "let the target follow the tasks that wait or run: one more executor at first, then twice as many each time; up to max, down to min"},
	"profiles[].dynamicAllocation.backlogTimeout":          {"1s", "how long tasks wait before the first executors are added"},
	"profiles[].dynamicAllocation.sustainedBacklogTimeout": {"backlogTimeout", "how long they wait again before more are"},
	"profiles[].dynamicAllocation.ratio":                   {"1", "slots wanted for each task, above 0 and at most 1; 1 is a slot for each"},
}

// applicationKeys lists the keys in the order of the specification. What holds others has no line of its own.
func applicationKeys() []key {
	return keysUnder("", (&apiv1.ApplicationSpec{}).ProtoReflect().Descriptor())
}

func keysUnder(prefix string, message protoreflect.MessageDescriptor) []key {
	var own, inner []key
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		path := prefix + field.JSONName()
		if kind := kindWritten(field); kind != "" {
			own = append(own, key{path: path, kind: kind, usual: keysTold[path].usual, meaning: keysTold[path].meaning})
			continue
		}
		if field.IsList() {
			path += "[]"
		}
		inner = append(inner, keysUnder(path+".", field.Message())...)
	}
	return append(own, inner...)
}

// kindWritten says for people what a field is written as. It is empty for one that has keys of its own.
func kindWritten(field protoreflect.FieldDescriptor) string {
	switch {
	case field.IsMap():
		return "map of texts"
	case field.IsList() && isEnv(field):
		return "map NAME: value"
	case isDuration(field):
		return "duration"
	case field.Kind() == protoreflect.MessageKind:
		return ""
	case field.IsList():
		return "list of texts"
	case holdsJSON(field):
		return "map"
	case isQuantity(field):
		return "quantity"
	}
	switch field.Kind() {
	case protoreflect.StringKind:
		return "text"
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		return "whole number"
	default:
		return wanted[field.Kind()]
	}
}

// newManifest is a topic of help: a command that cannot be run.
func newManifest() *cobra.Command {
	var b strings.Builder
	b.WriteString("The keys of what `retinue apply` reads, with what holds when one is left out. Unknown keys are refused.\n")
	for _, k := range applicationKeys() {
		fmt.Fprintf(&b, "\n%s (%s; %s)\n    %s.\n", k.path, k.kind, k.usual, k.meaning)
	}
	return &cobra.Command{Use: "manifest", Short: "What the keys of an application's file mean (`retinue help manifest`)", Long: strings.TrimSuffix(b.String(), "\n")}
}
