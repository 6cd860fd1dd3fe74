package executor

import (
	"context"
	"slices"
	"testing"
)

// Without certificates nothing is said in the clear to anybody who may not be on this machine.
func TestPlainTextStaysHere(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:1": "insecure", "[::1]:1": "insecure", "localhost:1": "insecure", "unix:///run/daemon.sock": "insecure",
		"10.0.0.1:1": "tls", "daemon.retinue.svc:1": "tls", "localhost.example.org:1": "tls", "127.example.org:1": "tls",
	} {
		a := &Agent{cfg: Config{Address: address}}
		creds, err := a.credentials()
		if err != nil || creds.Info().SecurityProtocol != want {
			t.Errorf("%s: %v, %v; want %s", address, creds.Info().SecurityProtocol, err, want)
		}
	}
}

// Tasks do not inherit the token, under whatever name it came.
func TestTokenIsNotInherited(t *testing.T) {
	got := Config{Environ: []string{"RETINUE_TOKEN=x", "A=1", "RETINUE_TOKEN_FILE=y", "RETINUE_TOKENS=z", "TOKEN=2"}}.environ()
	if want := []string{"A=1", "TOKEN=2"}; !slices.Equal(got, want) {
		t.Errorf("the environment is %v, want %v", got, want)
	}
}

// What is remembered of early kills is bounded, and the newest is kept.
func TestRecent(t *testing.T) {
	r := newRecent(3)
	for i := range uint64(10) {
		r.add(ref{task: i})
		r.add(ref{task: i})
	}
	for i := range uint64(10) {
		if got, want := r.has(ref{task: i}), i >= 7; got != want {
			t.Errorf("attempt %d is remembered: %v, want %v", i, got, want)
		}
	}
	if len(r.set) != 3 {
		t.Errorf("%d are remembered, want 3", len(r.set))
	}
}

// The first bytes of output and the last bytes of errors are kept, however they come.
func TestHeadAndTail(t *testing.T) {
	for _, size := range []int{1, 2, 3, 5, 26} {
		h, l := head{limit: 5}, tail{limit: 5}
		for chunk := range slices.Chunk([]byte("abcdefghijklmnopqrstuvwxyz"), size) {
			_, _ = h.Write(chunk)
			_, _ = l.Write(chunk)
		}
		if string(h.kept) != "abcde" || !h.truncated || string(l.bytes()) != "vwxyz" || len(l.kept) > 10 {
			t.Errorf("in pieces of %d: %q, %v, %q", size, h.kept, h.truncated, l.bytes())
		}
	}
	h := head{limit: 5}
	_, _ = h.Write([]byte("abcde"))
	if h.truncated {
		t.Error("output that just fits is said to be cut")
	}
}

// A pause between sessions is never longer than its bound, and not always the same.
func TestPause(t *testing.T) {
	seen := map[int64]bool{}
	for try := range 1000 {
		p := pause(try%20, context.Canceled)
		if bound := min(longestPause, firstPause<<min(try%20, 10)); p < 0 || p >= bound {
			t.Fatalf("try %d: %v is beyond %v", try%20, p, bound)
		}
		seen[int64(p)] = true
	}
	if len(seen) < 900 {
		t.Errorf("%d different pauses in 1000", len(seen))
	}
}
