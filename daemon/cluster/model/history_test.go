package model_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

// actor makes random writes; its state is only the server's.
type actor struct {
	server *model.Server
	now    time.Time
}

func newActor(config model.Config) *actor {
	a := &actor{server: model.New(t0, config), now: t0}
	for _, name := range []string{"left", "left-2"} { // one is a prefix of the other
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := a.server.Create(t0, model.Ref{Resource: "namespaces"}, ns, metav1.CreateOptions{}); err != nil {
			panic(err)
		}
	}
	return a
}

var (
	anyName   = rapid.SampledFrom([]string{"a", "b", "c", "a-1", "b.x"})
	anySpace  = rapid.SampledFrom([]string{"left", "left-2", "default"})
	anyColour = rapid.SampledFrom([]string{"", "red", "blue"})
	anyFilter = rapid.SampledFrom([]metav1.ListOptions{
		{},
		{LabelSelector: "colour=red"},
		{LabelSelector: "colour"},
		{LabelSelector: "!colour"},
		{LabelSelector: "colour in (red, blue),colour!=red"},
		{FieldSelector: "metadata.name=a"},
		{FieldSelector: "status.phase=Running"},
		{FieldSelector: "spec.nodeName=", LabelSelector: "colour!=blue"},
	})
	anyScope = rapid.SampledFrom([]string{"", "left", "left-2", "default"})
)

// act makes one random write, which may well be refused.
func (a *actor) act(t *rapid.T) {
	a.now = a.now.Add(time.Second)
	ref := podAt(anySpace.Draw(t, "namespace"), anyName.Draw(t, "name"))
	colour := anyColour.Draw(t, "colour")
	switch rapid.IntRange(0, 7).Draw(t, "write") {
	case 0, 1:
		pod := newPod(ref.Name)
		if colour != "" {
			pod.Labels = map[string]string{"colour": colour}
		}
		if rapid.Bool().Draw(t, "held") {
			pod.Finalizers = []string{"example.com/held"}
		}
		a.server.Create(a.now, ref, pod, metav1.CreateOptions{}) //nolint:errcheck // a refusal changes nothing, which is the claim
	case 2:
		a.server.Bind(a.now, ref, "n1") //nolint:errcheck // as above
	case 3:
		patch := fmt.Sprintf(`{"metadata":{"labels":{"colour":%q}}}`, colour)
		if colour == "" {
			patch = `{"metadata":{"labels":null,"finalizers":null}}`
		}
		a.server.Patch(a.now, ref, types.MergePatchType, []byte(patch), metav1.PatchOptions{}) //nolint:errcheck // as above
	case 4:
		ref.Subresource = "status"
		phase := rapid.SampledFrom([]string{"Running", "Succeeded", "Pending"}).Draw(t, "phase")
		a.server.Patch(a.now, ref, types.StrategicMergePatchType, fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase), metav1.PatchOptions{}) //nolint:errcheck // as above
	case 5, 6:
		grace := rapid.SampledFrom([]*int64{nil, new(int64(0)), new(int64(5)), new(int64(60))}).Draw(t, "grace")
		a.server.Delete(a.now, ref, metav1.DeleteOptions{GracePeriodSeconds: grace}) //nolint:errcheck // as above
	case 7:
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: ref.Name}}                                          // another resource shares the versions
		a.server.Create(a.now, model.Ref{Resource: "configmaps", Namespace: ref.Namespace}, cm, metav1.CreateOptions{}) //nolint:errcheck // as above
	}
}

// mirror is what a client knows: the last list, changed by each event of a watch.
type mirror map[string]string

func mirrorOf(page model.Page) mirror {
	m := mirror{}
	for _, obj := range page.Items {
		m[obj.GetNamespace()+"/"+obj.GetName()] = obj.GetResourceVersion()
	}
	return m
}

