package application

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// foreigners are the pods under the application's name that are not this daemon's, ascending by name. They are told of and left alone: they are
// no executors, and count for nothing, but their names are taken.
type foreigners []ForeignPod

// find is where a pod of a name is, or should be.
func (f foreigners) find(name string) (int, bool) {
	return slices.BinarySearchFunc(f, name, func(p ForeignPod, name string) int { return cmp.Compare(p.Name, name) })
}

// maxNamed is how many pods a text names.
const maxNamed = 5

// String names the pods, the first of them at least, and says whose they are.
func (f foreigners) String() string {
	var b strings.Builder
	are, them := "pods under the application's name are not this daemon's and are left alone", "them if nobody needs them"
	if len(f) == 1 {
		are, them = "pod under the application's name is not this daemon's and is left alone", "it if nobody needs it"
	}
	fmt.Fprintf(&b, "%d %s: ", len(f), are)
	for i, p := range f[:min(len(f), maxNamed)] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.Name)
		if i+1 == len(f) || i+1 == maxNamed || f[i+1].Whose != p.Whose { // what holds for several is said once
			b.WriteString(" (" + p.Whose + ")")
		}
	}
	if more := len(f) - maxNamed; more > 0 {
		fmt.Fprintf(&b, ", and %d more", more)
	}
	b.WriteString("; delete " + them)
	return b.String()
}

func (a *Application) foreignObserved(ev ForeignObserved) {
	i, there := a.foreign.find(ev.Pod.Name)
	switch {
	case ev.Gone && there:
		a.foreign = slices.Delete(a.foreign, i, i+1)
	case ev.Gone:
	case there:
		a.foreign[i] = ev.Pod
	default:
		a.foreign = slices.Insert(a.foreign, i, ev.Pod)
		a.tellOfForeign(len(a.foreign) - 1)
	}
}

func (a *Application) foreignListed(pods []ForeignPod) {
	before := len(a.foreign)
	a.foreign = slices.SortedFunc(slices.Values(pods), func(x, y ForeignPod) int { return cmp.Compare(x.Name, y.Name) })
	a.tellOfForeign(before)
}

// tellOfForeign gives a notice when the first foreign pods appear. The condition goes on naming those that are there.
func (a *Application) tellOfForeign(before int) {
	if before == 0 && len(a.foreign) > 0 {
		a.tell(NoticeForeignPods, 0, a.foreign.String())
	}
}

// unusedID is the number of a new executor, and its pod's name, which no pod that is not ours has as far as anybody knows.
func (a *Application) unusedID() (id snapshot.ID, name string) {
	for {
		id = a.alloc.NextID()
		name = nameOf(&a.cfg, id)
		if _, taken := a.foreign.find(name); !taken {
			return id, name
		}
	}
}
