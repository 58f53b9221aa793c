package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/proc"
	"pitchpipe/exporter/hostfs"
)

// allotted is what a reader knows about the CPUs of its job.
type allotted struct {
	text  string // the list of the cpuset, as the kernel wrote it
	cpus  []int  // in it
	round int    // readings so far
	given bool   // the cpuset was written for this cgroup; else it is its parent's
	pid   int    // whose affinity was looked at
	mask  int    // CPUs in that

	weighed time.Time // when its weight was read
	weight  float64   // of its cgroup, 0 = not known
}

const (
	// What seldom changes is looked at each so many readings,
	seldom = 16
	// and what is the same for all jobs after this long.
	lately = 2 * time.Second
)

// allot says how many cores are the job's: the CPUs of a cpuset that was made for it; of
// CPUs that it shares with others, those of a narrower affinity, else its part by the
// weights of its cgroup and of those beside it. Without any of these it was given no number of
// cores, and the column is missing: that it may use them all is no allocation.
func (r *reader) allot(m collector.Moment, out collector.Values) error {
	a := &r.allotted
	defer func() { a.round++ }()
	online := r.collector.onlineCPUs(m.Time)
	cpus, own, err := r.confined(online)
	if err != nil {
		return fmt.Errorf("cpuset: %w", err)
	}
	if own {
		out[api.ColAllocatedCores] = float64(cpus)
		return nil
	}
	if len(online) == 0 {
		return nil
	}
	confined := cpus > 0
	if !confined {
		cpus = len(online)
	}
	if mask := r.affinity(m.Pids); mask > 0 && mask < cpus {
		out[api.ColAllocatedCores] = float64(mask)
		return nil
	}
	switch part := r.part(m.Time); {
	case part > 0:
		out[api.ColAllocatedCores] = part * float64(cpus)
	case confined && r.legacy["cpuset"] != "":
		// Under v1 whoever makes a cpuset confines by it, here to the whole node.
		out[api.ColAllocatedCores] = float64(cpus)
	}
	return nil
}

// confined is of how many CPUs that are online the job's cpuset is, 0 where it is in none,
// and whether that was made for this job alone.
func (r *reader) confined(online map[int]bool) (cpus int, own bool, err error) {
	a := &r.allotted
	for _, spelling := range [...]struct{ dir, file string }{
		{r.legacy["cpuset"], "cpuset.effective_cpus"},
		{r.legacy["cpuset"], "cpuset.cpus"},
		{r.unified, "cpuset.cpus.effective"},
	} {
		if spelling.dir == "" {
			continue // the job is not in that hierarchy
		}
		data, err := r.read(spelling.dir, spelling.file)
		if err != nil {
			continue // the next spelling
		}
		if a.text == "" || string(data) != a.text {
			a.text = string(data)
			if a.cpus, err = hostfs.CPUList(a.text); err != nil {
				a.text = ""
				return 0, false, err
			}
			a.round = 0
		}
		if len(a.cpus) == 0 {
			continue
		}
		if a.round%seldom == 0 {
			a.given = r.given()
		}
		n := 0
		for _, cpu := range a.cpus {
			if len(online) == 0 || online[cpu] {
				n++
			}
		}
		if r.legacy["cpuset"] != "" {
			return n, len(online) == 0 || n < len(online), nil
		}
		return n, a.given, nil
	}
	return 0, false, nil
}

// given reports whether a cpuset was written for the v2 cgroup. One that is empty is
// that of its parent, which all that are in it share.
func (r *reader) given() bool {
	data, err := r.read(r.unified, "cpuset.cpus")
	return err != nil || strings.TrimSpace(string(data)) != ""
}

// affinity is how many CPUs the first process may use; 0 = not known.
func (r *reader) affinity(pids []int) int {
	a := &r.allotted
	if len(pids) == 0 || pids[0] == a.pid && a.round%seldom != 0 {
		return a.mask
	}
	a.pid, a.mask = pids[0], 0
	if data, err := hostfs.ReadInto(r.buf, r.collector.root.Pid(a.pid, "status")); err == nil {
		r.buf = data
		a.mask = proc.Allowed(data)
	}
	return a.mask
}

// onlineCPUs are those of the node, as of a moment ago; none = not known.
func (c *Collector) onlineCPUs(now time.Time) map[int]bool {
	if age := now.Sub(c.asked); !now.IsZero() && c.online != nil && age >= 0 && age < lately {
		return c.online
	}
	c.online, c.asked = map[int]bool{}, now
	if cpus, err := c.root.OnlineCPUs(); err == nil {
		for _, cpu := range cpus {
			c.online[cpu] = true
		}
	}
	return c.online
}

// pool is what the cgroups below one parent weigh together.
type pool struct {
	at      time.Time
	sum     float64 // of those with processes
	telling bool    // one of them has not the weight that the kernel gives them all
}

// part is the job's share of the CPUs by the weights of its cgroup and those beside it; 0
// where none of them was given a weight.
func (r *reader) part(now time.Time) float64 {
	dir, file, usual := r.unified, "cpu.weight", 100.0
	if v1 := r.legacy["cpu"]; v1 != "" {
		dir, file, usual = v1, "cpu.shares", 1024
	}
	if dir == "" {
		return 0
	}
	a := &r.allotted
	if now.IsZero() || now.Before(a.weighed) || now.Sub(a.weighed) >= lately {
		a.weighed, a.weight = now, weight(filepath.Join(dir, file))
	}
	own := a.weight
	if own <= 0 {
		return 0
	}
	p := r.collector.pool(filepath.Dir(dir), file, usual, now)
	if !p.telling && own == usual {
		return 0
	}
	return own / max(p.sum, own)
}

func (c *Collector) pool(parent, file string, usual float64, now time.Time) *pool {
	if p := c.pools[parent]; p != nil && !now.IsZero() && now.Sub(p.at) >= 0 && now.Sub(p.at) < lately {
		return p
	}
	if c.pools == nil || len(c.pools) > 64 { // jobs have few parents
		c.pools = map[string]*pool{}
	}
	p := &pool{at: now}
	c.pools[parent] = p
	entries, err := os.ReadDir(parent)
	if err != nil {
		return p
	}
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

func weight(path string) float64 {
	data, err := hostfs.Read(path)
	if err != nil {
		return 0
	}
	v, err := hostfs.Number(data)
	if err != nil {
		return 0
	}
	return float64(v)
}
