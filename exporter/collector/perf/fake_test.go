package perf_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/collector/perf"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/test/sandbox"
)

// fakeKernel opens groups as Linux does, in the time of its synctest bubble: a group
// that can never fit the PMU is refused; one that does not fit next to what a watchdog
// holds is opened and never runs; groups that do not fit at once take turns every 4 ms of
// their cgroup's time; a group is enabled only while its cgroup runs on the CPU.
type fakeKernel struct {
	root hostfs.Root
	tree string // of the cgroups
	now  time.Time

	general  int                 // counters of each CPU
	fixed    []string            // events that have their own counter
	held     int                 // general counters that a watchdog has; opening does not see it
	lacks    []string            // events that the CPU does not have
	noPMU    bool                // nor any other
	uncore   uint32              // a type that counts the package, for no cgroup; 0 = none
	refuse   error               // of every open
	files    int                 // descriptors that are left; -1 = any number
	offline  map[int]bool        //
	loads    map[int]load        // by CPU: what runs there
	groups   map[int][]*fakeOpen // by CPU, in the order in which they get their turn
	sliced   map[int]time.Duration
	opened   int // groups in all
	detached int // groups that were open when their CPU went
}

// load is a process of a cgroup that runs, and what it does a second.
type load struct {
	dir   string
	rates map[string]float64
}

type fakeOpen struct {
	k                *fakeKernel
	events           []perf.Attr
	names            []string
	onPMU            bool
	dir              string // of the cgroup; empty = everything
	cpu              int
	enabled, running time.Duration
	values           []float64
	detached, closed bool
}

const (
	fakeStep = time.Millisecond
	fakeTurn = 4 * time.Millisecond
)

// newFake plants a machine of so many CPUs with a v2 hierarchy.
func newFake(t testing.TB, cpus int) *fakeKernel {
	t.Helper()
	dir := t.TempDir()
	k := &fakeKernel{
		root: hostfs.Root{ProcFS: filepath.Join(dir, "proc"), SysFS: filepath.Join(dir, "sys"), CgroupFS: filepath.Join(dir, "cgroup")},
		tree: filepath.Join(dir, "cgroup"), now: time.Now(), files: -1, general: 4, fixed: []string{"cycles", "instructions", "ref-cycles"},
		offline: map[int]bool{}, loads: map[int]load{}, groups: map[int][]*fakeOpen{}, sliced: map[int]time.Duration{},
	}
	k.plant(t, "cgroup/cgroup.controllers", "cpu memory\n")
	k.plant(t, "sys/bus/event_source/devices/cpu/type", "4\n")
	k.plant(t, "proc/sys/kernel/perf_event_paranoid", "2\n")
	k.setOnline(t, cpus)
	return k
}

func (k *fakeKernel) plant(t testing.TB, name, text string) {
	t.Helper()
	sandbox.Plant(t, filepath.Dir(k.tree), map[string]string{name: text})
}

// setOnline says that the first CPUs are online and no others.
func (k *fakeKernel) setOnline(t testing.TB, cpus int) {
	t.Helper()
	k.advance()
	k.plant(t, "sys/devices/system/cpu/online", fmt.Sprintf("0-%d\n", cpus-1))
	for cpu := range 64 {
		if k.offline[cpu] = cpu >= cpus; k.offline[cpu] {
			for _, g := range k.groups[cpu] {
				g.detached = true
				k.detached++
			}
			delete(k.groups, cpu)
			delete(k.loads, cpu)
		}
	}
}

