package nomadagent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"pitchpipe/test/sandbox"
)

// mountNamespace is a mount namespace with its own cpuset hierarchy. A process holds
// it open, so that an agent that is started again finds what the first one mounted. nil is
// the namespace of this process.
type mountNamespace struct{ holder *sandbox.Process }

// cpuset is the group that is mounted over the root of the hierarchy.
func cpuset(dir string) string {
	return filepath.Join(sandbox.CgroupRoot, "cpuset", filepath.Base(dir))
}

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
	done := filepath.Join(dir, "mounted")
	holder, err := start(nil, dir, "holder", "unshare", "--mount", "--propagation", "private",
		"sh", "-c", `mount --bind "$1" "$2" && : >"$3" && exec sleep infinity`, "sh", cpuset(dir), root, done)
	if err != nil {
		return nil, err
	}
	r := &mountNamespace{holder}
	for {
		if _, err := os.Stat(done); err == nil {
			return r, nil
		}
		select {
		case <-holder.Ended:
			text, err := os.ReadFile(filepath.Join(dir, "holder.log"))
			return nil, errors.Join(holder.Failed(), fmt.Errorf("%s", text), err)
		case <-ctx.Done():
			r.leave()
			return nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// inside is the command that runs argv in the namespace.
func (r *mountNamespace) inside(argv []string) []string {
	if r == nil {
		return argv
	}
	return append([]string{"nsenter", "--mount", "--target", strconv.Itoa(r.holder.Cmd.Process.Pid), "--"}, argv...)
}

func (r *mountNamespace) leave() {
	if r != nil {
		r.holder.Kill()
	}
}