// apply follows one event, and says when it makes no sense to a client.
func (m mirror) apply(e watch.Event) error {
	obj, ok := e.Object.(model.Object)
	if !ok {
		return fmt.Errorf("event %s of a %T", e.Type, e.Object)
	}
	key := obj.GetNamespace() + "/" + obj.GetName()
	_, has := m[key]
	switch e.Type {
	case watch.Added:
		if has {
			return fmt.Errorf("ADDED %s, which was there", key)
		}
		m[key] = obj.GetResourceVersion()
	case watch.Modified:
		if !has {
			return fmt.Errorf("MODIFIED %s, which was not there", key)
		}
		m[key] = obj.GetResourceVersion()
	case watch.Deleted:
		if !has {
			return fmt.Errorf("DELETED %s, which was not there", key)
		}
		delete(m, key)
	case watch.Bookmark, watch.Error:
		return fmt.Errorf("unexpected %s", e.Type)
	}
	return nil
}

// A list, then a watch from the list's version, leads to what a later list shows: for every filter, in every scope,
// from every version, however few events are taken at a time.
func TestListThenWatchEqualsLaterList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newActor(model.Config{})
		filter, scope := anyFilter.Draw(t, "filter"), model.Ref{Resource: "pods", Namespace: anyScope.Draw(t, "scope")}
		type point struct {
			mirror mirror
			cursor *model.Cursor
		}
		var points []point
		for range rapid.IntRange(1, 40).Draw(t, "writes") {
			page, err := a.server.List(scope, filter)
			if err != nil {
				t.Fatal(err)
			}
			opts := filter
			opts.ResourceVersion = page.ResourceVersion
			cursor, err := a.server.Watch(scope, opts)
			if err != nil {
				t.Fatal(err)
			}
			points = append(points, point{mirrorOf(page), cursor})
			a.act(t)
		}
		last, err := a.server.List(scope, filter)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range points {
			for {
				events := a.server.Next(p.cursor, rapid.IntRange(0, 3).Draw(t, "at once"))
				if len(events) == 0 {
					break
				}
				for _, e := range events {
					if err := p.mirror.apply(e); err != nil {
						t.Fatal(err)
					}
				}
			}
			if diff := cmp.Diff(mirrorOf(last), p.mirror); diff != "" {
				t.Fatalf("a watch ended elsewhere than the list (-list +watch):\n%s", diff)
			}
		}
	})
}

// Every event of a watch has a higher version than the one before it.
func TestWatchVersionsRise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newActor(model.Config{})
		from := strconv.FormatUint(a.server.Version(), 10)
		cursor, err := a.server.Watch(model.Ref{Resource: "pods"}, metav1.ListOptions{ResourceVersion: from})
		if err != nil {
			t.Fatal(err)
		}
		before := a.server.Version()
		for range rapid.IntRange(1, 40).Draw(t, "writes") {
			a.act(t)
		}
		for _, e := range a.server.Next(cursor, 0) {
			v, err := strconv.ParseUint(e.Object.(model.Object).GetResourceVersion(), 10, 64)
			if err != nil || v <= before {
				t.Fatalf("version %d (%v) after %d", v, err, before)
			}
			before = v
		}
	})
}

// The pages of a list show the version of its first page, whatever is written between them.
func TestPagesShowOneVersion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newActor(model.Config{})
		for range rapid.IntRange(0, 25).Draw(t, "writes before") {
			a.act(t)
		}
		opts, scope := anyFilter.Draw(t, "filter"), model.Ref{Resource: "pods", Namespace: anyScope.Draw(t, "scope")}
		whole, err := a.server.List(scope, opts)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		opts.Limit = rapid.Int64Range(1, 4).Draw(t, "limit")
		for {
			page, err := a.server.List(scope, opts)
			if err != nil {
				t.Fatal(err)
			}
			if page.ResourceVersion != whole.ResourceVersion {
				t.Fatalf("a page of version %s in a list of version %s", page.ResourceVersion, whole.ResourceVersion)
			}
			got = append(got, names(page)...)
			if left := page.RemainingItemCount; left != nil && int(*left) != len(whole.Items)-len(got) {
				t.Fatalf("%d items said to remain, %d do", *left, len(whole.Items)-len(got))
			}
			if page.Continue == "" {
				break
			}
			opts.Continue = page.Continue
			a.act(t)
		}
		if diff := cmp.Diff(names(whole), got); diff != "" {
			t.Fatalf("pages differ from the whole list (-whole +pages):\n%s", diff)
		}
	})
}

