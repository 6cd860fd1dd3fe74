package daemon_test

import (
	"strings"
	"testing"
	"time"

	"github.com/retinue-sched/retinue/daemon"
)

// A configuration in which executors could not find the daemon, or would speak otherwise than it does, is refused with the key to set; one in which
// they do is not.
func TestExecutorsMustFindTheDaemon(t *testing.T) {
	type l = daemon.Listen
	type e = daemon.Executors
	for _, c := range []struct {
		name      string
		listen    l
		executors e
		want      string // empty: accepted
	}{
		{"socket", l{Socket: "/s"}, e{}, ""},
		{"socket and authority", l{Socket: "/s"}, e{CAFile: "ca"}, "executors.caFile:"},
		{"loopback", l{Address: "127.0.0.1:0"}, e{}, ""},
		{"loopback by name", l{Address: "localhost:7000"}, e{}, ""},
		{"loopback with TLS on one side only", l{Address: "127.0.0.1:7000", CertFile: "c", KeyFile: "k"}, e{}, "executors.caFile:"},
		{"loopback with TLS on the other side only", l{Address: "[::1]:7000"}, e{CAFile: "ca"}, "executors.caFile:"},
		{"loopback with TLS", l{Address: "127.0.0.1:7000", CertFile: "c", KeyFile: "k"}, e{CAFile: "ca"}, ""},
		{"loopback with TLS for clients, a socket for executors", l{Socket: "/s", Address: "127.0.0.1:7000", CertFile: "c", KeyFile: "k"}, e{Address: "unix:///s"}, ""},
		{"plain text for all to see", l{Address: "10.0.0.1:7000"}, e{}, "listen.address:"},
		{"others, TLS", l{Address: "daemon.example:7000", CertFile: "c", KeyFile: "k"}, e{}, ""},
		{"no address", l{Address: "7000"}, e{}, "listen.address:"},
		{"no host", l{Address: ":7000", CertFile: "c", KeyFile: "k"}, e{CAFile: "ca"}, "executors.address:"},
		{"every host", l{Address: "0.0.0.0:7000", CertFile: "c", KeyFile: "k"}, e{CAFile: "ca"}, "executors.address:"},
		{"every host, IPv6", l{Address: "[::]:7000", CertFile: "c", KeyFile: "k"}, e{CAFile: "ca"}, "executors.address:"},
		{"every host, and where", l{Address: ":7000", CertFile: "c", KeyFile: "k"}, e{Address: "daemon.svc:7000", CAFile: "ca"}, ""},
		{"nowhere", l{Socket: "/s"}, e{Address: ":7000"}, "executors.address:"},
		{"no port", l{Socket: "/s"}, e{Address: "daemon.svc"}, "executors.address:"},
		{"relative socket", l{Socket: "/s"}, e{Address: "unix://s"}, "executors.address:"},
		{"long socket", l{Socket: "/" + strings.Repeat("s", 200)}, e{}, "listen.socket:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := daemon.DefaultConfig()
			cfg.State, cfg.Listen, cfg.Executors = "/state", c.listen, c.executors
			err := cfg.Validate()
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

// The application must not give up on a policy that is still within its own time.
func TestDecisionDeadlineIsTheLongest(t *testing.T) {
	cfg := daemon.DefaultConfig()
	cfg.State, cfg.Listen.Socket = "/state", "/s"
	cfg.Application.DecisionDeadline = cfg.Policy.Deadline + cfg.Policy.StartTimeout + time.Millisecond
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	cfg.Application.DecisionDeadline -= time.Millisecond
	err := cfg.Validate()
	for _, key := range []string{"application.decisionDeadline", "policy.deadline", "policy.startTimeout"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s is not in: %v", key, err)
		}
	}
}

// How long to wait for what is lost, or is nobody's, is not negative; orphans may be kept for ever.
func TestPatienceIsNotNegative(t *testing.T) {
	cfg := daemon.DefaultConfig()
	cfg.State, cfg.Listen.Socket = "state", "/run/d.sock"
	cfg.Executors.OrphanTimeout = 0
	if err := cfg.Validate(); err != nil {
		t.Errorf("orphans that are kept: %v", err)
	}
	cfg.Executors.OrphanTimeout, cfg.Application.ReturnTimeout = -1, 0
	err := cfg.Validate()
	for _, key := range []string{"executors.orphanTimeout", "application.returnTimeout"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s is not refused: %v", key, err)
		}
	}
}
