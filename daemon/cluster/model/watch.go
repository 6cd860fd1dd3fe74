package model

import (
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Cursor is a watch: where in the history it stands, and what it lets through. It belongs to the Server that made it.
type Cursor struct {
	selected  selectors
	prefix    string
	position  uint64
	initial   []watch.Event // what comes before the first change
	bookmarks bool
	broken    error // why the watch ends, told in one last event
	ended     bool
}

// Watch opens a watch on what List with the same ref and selectors would list. From version N it shows the changes
// after N; with no version or "0" it first shows the present objects as ADDED; with SendInitialEvents it also says where
// they end, by a bookmark annotated k8s.io/initial-events-end. A version that is too old is not an error here: as with a
// real server the watch opens, and its only event is an ERROR with status 410. Errors: 400, 404, 422, 504.
func (s *Server) Watch(ref Ref, opts metav1.ListOptions) (*Cursor, error) {
	col, err := s.collection(Ref{Resource: ref.Resource})
	if err != nil {
		return nil, err
	}
	selected, err := parseSelectors(col.resource, opts)
	if err != nil {
		return nil, err
	}
	if err = validateList(opts, true); err != nil {
		return nil, err
	}
	asked, err := parseVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	c := &Cursor{
		selected:  selected,
		prefix:    prefixOf(col.resource, ref.Namespace),
		position:  asked,
		bookmarks: opts.AllowWatchBookmarks,
	}
	snapshot, marked := asked == 0, false
	if initial := opts.SendInitialEvents; initial != nil {
		snapshot, marked = *initial, *initial
		if asked > s.version {
			return nil, tooLarge(asked, s.version)
		}
	}
	switch {
	case snapshot:
		s.startFromState(c, col)
	case asked == 0:
		c.position = s.version
	case asked < s.floor:
		c.broken = apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", asked, s.floor))
	}
	if marked && c.bookmarks {
		end := bookmark(col.resource, c.position)
		end.Object.(Object).SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		c.initial = append(c.initial, end)
	}
	return c, nil
}

func (s *Server) startFromState(c *Cursor, col *collection) {
	c.position = s.version
	start, _ := slices.BinarySearch(col.keys, c.prefix)
	for _, key := range col.keys[start : start+countPrefix(col.keys[start:], c.prefix)] {
		if obj := col.objects[key]; c.selected.matches(obj) {
			c.initial = append(c.initial, watch.Event{Type: watch.Added, Object: obj})
		}
	}
}

// Next returns what the watch has not shown yet, at most limit events (all when 0), and nothing when it is up to date.
// A watch that fell out of the window ends with an ERROR event.
func (s *Server) Next(c *Cursor, limit int) []watch.Event {
	if c.ended {
		return nil
	}
	if limit <= 0 {
		limit = len(s.log) + len(c.initial) + 1
	}
	take := min(limit, len(c.initial))
	events := slices.Clone(c.initial[:take])
	c.initial = c.initial[take:]
	if len(c.initial) > 0 {
		return events
	}
	if c.broken == nil && c.position < s.floor {
		c.broken = apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", c.position, s.floor))
	}
	if c.broken != nil {
		c.ended = true
		status := c.broken.(apierrors.APIStatus).Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		return append(events, watch.Event{Type: watch.Error, Object: &status})
	}
	return s.changes(c, events, limit)
}

func (s *Server) changes(c *Cursor, events []watch.Event, limit int) []watch.Event {
	at, _ := slices.BinarySearchFunc(s.log, c.position+1, byVersion)
	for ; at < len(s.log) && len(events) < limit; at++ {
		ch := s.log[at]
		c.position = ch.version
		if event, shown := c.show(ch); shown {
			events = append(events, event)
		}
	}
	return events
}

// show turns a change into what this watch sees of it: an object that stops matching is gone for it, one that starts is new.
func (c *Cursor) show(ch change) (watch.Event, bool) {
	if ch.resource != c.selected.resource || len(ch.key) < len(c.prefix) || ch.key[:len(c.prefix)] != c.prefix {
		return watch.Event{}, false
	}
	was, is := c.selected.matches(ch.old), c.selected.matches(ch.current)
	switch {
	case was && is:
		return watch.Event{Type: watch.Modified, Object: ch.event}, true
	case is:
		return watch.Event{Type: watch.Added, Object: ch.event}, true
	case was && ch.current == nil:
		return watch.Event{Type: watch.Deleted, Object: ch.event}, true
	case was:
		last := ch.resource.shallow(ch.old) // the state in which it still matched, under the version of the change
		last.SetResourceVersion(strconv.FormatUint(ch.version, 10))
		return watch.Event{Type: watch.Deleted, Object: last}, true
	}
	return watch.Event{}, false
}

// Ended reports whether the watch has shown its last event.
func (c *Cursor) Ended() bool { return c.ended }

// Bookmark returns an event that tells a client which version its watch has reached, so that it can resume there; false
// when the watch did not ask for bookmarks or has events to show first.
func (s *Server) Bookmark(c *Cursor) (watch.Event, bool) {
	if !c.bookmarks || c.ended || c.broken != nil || len(c.initial) > 0 {
		return watch.Event{}, false
	}
	return bookmark(c.selected.resource, c.position), true
}

func bookmark(r *resource, version uint64) watch.Event {
	obj := r.fresh()
	obj.GetObjectKind().SetGroupVersionKind(r.kind())
	obj.SetResourceVersion(strconv.FormatUint(version, 10))
	return watch.Event{Type: watch.Bookmark, Object: obj}
}
