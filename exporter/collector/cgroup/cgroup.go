package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/proc"
	"pitchpipe/exporter/hostfs"
)

// Collector reads cgroup files.
type Collector struct {
	root   hostfs.Root
	online collector.Cached[map[int]bool] // CPUs
	pools  map[string]*collector.Cached[pool]
}

// New returns a collector for the trees below root.
func New(root hostfs.Root) *Collector { return &Collector{root: root} }

// Name is "cgroup".
func (c *Collector) Name() string { return "cgroup" }

// Probe looks at the roots of the hierarchies. A root does not have every file of
// a job's cgroup, so an answer is about the controller, not the file.
func (c *Collector) Probe(context.Context) []api.Source {
	var out []api.Source
	for _, s := range []struct {
		name, file  string
		controllers []string
	}{
		{"cgroup/cpu", "cgroup.procs", []string{hostfs.Unified, "cpuacct"}},
		{"cgroup/memory", "cgroup.procs", []string{"memory"}},
		{"cgroup/io", "cgroup.procs", []string{"io", "blkio"}},
		{"cgroup/cpuset", "cgroup.procs", []string{"cpuset"}},
		{"cgroup/pressure", "cpu.pressure", []string{hostfs.Unified}},
	} {
		dir, err := "", fmt.Errorf("%w: no hierarchy with %s", collector.ErrUnsupported, strings.Join(s.controllers, " or "))
		for _, h := range c.root.Hierarchies() {
			if dir == "" && slices.ContainsFunc(s.controllers, func(name string) bool { return h.Has(name) || name == hostfs.Unified && h.V2 }) {
				dir = h.Dir
				_, err = hostfs.Read(filepath.Join(dir, s.file))
			}
		}
		out = append(out, collector.Source(s.name, dir, err))
	}
	return out
}

// Open returns a reader; it fails if the job has no cgroup.
func (c *Collector) Open(_ context.Context, t collector.Target) (collector.Reader, error) {
	if len(t.Dirs) == 0 {
		return nil, fmt.Errorf("%w: the job has no cgroup", collector.ErrUnsupported)
	}
	r := &reader{collector: c, unified: t.Dirs[hostfs.Unified], legacy: legacy(t.Dirs), rest: collector.Values{}, skips: skipped}
	if r.pressed = r.unified; r.pressed == "" && c.inUnified(t.PerfDir) {
		r.pressed = t.PerfDir
	}
	return r, nil
}

// legacy are a job's v1 directories by controller.
func legacy(dirs map[string]string) map[string]string {
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		for controller := range strings.SplitSeq(name, ",") {
			out[controller] = dirs[name]
		}
	}
	delete(out, hostfs.Unified)
	return out
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
	peak      float64           // largest use seen, if the kernel keeps none

	buf      hostfs.Buffer
	allotted collector.Cached[allotted]

	usage  float64          // CPU seconds at the last reading
	rest   collector.Values // what else the last whole reading had
	skips  int              // readings since
	failed bool             // the last whole reading was incomplete
}

// skipped is how many readings in a row of an idle job repeat what the last whole one
// found: then only others change it, by taking its memory or writing its pages back.
const skipped = 7

// read reads a file of a cgroup; the result is valid until the next call.
func (r *reader) read(dir, file string) ([]byte, error) {
	return r.buf.Read(filepath.Join(dir, file))
}

func (r *reader) number(dir, file string) (float64, error) {
	data, err := r.read(dir, file)
	if err != nil {
		return 0, err
	}
	v, err := hostfs.Number(data)
	return float64(v), err
}

// Read reads each group of columns by itself, so one that is missing does not
// affect the others. Files that a hierarchy does not have are not an error, nor are those of
// pressure where the kernel's accounting of it is turned off.
func (r *reader) Read(_ context.Context, m collector.Moment, out collector.Values) error {
	failed := ignoreMissing("cpu", r.cpu(out))
	usage, known := out[api.ColCPUSeconds]
	slept := known && usage == r.usage
	r.usage = usage
	if slept && failed == nil && !r.failed && r.skips < skipped {
		r.skips++
		maps.Copy(out, r.rest)
		return nil
	}
	clear(r.rest)
	a := r.allotted.Get(m.Time, lately, func() allotted { return r.allot(m) })
	if a.cores > 0 {
		r.rest[api.ColAllocatedCores] = a.cores
	}
	failed = errors.Join(failed, a.err, ignoreMissing("memory", r.memory(r.rest)), ignoreMissing("io", r.io(r.rest)), ignoreMissing("pressure", r.pressure(r.rest)))
	r.skips, r.failed = 0, failed != nil
	maps.Copy(out, r.rest)
	return failed
}

