package energy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/perf"
	"pitchpipe/exporter/hostfs"
)

// NewPerfPower returns a meter of the packages and DRAM that the kernel's power PMU
// counts, and shows the rest. The error says why there is none: collector.ErrUnsupported,
// or what the kernel refuses. Close it.
func NewPerfPower(root hostfs.Root, opener perf.Opener, model Model) (*Measured, error) {
	p, err := perf.OpenPower(root, opener)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%w: %s", err, perf.Denial(root, err))
	}
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(p.Domains(), func(d perf.Domain) bool { return d.Name == string(Package) }) {
		return nil, errors.Join(fmt.Errorf("%w: the power PMU counts no package", collector.ErrUnsupported), p.Close())
	}
	m, err := measured(PerfPower, newPower(root, p), model)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return m, nil
}

// power reads the power PMU, whose counters the kernel keeps 64 bits wide.
type power struct {
	pmu *perf.Power
	of  []counter // what each of its domains is; without an id it is read by another one too
}

// newPower says what each domain counts. The PMU is read on each CPU of its mask: one of
// each die, or of each package.
func newPower(root hostfs.Root, p *perf.Power) *power {
	out := &power{pmu: p}
	whole := packageScope(root)
	dies := map[int]map[int]bool{} // of each package, where they count by themselves
	for _, d := range p.Domains() {
		if dies[d.Package] == nil {
			dies[d.Package] = map[int]bool{}
		}
		if !whole {
			dies[d.Package][root.Die(d.CPU)] = true
		}
	}
	seen := map[string]bool{}
	for _, d := range p.Domains() {
		c := counter{name: d.Name, pkg: d.Package}
		where := strconv.Itoa(d.Package)
		if len(dies[d.Package]) > 1 {
			where += fmt.Sprintf("-die-%d", root.Die(d.CPU))
		}
		switch d.Name {
		case "package":
			c.component, c.name = Package, packageName+where
		case "dram":
			c.component = DRAM
		}
		c.id = fmt.Sprintf("power:%s:%s", where, d.Name)
		if d.Name == "psys" {
			c.id, c.pkg = "power:psys", Whole
		}
		if whole && seen[c.id] {
			c.id = ""
		}
		seen[c.id] = true
		out.of = append(out.of, c)
	}
	return out
}

func (p *power) read(context.Context, time.Duration) error {
	_, err := p.pmu.Read()
	return err
}

func (p *power) counters() []counter {
	out := make([]counter, 0, len(p.of))
	for i, d := range p.pmu.Domains() {
		if c := p.of[i]; c.id != "" {
			c.total = d.Joules
			out = append(out, c)
		}
	}
	return out
}

func (p *power) within() time.Duration { return 0 }

// Close closes the events.
func (p *power) Close() error { return p.pmu.Close() }
