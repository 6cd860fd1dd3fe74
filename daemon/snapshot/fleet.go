package snapshot

import (
	"cmp"
	"iter"
	"slices"
)

// fleet is what a Store and a Snapshot have in common: what can be read.
type fleet struct {
	tree   tree
	len    int
	rows   []row // ascending by profile
	total  Counts
	newest Version
	listed Version
}

// row is what is known of a profile.
type row struct {
	profile Profile
	counts  Counts
	target  uint32
	wanted  bool // a target was set
}

// Executor returns the executor with an id, and whether there is one.
func (f *fleet) Executor(id ID) (Executor, bool) {
	if e := f.tree.find(id); e != nil {
		return *e, true
	}
	return Executor{}, false
}

// Len is how many executors there are, terminal ones included.
func (f *fleet) Len() int { return f.len }

// Counts is how many executors of a profile are in which phase.
func (f *fleet) Counts(p Profile) Counts {
	if i, ok := f.row(p); ok {
		return f.rows[i].counts
	}
	return Counts{}
}

// Total is how many executors of all profiles are in which phase.
func (f *fleet) Total() Counts { return f.total }

// Target is how many executors of a profile are wanted.
func (f *fleet) Target(p Profile) uint32 {
	if i, ok := f.row(p); ok {
		return f.rows[i].target
	}
	return 0
}

// Targets lists what is wanted, ascending by profile.
func (f *fleet) Targets() iter.Seq[Target] {
	return func(yield func(Target) bool) {
		for _, r := range f.rows {
			if r.wanted && !yield(Target{r.profile, r.target}) {
				return
			}
		}
	}
}

// All lists the executors, terminal ones included, ascending by ID. A Store must not be changed meanwhile.
func (f *fleet) All() iter.Seq[Executor] {
	return func(yield func(Executor) bool) {
		f.tree.root.each(func(e *Executor) bool { return yield(*e) })
	}
}

// Each shows visit the executors as All lists them, without copying them: they are to be read, and not kept.
func (f *fleet) Each(visit func(*Executor)) {
	f.tree.root.each(func(e *Executor) bool { visit(e); return true })
}

// Newest is the newest version that a list or an observation showed.
func (f *fleet) Newest() Version { return f.newest }

// Listed is the version of the newest list that was accepted, 0 if none was.
func (f *fleet) Listed() Version { return f.listed }

func (f *fleet) row(p Profile) (int, bool) {
	return slices.BinarySearchFunc(f.rows, p, func(r row, p Profile) int { return cmp.Compare(r.profile, p) })
}

// Snapshot is what there was and what was wanted at one moment. It never changes and may be read by many at once.
type Snapshot struct{ fleet }
