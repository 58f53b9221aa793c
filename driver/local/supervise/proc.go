package supervise

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver/local/cgroup"
)

// processes reads the whole table. Processes that end meanwhile are left out.
func processes() map[int]cgroup.Process {
	out := map[int]cgroup.Process{}
	entries, _ := os.ReadDir("/proc") // without it there are none
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, err := cgroup.ReadProcess(pid); err == nil {
			out[pid] = p
		}
	}
	return out
}

// descendants lists the processes below root, root left out.
func descendants(table map[int]cgroup.Process, root int) []int {
	children := map[int][]int{}
	for pid, p := range table {
		children[p.Parent] = append(children[p.Parent], pid)
	}
	out := slices.Clone(children[root])
	for i := 0; i < len(out); i++ {
		out = append(out, children[out[i]]...)
	}
	return out
}

// identify names a running process.
func identify(pid int) (Process, error) {
	p, err := cgroup.ReadProcess(pid)
	if err != nil {
		return Process{}, err
	}
	return Process{PID: pid, Start: p.Start, Boot: bootID(), At: time.Now()}, nil
}

// bootID changes with every boot; empty where the machine does not tell.
func bootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data))
}

// belongsTo reports whether the process was started with the job's name in its
// environment. That is not known where the environment is empty, as it is while the
// process executes another program.
func belongsTo(p cgroup.Process, job string) (belongs, known bool) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "environ"))
	if err != nil {
		return false, true
	}
	return slices.Contains(strings.Split(string(data), "\x00"), JobVariable+"="+job), len(data) > 0
}