func ignoreMissing(what string, err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Close has nothing to release.
func (r *reader) Close() error { return nil }

func (r *reader) cpu(out collector.Values) error {
	if r.unified != "" {
		data, err := r.read(r.unified, "cpu.stat")
		if err == nil {
			if !put(out, api.ColCPUSeconds, data, "usage_usec", 1e6) {
				return fmt.Errorf("%w: no usage_usec in %.60q", hostfs.ErrFormat, data)
			}
			put(out, api.ColUserSeconds, data, "user_usec", 1e6)
			put(out, api.ColSystemSeconds, data, "system_usec", 1e6)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	dir := r.legacy["cpuacct"]
	if dir == "" {
		return nil
	}
	usage, err := r.number(dir, "cpuacct.usage")
	if err != nil {
		return err
	}
	out[api.ColCPUSeconds] = usage / 1e9
	data, err := r.read(dir, "cpuacct.stat")
	put(out, api.ColUserSeconds, data, "user", proc.TicksPerSecond)
	put(out, api.ColSystemSeconds, data, "system", proc.TicksPerSecond)
	return err
}

func (r *reader) memory(out collector.Values) error {
	dir, rss, file, use, peak := r.legacy["memory"], "total_rss", "total_cache", "memory.usage_in_bytes", "memory.max_usage_in_bytes"
	if dir == "" {
		dir, rss, file, use, peak = r.unified, "anon", "file", "memory.current", "memory.peak"
	}
	if dir == "" {
		return nil
	}
	data, err := r.read(dir, "memory.stat")
	if err != nil {
		return err
	}
	put(out, api.ColRSS, data, rss, 1)
	put(out, api.ColCache, data, file, 1)
	n, err := r.number(dir, peak)
	if err != nil { // memory.peak is younger than v2
		if n, err = r.number(dir, use); err != nil {
			return err
		}
		r.peak = max(r.peak, n)
		n = r.peak
	}
	out[api.ColPeak] = n
	return nil
}

// io sums what all devices read and wrote: lines of io.stat such as
// "8:0 rbytes=1 wbytes=2 rios=3", or of blkio such as "8:0 Read 1".
func (r *reader) io(out collector.Values) error {
	dir, file := r.legacy["blkio"], "blkio.throttle.io_service_bytes_recursive"
	if dir == "" {
		dir, file = r.unified, "io.stat"
	}
	if dir == "" {
		return nil
	}
	data, err := r.read(dir, file)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = r.read(dir, "blkio.throttle.io_service_bytes")
	}
	if err != nil {
		return err
	}
	sums := map[string]float64{}
	for line := range hostfs.Lines(data) {
		fields := strings.Fields(line)
		if len(fields) == 3 && !strings.Contains(line, "=") {
			fields = []string{fields[1] + "=" + fields[2]}
		}
		for _, field := range fields {
			name, text, ok := strings.Cut(field, "=")
			if v, err := strconv.ParseUint(text, 10, 64); ok && err == nil {
				sums[name] += float64(v)
			}
		}
	}
	out[api.ColReadBytes] = sums["rbytes"] + sums["Read"]
	if dir == r.unified { // v1 charges write-back to the root cgroup: /proc/PID/io has the job's
		out[api.ColWriteBytes] = sums["wbytes"]
	}
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
		usec := uint64(0)
		if err == nil {
			usec, err = hostfs.PressureTotal(data)
		}
		if err == nil {
			out[p.column] = float64(usec) / 1e6
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// put reads one count of a flat keyed file, and reports whether it is there.
func put(out collector.Values, column string, data []byte, name string, unit float64) bool {
	v, ok := hostfs.Count(data, name)
	if ok {
		out[column] = float64(v) / unit
	}
	return ok
}
