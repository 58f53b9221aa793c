package supervise

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver/local/cgroup"
)

// process is one line of the process table.
type process struct {
	pid, parent, session int
	ended                bool
	start                uint64
	rss                  int64 // bytes
}

// readProcess reads /proc/PID/stat (see proc_pid_stat(5)).
func readProcess(pid int) (process, error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return parseStat(pid, string(data))
}

func parseStat(pid int, text string) (process, error) {
	// The name may hold anything, so that only what follows its last bracket can
	// be split.
	end := strings.LastIndex(text, ")")
	f := strings.Fields(text[end+1:])
	if end < 0 || len(f) < 22 {
		return process{}, fmt.Errorf("process %d: stat has %d fields", pid, len(f))
	}
	p := process{pid: pid, ended: cgroup.Ended(f)}
	var err error
	number := func(i int) int64 {
		n, e := strconv.ParseInt(f[i], 10, 64)
		if e != nil && err == nil {
			err = fmt.Errorf("process %d: stat field %d: %w", pid, i+3, e)
		}
		return n
	}
	p.parent, p.session = int(number(1)), int(number(3))
	p.start = uint64(number(19))
	p.rss = number(21) * int64(os.Getpagesize())
	return p, err
}

// processes reads the whole table. Processes that end meanwhile are left out.
func processes() map[int]process {
	out := map[int]process{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return out
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, err := readProcess(pid); err == nil {
			out[pid] = p
		}
	}
	return out
}

// lives reports whether the number still is this process's.
func (p process) lives() bool {
	now, err := readProcess(p.pid)
	return err == nil && now.start == p.start
}

// descendants lists the processes below root, root left out.
func descendants(table map[int]process, root int) []process {
	children := map[int][]process{}
	for _, p := range table {
		children[p.parent] = append(children[p.parent], p)
	}
	var out []process
	for next := children[root]; len(next) > 0; next = next[1:] {
		out = append(out, next[0])
		next = append(next, children[next[0].pid]...)
	}
	return out
}

// identify names a running process.
func identify(pid int) (Process, error) {
	p, err := readProcess(pid)
	if err != nil {
		return Process{}, err
	}
	return Process{PID: pid, Start: p.start, Boot: bootID(), At: time.Now()}, nil
}

// bootID changes with every boot; empty where the machine does not tell.
func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// belongsTo reports whether the process was started with the job's name in its
// environment. That is not known where the environment is empty, as it is while the
// process executes another program.
func (p process) belongsTo(job string) (belongs, known bool) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), "environ"))
	if err != nil {
		return false, true
	}
	return slices.Contains(strings.Split(string(data), "\x00"), JobVariable+"="+job), len(data) > 0
}
