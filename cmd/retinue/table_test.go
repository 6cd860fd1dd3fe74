package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

type pair struct{ name, value string }

var pairColumns = []column[pair]{
	{title: "NAME", cell: func(p pair) string { return p.name }},
	{title: "EXTRA", wide: true, cell: func(p pair) string { return strings.ToUpper(p.value) }},
	{title: "VALUE", cell: func(p pair) string { return p.value }},
}

// Columns stand below each other whatever the letters, wide ones only when asked for, and an empty cell can be seen.
func TestTable(t *testing.T) {
	rows := []pair{{"a", "x"}, {"öäü-long", ""}, {"b", "last"}}
	want := "NAME       VALUE\na          x\nöäü-long   -\nb          last\n"
	if diff := cmp.Diff(want, newTable(pairColumns, false).lines(rows...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = "NAME       EXTRA   VALUE\na          X       x\nöäü-long   -       -\nb          LAST    last\n"
	if diff := cmp.Diff(want, newTable(pairColumns, true).lines(rows...)); diff != "" {
		t.Errorf("wide (-want +got):\n%s", diff)
	}
}

// Rows that come later stand below those before, without titles.
func TestTableGoesOn(t *testing.T) {
	tab := newTable(pairColumns, false)
	got := tab.lines(pair{"longer", "1"}) + tab.lines(pair{"x", "2"})
	if want := "NAME     VALUE\nlonger   1\nx        2\n"; got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

// What others chose cannot draw over the screen or break a row.
func TestTableCleans(t *testing.T) {
	got := newTable(pairColumns, false).lines(pair{"\x1b[2Jevil\r\n", "a\tb\u009bc\x00"})
	if want := "NAME       VALUE\n[2Jevil    a bc\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A watch shows a row when it has changed, and not because time has passed.
func TestWatchShowsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := &program{streams: streams{out: &out}}
		w := taskOutput(false).watcher(p, "table")
		accepted := timestamppb.Now()
		see := func(state apiv1.TaskState) string {
			out.Reset()
			if err := w.show(unit{Task: &apiv1.Task{Key: "k", State: state, AcceptedAt: accepted}}); err != nil {
				t.Fatal(err)
			}
			return out.String()
		}
		if got := see(apiv1.TaskState_TASK_STATE_QUEUED); !strings.Contains(got, "KEY") || !strings.Contains(got, "queued") {
			t.Errorf("at first it shows %q", got)
		}
		time.Sleep(time.Minute)
		if got := see(apiv1.TaskState_TASK_STATE_QUEUED); got != "" {
			t.Errorf("nothing but time has changed, and it shows %q", got)
		}
		if got := see(apiv1.TaskState_TASK_STATE_RUNNING); strings.Contains(got, "KEY") || !strings.Contains(got, "running") || !strings.Contains(got, "60s") {
			t.Errorf("after a change it shows %q", got)
		}
		out.Reset()
		w.gone("task/other")
		w.gone("task/k")
		if got := out.String(); got != "task/k is gone\n" {
			t.Errorf("it says %q of what is gone", got)
		}
	})
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0ms", 999 * time.Millisecond: "999ms", 90 * time.Second: "90s", 125 * time.Second: "2m5s",
		61 * time.Minute: "1h1m", 47 * time.Hour: "47h0m", 80 * time.Hour: "3d",
	} {
		if got := short(d); got != want {
			t.Errorf("short(%v) is %s, want %s", d, got, want)
		}
	}
}

// The word for an application's state is the condition that matters most.
func TestAppState(t *testing.T) {
	with := func(stopped, ready, limited bool) *apiv1.Application {
		return &apiv1.Application{Status: &apiv1.ApplicationStatus{
			Stopped: stopped, Conditions: []*apiv1.Condition{{Type: "Ready", Status: ready, Message: "r"}, {Type: "Limited", Status: limited, Message: "l"}},
		}}
	}
	for _, c := range []struct {
		app         *apiv1.Application
		state, note string
	}{
		{with(true, false, true), "Stopped", "l"},
		{with(false, true, false), "Ready", ""},
		{with(false, true, true), "Ready", "l"},
		{with(false, false, true), "Limited", "l"},
		{with(false, false, false), "Progressing", "r"},
		{&apiv1.Application{}, "Progressing", ""},
	} {
		if state, note := appState(c.app), appNote(c.app); state != c.state || note != c.note {
			t.Errorf("%v: %s, %q; want %s, %q", c.app.GetStatus(), state, note, c.state, c.note)
		}
	}
}