// Selectors choose what a plain look at each object chooses.
func TestSelectorsAgainstBruteForce(t *testing.T) {
	plain := map[string]func(*corev1.Pod) bool{
		"colour=red":                        func(p *corev1.Pod) bool { return p.Labels["colour"] == "red" },
		"colour":                            func(p *corev1.Pod) bool { return p.Labels["colour"] != "" },
		"!colour":                           func(p *corev1.Pod) bool { return p.Labels["colour"] == "" },
		"colour in (red, blue),colour!=red": func(p *corev1.Pod) bool { return p.Labels["colour"] == "blue" },
		"colour notin (red)":                func(p *corev1.Pod) bool { return p.Labels["colour"] != "red" },
		"field:metadata.name=a":             func(p *corev1.Pod) bool { return p.Name == "a" },
		"field:metadata.namespace!=left":    func(p *corev1.Pod) bool { return p.Namespace != "left" },
		"field:status.phase=Running":        func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning },
		"field:spec.nodeName=n1,status.phase!=Running": func(p *corev1.Pod) bool {
			return p.Spec.NodeName == "n1" && p.Status.Phase != corev1.PodRunning
		},
	}
	rapid.Check(t, func(t *rapid.T) {
		a := newActor(model.Config{})
		for range rapid.IntRange(0, 40).Draw(t, "writes") {
			a.act(t)
		}
		all, err := a.server.List(model.Ref{Resource: "pods"}, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range slices.Sorted(maps.Keys(plain)) {
			opts := metav1.ListOptions{LabelSelector: text}
			if field, is := cutPrefix(text, "field:"); is {
				opts = metav1.ListOptions{FieldSelector: field}
			}
			want := model.Page{}
			for _, obj := range all.Items {
				if plain[text](obj.(*corev1.Pod)) {
					want.Items = append(want.Items, obj)
				}
			}
			got, err := a.server.List(model.Ref{Resource: "pods"}, opts)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(names(want), names(got)); diff != "" {
				t.Fatalf("selector %q (-want +got):\n%s", text, diff)
			}
		}
	})
}

func cutPrefix(text, prefix string) (string, bool) {
	if len(text) < len(prefix) || text[:len(prefix)] != prefix {
		return text, false
	}
	return text[len(prefix):], true
}

