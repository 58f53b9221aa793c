package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"pitchpipe/driver"
)

// CgroupRoot is where control groups are mounted.
const CgroupRoot = "/sys/fs/cgroup"

// Remains describes what belongs to the daemons of a folder.
type Remains struct {
	Dir    string
	Marker string // variable of the daemons' environment whose value is Dir
	// Cgroups lists the control groups that exist: each process in or below them belongs.
	Cgroups func() []string
	// Belongs finds more processes by their environment; nil = none.
	Belongs func(p procfs.Proc, env map[string]string) bool
}

// Processes lists those that belong to the folder and are not dead.
func (r Remains) Processes() []int {
	in := map[int]bool{}
	for _, cg := range r.Cgroups() {
		_ = filepath.WalkDir(cg, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Name() == "cgroup.procs" {
				text, _ := os.ReadFile(path) //nolint:gosec // the kernel's file; it may be gone
				for word := range strings.FieldsSeq(string(text)) {
					pid, _ := strconv.Atoi(word)
					in[pid] = true
				}
			}
			return nil
		})
	}
	all, _ := procfs.AllProcs()
	var out []int
	for _, p := range all {
		if p.PID == os.Getpid() || Dead(p.PID) {
			continue
		}
		env := map[string]string{}
		vars, _ := p.Environ() // it may be gone
		for _, kv := range vars {
			name, value, _ := strings.Cut(kv, "=")
			env[name] = value
		}
		if in[p.PID] || env[r.Marker] == r.Dir || r.Belongs != nil && r.Belongs(p, env) {
			out = append(out, p.PID)
		}
	}
	return out
}

// mounts are those below the folder in the order in which they were made.
func (r Remains) mounts() ([]string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], r.Dir+"/") {
			out = append(out, f[4])
		}
	}
	return out, nil
}

// List names everything that is left: processes, mounts, control groups, the folder.
func (r Remains) List() []string {
	var out []string
	for _, pid := range r.Processes() {
		cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		out = append(out, fmt.Sprintf("process %d %.60q", pid, cmd))
	}
	mounts, err := r.mounts()
	if err != nil {
		out = append(out, err.Error())
	}
	out = append(append(out, mounts...), r.Cgroups()...)
	if _, err := os.Lstat(r.Dir); err == nil {
		out = append(out, r.Dir)
	}
	return out
}

// Remove kills the processes and removes the rest, until nothing is left or the context
// is done.
func (r Remains) Remove(ctx context.Context) error {
	for {
		for _, pid := range r.Processes() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for _, cg := range r.Cgroups() {
			removeCgroup(cg)
		}
		var err error
		if len(r.Processes()) == 0 {
			err = r.removeFolder()
		}
		rest := r.List()
		if err == nil && len(rest) == 0 {
			return nil
		}
		if over := driver.Pause(ctx, 20*time.Millisecond); over != nil {
			return errors.Join(fmt.Errorf("left behind: %s: %w", strings.Join(rest, ", "), over), err)
		}
	}
}

// removeFolder removes nothing through a mount, behind which may be any file of the machine.
func (r Remains) removeFolder() error {
	mounts, err := r.mounts()
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(mounts) {
		if err := syscall.Unmount(m, syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", m, err)
		}
	}
	return os.RemoveAll(r.Dir)
}

// removeCgroup removes a control group and those below it, the deepest first. The kernel
// counts a process that was killed for a while: the group then stays for the next attempt.
func removeCgroup(dir string) {
	// One hierarchy of several has such a file, and a frozen process does not die.
	_ = os.WriteFile(filepath.Join(dir, "freezer.state"), []byte("THAWED"), 0) //nolint:gosec // the kernel's file
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			removeCgroup(filepath.Join(dir, e.Name()))
		}
	}
	_ = syscall.Rmdir(dir)
}
