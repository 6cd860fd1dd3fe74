package wire

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

// column is a column of a table; wide ones are shown on demand.
type column struct {
	name string
	wide bool
}

// table shows objects as kubectl prints them. The columns come with the first table of a watch only.
func (c *call) table(objects []model.Object, meta metav1.ListMeta, first bool) *metav1.Table {
	t := &metav1.Table{
		TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: metav1.SchemeGroupVersion.String()},
		ListMeta: meta, Rows: []metav1.TableRow{}, ColumnDefinitions: []metav1.TableColumnDefinition{},
	}
	columns, row := printer(c.resource.Name)
	if first {
		for _, col := range columns {
			def := metav1.TableColumnDefinition{Name: col.name, Type: "string"}
			if col.name == "Name" {
				def.Format = "name"
			}
			if col.wide {
				def.Priority = 1
			}
			t.ColumnDefinitions = append(t.ColumnDefinitions, def)
		}
	}
	for _, obj := range objects {
		t.Rows = append(t.Rows, metav1.TableRow{Cells: row(obj, time.Now()), Object: c.rowObject(obj)})
	}
	return t
}

// rowObject is what comes with each row: the metadata unless the client asks for nothing or all.
func (c *call) rowObject(obj model.Object) runtime.RawExtension {
	switch metav1.IncludeObjectPolicy(c.query.Get("includeObject")) {
	case metav1.IncludeNone:
		return runtime.RawExtension{}
	case metav1.IncludeObject:
		return runtime.RawExtension{Object: obj}
	case metav1.IncludeMetadata:
	}
	return runtime.RawExtension{Object: partial(obj)}
}

// printer returns the columns of a resource and the function that fills them.
func printer(resource string) ([]column, func(model.Object, time.Time) []any) {
	switch resource {
	case "pods":
		return []column{
			{name: "Name"},
			{name: "Ready"},
			{name: "Status"},
			{name: "Restarts"},
			{name: "Age"},
			{name: "IP", wide: true},
			{name: "Node", wide: true},
			{name: "Nominated Node", wide: true},
			{name: "Readiness Gates", wide: true},
		}, podRow
	case "nodes":
		return []column{{name: "Name"}, {name: "Status"}, {name: "Roles"}, {name: "Age"}, {name: "Version"}}, nodeRow
	case "namespaces":
		return []column{{name: "Name"}, {name: "Status"}, {name: "Age"}}, func(obj model.Object, now time.Time) []any {
			return []any{obj.GetName(), string(obj.(*corev1.Namespace).Status.Phase), age(obj, now)}
		}
	case "services":
		return []column{{name: "Name"}, {name: "Type"}, {name: "Cluster-IP"}, {name: "External-IP"}, {name: "Port(s)"}, {name: "Age"}}, serviceRow
	case "configmaps":
		return []column{{name: "Name"}, {name: "Data"}, {name: "Age"}}, func(obj model.Object, now time.Time) []any {
			cm := obj.(*corev1.ConfigMap)
			return []any{cm.Name, strconv.Itoa(len(cm.Data) + len(cm.BinaryData)), age(obj, now)}
		}
	case "events":
		return []column{{name: "Last Seen"}, {name: "Type"}, {name: "Reason"}, {name: "Object"}, {name: "Message"}, {name: "Name", wide: true}}, eventRow
	}
	return []column{{name: "Name"}, {name: "Age"}}, func(obj model.Object, now time.Time) []any {
		return []any{obj.GetName(), age(obj, now)}
	}
}

func podRow(obj model.Object, now time.Time) []any {
	pod := obj.(*corev1.Pod)
	ready, restarts := 0, int32(0)
	for _, c := range pod.Status.ContainerStatuses {
		restarts += c.RestartCount
		if c.Ready && c.State.Running != nil {
			ready++
		}
	}
	return []any{
		pod.Name, fmt.Sprintf("%d/%d", ready, len(pod.Spec.Containers)), podState(pod), strconv.Itoa(int(restarts)), age(obj, now),
		orNone(pod.Status.PodIP), orNone(pod.Spec.NodeName), orNone(pod.Status.NominatedNodeName), "<none>",
	}
}

// podState is the word in the STATUS column: the phase, or what is more telling than it.
func podState(pod *corev1.Pod) string {
	state := string(pod.Status.Phase)
	if pod.Status.Reason != "" {
		state = pod.Status.Reason
	}
	for i, c := range pod.Status.InitContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode == 0 {
			continue
		}
		if why := containerState(c.State); why != "" && why != "PodInitializing" {
			return terminating(pod, "Init:"+why)
		}
		return terminating(pod, fmt.Sprintf("Init:%d/%d", i, len(pod.Spec.InitContainers)))
	}
	running := false
	for _, c := range slices.Backward(pod.Status.ContainerStatuses) {
		s := c.State
		running = running || s.Running != nil
		if why := containerState(s); why != "" && pod.Status.Reason == "" {
			state = why
		}
	}
	if state == "Completed" && running {
		state = "NotReady"
	}
	return terminating(pod, state)
}

func containerState(s corev1.ContainerState) string {
	switch {
	case s.Waiting != nil:
		return s.Waiting.Reason
	case s.Terminated != nil && s.Terminated.Reason != "":
		return s.Terminated.Reason
	case s.Terminated != nil:
		return fmt.Sprintf("ExitCode:%d", s.Terminated.ExitCode)
	}
	return ""
}

func terminating(pod *corev1.Pod, state string) string {
	if pod.DeletionTimestamp != nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		return "Terminating"
	}
	return state
}

func nodeRow(obj model.Object, now time.Time) []any {
	n := obj.(*corev1.Node)
	status := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		status = "NotReady"
		if c.Status == corev1.ConditionTrue {
			status = "Ready"
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return []any{n.Name, status, "<none>", age(obj, now), n.Status.NodeInfo.KubeletVersion}
}

func serviceRow(obj model.Object, now time.Time) []any {
	svc := obj.(*corev1.Service)
	var ports []string
	for _, p := range svc.Spec.Ports {
		ports = append(ports, fmt.Sprintf("%d/%s", p.Port, p.Protocol))
	}
	return []any{svc.Name, string(svc.Spec.Type), orNone(svc.Spec.ClusterIP), "<none>", orNone(strings.Join(ports, ",")), age(obj, now)}
}

func eventRow(obj model.Object, now time.Time) []any {
	e := obj.(*corev1.Event)
	seen := "<unknown>"
	if at := e.LastTimestamp; !at.IsZero() {
		seen = duration.HumanDuration(now.Sub(at.Time))
	} else if !e.EventTime.IsZero() {
		seen = duration.HumanDuration(now.Sub(e.EventTime.Time))
	}
	about := strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name
	return []any{seen, e.Type, e.Reason, about, strings.TrimSpace(e.Message), e.Name}
}

func age(obj model.Object, now time.Time) string {
	return duration.HumanDuration(now.Sub(obj.GetCreationTimestamp().Time))
}

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}
