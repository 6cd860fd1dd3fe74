package source

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// roll knows the pods that are ours by their UIDs, and which executor each was when it was first seen. Labels can be edited by anybody, a UID by
// nobody: a pod that left us by an edit would run on with nobody to look after it. Feed.mu guards it.
type roll map[string]*member

// member is a pod of ours.
type member struct {
	app         string
	incarnation uint32
	id          snapshot.ID
	profile     snapshot.Profile

	version snapshot.Version // the newest at which it was seen
	gone    bool             // while a list is under way, which may still show it
	told    bool             // that its labels were edited
}

// look is what a pod shows on the face of it. If err is not nil, its labels name no executor, and whose it is was not asked.
type look struct {
	seen  pod.Seen
	whose string
	err   error
}

func (f *Feed) look(p *corev1.Pod) look {
	seen, err := pod.Read(p, "")
	if err != nil {
		return look{seen: pod.Seen{Pod: pod.State(p, "")}, err: err}
	}
	return look{seen: seen, whose: f.cfg.Owner.Whose(p)}
}

// recognise makes a look at a pod of ours show the executor that the pod was when it was first seen, and tells of the first edit. f.mu must be held.
func (f *Feed) recognise(ctx context.Context, l *look) {
	m, edit := f.roll.recognise(l)
	if edit == "" || m.told {
		return
	}
	m.told = true
	f.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "the labels of an executor's pod were edited: it stays the executor that it was",
		slog.String("namespace", f.cfg.Namespace), slog.String("pod", l.seen.Pod.Name),
		slog.String("app", m.app), slog.Uint64("executor", uint64(m.id)), slog.String("now", edit))
}

// recognise returns the pod of ours that a look is at, nil if it is none, and how its labels differ from what they were.
func (r roll) recognise(l *look) (m *member, edit string) {
	o := &l.seen.Pod
	m, known := r[o.UID]
	switch {
	case known:
		edit = m.edit(l)
		l.seen.App, l.seen.Incarnation, o.ID, o.Profile = m.app, m.incarnation, m.id, m.profile
		l.whose, l.err = "", nil
		m.version = max(m.version, o.Version)
	case l.err == nil && l.whose == "" && o.UID != "":
		m = &member{app: strings.Clone(l.seen.App), incarnation: l.seen.Incarnation, id: o.ID, profile: o.Profile, version: o.Version}
		r[o.UID] = m
	}
	return m, edit
}

// edit says in words how a pod's labels differ from what they were; it is empty if they do not.
func (m *member) edit(l *look) string {
	switch now := &l.seen; {
	case l.err != nil:
		return l.err.Error()
	case now.App != m.app, now.Incarnation != m.incarnation, now.Pod.ID != m.id, now.Pod.Profile != m.profile:
		return fmt.Sprintf("its labels say executor %d of profile %d of application %s, life %d", now.Pod.ID, now.Pod.Profile, now.App, now.Incarnation)
	}
	return l.whose
}

// begin forgets what only a list that began earlier could still show.
func (r roll) begin() {
	for uid, m := range r {
		if m.gone {
			delete(r, uid)
		}
	}
}

// left takes in that a pod is gone. A list that is under way may be older than that, and must know the pod again.
func (r roll) left(uid string, listing bool) {
	m, known := r[uid]
	switch {
	case known && listing:
		m.gone = true
	case known:
		delete(r, uid)
	}
}

// listed forgets the pods that are neither in a list nor newer than it, and those that went meanwhile.
func (r roll) listed(version snapshot.Version, looks []look) {
	there := make(map[string]struct{}, len(looks))
	for i := range looks {
		there[looks[i].seen.Pod.UID] = struct{}{}
	}
	for uid, m := range r {
		if _, in := there[uid]; m.gone || !in && m.version <= version {
			delete(r, uid)
		}
	}
}
