package nomadserver

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"
)

// statsAge is how long a measurement is shown before the next is taken.
const statsAge = 5 * time.Second

// allocStats shows what the processes of an allocation use: gauges that are up to five
// seconds old.
func allocStats(c *call) error {
	_, r, err := c.running("read-job")
	if err != nil {
		return err
	}
	return c.reply(r.usage(time.Now()), 0)
}

// usage is the latest measurement, or a new one.
func (r *run) usage(now time.Time) *api.AllocResourceUsage {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.measured != nil && now.Sub(r.measuredAt) < statsAge {
		return r.measured
	}
	out := &api.AllocResourceUsage{ResourceUsage: gauges(0), Tasks: map[string]*api.TaskResourceUsage{}, Timestamp: now.UnixNano()}
	for name, t := range r.tasks {
		use := &api.TaskResourceUsage{Timestamp: now.UnixNano(), Pids: map[string]*api.ResourceUsage{}}
		var sum uint64
		for _, pid := range t.PIDs() {
			rss := resident(pid)
			sum += rss
			use.Pids[strconv.Itoa(pid)] = gauges(rss)
		}
		use.ResourceUsage = gauges(sum)
		out.ResourceUsage.MemoryStats.RSS += sum
		out.Tasks[name] = use
	}
	r.measured, r.measuredAt = out, now
	return out
}

func gauges(rss uint64) *api.ResourceUsage {
	return &api.ResourceUsage{
		MemoryStats: &api.MemoryStats{RSS: rss, Measured: []string{"RSS", "Swap"}},
		CpuStats:    &api.CpuStats{Measured: []string{"System Mode", "User Mode", "Percent"}},
	}
}

// resident is a process's memory in bytes, 0 where it is gone.
func resident(pid int) uint64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}
