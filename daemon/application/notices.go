package application

import (
	"slices"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// maxNotices bounds the notices that are kept.
const maxNotices = 64

// notices are the newest things that people want to know of.
type notices struct{ kept []NoticeAt }

// tell gives a notice. One that repeats the newest is counted and not given again.
func (a *Application) tell(kind NoticeKind, id snapshot.ID, text string) {
	n := Notice{Kind: kind, Executor: id, Text: text}
	kept := &a.notices.kept
	if last := len(*kept) - 1; last >= 0 && (*kept)[last].Notice == n {
		(*kept)[last].Count++
		(*kept)[last].At = a.now
		return
	}
	if len(*kept) == maxNotices {
		*kept = slices.Delete(*kept, 0, 1)
	}
	*kept = append(*kept, NoticeAt{At: a.now, Count: 1, Notice: n})
	a.emit(n)
}
