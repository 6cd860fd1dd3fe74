package daemon

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shortDir is a folder with a short path.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") //nolint:usetesting // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func listening(t *testing.T, path string) *socket {
	t.Helper()
	s, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// answers reports whether somebody listens at path.
func answers(path string) bool {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// A socket is its owner's alone, in a folder that is, too; nothing else is left beside it, and after Close it is gone.
func TestSocketIsItsOwnersAlone(t *testing.T) {
	dir := filepath.Join(shortDir(t), "made")
	path := filepath.Join(dir, "d.sock")
	s := listening(t, path)
	for name, want := range map[string]fs.FileMode{path: fs.ModeSocket | 0o600, dir: fs.ModeDir | 0o700} {
		if info, err := os.Lstat(name); err != nil || info.Mode() != want {
			t.Errorf("%s has mode %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
	if !answers(path) || s.Addr().String() != path {
		t.Errorf("nobody answers at %s, or it is not the address %s", path, s.Addr())
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("beside the socket there is %v, %v", entries, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("after Close there is %v, %v", entries, err)
	}
}

// A socket that a dead daemon left is replaced.
func TestDeadSocketIsReplaced(t *testing.T) {
	path := filepath.Join(shortDir(t), "d.sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	listening(t, path)
	if !answers(path) {
		t.Error("the new socket does not answer")
	}
}

// A socket that answers stays, whoever it belongs to, and so does one that merely cannot be asked.
func TestLiveSocketStays(t *testing.T) {
	dir := shortDir(t)
	path, datagrams := filepath.Join(dir, "d.sock"), filepath.Join(dir, "datagrams")
	listening(t, path)
	other, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: datagrams, Net: "unixgram"}) // connect says "wrong type"
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	for _, name := range []string{path, datagrams} {
		before, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := listenUnix(name); err == nil || !strings.Contains(err.Error(), "another program") {
			t.Errorf("%s: got %v, %v", name, s, err)
		}
		if after, err := os.Lstat(name); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s was replaced (%v)", name, err)
		}
	}
	if !answers(path) {
		t.Error("the socket that was there does not answer any more")
	}
}

// What is not a socket is somebody's, and stays: files, folders, and links to wherever.
func TestForeignFileStays(t *testing.T) {
	dir := shortDir(t)
	file, link := filepath.Join(dir, "thesis.txt"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("years of work"), 0o600), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, link, dir} {
		if _, err := listenUnix(name); err == nil || !strings.Contains(err.Error(), "not a socket") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if text, err := os.ReadFile(link); err != nil || string(text) != "years of work" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

// Close removes only what is its own: a successor may have taken the place.
func TestCloseLeavesASuccessorAlone(t *testing.T) {
	path := filepath.Join(shortDir(t), "d.sock")
	first := listening(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	listening(t, path)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if !answers(path) {
		t.Error("the successor's socket is gone")
	}
}

// A path that the system would cut off is refused, with the length that there may be.
func TestLongSocketPathIsRefused(t *testing.T) {
	dir := shortDir(t)
	longName := filepath.Join(dir, strings.Repeat("n", maxSocketPath))
	longFolder := filepath.Join(dir, strings.Repeat("f", maxSocketPath-len(dir)-len("//s")), "s")
	for _, path := range []string{longName, longFolder} {
		if _, err := listenUnix(path); err == nil || !strings.Contains(err.Error(), "at most") {
			t.Errorf("%d bytes: got %v", len(path), err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("what was refused left %v, %v", entries, err)
	}
	longest := filepath.Join(dir, strings.Repeat("f", maxSocketPath-len(hideout)-len(dir)-1), "d.sock")
	if listening(t, longest); !answers(longest) {
		t.Error("a folder as long as there may be does not do")
	}
}
