package benchexporter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"pitchpipe/exporter/hostfs"
)

// jobs are cgroups with processes that sleep.
type jobs struct {
	dirs []string
	cmds []*exec.Cmd
}

// prefix is that of the jobs' names.
func prefix() string { return fmt.Sprintf("bench%d-", os.Getpid()) }

// begin makes them, in every hierarchy in which the local driver has its jobs.
func begin(ctx context.Context, count, processes int) (*jobs, error) {
	j := &jobs{}
	for n := range count {
		var dirs []string
		for _, h := range (hostfs.Root{}).Hierarchies() {
			if !h.V2 && !h.Has("memory") {
				continue
			}
			dir := filepath.Join(h.Dir, "pitchpipe", fmt.Sprintf("%s%d.1", prefix(), n))
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return j, err
			}
			dirs = append(dirs, dir)
		}
		if len(dirs) == 0 {
			return j, errors.New("no cgroup hierarchy")
		}
		j.dirs = append(j.dirs, dirs...)
		for range processes {
			c := exec.CommandContext(ctx, "sleep", "infinity")
			if err := c.Start(); err != nil {
				return j, err
			}
			j.cmds = append(j.cmds, c)
			for _, dir := range dirs {
				if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(c.Process.Pid)), 0o600); err != nil {
					return j, err
				}
			}
		}
	}
	return j, nil
}

// end takes them away.
func (j *jobs) end() {
	for _, c := range j.cmds {
		_ = c.Process.Kill() // it may have ended with the context
	}
	for _, c := range j.cmds {
		_ = c.Wait()
	}
	for _, dir := range j.dirs {
		_ = os.Remove(dir)
		_ = os.Remove(filepath.Dir(dir)) // stays where others' jobs are in it
	}
}
