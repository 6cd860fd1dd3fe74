package main

import (
	"context"
	"errors"
	"regexp"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/retinue-sched/retinue/sdk/client"
)

// What the protocol says of a daemon that is not there becomes a sentence with what to do, and none of the protocol's words.
func TestUnreachable(t *testing.T) {
	jargon := regexp.MustCompile(`desc =|rpc error|transport|code =|"`)
	for _, c := range []struct{ address, text, want string }{
		{
			"unix:///d.sock", `connection error: desc = "transport: Error while dialing: dial unix /d.sock: connect: no such file or directory"`,
			"nothing listens at unix:///d.sock: is retinued running? Start it with `retinued --listen.socket /d.sock`, or name another with --daemon",
		},
		{
			client.DefaultAddress(), `connection error: desc = "transport: Error while dialing: dial unix x: connect: connection refused"`,
			"nothing listens at " + client.DefaultAddress() + ": is retinued running? Start it with `retinued`, or name another with --daemon",
		},
		{
			"127.0.0.1:1", `connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`,
			"nothing listens at 127.0.0.1:1: is retinued running? Start it with `retinued --listen.address 127.0.0.1:1`, or name another with --daemon",
		},
		{
			"unix:///d", `connection error: desc = "transport: Error while dialing: dial unix /d: connect: permission denied"`,
			"unix:///d may not be opened: permission denied: it is for the user that retinued runs as",
		},
		{
			"h:1", `connection error: desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority"`,
			"what listens at h:1 does not prove that it is the daemon: tls: failed to verify certificate: x509: certificate signed by unknown authority: " +
				"is it the daemon, and --ca-file its certificate authority?",
		},
		{
			"h:1", `connection error: desc = "error reading server preface: EOF"`,
			"what listens at h:1 speaks another language: is it the daemon's address, and does it want TLS (--ca-file)?",
		},
		{"h:1", `error reading from server: EOF`, "the connection to the daemon at h:1 broke (error reading from server: EOF): try again"},
		{"h:1", "the daemon restarts", "the daemon at h:1 is going away (the daemon restarts): try again when it is back"},
	} {
		p := &program{daemon: client.Config{Address: c.address}}
		err := p.explain(status.Error(codes.Unavailable, c.text), func() bool { return false })
		if exitCode(err) != exitUnreachable || err.Error() != c.want {
			t.Errorf("%s\ngave %q with code %d\nwant %q with 3", c.text, err, exitCode(err), c.want)
		}
		if jargon.MatchString(err.Error()) {
			t.Errorf("%q has the protocol's words in it", err)
		}
	}
}

// An application that went away in the middle of a call is not a daemon that went away.
func TestGoneIsNotUnreachable(t *testing.T) {
	err := (&program{}).explain(status.Error(codes.Unavailable, "the application is gone"), func() bool { return true })
	if exitCode(err) != exitNotFound {
		t.Errorf("got %q with code %d, want %d", err, exitCode(err), exitNotFound)
	}
}

// What a call came to is a sentence with an exit code; the code of what is not understood is 1.
func TestExplain(t *testing.T) {
	p := &program{daemon: client.Config{Address: "unix:///d"}}
	never := func() bool { t.Error("the daemon was asked without need"); return false }
	own := failedf("own words")
	if got := p.explain(own, never); !errors.Is(got, own) {
		t.Errorf("got %v, want what was known already", got)
	}
	if got := exitCode(errors.New("anything")); got != exitFailed {
		t.Errorf("an error of unknown kind gives %d, want %d", got, exitFailed)
	}
	if got := exitCode(p.explain(context.Canceled, never)); got != exitInterrupted {
		t.Errorf("an interruption gives %d, want %d", got, exitInterrupted)
	}
}
