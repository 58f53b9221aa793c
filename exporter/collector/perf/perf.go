package perf

import (
	"context"
	"errors"
	"fmt"
	"os"

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
func (c *Collector) Open(_ context.Context, t collector.Target) (collector.Reader, error) {
	h, err := c.hierarchy()
	if err != nil {
		return nil, err
	}
	dir := t.Dirs[h.Name]
	if dir == "" {
		return nil, fmt.Errorf("%w: the job has no cgroup in %s, perf's hierarchy", collector.ErrUnsupported, h.Name)
	}
	cpus := t.CPUs
	if len(cpus) == 0 {
		if cpus, err = c.root.OnlineCPUs(); err != nil {
			return nil, err
		}
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("perf: %w", err)
	}
	defer func() { _ = f.Close() }() // the events keep the cgroup by themselves
	r := &reader{events: events(), totals: make([]float64, len(events()))}
	for _, cpu := range cpus {
		if err := r.add(f, cpu); err != nil {
			// The kernel's own answer tells denied from unsupported.
			if why := try(dir, cpu, r.events[0].config); why != nil {
				err = why
			}
			return nil, errors.Join(fmt.Errorf("perf: CPU %d: %w", cpu, err), r.Close())
		}
	}
	return r, nil
}

type reader struct {
	events           []event
	groups           []*group
	totals           []float64
	enabled, running float64
}

// group is the events of one CPU.
type group struct {
	profiler perfutils.GroupProfiler
	last     perfutils.GroupProfileValue
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
	r.groups = append(r.groups, &group{profiler: p, last: perfutils.GroupProfileValue{Values: make([]uint64, len(r.events))}})
	return p.Start()
}

// Read adds what each CPU counted since the last reading, scaled up where the
// events were multiplexed. Events still answer after the cgroup is gone, so that
// the last reading of a job is complete.
func (r *reader) Read(_ context.Context, _ collector.Moment, out collector.Values) error {
	var errs []error
	for _, g := range r.groups {
		var now perfutils.GroupProfileValue
		if err := g.profiler.Profile(&now); err != nil {
			errs = append(errs, fmt.Errorf("perf: %w", err))
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
	if len(errs) == len(r.groups) {
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
	for _, g := range r.groups {
		errs = append(errs, g.profiler.Close())
	}
	r.groups = nil
	return errors.Join(errs...)
}
