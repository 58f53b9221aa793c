package perf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
)

// Collector opens events on cgroups.
type Collector struct {
	root   hostfs.Root
	opener Opener
	chosen []Event // besides those that are always counted

	plans   []plan // nil = not probed yet; the software events first
	sources []api.Source

	online collector.Cached[online] // for all jobs
}

// online are the CPUs that are, or why they are unknown.
type online struct {
	cpus []int
	err  error
}

// cpus are those that are online, as of a moment ago; zero = as of now.
func (c *Collector) cpus(now time.Time) ([]int, error) {
	is := c.online.Get(now, 500*time.Millisecond, func() (o online) {
		o.cpus, o.err = c.root.OnlineCPUs()
		return o
	})
	return slices.Clone(is.cpus), is.err
}

// New returns a collector for the cgroups below root. Chosen are what it counts
// besides the software events that are always counted, as Select returns them.
func New(root hostfs.Root, opener Opener, chosen ...Event) *Collector {
	return &Collector{root: root, opener: opener, chosen: chosen}
}

// Name is "perf".
func (c *Collector) Name() string { return "perf" }

// Probe asks the kernel for each event, and on the first call learns how many count
// together. What it learned then stays.
func (c *Collector) Probe(ctx context.Context) []api.Source {
	if c.plans == nil {
		c.probe(ctx)
	}
	return slices.Clone(c.sources)
}

// Events are the chosen ones that this machine counts, once it was probed.
func (c *Collector) Events() (names []string) {
	for _, p := range c.plans {
		for _, e := range p.events {
			if e.further() {
				names = append(names, e.Name)
			}
		}
	}
	return names
}

// Open opens the groups of events on each of the job's CPUs, or on all that are
// online where the job's are not known. What the job did before is not counted, so
// that it is to be called as soon as the job is seen. Where the software events can be
// opened there is a reader; which of the others it lacks, it says.
func (c *Collector) Open(ctx context.Context, t collector.Target) (collector.Reader, error) {
	h, err := c.hierarchy()
	if err != nil {
		return nil, err
	}
	if c.plans == nil {
		c.probe(ctx)
	}
	r := &reader{collector: c, hierarchy: h, places: map[int]*collector.Place{}}
	for _, p := range c.plans {
		r.tallies = append(r.tallies, &tally{plan: p, totals: make([]float64, len(p.events))})
	}
	if _, err := r.follow(t); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// hierarchy is where perf looks for cgroups.
func (c *Collector) hierarchy() (hostfs.Hierarchy, error) {
	found, ok := hostfs.PerfHierarchy(c.root.Hierarchies())
	if !ok {
		return found, fmt.Errorf("%w: no cgroup hierarchy that perf uses", collector.ErrUnsupported)
	}
	return found, nil
}
