package runner

import (
	"time"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// timers turns SetTimer into firings. A firing that was already on its way when its timer was set anew still arrives; the application does not mind.
type timers struct {
	fired  chan application.Timer
	timers map[application.Timer]*time.Timer
	done   chan struct{}
}

func newTimers() *timers {
	return &timers{fired: make(chan application.Timer), timers: make(map[application.Timer]*time.Timer), done: make(chan struct{})}
}

func (t *timers) set(name application.Timer, now, at snapshot.Instant) {
	old := t.timers[name]
	if old != nil {
		old.Stop()
		delete(t.timers, name)
	}
	if at == 0 {
		return
	}
	t.timers[name] = time.AfterFunc(max(at.Sub(now), 0), func() {
		select {
		case t.fired <- name:
		case <-t.done:
		}
	})
}

func (t *timers) stop() {
	close(t.done)
	for _, timer := range t.timers {
		timer.Stop()
	}
}
