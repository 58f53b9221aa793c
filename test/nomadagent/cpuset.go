package nomadagent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// mountNamespace is a mount namespace with a cpuset hierarchy of its own. A process holds
// it open, so that an agent that is started again finds what the first one mounted. nil is
// the namespace of this process.
type mountNamespace struct{ holder daemon }

// cpuset is the group that is mounted over the root of the hierarchy.
func cpuset(dir string) string { return filepath.Join(cgroupRoot, "cpuset", filepath.Base(dir)) }

// enter makes the namespace of the agent in the folder; nil where none is needed or none
// can be made: without cgroups of version 1, without root.
func enter(ctx context.Context, dir string) (*mountNamespace, error) {
	root := filepath.Dir(cpuset(dir))
	if _, err := os.Stat(filepath.Join(root, "cpuset.cpus")); err != nil || os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // nil works
	}
	for _, program := range []string{"mount", "nsenter", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%w: %s is missing", ErrUnavailable, program)
		}
	}
	if err := os.Mkdir(cpuset(dir), 0o755); err != nil {
		return nil, err
	}
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(cpuset(dir), name), text, 0o644); err != nil { //nolint:gosec // the kernel's file
			return nil, err
		}
	}
	r := &mountNamespace{}
	done := filepath.Join(dir, "mounted")
	err := r.holder.start(nil, dir, "holder", "unshare", "--mount", "--propagation", "private",
		"sh", "-c", `mount --bind "$1" "$2" && : >"$3" && exec sleep infinity`, "sh", cpuset(dir), root, done)
	if err != nil {
		return nil, err
	}
	for {
		if _, err := os.Stat(done); err == nil {
			return r, nil
		}
		select {
		case <-r.holder.over():
			text, err := os.ReadFile(filepath.Join(dir, "holder.log"))
			return nil, errors.Join(r.holder.gone(), fmt.Errorf("%s", text), err)
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), r.leave())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// inside is the command that runs argv in the namespace.
func (r *mountNamespace) inside(argv []string) []string {
	if r == nil {
		return argv
	}
	return append([]string{"nsenter", "--mount", "--target", strconv.Itoa(r.holder.cmd.Process.Pid), "--"}, argv...)
}

func (r *mountNamespace) leave() error {
	if r == nil {
		return nil
	}
	return r.holder.kill()
}

// removeTree removes a cgroup and those below it, the deepest first. The kernel counts a
// process that was killed for a while: that is no error, and the group is still there.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, syscall.EBUSY) && !errors.Is(err, syscall.ENOENT) {
		return err
	}
	return nil
}
