// Package model is an API server in memory: what a Kubernetes API server promises about the few resources that a
// fleet of executors needs, as plain values and functions.
//
// Whatever is asked of a Server,
//
//   - every write has its own resourceVersion, one counter for all resources, never going back;
//   - list, then watch from the list's version, misses nothing and repeats nothing;
//   - a watch or a page of a list older than the window is refused with 410 Expired, never answered wrongly;
//   - a delete with preconditions removes exactly the object that they name, or nothing;
//   - a pod bound to a node stays until its kubelet says that it has ended;
//   - an error is the metav1.Status, code, reason and words that a real server answers with.
//
// It reads no clock, starts no goroutine and takes no lock: the time is a parameter, a watch is a Cursor that is asked
// for what is new, and one caller at a time may use a Server. Equal calls on Servers of equal Config give equal answers.
//
// Objects that come out of a Server are shared with it: read them, and clone before changing anything.
package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Object is anything that the server keeps: a typed Kubernetes object.
type Object interface {
	runtime.Object
	metav1.Object
}

// Config is what two servers must share to be equal.
type Config struct {
	// Seed is where uids and generated names come from.
	Seed uint64
	// FirstVersion is the resourceVersion before the first write. A server that replaces another starts above it, so
	// that a client's old version is answered with 410 Expired instead of waiting for ever.
	FirstVersion uint64
	// Window is how many changes are kept for watches and for pages of a list; 10,000 when 0.
	Window int
	// Admit refuses an object before it is created, after defaulting and validation; nil admits all. The error should be
	// an apierrors.StatusError.
	Admit func(Object) error
}

// Server holds the objects and their recent history. Make one with New.
type Server struct {
	config      Config
	version     uint64
	floor       uint64 // changes up to and including this version are forgotten
	log         []change
	collections []*collection
	random      *rand.Rand
	serviceIPs  uint32
}

// change is one write: old is nil when the object is new, current when it is gone. event is the object as a watch
// shows it, which for a removal is the last state under the version of the removal.
type change struct {
	version  uint64
	resource *resource
	key      string
	old      Object
	current  Object
	event    Object
}

// collection is all objects of one resource, with their keys in order.
type collection struct {
	resource *resource
	keys     []string
	objects  map[string]Object
}

// New returns a server that holds the namespaces which every cluster has, created at now.
func New(now time.Time, config Config) *Server {
	if config.Window <= 0 {
		config.Window = 10_000
	}
	s := &Server{
		config:  config,
		version: config.FirstVersion,
		floor:   config.FirstVersion,
		random:  rand.New(rand.NewPCG(config.Seed, config.Seed^0x9e3779b97f4a7c15)),
	}
	for _, r := range resources() {
		s.collections = append(s.collections, &collection{resource: r, objects: map[string]Object{}})
	}
	for _, name := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := s.Create(now, Ref{Resource: "namespaces"}, ns, metav1.CreateOptions{}); err != nil {
			panic(fmt.Sprintf("creating namespace %s in an empty server: %v", name, err))
		}
	}
	return s
}

// Version returns the resourceVersion of the last write.
func (s *Server) Version() uint64 { return s.version }

// Compact forgets all changes up to and including version: older watches and pages are answered with 410 Expired.
func (s *Server) Compact(version uint64) {
	version = min(version, s.version)
	if version <= s.floor {
		return
	}
	cut, _ := slices.BinarySearchFunc(s.log, version+1, byVersion)
	clear(s.log[:cut])
	s.log = s.log[cut:]
	s.floor = version
}

// Ref is a place in the API: a resource ("pods"), a namespace ("" for all, or for what has none), a name, and
// perhaps a part of the object ("status").
type Ref struct {
	Resource    string
	Namespace   string
	Name        string
	Subresource string
}

// Read returns the object at ref, or a 404.
func (s *Server) Read(ref Ref) (Object, error) {
	c, err := s.collection(ref)
	if err != nil {
		return nil, err
	}
	obj, ok := c.objects[key(ref.Namespace, ref.Name)]
	if !ok {
		return nil, apierrors.NewNotFound(c.resource.group(), ref.Name)
	}
	return obj, nil
}

func (s *Server) collection(ref Ref) (*collection, error) {
	for _, c := range s.collections {
		if c.resource.Name != ref.Resource {
			continue
		}
		switch {
		case ref.Subresource != "" && (ref.Subresource != "status" || !c.resource.Status):
			return nil, unknownPath()
		case !c.resource.Namespaced && ref.Namespace != "":
			return nil, unknownPath()
		}
		return c, nil
	}
	return nil, unknownPath()
}

// put stores obj as the newest state of key under a version of its own and returns it. obj becomes the server's.
func (s *Server) put(c *collection, key string, obj Object) Object {
	s.version++
	obj.SetResourceVersion(strconv.FormatUint(s.version, 10))
	obj.GetObjectKind().SetGroupVersionKind(c.resource.kind())
	old, exists := c.objects[key]
	if !exists {
		at, _ := slices.BinarySearch(c.keys, key)
		c.keys = slices.Insert(c.keys, at, key)
	}
	c.objects[key] = obj
	s.record(change{version: s.version, resource: c.resource, key: key, old: old, current: obj, event: obj})
	return obj
}

// remove takes the object out and returns its last state under the version of the removal.
func (s *Server) remove(c *collection, key string) Object {
	s.version++
	old := c.objects[key]
	last := c.resource.shallow(old)
	last.SetResourceVersion(strconv.FormatUint(s.version, 10))
	delete(c.objects, key)
	at, _ := slices.BinarySearch(c.keys, key)
	c.keys = slices.Delete(c.keys, at, at+1)
	s.record(change{version: s.version, resource: c.resource, key: key, old: old, event: last})
	return last
}

func (s *Server) record(ch change) {
	s.log = append(s.log, ch)
	if over := len(s.log) - s.config.Window; over > 0 {
		s.floor = s.log[over-1].version
		clear(s.log[:over]) // the array behind the slice must not keep the objects alive
		s.log = s.log[over:]
	}
}

// newUID returns a version 4 UUID made from the seed.
func (s *Server) newUID() types.UID {
	hi, lo := s.random.Uint64(), s.random.Uint64()
	hi = hi&^0xf000 | 0x4000
	lo = lo&^(0xc<<60) | 0x8<<60
	return types.UID(fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", hi>>32, hi>>16&0xffff, hi&0xffff, lo>>48, lo&0xffffffffffff))
}

// generatedName appends five characters that spell no word, as a real server does.
func (s *Server) generatedName(base string) string {
	const alphabet, longest = "bcdfghjklmnpqrstvwxz2456789", 63 - 5
	name := []byte(base[:min(len(base), longest)])
	for range 5 {
		name = append(name, alphabet[s.random.IntN(len(alphabet))])
	}
	return string(name)
}

func byVersion(ch change, version uint64) int {
	switch {
	case ch.version < version:
		return -1
	case ch.version > version:
		return 1
	}
	return 0
}

// key orders objects as a real server's store does: by namespace, then by name.
func key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func clone[T Object](obj T) T { return obj.DeepCopyObject().(T) }
