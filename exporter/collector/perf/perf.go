package perf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	perfutils "github.com/hodgesds/perf-utils"
	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
)

// Collector opens software events on cgroups.
type Collector struct {
	root hostfs.Root
}

var _ collector.Collector = (*Collector)(nil)

// New returns a collector for the cgroups below root.
func New(root hostfs.Root) *Collector { return &Collector{root: root} }

// Name is "perf".
func (c *Collector) Name() string { return "perf" }

// Open opens one group of events on each of the job's CPUs, or on all that are
// online where the job's are not known. What the job did before is not counted, so
// that it is to be called as soon as the job is seen.
func (c *Collector) Open(ctx context.Context, t collector.Target) (collector.Reader, error) {
	h, err := c.hierarchy()
	if err != nil {
		return nil, err
	}
	r := &reader{root: c.root, hierarchy: h, events: events(), totals: make([]float64, len(events()))}
	if err := r.Follow(ctx, t); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

type reader struct {
	root             hostfs.Root
	hierarchy        hostfs.Hierarchy // perf's
	dir              string           // the job's cgroup there
	events           []event
	groups           []*group
	leaving          []*group // of CPUs or a cgroup that are not the job's any more, read once more
	totals           []float64
	enabled, running float64
}

// group is the events of one CPU.
type group struct {
	dir      string
	cpu      int
	profiler perfutils.GroupProfiler
	last     perfutils.GroupProfileValue
}

var _ collector.Follower = (*reader)(nil)

// Follow opens events on the CPUs and in the cgroup that are the job's now and were not,
// and lets go of the others after one more reading: the kernel moves what runs there at once,
// and what it counted meanwhile is not lost. What the job does on a new CPU before
// that is; the sampler looks for it several times a second.
func (r *reader) Follow(_ context.Context, t collector.Target) error {
	dir := t.Dirs[r.hierarchy.Name]
	if dir == "" && r.hierarchy.V2 {
		dir = t.Leaf
	}
	if dir == "" {
		return fmt.Errorf("%w: the job has no cgroup in %s, perf's hierarchy; see --perf.leaf", collector.ErrUnsupported, r.hierarchy.Name)
	}
	r.dir = dir
	cpus := t.CPUs
	if len(cpus) == 0 {
		var err error
		if cpus, err = r.root.OnlineCPUs(); err != nil {
			return err
		}
	}
	r.groups = slices.DeleteFunc(r.groups, func(g *group) bool {
		gone := g.dir != dir || !slices.Contains(cpus, g.cpu)
		if gone {
			r.leaving = append(r.leaving, g)
		}
		return gone
	})
	f, err := os.Open(r.dir)
	if err != nil {
		return fmt.Errorf("perf: %w", err)
	}
	defer func() { _ = f.Close() }() // the events keep the cgroup by themselves
	var errs []error
	for _, cpu := range cpus {
		if slices.ContainsFunc(r.groups, func(g *group) bool { return g.cpu == cpu }) {
			continue
		}
		// A CPU may come back before its last reading.
		if i := slices.IndexFunc(r.leaving, func(g *group) bool { return g.cpu == cpu && g.dir == dir }); i >= 0 {
			r.groups = append(r.groups, r.leaving[i])
			r.leaving = slices.Delete(r.leaving, i, i+1)
			continue
		}
		if err := r.add(f, cpu); err != nil {
			// The kernel's own answer tells denied from unsupported.
			if why := try(r.dir, cpu, r.events[0].config); why != nil {
				err = why
			}
			errs = append(errs, fmt.Errorf("perf: CPU %d: %w", cpu, err))
		}
	}
	return errors.Join(errs...)
}

func (r *reader) add(cgroup *os.File, cpu int) error {
	attrs := make([]unix.PerfEventAttr, len(r.events))
	for i, e := range r.events {
		attrs[i] = unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: e.config}
	}
	p, err := perfutils.NewGroupProfiler(int(cgroup.Fd()), cpu, cgroupMode, attrs...)
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return errors.Join(err, p.Close())
	}
	r.groups = append(r.groups, &group{dir: r.dir, cpu: cpu, profiler: p, last: perfutils.GroupProfileValue{Values: make([]uint64, len(r.events))}})
	return nil
}

// Read adds what each CPU counted since the last reading, scaled up where the
// events were multiplexed. Events still answer after the cgroup is gone, so that
// the last reading of a job is complete.
func (r *reader) Read(_ context.Context, _ collector.Moment, out collector.Values) error {
	var errs []error
	failed := 0
	all := append(slices.Clip(r.groups), r.leaving...)
	for _, g := range all {
		var now perfutils.GroupProfileValue
		if err := g.profiler.Profile(&now); err != nil {
			errs = append(errs, fmt.Errorf("perf: %w", err))
			failed++
			continue
		}
		enabled := float64(now.TimeEnabled - g.last.TimeEnabled)
		running := float64(now.TimeRunning - g.last.TimeRunning)
		scale := 1.0
		if running > 0 && running < enabled {
			scale = enabled / running
		}
		for i, v := range now.Values {
			if v > g.last.Values[i] {
				r.totals[i] += float64(v-g.last.Values[i]) * scale
			}
		}
		r.enabled += enabled / 1e9
		r.running += running / 1e9
		g.last = now
	}
	for _, g := range r.leaving {
		errs = append(errs, g.profiler.Close())
	}
	r.leaving = nil
	if failed == len(all) {
		return errors.Join(errs...)
	}
	for i, e := range r.events {
		out[e.column] = r.totals[i] / e.unit
	}
	out[api.ColPerfEnabled], out[api.ColPerfRunning] = r.enabled, r.running
	return errors.Join(errs...)
}

// Close closes the events.
func (r *reader) Close() error {
	var errs []error
	for _, g := range append(r.groups, r.leaving...) {
		errs = append(errs, g.profiler.Close())
	}
	r.groups, r.leaving = nil, nil
	return errors.Join(errs...)
}
