package sandbox

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// file holds the owner of a folder.
const file = "owner"

// owner is the process that owns a folder. The kernel reuses a process id, but not
// together with its start time.
type owner struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// Own records that a folder belongs to this process.
func Own(dir string) error {
	self, err := stat(os.Getpid())
	if err != nil {
		return err
	}
	text, err := json.Marshal(owner{PID: os.Getpid(), Start: self.Starttime})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, file), text, 0o600)
}

// Orphaned reports whether the process that owns a folder is gone.
func Orphaned(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, file))
	var o owner
	if err != nil || json.Unmarshal(text, &o) != nil {
		// Its owner may be about to write it.
		info, err := os.Stat(dir)
		return err == nil && time.Since(info.ModTime()) > time.Minute
	}
	now, err := stat(o.PID)
	return err != nil || now.Starttime != o.Start
}

// Sweep removes the orphaned folders of this user whose names match the pattern.
func Sweep(pattern string, remove func(dir string) error) error {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range found {
		info, err := os.Lstat(dir)
		// Only what this user made: anybody can make such a name.
		if err != nil || !info.IsDir() || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) || !Orphaned(dir) {
			continue
		}
		errs = append(errs, remove(dir))
	}
	return errors.Join(errs...)
}

// Dead reports whether a process is gone or a zombie.
func Dead(pid int) bool {
	now, err := stat(pid)
	return err != nil || now.State == "Z" || now.State == "X"
}

func stat(pid int) (procfs.ProcStat, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return p.Stat()
}
