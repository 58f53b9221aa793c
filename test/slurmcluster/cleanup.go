package slurmcluster

import (
	"bytes"
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

	"pitchpipe/test/cleanup"
)

// marker is in the environment of the daemons, with the folder as its value. Slurm
// does not hand it on to jobs, and a person who uses the cluster does not have it.
const marker = "PITCHPIPE_SLURMCLUSTER"

// sweep clears away clusters whose owners died.
func sweep(ctx context.Context) error {
	return cleanup.Sweep(filepath.Join(parent, prefix+"[0-9]*"), func(dir string) error {
		return remove(ctx, dir, nodeNames(dir, 64))
	})
}

// remove ends every process of a cluster and removes its cgroups and its folder.
func remove(ctx context.Context, dir string, nodes []string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		rest := Leftovers(dir, nodes)
		if len(rest) == 0 {
			return nil
		}
		for _, pid := range processes(dir, nodes) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for _, cg := range cgroups(nodes) {
			// The kernel counts a process that was killed for a while.
			_ = removeCgroup(cg)
		}
		if len(processes(dir, nodes)) == 0 {
			if err := os.RemoveAll(dir); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("left behind: %s: %w", strings.Join(rest, ", "), ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Leftovers lists what there is of a cluster: its folder, processes and cgroups.
func Leftovers(dir string, nodes []string) []string {
	var out []string
	for _, pid := range processes(dir, nodes) {
		cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		out = append(out, fmt.Sprintf("process %d %.60q", pid, cmd))
	}
	out = append(out, cgroups(nodes)...)
	if _, err := os.Lstat(dir); err == nil {
		out = append(out, dir)
	}
	return out
}

// processes are those that belong to the cluster in the folder.
func processes(dir string, nodes []string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() && belongs(pid, dir, nodes) {
			out = append(out, pid)
		}
	}
	return out
}

// belongs reports whether a process is a daemon of the cluster, by the marker, a
// process of a job, by the node that Slurm told it or by its cgroup, an srun, or slurmstepd,
// which writes its title over its environment, by the logs that it has open.
func belongs(pid int, dir string, nodes []string) bool {
	proc := fmt.Sprintf("/proc/%d/", pid)
	env, err := os.ReadFile(proc + "environ")
	if err != nil {
		return false
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		name, value, _ := strings.Cut(string(kv), "=")
		// A step that somebody waits for has an srun that may outlive the cluster.
		waits := name == "SLURM_CONF" && strings.HasPrefix(value, dir+"/") && command(proc) == "srun"
		if waits || name == marker && value == dir || name == "SLURMD_NODENAME" && slices.Contains(nodes, value) {
			return !cleanup.Dead(pid)
		}
	}
	groups, err := os.ReadFile(proc + "cgroup")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(groups)) {
		for part := range strings.SplitSeq(strings.TrimSpace(line), "/") {
			if node, ok := strings.CutPrefix(part, "slurm_"); ok && slices.Contains(nodes, node) {
				return !cleanup.Dead(pid)
			}
		}
	}
	if command(proc) != "slurmstepd" {
		return false
	}
	fds, err := os.ReadDir(proc + "fd")
	if err != nil {
		return false
	}
	return slices.ContainsFunc(fds, func(e fs.DirEntry) bool {
		to, err := os.Readlink(proc + "fd/" + e.Name())
		return err == nil && strings.HasPrefix(to, dir+"/")
	})
}

// command is the name of the program that a process runs; empty where it is gone.
func command(proc string) string {
	comm, err := os.ReadFile(proc + "comm")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(comm))
}

// cgroups are the directories that slurmd made for the nodes.
func cgroups(nodes []string) []string {
	var out []string
	for _, n := range nodes {
		found, err := filepath.Glob(filepath.Join(cgroupRoot, "*", "slurm_"+n))
		if err == nil {
			out = append(out, found...)
		}
	}
	return out
}

// removeCgroup removes a cgroup and those below it, the deepest first. Only empty
// ones can be removed.
func removeCgroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeCgroup(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return syscall.Rmdir(dir)
}
