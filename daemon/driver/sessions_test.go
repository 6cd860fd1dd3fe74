package driver

import (
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/retinue-sched/retinue/daemon/application"
)

// A session that its application could not hear of, because the stream broke before, leaves nothing behind.
func TestSessionThatNeverBeganLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAlone(t)
		a.stop() // from now on the application takes nothing out of its inbox
		synctest.Wait()
		for range 1 << 15 {
			a.app.Post(application.Beat{Executor: 1})
		}
		cancel, ended := a.begin(t)
		synctest.Wait()
		if n := a.open(); n != 1 {
			t.Fatalf("%d sessions wait for the application, want 1", n)
		}
		cancel()
		if err := <-ended; err == nil {
			t.Error("the session of a broken stream ended without an error")
		}
		if n := a.open(); n != 0 {
			t.Errorf("%d sessions are left", n)
		}
	})
}

// An executor that registers while the daemon stops is sent away like those that are there: nothing would end its session later.
func TestNoSessionBeginsWhileTheDaemonStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAlone(t)
		a.sessions.reconnectAll("the daemon restarts")
		_, ended := a.begin(t)
		if err := <-ended; status.Code(err) != codes.Unavailable {
			t.Errorf("got %v, want to be told to come back", err)
		}
	})
}
