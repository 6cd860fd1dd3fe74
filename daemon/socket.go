package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// maxSocketPath is how many bytes the name of a Unix socket may have: the least of the systems that we run on, without the closing zero.
const maxSocketPath = 103

// hideout is what is put behind the folder of a socket while the socket is made: its own folder, of a name that MkdirTemp chooses.
const hideout = "/.retinued-4294967295/s"

// socketPath is the absolute path of a Unix socket, under which executors find it wherever they run. The error says how long it may be.
func socketPath(path string) (string, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("finding the folder of the socket %s: %w", path, err)
	}
	if len(full) > maxSocketPath {
		return "", fmt.Errorf("%q has %d bytes, the path of a Unix socket at most %d: choose a shorter one", full, len(full), maxSocketPath)
	}
	if dir := filepath.Dir(full); len(dir)+len(hideout) > maxSocketPath {
		return "", fmt.Errorf("the folder %q has %d bytes, that of a Unix socket at most %d: choose a shorter one", dir, len(dir), maxSocketPath-len(hideout))
	}
	return full, nil
}

// listenUnix opens a Unix socket that only its owner can use, from the first moment on. A socket that a dead daemon left is replaced; one that
// may be alive is not, and neither is anything else that lies there.
func listenUnix(path string) (*socket, error) {
	path, err := socketPath(path)
	if err != nil {
		return nil, fmt.Errorf("listening on listen.socket: %w", err)
	}
	if err = os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of listen.socket: %w", err)
	}
	if err = vacant(path); err != nil {
		return nil, fmt.Errorf("listening on listen.socket %s: %w", path, err)
	}
	s, err := moveIn(path)
	if err != nil {
		return nil, fmt.Errorf("listening on listen.socket %s: %w", path, err)
	}
	return s, nil
}

// vacant returns nil if nothing is at path, or a socket on which nobody listens.
func vacant(path string) error {
	there, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case there.Mode().Type() != fs.ModeSocket: // asked of a plain file, connect says "refused" as well
		return errors.New("there is something that is not a socket: move it away, or choose another path")
	}
	conn, err := net.Dial("unix", path)
	switch {
	case err == nil:
		_ = conn.Close()
		return errors.New("another program answers there: stop it, or choose another path")
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("another program may use it (%w): stop it and remove the socket, or choose another path", err)
}

// moveIn makes the socket where nobody else can come, gives it its mode, and then moves it to its place: bind would make it as the umask allows,
// and the umask belongs to the whole process.
func moveIn(path string) (*socket, error) {
	hidden, err := os.MkdirTemp(filepath.Dir(path), ".retinued-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(hidden) }()
	temp := filepath.Join(hidden, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temp, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err = errors.Join(os.Chmod(temp, 0o600), os.Rename(temp, path)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	own, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &socket{UnixListener: l, path: path, own: own}, nil
}

// socket is a Unix socket that was moved to its place.
type socket struct {
	*net.UnixListener
	path   string
	own    fs.FileInfo
	remove sync.Once
}

// Addr is where clients find it.
func (s *socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// Close also removes the socket's name, unless it leads to another socket by now.
func (s *socket) Close() error {
	// While the listener is open nobody else can be given the same inode.
	s.remove.Do(func() {
		if there, err := os.Lstat(s.path); err == nil && os.SameFile(s.own, there) {
			_ = os.Remove(s.path)
		}
	})
	return s.UnixListener.Close()
}
