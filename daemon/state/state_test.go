package state_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/retinue-sched/retinue/daemon/state"
)

func open(t *testing.T, dir string) *state.Folder {
	t.Helper()
	f, err := state.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// A folder belongs to one daemon at a time, and the one that comes second is told what to do.
func TestSecondDaemonIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	first := open(t, dir)
	_, err := state.Open(dir)
	if !errors.Is(err, state.ErrInUse) || !strings.Contains(err.Error(), "--state") {
		t.Fatalf("opening a held folder gave %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
}

// No incarnation is given twice, also over restarts; damage is reported and not taken for a fresh start.
func TestIncarnationsNeverRepeat(t *testing.T) {
	dir := t.TempDir()
	for want := uint32(1); want <= 3; want++ {
		f := open(t, dir)
		got, err := f.NextIncarnation(none)
		if err != nil || got != want {
			t.Fatalf("incarnation %d, %v, want %d", got, err, want)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "incarnation"), []byte("four"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, dir).NextIncarnation(none); err == nil || !strings.Contains(err.Error(), "not a number") {
		t.Fatalf("a damaged incarnation gave %v", err)
	}
}

// A secret is made once, kept, and readable by the owner only.
func TestSecretIsKept(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	first, err := f.Secret("key")
	if err != nil {
		t.Fatal(err)
	}
	second, err := f.Secret("key")
	if err != nil || !bytes.Equal(first[:], second[:]) || first == [32]byte{} {
		t.Fatalf("secrets %x and %x, %v", first, second, err)
	}
	info, err := os.Stat(f.Path("key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(f.Path("key"), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Secret("key"); err == nil {
		t.Fatal("a short secret was accepted")
	}
}

// A folder that others could look into is closed to them if it is fresh or ours, and refused if it holds anything else.
func TestFolderIsClosedToOthers(t *testing.T) {
	fresh, ours, foreign := t.TempDir(), t.TempDir(), t.TempDir()
	if err := errors.Join(
		os.WriteFile(filepath.Join(ours, "lock"), nil, 0o600), os.WriteFile(filepath.Join(ours, "incarnation"), []byte("7"), 0o600),
		os.WriteFile(filepath.Join(foreign, "photo"), nil, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{fresh, ours, foreign} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{fresh, ours} {
		open(t, dir)
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	}
	if _, err := state.Open(foreign); err == nil || !strings.Contains(err.Error(), "not ours") {
		t.Errorf("a folder with other things gave %v", err)
	}
	if info, err := os.Stat(foreign); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the other's folder has mode %v now, %v", info.Mode(), err)
	}
}

// Numbers taken at the same time differ, and the last that there is ends them: it must not begin anew.
func TestIncarnationsAtTheSameTime(t *testing.T) {
	f := open(t, t.TempDir())
	const n = 20
	got := make(chan uint32, n)
	var callers sync.WaitGroup
	for range n {
		callers.Go(func() {
			number, err := f.NextIncarnation(none)
			if err != nil {
				t.Error(err)
			}
			got <- number
		})
	}
	callers.Wait()
	close(got)
	seen := map[uint32]bool{}
	for number := range got {
		if number == 0 || seen[number] {
			t.Errorf("%d was given before", number)
		}
		seen[number] = true
	}
	if err := os.WriteFile(f.Path("incarnation"), []byte("4294967295\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if number, err := f.NextIncarnation(none); err == nil {
		t.Errorf("after the last number came %d", number)
	}
}

// none is what is taken where no pods are.
func none(uint32) bool { return false }

// A folder that was lost counts anew, and passes over what pods of its former life show; it does not come back to what it passed over.
func TestTakenIncarnations(t *testing.T) {
	f := open(t, t.TempDir())
	for _, want := range []uint32{3, 5, 6} {
		got, err := f.NextIncarnation(func(n uint32) bool { return n == 1 || n == 2 || n == 4 })
		if err != nil || got != want {
			t.Errorf("got %d, %v, want %d", got, err, want)
		}
	}
	if got, err := f.NextIncarnation(none); err != nil || got != 7 {
		t.Errorf("got %d, %v, want 7", got, err)
	}
	if got, err := f.NextIncarnation(func(n uint32) bool { return n < 1000 }); err != nil || got != 1000 {
		t.Errorf("got %d, %v, want 1000", got, err)
	}
}
