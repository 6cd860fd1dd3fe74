package kubelet

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retinue-sched/retinue/daemon/cluster/local/guard"
	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

// Logs writes what a container has written, as opts ask, to out; with Follow until the container has ended or ctx is
// done. Errors are metav1.Status as an API server answers them.
func (k *Kubelet) Logs(ctx context.Context, pod *corev1.Pod, opts corev1.PodLogOptions, out io.Writer) error {
	status, err := containerStatus(pod, opts.Container)
	if err != nil {
		return err
	}
	run := status.RestartCount
	if status.State.Waiting != nil && run > 0 {
		run-- // the next run has no log yet
	}
	if opts.Previous {
		if run--; run < 0 || status.LastTerminationState.Terminated == nil {
			return apierrors.NewBadRequest(fmt.Sprintf("previous terminated container %q in pod %q not found", status.Name, pod.Name))
		}
	}
	path := containerPaths(k.folder(pod), status.Name).log(run)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if status.State.Waiting != nil || status.State.Running == nil && status.State.Terminated == nil {
			return apierrors.NewBadRequest(fmt.Sprintf("container %q in pod %q is waiting to start: %s", status.Name, pod.Name, waitReason(status)))
		}
		return nil // it ended before it could write
	}
	sel := &selection{opts: opts, left: -1, out: out, now: time.Now()}
	if opts.LimitBytes != nil {
		sel.left = *opts.LimitBytes
	}
	return k.copyLog(ctx, pod, status.Name, path, sel)
}

func waitReason(s *corev1.ContainerStatus) string {
	if s.State.Waiting == nil {
		return "ContainerCreating"
	}
	return s.State.Waiting.Reason
}

// containerStatus finds the container that a request means: the only one when it names none.
func containerStatus(pod *corev1.Pod, name string) (*corev1.ContainerStatus, error) {
	if name == "" {
		if len(pod.Spec.Containers) > 1 {
			var all []string
			for _, c := range pod.Spec.Containers {
				all = append(all, c.Name)
			}
			return nil, apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s, choose one of: [%s]",
				pod.Name, strings.Join(all, " ")))
		}
		name = pod.Spec.Containers[0].Name
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return &list[i], nil
			}
		}
	}
	for _, c := range append(append([]corev1.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...) {
		if c.Name == name {
			return &corev1.ContainerStatus{Name: name}, nil
		}
	}
	return nil, apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, pod.Name))
}

// lookForLines is how often a log is looked at while somebody follows it, and only then.
const lookForLines = 100 * time.Millisecond

func (k *Kubelet) copyLog(ctx context.Context, pod *corev1.Pod, container, path string, sel *selection) error {
	ticker := time.NewTicker(lookForLines)
	defer ticker.Stop()
	file, skip, err := openForTail(path, sel)
	if err != nil {
		return fmt.Errorf("reading the log: %w", err)
	}
	defer file.Close()
	sel.skip = skip
	for {
		over, changed := k.over(pod, container) // asked before reading, so that the last lines are read after the end
		more, err := sel.copy(file)
		if err != nil || !more || !sel.opts.Follow || over && !file.rotated(path) {
			return err
		}
		if file.rotated(path) {
			if err := file.reopen(path); err != nil {
				return fmt.Errorf("reading the log: %w", err)
			}
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-changed:
		}
	}
}

// over reports whether the run whose log is followed has ended, and a channel that closes when that may have changed.
func (k *Kubelet) over(pod *corev1.Pod, container string) (bool, <-chan struct{}) {
	changed := k.store.Changed()
	over := true
	k.store.Do(func(_ time.Time, m *model.Server) {
		found, err := m.Read(model.Ref{Resource: "pods", Namespace: pod.Namespace, Name: pod.Name})
		if err != nil || found.GetUID() != pod.UID {
			return
		}
		status, err := containerStatus(found.(*corev1.Pod), container)
		over = err != nil || status.State.Running == nil
	})
	return over, changed
}

// selection is which lines of a log are wanted, and in what form.
type selection struct {
	opts    corev1.PodLogOptions
	now     time.Time
	skip    int   // lines before the tail
	left    int64 // bytes that may still be written; negative: any number
	out     io.Writer
	partial bool // the line before goes on
}

