package slurmcluster

import (
	"bytes"
	"context"
	"encoding/json"
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
)

// marker is in the environment of the daemons, with the folder as its value. Slurm
// does not hand it on to jobs, and a person who uses the cluster does not have it.
const marker = "PITCHPIPE_SLURMCLUSTER"

// owner is the process that a cluster belongs to. An id is used again, an id with its
// start time is not.
type owner struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

func writeOwner(dir string) error {
	start, err := startTime(os.Getpid())
	if err != nil {
		return err
	}
	text, err := json.Marshal(owner{PID: os.Getpid(), Start: start})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "owner"), text, 0o600)
}

// startTime is when a process began, in the kernel's ticks.
func startTime(pid int) (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The command may hold anything, so count from its closing bracket.
	_, rest, ok := bytes.Cut(text[max(0, bytes.LastIndexByte(text, ')')):], []byte(") "))
	fields := strings.Fields(string(rest))
	if !ok || len(fields) < 20 {
		return 0, fmt.Errorf("stat of process %d: %q", pid, text)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// orphaned tells whether nobody will ever stop the cluster in the folder.
func orphaned(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "owner"))
	var o owner
	if err != nil || json.Unmarshal(text, &o) != nil {
		// Somebody may be about to write it.
		info, err := os.Stat(dir)
		return err == nil && time.Since(info.ModTime()) > time.Minute
	}
	start, err := startTime(o.PID)
	return err != nil || start != o.Start
}

// sweep clears away clusters whose owners died.
func sweep(ctx context.Context) error {
	found, err := filepath.Glob(filepath.Join(parent, prefix+"[0-9]*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range found {
		info, err := os.Lstat(dir)
		// Only what this user made: anybody can make such a name.
		if err != nil || !info.IsDir() || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) || !orphaned(dir) {
			continue
		}
		errs = append(errs, remove(ctx, dir, nodeNames(dir, 64)))
	}
	return errors.Join(errs...)
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

// belongs tells whether a process is a daemon of the cluster, by the marker, a
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
			return !zombie(pid)
		}
	}
	groups, err := os.ReadFile(proc + "cgroup")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(groups)) {
		for part := range strings.SplitSeq(strings.TrimSpace(line), "/") {
			if node, ok := strings.CutPrefix(part, "slurm_"); ok && slices.Contains(nodes, node) {
				return !zombie(pid)
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

// zombie tells whether a process is dead and only waited for.
func zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	i := bytes.LastIndexByte(text, ')')
	return i >= 0 && i+2 < len(text) && (text[i+2] == 'Z' || text[i+2] == 'X')
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
