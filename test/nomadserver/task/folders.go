package task

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// taskDir is the task's own folder, where it runs.
func (s Spec) taskDir() string { return filepath.Join(s.Dir, s.Task.Name) }

// logPath is where a stream goes. A real agent goes on in a file 1 when the first is
// full.
func (s Spec) logPath(stream string) string {
	return filepath.Join(s.Dir, "alloc", "logs", s.Task.Name+"."+stream+".0")
}

// folders makes the folders of the allocation and of the task, with what a sticky disk
// brings along, and writes the payload of a dispatched job.
func (s Spec) folders() error {
	for _, dir := range []string{"alloc", "alloc/data", "alloc/logs", "alloc/tmp", s.Task.Name, s.Task.Name + "/local", s.Task.Name + "/secrets", s.Task.Name + "/tmp"} {
		path := filepath.Join(s.Dir, dir)
		if err := os.MkdirAll(path, 0o777); err != nil {
			return err
		}
		// The umask takes bits off that a task of another user needs.
		if err := os.Chmod(path, 0o777); err != nil {
			return err
		}
	}
	if err := s.inherit(); err != nil {
		return err
	}
	if d := s.Task.DispatchPayload; d != nil && d.File != "" && s.Job != nil && len(s.Job.Payload) > 0 {
		path := filepath.Join(s.taskDir(), "local", filepath.Clean("/"+d.File))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		return os.WriteFile(path, s.Job.Payload, 0o777)
	}
	return nil
}

// inherit moves alloc/data and the task's local folder over from the allocation that
// this one replaces. Each is moved once: what is there already is the task's own.
func (s Spec) inherit() error {
	if s.PrevDir == "" || s.Group.EphemeralDisk == nil || s.Group.EphemeralDisk.Sticky == nil || !*s.Group.EphemeralDisk.Sticky {
		return nil
	}
	for _, dir := range []string{"alloc/data", s.Task.Name + "/local"} {
		from, to := filepath.Join(s.PrevDir, dir), filepath.Join(s.Dir, dir)
		if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		entries, err := os.ReadDir(to)
		if err != nil {
			return err
		}
		if len(entries) > 0 {
			continue
		}
		if err := errors.Join(os.Remove(to), os.Rename(from, to)); err != nil {
			return err
		}
	}
	return nil
}
