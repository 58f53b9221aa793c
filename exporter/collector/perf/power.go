package perf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
)

// Domain is what RAPL counts of one package, or of the whole machine.
type Domain struct {
	Name    string // package, dram, core, gpu, psys
	Package int    // physical number
	CPU     int    // on which it is read
	Joules  float64
}

// Power reads RAPL through the kernel's power PMU: 64 bits wide, with a timer of the
// kernel's own, so that nothing wraps, and without access to sysfs's energy_uj. It is
// used by one goroutine.
type Power struct {
	domains []domain
	now     Counts
}

type domain struct {
	Domain
	joules float64 // of one count
	group  Group
	last   uint64
}

// OpenPower opens each event of the power PMU on one CPU of each package; joules count
// from then. An error says why there is none: collector.ErrUnsupported, or what the
// kernel refuses. It needs CAP_PERFMON, or kernel.perf_event_paranoid below 1.
func OpenPower(root hostfs.Root, opener Opener) (*Power, error) {
	dir := pmuDir(root, "power")
	entries, err := os.ReadDir(filepath.Join(dir, "events"))
	if err != nil {
		return nil, fmt.Errorf("%w: no power PMU: %w", collector.ErrUnsupported, err)
	}
	mask, err := hostfs.Read(filepath.Join(dir, "cpumask"))
	if err != nil {
		return nil, fmt.Errorf("power PMU: %w", err)
	}
	cpus, err := hostfs.CPUList(string(mask))
	if err != nil || len(cpus) == 0 {
		return nil, fmt.Errorf("power PMU: CPUs %.40q: %w", mask, errors.Join(err, collector.ErrUnsupported))
	}
	p := &Power{}
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), "energy-")
		if !ok || strings.Contains(name, ".") { // a unit or a scale
			continue
		}
		err := p.add(root, opener, name, cpus)
		if err != nil && name != "pkg" && name != "ram" {
			continue // what is only shown takes nothing down with it
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("power PMU: energy-%s: %w", name, err), p.Close())
		}
	}
	if len(p.domains) == 0 {
		return nil, fmt.Errorf("%w: the power PMU has no events", collector.ErrUnsupported)
	}
	return p, nil
}

func (p *Power) add(root hostfs.Root, opener Opener, name string, cpus []int) error {
	attr, err := pmuEvent(root, "power", "energy-"+name)
	if err != nil {
		return err
	}
	scale, err := hostfs.Read(pmuDir(root, "power/events/energy-"+name+".scale"))
	if err != nil {
		return err
	}
	joules, err := strconv.ParseFloat(strings.TrimSpace(string(scale)), 64)
	if err != nil || !(joules > 0) {
		return fmt.Errorf("%w: scale %.40q", collector.ErrUnsupported, scale)
	}
	if unit, err := hostfs.Read(pmuDir(root, "power/events/energy-"+name+".unit")); err == nil && strings.TrimSpace(string(unit)) != "Joules" {
		return fmt.Errorf("%w: unit %.40q, want Joules", collector.ErrUnsupported, unit)
	}
	if name == "psys" {
		cpus = cpus[:1] // counts the machine, from whichever package
	}
	for _, cpu := range cpus {
		g, err := opener.Open([]Attr{attr}, Where{CPU: cpu})
		if err != nil {
			return fmt.Errorf("CPU %d: %w", cpu, err)
		}
		d := domain{Domain: Domain{Name: domainName(name), Package: root.Package(cpu), CPU: cpu}, joules: joules, group: g}
		p.domains = append(p.domains, d)
	}
	return nil
}

// domainName is that of powercap's zones.
func domainName(event string) string {
	switch event {
	case "pkg":
		return "package"
	case "ram":
		return "dram"
	case "cores":
		return "core"
	default:
		return event
	}
}

// Read returns the joules since the beginning, which never fall. An error concerns the
// domains that stand still.
func (p *Power) Read() ([]Domain, error) {
	out := make([]Domain, 0, len(p.domains))
	var errs []error
	for i := range p.domains {
		d := &p.domains[i]
		if err := d.group.Read(&p.now); err != nil {
			errs = append(errs, fmt.Errorf("power PMU: %s of package %d: %w", d.Name, d.Package, err))
		} else if v := p.now.Values[0]; v > d.last {
			d.Joules += float64(v-d.last) * d.joules
			d.last = v
		}
		out = append(out, d.Domain)
	}
	return out, errors.Join(errs...)
}

// Domains lists what is read, with the joules of the last reading.
func (p *Power) Domains() []Domain {
	out := make([]Domain, 0, len(p.domains))
	for _, d := range p.domains {
		out = append(out, d.Domain)
	}
	return slices.Clip(out)
}

// Close closes the events.
func (p *Power) Close() error {
	var errs []error
	for _, d := range p.domains {
		errs = append(errs, d.group.Close())
	}
	p.domains = nil
	return errors.Join(errs...)
}
