// Package state keeps the daemon's folder: the little that must outlive the process.
//
// It promises that one daemon at a time uses a folder, that an incarnation number is never given twice, and that only the folder's owner can look
// into it.
package state

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Folder is a state folder that this process holds.
type Folder struct {
	dir         string
	lock        *os.File
	incarnation sync.Mutex // held while the number of incarnations changes
}

// lockName is the file by which a folder is known as one of ours.
const lockName = "lock"

// ErrInUse reports that another daemon holds the folder.
var ErrInUse = errors.New("in use by another retinued")

// Open takes a folder, and makes it if it is not there. The folder is held until Close or the end of the process, however it ends. The error wraps
// ErrInUse if another daemon holds it.
func Open(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the state folder: %w", err)
	}
	if err := closeToOthers(dir); err != nil {
		return nil, fmt.Errorf("closing the state folder %s to others: %w", dir, err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of state folder %s: %w", dir, err)
	}
	if err := flock(lock); err != nil {
		return nil, errors.Join(refusal(dir, lock, err), lock.Close())
	}
	f := &Folder{dir: dir, lock: lock}
	if err := errors.Join(lock.Truncate(0), f.note()); err != nil {
		return nil, errors.Join(fmt.Errorf("writing the lock of state folder %s: %w", dir, err), f.Close())
	}
	return f, nil
}

// closeToOthers sees to it that only the owner can look into the folder. One that holds other things than ours is not touched: it was meant for
// somebody else.
func closeToOthers(dir string) error {
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(dir, lockName)); err != nil && len(entries) > 0 {
		return fmt.Errorf("others may use it (mode %v) and it holds things that are not ours: give the daemon a folder of its own with --state", info.Mode())
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("others may use it (mode %v): %w: give the daemon a folder of its own with --state", info.Mode(), err)
	}
	return nil
}

// refusal says why the lock was not to be had.
func refusal(dir string, lock *os.File, err error) error {
	if !errors.Is(err, errHeld) {
		return fmt.Errorf("locking state folder %s: %w: a folder on a local disk does", dir, err)
	}
	holder := make([]byte, 16)
	n, _ := lock.Read(holder)
	return fmt.Errorf("state folder %s: %w (process %s): stop that one, or give this one a folder of its own with --state",
		dir, ErrInUse, strings.TrimSpace(string(holder[:n])))
}

// note writes the process id into the lock, for people.
func (f *Folder) note() error {
	_, err := f.lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// Close lets go of the folder.
func (f *Folder) Close() error { return f.lock.Close() }

// Path is a file or folder inside.
func (f *Folder) Path(name string) string { return filepath.Join(f.dir, name) }

// NextIncarnation returns a number that this folder never returned before and that is not taken: a folder that was lost counts anew, and the pods
// of its former life may still be there. The number is on disk when the method returns. It may be called from many goroutines.
func (f *Folder) NextIncarnation(taken func(uint32) bool) (uint32, error) {
	f.incarnation.Lock()
	defer f.incarnation.Unlock()
	name := f.Path("incarnation")
	last := uint64(0)
	text, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return 0, fmt.Errorf("reading the incarnation: %w", err)
	default:
		last, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
		if err != nil {
			return 0, fmt.Errorf("reading the incarnation: %s holds %q, which is not a number: write the last number that names of pods show (-iN-) into it", name, text)
		}
	}
	last++
	for last < math.MaxUint32 && taken(uint32(last)) {
		last++
	}
	if last > math.MaxUint32 {
		return 0, fmt.Errorf("counting the incarnation: %s holds the last number that there is: give the daemon a new folder with --state", name)
	}
	next := uint32(last)
	if err := f.replace("incarnation", []byte(strconv.FormatUint(uint64(next), 10)+"\n")); err != nil {
		return 0, fmt.Errorf("writing the incarnation: %w", err)
	}
	return next, nil
}

// Secret returns the 32 bytes kept under name, made at random when they are not there.
func (f *Folder) Secret(name string) (secret [32]byte, err error) {
	kept, err := os.ReadFile(f.Path(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		_, _ = rand.Read(secret[:]) // never fails
		if err = f.replace(name, secret[:]); err != nil {
			return secret, fmt.Errorf("writing the secret %s: %w", name, err)
		}
		return secret, nil
	case err != nil:
		return secret, fmt.Errorf("reading the secret %s: %w", name, err)
	case len(kept) != len(secret):
		return secret, fmt.Errorf("reading the secret: %s has %d bytes, not %d: delete it to have a new one made (executors that are running must then be replaced)", f.Path(name), len(kept), len(secret))
	}
	copy(secret[:], kept)
	return secret, nil
}

// replace writes a file so that after a crash it is the old one or the new one, whole.
func (f *Folder) replace(name string, data []byte) error {
	temp, err := os.OpenFile(f.Path(name+".new"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err != nil {
		return err
	}
	if err = os.Rename(temp.Name(), f.Path(name)); err != nil {
		return err
	}
	dir, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