// cgroup makes one.
func (k *fakeKernel) cgroup(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(k.tree, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// run lets something run on a CPU from now on; without a directory nothing does.
func (k *fakeKernel) run(cpu int, dir string, rates map[string]float64) {
	k.advance()
	if dir == "" {
		delete(k.loads, cpu)
		return
	}
	k.loads[cpu] = load{dir, maps.Clone(rates)}
}

func (k *fakeKernel) Open(events []perf.Attr, on perf.Where) (perf.Group, error) {
	k.advance()
	dir := ""
	if on.Cgroup != nil {
		dir = on.Cgroup.Name()
	}
	fail := func(err error) (perf.Group, error) { return nil, fmt.Errorf("fake: %w", err) }
	if k.refuse != nil {
		return fail(k.refuse)
	}
	if dir != "" && dir != k.tree && !strings.HasPrefix(dir, k.tree+"/") {
		return fail(unix.EBADF)
	}
	if on.CPU < 0 || on.CPU >= 64 || k.offline[on.CPU] {
		return fail(unix.ENODEV)
	}
	if len(events) == 0 {
		return fail(unix.EINVAL)
	}
	for _, e := range events {
		switch name := nameOf(e); {
		case name == "":
			return fail(unix.ENOENT)
		case k.uncore != 0 && e.Type == k.uncore && dir != "":
			return fail(unix.EINVAL)
		case hardware(e) && (k.noPMU || slices.Contains(k.lacks, name)):
			return fail(unix.ENOENT)
		}
	}
	g := &fakeOpen{k: k, events: slices.Clone(events), dir: dir, cpu: on.CPU, values: make([]float64, len(events)), onPMU: slices.ContainsFunc(events, hardware)}
	for _, e := range events {
		g.names = append(g.names, nameOf(e))
	}
	if need, _ := k.need(g.names, nil); g.onPMU && need > k.general {
		return fail(unix.EINVAL)
	}
	if k.files >= 0 && k.files < len(events) {
		return fail(unix.EMFILE)
	}
	if k.files >= 0 {
		k.files -= len(events)
	}
	k.groups[on.CPU] = append(k.groups[on.CPU], g)
	k.opened++
	return g, nil
}

var names = sync.OnceValue(func() map[perf.Attr]string {
	out := map[perf.Attr]string{}
	for name, a := range perf.Attrs() {
		out[a] = name
	}
	return out
})

func nameOf(a perf.Attr) string {
	if name, ok := names()[a]; ok {
		return name
	}
	if a.Type >= 20 { // planted by a test
		return fmt.Sprintf("%d/%d", a.Type, a.Config)
	}
	return ""
}

func hardware(a perf.Attr) bool {
	return a.Type == unix.PERF_TYPE_HARDWARE || a.Type == unix.PERF_TYPE_HW_CACHE || a.Type == unix.PERF_TYPE_RAW
}

// need reports how many general counters events of the PMU take where those in taken have
// the fixed ones.
func (k *fakeKernel) need(events, taken []string) (int, []string) {
	n := 0
	for _, name := range events {
		switch {
		case slices.Contains(k.fixed, name) && !slices.Contains(taken, name):
			taken = append(taken, name)
		default:
			n++
		}
	}
	return n, taken
}

// advance counts what happened until now.
func (k *fakeKernel) advance() {
	for now := time.Now(); k.now.Before(now); {
		step := min(fakeStep, now.Sub(k.now))
		k.now = k.now.Add(step)
		for cpu, groups := range k.groups {
			k.step(cpu, groups, step)
		}
	}
}

func (k *fakeKernel) step(cpu int, groups []*fakeOpen, step time.Duration) {
	runs, busy := k.loads[cpu]
	free, full, waited := k.general-k.held, false, false
	var taken []string
	for _, g := range groups {
		if g.dir != "" && (!busy || runs.dir != g.dir && !strings.HasPrefix(runs.dir, g.dir+"/")) {
			continue
		}
		g.enabled += step
		if g.onPMU {
			need, now := k.need(g.names, slices.Clone(taken))
			// As the kernel does it: after the first that does not fit none is tried.
			if full = full || need > free; full {
				waited = true
				continue
			}
			free, taken = free-need, now
		}
		g.running += step
		for i, name := range g.names {
			g.values[i] += runs.rates[name] * step.Seconds()
		}
	}
	if k.sliced[cpu] += step; waited && k.sliced[cpu] >= fakeTurn {
		k.sliced[cpu] = 0
		// Those that are not active now wait for their cgroup, not for a counter.
		i := slices.IndexFunc(groups, func(g *fakeOpen) bool {
			return g.onPMU && (g.dir == "" || busy && (runs.dir == g.dir || strings.HasPrefix(runs.dir, g.dir+"/")))
		})
		k.groups[cpu] = append(slices.Concat(groups[:i], groups[i+1:]), groups[i])
	}
}

func (g *fakeOpen) Read(c *perf.Counts) error {
	if g.closed {
		return fmt.Errorf("fake: %w", unix.EBADF)
	}
	g.k.advance()
	c.Enabled, c.Running = uint64(g.enabled), uint64(g.running)
	c.Values = c.Values[:0]
	for _, v := range g.values {
		c.Values = append(c.Values, uint64(v))
	}
	c.Detached = g.detached && len(g.events) > 1
	return nil
}

func (g *fakeOpen) Close() error {
	if g.closed {
		return fmt.Errorf("fake: closed twice: %w", unix.EBADF)
	}
	g.closed = true
	g.k.groups[g.cpu] = slices.DeleteFunc(g.k.groups[g.cpu], func(o *fakeOpen) bool { return o == g })
	if g.k.files >= 0 {
		g.k.files += len(g.events)
	}
	return nil
}

// open counts the groups that were not closed.
func (k *fakeKernel) open() int {
	n := 0
	for _, groups := range k.groups {
		n += len(groups)
	}
	return n
}
