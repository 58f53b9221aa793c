package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/proc"
	"pitchpipe/exporter/hostfs"
)

// lately is how long a reading of what seldom changes is kept.
const lately = 4 * time.Second

// allotted is how many cores are a job's, 0 = it was given no number, or why it is unknown.
type allotted struct {
	cores float64
	err   error
}

// allot says how many cores are the job's: the CPUs of a cpuset that was made for it; of
// CPUs that it shares with others, those of a narrower affinity, else its part by the weights
// of its cgroup and of the sibling cgroups. Without any of these it was given no number of
// cores: permission to use them all is not an allocation.
func (r *reader) allot(m collector.Moment) allotted {
	online := r.collector.onlineCPUs(m.Time)
	set, err := cpuset(r.legacy["cpuset"], r.unified)
	if err != nil {
		return allotted{err: fmt.Errorf("cpuset: %w", err)}
	}
	cpus, v1 := 0, r.legacy["cpuset"] != ""
	for _, cpu := range set {
		if len(online) == 0 || online[cpu] {
			cpus++
		}
	}
	switch confined := cpus > 0; {
	case confined && v1 && (len(online) == 0 || cpus < len(online)), confined && !v1 && r.given():
		return allotted{cores: float64(cpus)}
	case len(online) == 0:
		return allotted{}
	case !confined:
		cpus, v1 = len(online), false
	}
	if mask := r.affinity(m.Pids); mask > 0 && mask < cpus {
		return allotted{cores: float64(mask)}
	}
	part := r.part(m.Time)
	if part == 0 && v1 {
		part = 1 // under v1 a cpuset confines, here to the whole node
	}
	return allotted{cores: part * float64(cpus)}
}

// cpuset reads the CPUs of a job's cpuset in a v1 hierarchy or the v2 one; empty = it has none.
func cpuset(v1, v2 string) ([]int, error) {
	for _, file := range [...]struct{ dir, name string }{{v1, "cpuset.effective_cpus"}, {v1, "cpuset.cpus"}, {v2, "cpuset.cpus.effective"}} {
		if file.dir == "" {
			continue // the job is not in that hierarchy
		}
		data, err := hostfs.Read(filepath.Join(file.dir, file.name))
		if err != nil {
			continue // the next spelling
		}
		if cpus, err := hostfs.CPUList(string(data)); err != nil || len(cpus) > 0 {
			return cpus, err
		}
	}
	return nil, nil
}

// CPUs reads the CPUs that a job's cpuset gives it, nil if it has no own cpuset.
func CPUs(dirs map[string]string) []int {
	cpus, _ := cpuset(legacy(dirs)["cpuset"], dirs[hostfs.Unified])
	return cpus
}

// given reports whether a cpuset was written for the v2 cgroup. One that is empty is
// that of its parent, which all that are in it share.
func (r *reader) given() bool {
	data, err := r.read(r.unified, "cpuset.cpus")
	return err != nil || strings.TrimSpace(string(data)) != ""
}

// affinity is how many CPUs the first process may use; 0 = unknown.
func (r *reader) affinity(pids []int) int {
	if len(pids) == 0 {
		return 0
	}
	data, err := r.read(r.collector.root.Pid(pids[0]), "status")
	if err != nil {
		return 0
	}
	return proc.Allowed(data)
}

// onlineCPUs are those of the node, as of a moment ago; none = unknown.
func (c *Collector) onlineCPUs(now time.Time) map[int]bool {
	return c.online.Get(now, lately, func() map[int]bool {
		out := map[int]bool{}
		cpus, _ := c.root.OnlineCPUs()
		for _, cpu := range cpus {
			out[cpu] = true
		}
		return out
	})
}

// pool is what the cgroups below one parent weigh together.
type pool struct {
	sum     float64 // of those with processes
	telling bool    // one of them has not the weight that the kernel gives them all
}

// part is the job's share of the CPUs by the weights of its cgroup and its siblings; 0 if none
// of them was given a weight.
func (r *reader) part(now time.Time) float64 {
	dir, file, usual := r.unified, "cpu.weight", 100.0
	if v1 := r.legacy["cpu"]; v1 != "" {
		dir, file, usual = v1, "cpu.shares", 1024
	}
	if dir == "" {
		return 0
	}
	own := weight(filepath.Join(dir, file))
	p := r.collector.pool(filepath.Dir(dir), file, usual, now)
	if own <= 0 || !p.telling && own == usual {
		return 0
	}
	return own / max(p.sum, own)
}

func (c *Collector) pool(parent, file string, usual float64, now time.Time) pool {
	if c.pools[parent] == nil {
		if c.pools == nil || len(c.pools) > 64 { // jobs have few parents
			c.pools = map[string]*collector.Cached[pool]{}
		}
		c.pools[parent] = &collector.Cached[pool]{}
	}
	return c.pools[parent].Get(now, lately, func() (p pool) {
		entries, _ := os.ReadDir(parent) // gone: an empty pool
		for _, e := range entries {
			dir := filepath.Join(parent, e.Name())
			if !e.IsDir() || !populated(dir) {
				continue
			}
			if w := weight(filepath.Join(dir, file)); w > 0 {
				p.sum += w
				p.telling = p.telling || w != usual
			}
		}
		return p
	})
}

// populated reports whether processes are in a cgroup; under v1 in it itself, and not in
// those below.
func populated(dir string) bool {
	if data, err := hostfs.Read(filepath.Join(dir, "cgroup.events")); err == nil {
		n, ok := hostfs.Count(data, "populated")
		return ok && n > 0
	}
	data, err := hostfs.Read(filepath.Join(dir, "cgroup.procs"))
	return err == nil && len(data) > 0
}

// weight is 0 if it cannot be read.
func weight(path string) float64 {
	data, _ := hostfs.Read(path)
	v, _ := hostfs.Number(data)
	return float64(v)
}
