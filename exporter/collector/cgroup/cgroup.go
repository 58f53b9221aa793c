package cgroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
)

// Collector reads cgroup files.
type Collector struct {
	root hostfs.Root
}

var _ collector.Collector = (*Collector)(nil)

// New returns a collector for the trees below root.
func New(root hostfs.Root) *Collector { return &Collector{root: root} }

// Name is "cgroup".
func (c *Collector) Name() string { return "cgroup" }

// Probe looks at the roots of the hierarchies. A root does not have every file of
// a job's cgroup, so an answer is about the controller, not the file.
func (c *Collector) Probe(context.Context) []api.Source {
	hierarchies := c.root.Hierarchies()
	find := func(controllers ...string) (string, error) {
		for _, h := range hierarchies {
			for _, name := range controllers {
				if h.Has(name) || name == hostfs.Unified && h.V2 {
					_, err := hostfs.Read(filepath.Join(h.Dir, "cgroup.procs"))
					return h.Dir, err
				}
			}
		}
		return "", fmt.Errorf("%w: no hierarchy with %s", collector.ErrUnsupported, strings.Join(controllers, " or "))
	}
	var out []api.Source
	for _, s := range []struct {
		name        string
		controllers []string
	}{
		{"cgroup/cpu", []string{hostfs.Unified, "cpuacct"}},
		{"cgroup/memory", []string{"memory"}},
		{"cgroup/io", []string{"io", "blkio"}},
		{"cgroup/cpuset", []string{"cpuset"}},
	} {
		dir, err := find(s.controllers...)
		out = append(out, collector.Source(s.name, dir, err))
	}
	dir, err := find(hostfs.Unified)
	if err == nil {
		_, err = hostfs.Read(filepath.Join(dir, "cpu.pressure"))
	}
	return append(out, collector.Source("cgroup/pressure", dir, err))
}

// Open returns a reader; it fails where the job has no cgroup.
func (c *Collector) Open(_ context.Context, t collector.Target) (collector.Reader, error) {
	if len(t.Dirs) == 0 {
		return nil, fmt.Errorf("%w: the job has no cgroup", collector.ErrUnsupported)
	}
	r := &reader{unified: t.Dirs[hostfs.Unified], pressed: cmp.Or(t.Dirs[hostfs.Unified], t.Leaf), legacy: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(t.Dirs)) {
		if name == hostfs.Unified {
			continue
		}
		for controller := range strings.SplitSeq(name, ",") {
			r.legacy[controller] = t.Dirs[name]
		}
	}
	return r, nil
}

type reader struct {
	unified string            // v2 directory, empty = none
	pressed string            // the same, or the leaf that tells pressure in its place
	legacy  map[string]string // v1 directories by controller
	peak    float64           // largest use seen, where the kernel keeps none
}

// Read reads each group of columns by itself, so that one that is missing takes
// no other with it. Files that a hierarchy does not have are no error.
func (r *reader) Read(_ context.Context, _ collector.Moment, out collector.Values) error {
	var errs []error
	for _, read := range []func(collector.Values) error{r.cpu, r.memory, r.io, r.pressure, r.cpuset} {
		if err := read(out); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Close has nothing to release.
func (r *reader) Close() error { return nil }

func (r *reader) cpu(out collector.Values) error {
	if r.unified != "" {
		data, err := hostfs.Read(filepath.Join(r.unified, "cpu.stat"))
		if err == nil {
			return unifiedCPU(data, out)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cpu: %w", err)
		}
	}
	if dir := r.legacy["cpuacct"]; dir != "" {
		return legacyCPU(dir, out)
	}
	return nil
}

func (r *reader) memory(out collector.Values) error {
	dir, v2 := r.legacy["memory"], false
	if dir == "" {
		dir, v2 = r.unified, true
	}
	if dir == "" {
		return nil
	}
	data, err := hostfs.Read(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	stat := hostfs.Keyed(data)
	rss, file, use, peak := "total_rss", "total_cache", "memory.usage_in_bytes", "memory.max_usage_in_bytes"
	if v2 {
		rss, file, use, peak = "anon", "file", "memory.current", "memory.peak"
	}
	put(out, api.ColRSS, stat, rss, 1)
	put(out, api.ColCache, stat, file, 1)
	if n, err := number(dir, peak); err == nil {
		out[api.ColPeak] = n
		return nil
	}
	n, err := number(dir, use) // memory.peak is younger than v2
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	r.peak = max(r.peak, n)
	out[api.ColPeak] = r.peak
	return nil
}

func (r *reader) io(out collector.Values) error {
	if dir := r.legacy["blkio"]; dir != "" {
		data, err := hostfs.Read(filepath.Join(dir, "blkio.throttle.io_service_bytes_recursive"))
		if errors.Is(err, fs.ErrNotExist) {
			data, err = hostfs.Read(filepath.Join(dir, "blkio.throttle.io_service_bytes"))
		}
		if err != nil {
			return fmt.Errorf("io: %w", err)
		}
		legacyIO(data, out)
		return nil
	}
	if r.unified == "" {
		return nil
	}
	data, err := hostfs.Read(filepath.Join(r.unified, "io.stat"))
	if err != nil {
		return fmt.Errorf("io: %w", err)
	}
	unifiedIO(data, out)
	return nil
}

func (r *reader) pressure(out collector.Values) error {
	if r.pressed == "" {
		return nil
	}
	var errs []error
	for file, column := range map[string]string{
		"cpu.pressure":    api.ColCPUPressure,
		"memory.pressure": api.ColMemoryPressure,
		"io.pressure":     api.ColIOPressure,
	} {
		data, err := hostfs.Read(filepath.Join(r.pressed, file))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		usec, err := hostfs.PressureTotal(data)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out[column] = float64(usec) / 1e6
	}
	return errors.Join(errs...)
}

func (r *reader) cpuset(out collector.Values) error {
	for _, path := range []string{
		filepath.Join(r.legacy["cpuset"], "cpuset.effective_cpus"),
		filepath.Join(r.legacy["cpuset"], "cpuset.cpus"),
		filepath.Join(r.unified, "cpuset.cpus.effective"),
	} {
		if !filepath.IsAbs(path) {
			continue // the job is not in that hierarchy
		}
		data, err := hostfs.Read(path)
		if err != nil {
			continue // the next spelling
		}
		cpus, err := hostfs.CPUList(string(data))
		if err != nil {
			return fmt.Errorf("cpuset: %w", err)
		}
		if len(cpus) > 0 {
			out[api.ColAllocatedCores] = float64(len(cpus))
			return nil
		}
	}
	return nil
}

// CPUs reads the CPUs that a job's cpuset gives it, nil where it has none of its
// own.
func CPUs(dirs map[string]string) []int {
	for name, dir := range dirs {
		var files []string
		switch {
		case name == hostfs.Unified:
			files = []string{"cpuset.cpus.effective"}
		case slices.Contains(strings.Split(name, ","), "cpuset"):
			files = []string{"cpuset.effective_cpus", "cpuset.cpus"}
		}
		for _, f := range files {
			data, err := hostfs.Read(filepath.Join(dir, f))
			if err != nil {
				continue
			}
			if cpus, err := hostfs.CPUList(string(data)); err == nil && len(cpus) > 0 {
				return cpus
			}
		}
	}
	return nil
}