// A watch that fell out of the window ends with 410, whether it was open at the time or is opened too late; a watch from
// the edge of the window goes on.
func TestWindow(t *testing.T) {
	s := newServer(t, model.Config{Window: 3})
	scope := model.Ref{Resource: "pods"}
	open := func(version uint64) *model.Cursor {
		c, err := s.Watch(scope, metav1.ListOptions{ResourceVersion: strconv.FormatUint(version, 10)})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	slow := open(s.Version())
	first := s.Version()
	for i := range 4 {
		create(t, s, newPod(fmt.Sprintf("p%d", i)))
	}
	for name, c := range map[string]*model.Cursor{"open before": slow, "opened too late": open(first)} {
		events := s.Next(c, 0)
		if len(events) != 1 || events[0].Type != watch.Error || !c.Ended() {
			t.Fatalf("%s: got %v, ended %v, want one ERROR and the end", name, events, c.Ended())
		}
		status := events[0].Object.(*metav1.Status)
		want := fmt.Sprintf("too old resource version: %d (%d)", first, first+1)
		if status.Code != 410 || status.Reason != metav1.StatusReasonExpired || status.Message != want {
			t.Errorf("%s: got %d %s %q, want 410 Expired %q", name, status.Code, status.Reason, status.Message, want)
		}
		if more := s.Next(c, 0); len(more) != 0 {
			t.Errorf("%s: %v after the end", name, more)
		}
	}
	if events := s.Next(open(first+1), 0); len(events) != 3 {
		t.Errorf("from the edge of the window: %d events, want 3", len(events))
	}
}

// The next page of a list that is older than the window is refused, with a token that goes on inconsistently.
func TestOldPage(t *testing.T) {
	s := newServer(t, model.Config{})
	for _, name := range []string{"a", "b", "c"} {
		create(t, s, newPod(name))
	}
	first, err := s.List(podAt("default", ""), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	create(t, s, newPod("d"))
	s.Compact(s.Version())
	_, err = s.List(podAt("default", ""), metav1.ListOptions{Limit: 1, Continue: first.Continue})
	if !apierrors.IsResourceExpired(err) {
		t.Fatalf("got %v, want 410 Expired", err)
	}
	rest, err := s.List(podAt("default", ""), metav1.ListOptions{Continue: err.(apierrors.APIStatus).Status().Continue})
	if err != nil || len(rest.Items) != 3 || rest.Items[0].GetName() != "b" {
		t.Errorf("going on inconsistently: %v, %v, want b, c, d", names(rest), err)
	}
}

// What a watch shows first depends on the version that it starts from, as with a real server.
func TestWatchStart(t *testing.T) {
	s := newServer(t, model.Config{})
	create(t, s, newPod("a"))
	middle := s.Version()
	create(t, s, newPod("b"))
	end := fmt.Sprint(s.Version())
	yes, no := true, false
	newer := metav1.ResourceVersionMatchNotOlderThan
	for name, c := range map[string]struct {
		opts metav1.ListOptions
		want []string
	}{
		"unset shows what is there":             {metav1.ListOptions{}, []string{"ADDED a", "ADDED b"}},
		"0 shows what is there":                 {metav1.ListOptions{ResourceVersion: "0"}, []string{"ADDED a", "ADDED b"}},
		"a version shows what came after it":    {metav1.ListOptions{ResourceVersion: fmt.Sprint(middle)}, []string{"ADDED b"}},
		"the newest version shows nothing":      {metav1.ListOptions{ResourceVersion: end}, nil},
		"initial events end with a bookmark":    {metav1.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: newer, AllowWatchBookmarks: true}, []string{"ADDED a", "ADDED b", "BOOKMARK end"}},
		"without bookmarks there is no end":     {metav1.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: newer}, []string{"ADDED a", "ADDED b"}},
		"initial events refused, none is shown": {metav1.ListOptions{SendInitialEvents: &no, ResourceVersionMatch: newer, AllowWatchBookmarks: true}, nil},
	} {
		cursor, err := s.Watch(podAt("default", ""), c.opts)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, e := range s.Next(cursor, 0) {
			obj := e.Object.(model.Object)
			label := obj.GetName()
			if obj.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" && obj.GetResourceVersion() == end {
				label = "end"
			}
			got = append(got, string(e.Type)+" "+label)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// An object that stops matching is gone for a watch, in its last matching state; one that starts to match is new.
func TestWatchOfLeavingAndArriving(t *testing.T) {
	s := newServer(t, model.Config{})
	pod := newPod("a")
	pod.Labels = map[string]string{"colour": "red"}
	create(t, s, pod)
	cursor, err := s.Watch(podAt("default", ""), metav1.ListOptions{LabelSelector: "colour=red", ResourceVersion: fmt.Sprint(s.Version())})
	if err != nil {
		t.Fatal(err)
	}
	for _, colour := range []string{"blue", "red"} {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"colour":%q}}}`, colour)
		if _, err := s.Patch(t0, podAt("default", "a"), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, e := range s.Next(cursor, 0) {
		p := e.Object.(*corev1.Pod)
		got = append(got, fmt.Sprintf("%s %s +%d", e.Type, p.Labels["colour"], s.Version()-version(t, p)))
	}
	if diff := cmp.Diff([]string{"DELETED red +1", "ADDED red +0"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Two servers of equal configuration give equal answers to equal calls.
func TestDeterminism(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		a, b := newActor(model.Config{Seed: seed}), newActor(model.Config{Seed: seed})
		for range 10 {
			pod := newPod("")
			pod.GenerateName = "p-"
			one, err1 := a.server.Create(t0, podAt("default", ""), pod, metav1.CreateOptions{})
			two, err2 := b.server.Create(t0, podAt("default", ""), pod, metav1.CreateOptions{})
			if diff := cmp.Diff(one, two); diff != "" || err1 != nil || err2 != nil {
				t.Fatalf("%v, %v:\n%s", err1, err2, diff)
			}
		}
	})
}
