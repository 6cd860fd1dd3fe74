package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/retinue-sched/retinue/daemon/cluster/local/guard"
	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

// Variables that every container gets, beside RETINUE_MOUNT_<VOLUME> for each mounted volume.
const (
	// MessageVariable names the file for the termination message.
	MessageVariable = "RETINUE_TERMINATION_LOG"
	// OwnerVariable says which container of which pod a process belongs to.
	OwnerVariable = "RETINUE_LOCAL_CONTAINER"
	mountPrefix   = "RETINUE_MOUNT_"
)

// paths are the places of one container in the folder of its pod.
type paths struct{ work, logs, message string }

func (w *worker) paths(container string) paths { return containerPaths(w.k.folder(w.pod), container) }

func containerPaths(folder, container string) paths {
	return paths{
		work:    filepath.Join(folder, "work", container),
		logs:    filepath.Join(folder, "logs", container),
		message: filepath.Join(folder, "messages", container),
	}
}

// log is the log of one run of the container, counted from 0.
func (p paths) log(run int32) string { return filepath.Join(p.logs, fmt.Sprintf("%d.log", run)) }

// start makes the container's folders, resolves its variables and starts its process.
func (w *worker) start(c *corev1.Container, run int32) (*guard.Process, error) {
	p := w.paths(c.Name)
	for _, dir := range []string{p.work, p.logs, filepath.Dir(p.message)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("making a folder for container %s: %w", c.Name, err)
		}
	}
	for _, stale := range []string{p.message, p.log(run - 2), p.log(run-2) + ".1"} { // the run before stays for `kubectl logs --previous`
		if err := os.RemoveAll(stale); err != nil {
			return nil, fmt.Errorf("clearing away an earlier run of container %s: %w", c.Name, err)
		}
	}
	extra, err := w.mount(c, p.work)
	if err != nil {
		return nil, err
	}
	extra[MessageVariable] = p.message
	extra[OwnerVariable] = owner(w.pod, c.Name)
	env, err := environmentOf(w.surroundings(), c, extra)
	if err != nil {
		return nil, err
	}
	dir := p.work
	if c.WorkingDir != "" {
		dir = c.WorkingDir
	}
	var argv []string
	for _, arg := range slices.Concat(c.Command, c.Args) {
		argv = append(argv, expand(arg, env.values))
	}
	spec := guard.Spec{Argv: argv, Env: env.list(), Dir: dir, Log: p.log(run), LogBytes: w.k.config.LogBytes}
	return guard.Start(w.k.config.Executable, spec, w.k.config.Fence)
}

func (w *worker) surroundings() surroundings {
	return surroundings{pod: w.pod, node: w.k.config.Node, offers: w.k.node.offers, configs: w.configMap}
}

func (w *worker) configMap(name string) (cm *corev1.ConfigMap, err error) {
	w.k.store.Do(func(_ time.Time, m *model.Server) {
		found, missing := m.Read(model.Ref{Resource: "configmaps", Namespace: w.pod.Namespace, Name: name})
		if err = missing; err == nil {
			cm = found.(*corev1.ConfigMap)
		}
	})
	return cm, err
}

// mount makes the folders of the container's volumes and returns the variables that name them. For the eye, and for
// programs that take relative paths, each mount path is also a link in the working folder.
func (w *worker) mount(c *corev1.Container, work string) (map[string]string, error) {
	vars := map[string]string{}
	for _, m := range c.VolumeMounts {
		at := slices.IndexFunc(w.pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if at < 0 {
			continue // validation has seen to it
		}
		dir, err := w.volume(&w.pod.Spec.Volumes[at])
		if err != nil {
			return nil, fmt.Errorf("mounting volume %s: %w", m.Name, err)
		}
		dir = filepath.Join(dir, filepath.Clean("/"+m.SubPath))
		if m.SubPath != "" && w.pod.Spec.Volumes[at].EmptyDir != nil {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return nil, fmt.Errorf("mounting volume %s: %w", m.Name, err)
			}
		}
		vars[mountVariable(m.Name)] = dir
		if err := link(dir, filepath.Join(work, filepath.Clean("/"+m.MountPath))); err != nil {
			return nil, fmt.Errorf("mounting volume %s: %w", m.Name, err)
		}
	}
	return vars, nil
}

func mountVariable(volume string) string {
	return mountPrefix + strings.ToUpper(strings.ReplaceAll(volume, "-", "_"))
}

func link(dir, at string) error {
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	if _, err := os.Lstat(at); err == nil {
		return nil // an earlier run has made it
	}
	return os.Symlink(dir, at)
}

func (w *worker) volume(v *corev1.Volume) (string, error) {
	dir := filepath.Join(w.k.folder(w.pod), "volumes", v.Name)
	switch {
	case v.HostPath != nil:
		return v.HostPath.Path, nil
	case v.ConfigMap != nil:
		return dir, w.writeConfig(dir, v.ConfigMap)
	}
	return dir, os.MkdirAll(dir, 0o700)
}

func (w *worker) writeConfig(dir string, source *corev1.ConfigMapVolumeSource) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	cm, err := w.configMap(source.Name)
	if err != nil {
		if optional(source.Optional) {
			return nil
		}
		return err
	}
	names := map[string]string{}
	for key := range cm.Data {
		names[key] = key
	}
	for key := range cm.BinaryData {
		names[key] = key
	}
	if len(source.Items) > 0 {
		names = map[string]string{}
		for _, item := range source.Items {
			names[item.Key] = item.Path
		}
	}
	for key, name := range names {
		content, ok := cm.BinaryData[key]
		if text, is := cm.Data[key]; is {
			content, ok = []byte(text), true
		}
		if !ok {
			return fmt.Errorf("configmap references non-existent config key: %s", key)
		}
		file := filepath.Join(dir, filepath.Clean("/"+name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func owner(pod *corev1.Pod, container string) string { return string(pod.UID) + "/" + container }
