package daemon

import (
	"net"
	"testing"

	"github.com/retinue-sched/retinue/daemon/driver"
)

// Executors are told the port on which the daemon really listens, at the host that was written, and nothing else when their address was.
func TestExecutorsAreToldTheRealPort(t *testing.T) {
	for _, c := range []struct {
		listen    Listen
		executors Executors
		want      func(port string) string
	}{
		{Listen{Address: "localhost:0"}, Executors{}, func(port string) string { return "localhost:" + port }},
		{Listen{Address: "127.0.0.1:0", Socket: "d.sock"}, Executors{}, func(port string) string { return "127.0.0.1:" + port }},
		{Listen{Address: "127.0.0.1:0"}, Executors{Address: "daemon.svc:7"}, func(string) string { return "daemon.svc:7" }},
	} {
		t.Chdir(shortDir(t))
		d := &Daemon{cfg: Config{Listen: c.listen, Executors: c.executors}}
		if err := d.listen(); err != nil {
			t.Fatal(err)
		}
		_, port, err := net.SplitHostPort(d.listeners[len(d.listeners)-1].Addr().String())
		if err != nil || port == "0" {
			t.Errorf("port %q, %v", port, err)
		}
		if got, want := d.executorsAddress(), c.want(port); got != want {
			t.Errorf("%+v: executors are told %s, want %s", c.listen, got, want)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Executors are told the absolute path of a socket: they run elsewhere.
func TestExecutorsAreToldTheWholePath(t *testing.T) {
	dir := shortDir(t)
	t.Chdir(dir)
	d := &Daemon{cfg: Config{Listen: Listen{Socket: "d.sock"}}, listeners: []driver.Listener{}}
	if got, want := d.executorsAddress(), "unix://"+dir+"/d.sock"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
