package nomadagent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"pitchpipe/test/cleanup"
)

// marker is in the environment of the agent and of all that it starts, with the folder
// as its value.
const marker = "PITCHPIPE_NOMADAGENT"

const cgroupRoot = "/sys/fs/cgroup"

// sweep removes agents whose owners died.
func sweep(ctx context.Context) error {
	return cleanup.Sweep(filepath.Join(parent, prefix+"[0-9]*"), func(dir string) error { return remove(ctx, dir) })
}

// remove ends every process of an agent and removes its mounts, its cgroups and its
// folder.
func remove(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// With the folder the ids of the allocations are lost.
	allocs := allocations(dir)
	for {
		for _, pid := range processes(dir, allocs) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		var err error
		if len(processes(dir, allocs)) == 0 {
			err = removeFiles(dir, allocs)
		}
		rest := leftovers(dir, allocs)
		if err == nil && len(rest) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("left behind: %s: %w", strings.Join(rest, ", "), ctx.Err()), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// removeFiles removes what is left when no process is. It removes nothing through a mount,
// behind which may be any file of the machine.
func removeFiles(dir string, allocs []string) error {
	list, err := mounts(dir)
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(list) {
		if err := syscall.Unmount(m, syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", m, err)
		}
	}
	for _, cg := range cgroups(allocs) {
		// The kernel counts a process that was killed for a while.
		_ = os.WriteFile(filepath.Join(cg, "freezer.state"), []byte("THAWED"), 0) //nolint:gosec // there is such a file in one hierarchy of several, and a frozen process does not die
		_ = syscall.Rmdir(cg)
	}
	if err := removeTree(cpuset(dir)); err != nil {
		return fmt.Errorf("the cores of %s: %w", dir, err)
	}
	return os.RemoveAll(dir)
}

// mounts are those below the folder in the order in which they were made.
func mounts(dir string) ([]string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], dir+"/") {
			out = append(out, f[4])
		}
	}
	return out, nil
}

// Leftovers lists what there is of the agent in a folder: processes, mounts, cgroups
// and the folder itself.
func Leftovers(dir string) []string { return leftovers(dir, allocations(dir)) }

func leftovers(dir string, allocs []string) []string {
	var out []string
	for _, pid := range processes(dir, allocs) {
		cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		out = append(out, fmt.Sprintf("process %d %.60q", pid, cmd))
	}
	list, err := mounts(dir)
	if err != nil {
		out = append(out, err.Error())
	}
	out = append(append(out, list...), cgroups(allocs)...)
	for _, path := range []string{cpuset(dir), dir} {
		if _, err := os.Lstat(path); err == nil {
			out = append(out, path)
		}
	}
	return out
}

// allocations are the ids of all that the agent has ever had: those with a folder, and
// those that its log names. A client that is killed while it removes an allocation, and one
// that finds a task without its executor, leave cgroups behind; only the log names these.
func allocations(dir string) []string {
	had := map[string]struct{}{}
	if entries, err := os.ReadDir(filepath.Join(dir, "client", "alloc")); err == nil {
		for _, e := range entries {
			had[e.Name()] = struct{}{}
		}
	}
	if log, err := os.Open(filepath.Join(dir, "client.log")); err == nil {
		defer func() { _ = log.Close() }()
		for lines := bufio.NewReader(log); err == nil; {
			var line []byte
			line, err = lines.ReadSlice('\n') // the rest of a long one is another
			if _, rest, named := bytes.Cut(line, []byte("alloc_id=")); named && len(rest) >= idLength {
				had[string(rest[:idLength])] = struct{}{}
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				err = nil
			}
		}
	}
	return slices.Sorted(maps.Keys(had))
}

// idLength is that of an allocation's id.
const idLength = 36

// cgroups are those of the allocations' tasks, in either version's places.
func cgroups(allocs []string) []string {
	var out []string
	for _, place := range []string{"*/nomad", "nomad.slice/share.slice", "nomad.slice/reserve.slice"} {
		found, err := filepath.Glob(filepath.Join(cgroupRoot, place, "*.*"))
		if err != nil {
			continue
		}
		for _, cg := range found {
			id, _, _ := strings.Cut(filepath.Base(cg), ".")
			if info, err := os.Stat(cg); err == nil && info.IsDir() && slices.Contains(allocs, id) {
				out = append(out, cg)
			}
		}
	}
	return out
}

// processes are those that belong to the agent in the folder: by the marker, which its
// jobs inherit, or by the cgroup of an allocation, which stays where a job clears its
// environment.
func processes(dir string, allocs []string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	in := map[int]bool{}
	for _, cg := range cgroups(allocs) {
		text, err := os.ReadFile(filepath.Join(cg, "cgroup.procs"))
		if err != nil {
			continue
		}
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				in[pid] = true
			}
		}
	}
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || !in[pid] && !marked(pid, dir) || cleanup.Dead(pid) {
			continue
		}
		out = append(out, pid)
	}
	return out
}

func marked(pid int, dir string) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && slices.ContainsFunc(bytes.Split(env, []byte{0}), func(kv []byte) bool { return string(kv) == marker+"="+dir })
}
