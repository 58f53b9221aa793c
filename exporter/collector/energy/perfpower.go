package energy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/perf"
	"pitchpipe/exporter/hostfs"
)

// powerPMU opens the events of the kernel's power PMU. The kernel keeps its counters 64 bits
// wide, so they never wrap, and access to energy_uj in sysfs is not needed.
type powerPMU struct {
	root     hostfs.Root
	opener   perf.Opener
	cpus     []int // one of each die or package
	whole    bool  // a package has one counter, whatever its dies
	counters []*counter
}

// NewPerfPower returns a meter of the packages and DRAM that the power PMU counts; the rest is
// shown. It needs CAP_PERFMON, or kernel.perf_event_paranoid below 1. The error says why there
// is none: collector.ErrUnsupported, or what the kernel refuses. The caller calls Close.
func NewPerfPower(root hostfs.Root, opener perf.Opener, model Model) (*Measured, error) {
	p := &powerPMU{root: root, opener: opener, whole: packageScope(root)}
	m, err := p.open(model)
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w: %s", err, perf.Denial(root, err))
	}
	if err != nil {
		return nil, errors.Join(err, (&Measured{counters: p.counters}).Close())
	}
	return m, nil
}

func (p *powerPMU) open(model Model) (*Measured, error) {
	dir := perf.PMUDir(p.root, "power")
	events, err := names(filepath.Join(dir, "events"), "no power PMU")
	if err != nil {
		return nil, err
	}
	mask, err := hostfs.Read(filepath.Join(dir, "cpumask"))
	if err != nil {
		return nil, fmt.Errorf("power PMU: %w", err)
	}
	if p.cpus, err = hostfs.CPUList(string(mask)); err != nil || len(p.cpus) == 0 {
		return nil, fmt.Errorf("power PMU: CPUs %.40q: %w", mask, errors.Join(err, collector.ErrUnsupported))
	}
	for _, e := range events {
		name, ok := strings.CutPrefix(e, "energy-")
		if !ok || strings.Contains(name, ".") { // a unit or a scale
			continue
		}
		// An event that is only shown may fail.
		if err := p.add(name); err != nil && (name == "pkg" || name == "ram") {
			return nil, fmt.Errorf("power PMU: energy-%s: %w", name, err)
		}
	}
	return measured(PerfPower, p.counters, model, "the power PMU counts no package")
}

// add opens an event on each CPU of the PMU's mask.
func (p *powerPMU) add(event string) error {
	attr, err := perf.PMUEvent(p.root, "power", "energy-"+event)
	if err != nil {
		return err
	}
	path := filepath.Join(perf.PMUDir(p.root, "power"), "events", "energy-"+event)
	scale, err := hostfs.Read(path + ".scale")
	if err != nil {
		return err
	}
	joules, err := strconv.ParseFloat(strings.TrimSpace(string(scale)), 64)
	if err != nil || !(joules > 0) {
		return fmt.Errorf("%w: scale %.40q", collector.ErrUnsupported, scale)
	}
	if unit := cmp.Or(hostfs.Text(path+".unit"), "Joules"); unit != "Joules" {
		return fmt.Errorf("%w: unit %.40q, want Joules", collector.ErrUnsupported, unit)
	}
	cpus, seen := p.cpus, map[string]bool{}
	if event == "psys" {
		cpus = cpus[:1] // counts the machine, on any CPU
	}
	for _, cpu := range cpus {
		c := p.counter(event, cpu)
		if p.whole && seen[c.id] {
			continue // another CPU shows the same counter
		}
		seen[c.id] = true
		g, err := p.opener.Open([]perf.Attr{attr}, perf.Where{CPU: cpu})
		if err != nil {
			return fmt.Errorf("CPU %d: %w", cpu, err)
		}
		c.grew, c.close, c.read = growing(joules), g.Close, func() (uint64, error) {
			var now perf.Counts
			if err := g.Read(&now); err != nil {
				return 0, err
			}
			return now.Values[0], nil
		}
		p.counters = append(p.counters, c)
	}
	return nil
}

// counter names what an event counts on a CPU as powercap names its zones.
func (p *powerPMU) counter(event string, cpu int) *counter {
	c := &counter{name: event, pkg: p.root.Package(cpu)}
	where := strconv.Itoa(c.pkg)
	if !p.whole && p.dies(c.pkg) > 1 {
		where += fmt.Sprintf("-die-%d", p.root.Die(cpu))
	}
	switch event {
	case "pkg":
		c.id, c.name, c.component = "power:"+where+":package", packageName+where, Package
	case "psys":
		c.id, c.pkg = "power:psys", Whole
	case "ram":
		c.name, c.component = "dram", DRAM
	case "cores":
		c.name = "core"
	}
	c.id = cmp.Or(c.id, "power:"+where+":"+c.name)
	return c
}

// dies is how many dies of a package the PMU counts.
func (p *powerPMU) dies(pkg int) int {
	dies := map[int]bool{}
	for _, cpu := range p.cpus {
		if p.root.Package(cpu) == pkg {
			dies[p.root.Die(cpu)] = true
		}
	}
	return len(dies)
}