// copy writes what is there of the log and reports whether more is wanted.
func (s *selection) copy(file *logReader) (bool, error) {
	for {
		line, ok := file.next()
		if !ok {
			return true, nil
		}
		if s.skip > 0 {
			s.skip--
			continue
		}
		if err := s.write(line); err != nil {
			return false, err
		}
		if s.left == 0 {
			return false, nil
		}
	}
}

func (s *selection) write(line []byte) error {
	at, text, whole, ok := parseLine(line)
	if !ok || s.tooOld(at) {
		return nil
	}
	var b bytes.Buffer
	if s.opts.Timestamps && !s.partial {
		b.WriteString(at.Format(guard.LogTime) + " ")
	}
	b.Write(text)
	if whole {
		b.WriteByte('\n')
	}
	s.partial = !whole
	if s.left >= 0 && int64(b.Len()) > s.left {
		b.Truncate(int(s.left))
	}
	if s.left > 0 {
		s.left -= int64(b.Len())
	}
	_, err := s.out.Write(b.Bytes())
	return err
}

func (s *selection) tooOld(at time.Time) bool {
	since := s.opts.SinceTime
	if n := s.opts.SinceSeconds; n != nil {
		since = &metav1.Time{Time: s.now.Add(-time.Duration(*n) * time.Second)}
	}
	return since != nil && at.Before(since.Time)
}

// parseLine takes a log line apart: time, stream, tag, text.
func parseLine(line []byte) (at time.Time, text []byte, whole, ok bool) {
	stamp, rest, found := bytes.Cut(line, []byte{' '})
	_, rest, found2 := bytes.Cut(rest, []byte{' '})
	tag, text, found3 := bytes.Cut(rest, []byte{' '})
	at, err := time.Parse(guard.LogTime, string(stamp))
	return at, text, string(tag) == "F", found && found2 && found3 && err == nil
}

// logReader reads whole lines of a growing file.
type logReader struct {
	older   *os.File // the rotated part, read first
	file    *os.File
	reader  *bufio.Reader
	pending []byte
}

func openForTail(path string, sel *selection) (*logReader, int, error) {
	lines := 0
	if sel.opts.TailLines != nil {
		for _, part := range []string{path + ".1", path} {
			n, err := countLines(part)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, 0, err
			}
			lines += n
		}
		lines = max(0, lines-int(min(*sel.opts.TailLines, int64(lines))))
	}
	r := &logReader{}
	older, err := os.Open(path + ".1")
	if err == nil {
		r.older = older
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	if r.file, err = os.Open(path); err != nil {
		return nil, 0, errors.Join(err, r.Close())
	}
	r.reader = bufio.NewReader(r.file)
	if r.older != nil {
		r.reader = bufio.NewReader(io.MultiReader(r.older, r.file))
	}
	return r, lines, nil
}

// countLines counts what a reader sees as lines: a part that goes on is not one of its own.
func countLines(path string) (int, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n, r := 0, bufio.NewReader(f)
	for {
		_, err := r.ReadSlice('\n')
		switch {
		case err == nil:
			n++
		case !errors.Is(err, bufio.ErrBufferFull):
			return n, nil
		}
	}
}

// next returns the next complete line, without its end; false when there is none yet.
func (r *logReader) next() ([]byte, bool) {
	text, err := r.reader.ReadBytes('\n')
	r.pending = append(r.pending, text...)
	if err != nil {
		return nil, false
	}
	line := bytes.TrimSuffix(r.pending, []byte{'\n'})
	r.pending = nil
	return line, true
}

// rotated reports whether path is another file by now.
func (r *logReader) rotated(path string) bool {
	have, err := r.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && !os.SameFile(have, there)
}

func (r *logReader) reopen(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	r.file.Close()
	r.file, r.reader = f, bufio.NewReader(f)
	return nil
}

// Close closes the files.
func (r *logReader) Close() error {
	var errs []error
	for _, f := range []*os.File{r.older, r.file} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// tail returns the end of a log: at most lines lines and size bytes.
func tail(path string, lines, size int) string {
	var b bytes.Buffer
	n := int64(lines)
	sel := &selection{opts: corev1.PodLogOptions{TailLines: &n}, left: -1, out: &b}
	file, skip, err := openForTail(path, sel)
	if err != nil {
		return ""
	}
	defer file.Close()
	sel.skip = skip
	if _, err := sel.copy(file); err != nil {
		return ""
	}
	text := b.Bytes()
	return string(text[max(0, len(text)-size):])
}
