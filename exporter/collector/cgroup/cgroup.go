package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
)

// Collector reads cgroup files.
type Collector struct {
	root hostfs.Root

	online map[int]bool // CPUs
	asked  time.Time    // when that was read
	pools  map[string]*pool
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
	r := &reader{collector: c, unified: t.Dirs[hostfs.Unified], legacy: map[string]string{}}
	if r.pressed = r.unified; r.pressed == "" && c.inUnified(t.PerfDir) {
		r.pressed = t.PerfDir
	}
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

// inUnified reports whether a directory is in the v2 hierarchy, which alone has pressure.
func (c *Collector) inUnified(dir string) bool {
	return dir != "" && slices.ContainsFunc(c.root.Hierarchies(), func(h hostfs.Hierarchy) bool {
		return h.V2 && strings.HasPrefix(dir, h.Dir+"/")
	})
}

type reader struct {
	collector *Collector
	unified   string            // v2 directory, empty = none
	pressed   string            // the same, or the perf cgroup that has its processes
	legacy    map[string]string // v1 directories by controller
	peak      float64           // largest use seen, where the kernel keeps none

	buf      []byte
	allotted allotted

	usage  float64          // CPU seconds at the last reading
	rest   collector.Values // what else the last whole reading had
	skips  int              // readings since
	failed bool             // the last whole reading was incomplete
}

// skipped is how many readings in a row of a job of which nothing ran repeat what the last
// whole one found: only others change it then, who take its memory or write its pages back.
const skipped = 7

// read reads a file of a cgroup; what it returns is good until the next.
func (r *reader) read(dir, file string) ([]byte, error) {
	data, err := hostfs.ReadInto(r.buf, filepath.Join(dir, file))
	if err == nil {
		r.buf = data
	}
	return data, err
}

func (r *reader) number(dir, file string) (float64, error) {
	data, err := r.read(dir, file)
	if err != nil {
		return 0, err
	}
	v, err := hostfs.Number(data)
	return float64(v), err
}

// Read reads each group of columns by itself, so that one that is missing takes
// no other with it. Files that a hierarchy does not have are no error.
func (r *reader) Read(_ context.Context, m collector.Moment, out collector.Values) error {
	err := ignoreMissing(r.cpu(out))
	usage, ran := out[api.ColCPUSeconds]
	ran = !ran || usage != r.usage
	r.usage = usage
	if !ran && err == nil && !r.failed && r.rest != nil && r.skips < skipped {
		r.skips++
		maps.Copy(out, r.rest)
		return nil
	}
	if r.rest == nil {
		r.rest = collector.Values{}
	}
	clear(r.rest)
	err = errors.Join(err, ignoreMissing(r.memory(r.rest)), ignoreMissing(r.io(r.rest)), ignoreMissing(r.pressure(r.rest)), ignoreMissing(r.allot(m, r.rest)))
	r.skips, r.failed = 0, err != nil
	maps.Copy(out, r.rest)
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Close has nothing to release.
func (r *reader) Close() error { return nil }

func (r *reader) cpu(out collector.Values) error {
	if r.unified != "" {
		data, err := r.read(r.unified, "cpu.stat")
		if err == nil {
			return unifiedCPU(data, out)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cpu: %w", err)
		}
	}
	if dir := r.legacy["cpuacct"]; dir != "" {
		return r.legacyCPU(dir, out)
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
	data, err := r.read(dir, "memory.stat")
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	rss, file, use, peak := "total_rss", "total_cache", "memory.usage_in_bytes", "memory.max_usage_in_bytes"
	if v2 {
		rss, file, use, peak = "anon", "file", "memory.current", "memory.peak"
	}
	put(out, api.ColRSS, data, rss, 1)
	put(out, api.ColCache, data, file, 1)
	if n, err := r.number(dir, peak); err == nil {
		out[api.ColPeak] = n
		return nil
	}
	n, err := r.number(dir, use) // memory.peak is younger than v2
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	r.peak = max(r.peak, n)
	out[api.ColPeak] = r.peak
	return nil
}

func (r *reader) io(out collector.Values) error {
	if dir := r.legacy["blkio"]; dir != "" {
		data, err := r.read(dir, "blkio.throttle.io_service_bytes_recursive")
		if errors.Is(err, fs.ErrNotExist) {
			data, err = r.read(dir, "blkio.throttle.io_service_bytes")
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
	data, err := r.read(r.unified, "io.stat")
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
	for _, p := range [...]struct{ file, column string }{
		{"cpu.pressure", api.ColCPUPressure}, {"memory.pressure", api.ColMemoryPressure}, {"io.pressure", api.ColIOPressure},
	} {
		data, err := r.read(r.pressed, p.file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		usec, err := hostfs.PressureTotal(data)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out[p.column] = float64(usec) / 1e6
	}
	return errors.Join(errs...)
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
