package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/retinue-sched/retinue/sdk/client"
)

// unreachable explains an answer that did not come. Where the text is the daemon's own and the daemon answers still, only what was asked is gone.
func (p *program) unreachable(text string, answers func() bool) error {
	switch {
	case protocols.MatchString(text):
		return &exitError{code: exitUnreachable, err: errors.New(p.trouble(text))}
	case answers():
		return notFoundf("%s: it was deleted meanwhile; `retinue get apps` lists those there are", text)
	default:
		return &exitError{code: exitUnreachable, err: fmt.Errorf("the daemon at %s is going away (%s): try again when it is back", p.daemon.Address, text)}
	}
}

// protocols tells the protocol's texts from the daemon's.
var protocols = regexp.MustCompile(`connection error|error reading|transport|connection is|name resolver|keepalive|EOF|goaway|GOAWAY|dial `)

// trappings is what the protocol puts around the one thing that a person wants to know.
var trappings = regexp.MustCompile(`rpc error: code = \w+ desc = |connection error: desc = |transport: |[Ee]rror while dialing: |failed to connect to all addresses; last error: |authentication handshake failed: |"`)

// trouble says for people why nobody answers.
func (p *program) trouble(text string) string {
	address := p.daemon.Address
	plain := strings.TrimSpace(trappings.ReplaceAllString(text, ""))
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("no such file or directory", "connection refused"):
		return fmt.Sprintf("nothing listens at %s: is retinued running? Start it with `%s`, or name another with --daemon", address, starting(address))
	case has("permission denied"):
		return fmt.Sprintf("%s may not be opened: permission denied: it is for the user that retinued runs as", address)
	case has("handshake failed"):
		return fmt.Sprintf("what listens at %s does not prove that it is the daemon: %s: is it the daemon, and --ca-file its certificate authority?", address, plain)
	case has("server preface", "http2:", "malformed HTTP"):
		return fmt.Sprintf("what listens at %s speaks another language: is it the daemon's address, and does it want TLS (--ca-file)?", address)
	case has("no such host", "name resolver", "produced zero addresses", "no children to pick", "lookup "):
		return fmt.Sprintf("the address %s cannot be found: %s: name another with --daemon", address, plain)
	case has("timeout", "deadline exceeded"):
		return fmt.Sprintf("nothing answers at %s: is it the right address, and may this machine reach it?", address)
	default:
		return fmt.Sprintf("the connection to the daemon at %s broke (%s): try again", address, plain)
	}
}

// starting is how a daemon is started that listens at an address.
func starting(address string) string {
	if address == client.DefaultAddress() {
		return "retinued"
	}
	for _, scheme := range []string{"unix://", "unix:"} {
		if path, ok := strings.CutPrefix(address, scheme); ok {
			return "retinued --listen.socket " + path
		}
	}
	return "retinued --listen.address " + address
}
