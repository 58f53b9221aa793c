package slurm_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"pitchpipe/test/slurmcluster"
)

// remember keeps what the cluster is known by, for a look when it is gone.
func (w *world) remember(c *slurmcluster.Cluster) { w.clusterDir, w.nodes = c.Dir(), c.Nodes() }

// sweep ends and removes what is left of a run that was killed.
func sweep() error {
	dirs, err := filepath.Glob("/tmp/" + prefix + "*")
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		owner, err := os.ReadFile(filepath.Join(dir, "owner"))
		pid, err2 := strconv.Atoi(string(owner))
		if err != nil || err2 != nil {
			continue // no one's, or someone is about to write it
		}
		if _, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid))); err == nil {
			continue
		}
		exes, err := filepath.Glob("/proc/[0-9]*/exe")
		if err != nil {
			return err
		}
		for _, exe := range exes {
			to, _ := os.Readlink(exe) // a process may end at any moment
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(exe))); err == nil && strings.HasPrefix(to, dir+"/") {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// remains is an error that names whatever is left after stop: a process that runs one
// of the programs, is in one of the folders or names one, a mount, a cgroup, a
// folder. What ends by itself is given time.
func (w *world) remains() error {
	var found []string
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if found = w.look(); len(found) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("left behind: " + strings.Join(found, ", "))
		}
	}
}

func (w *world) look() []string {
	var out []string
	if w.clusterDir != "" {
		out = slurmcluster.Leftovers(w.clusterDir, w.nodes)
	}
	for _, dir := range []string{w.dir, w.clusterDir} {
		if dir == "" {
			continue
		}
		if _, err := os.Lstat(dir); err == nil {
			out = append(out, dir)
		}
		out = append(out, processesOf(dir)...)
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			out = append(out, err.Error())
		}
		for line := range strings.Lines(string(mounts)) {
			if strings.Contains(line, dir) {
				out = append(out, "mount "+line)
			}
		}
	}
	for _, node := range w.nodes {
		for _, pattern := range []string{"/sys/fs/cgroup/*" + node + "*", "/sys/fs/cgroup/*/*" + node + "*"} {
			groups, err := filepath.Glob(pattern)
			if err != nil {
				out = append(out, err.Error())
			}
			out = append(out, groups...)
		}
	}
	return out
}

// processesOf are those that have to do with a folder.
func processesOf(dir string) []string {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		proc := filepath.Join("/proc", e.Name())
		exe, _ := os.Readlink(proc + "/exe") // a process may end at any moment: then it is not left
		cwd, _ := os.Readlink(proc + "/cwd")
		cmd, _ := os.ReadFile(proc + "/cmdline")
		env, _ := os.ReadFile(proc + "/environ")
		if strings.HasPrefix(exe, dir) || strings.HasPrefix(cwd, dir) || bytes.Contains(cmd, []byte(dir)) || bytes.Contains(env, []byte(dir)) {
			out = append(out, fmt.Sprintf("process %d %.80q", pid, cmd))
		}
	}
	return out
}
