package energy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
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
		return nil, fmt.Errorf("%w: needs CAP_PERFMON, or kernel.perf_event_paranoid below 1", err)
	}
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(p.Domains(), func(d perf.Domain) bool { return d.Name == string(Package) }) {
		return nil, errors.Join(fmt.Errorf("%w: the power PMU counts no package", collector.ErrUnsupported), p.Close())
	}
	return measured(PerfPower, &power{p}, model), nil
}

// power reads the power PMU, whose counters the kernel keeps 64 bits wide.
type power struct{ pmu *perf.Power }

func (p *power) read(context.Context, time.Duration) error {
	_, err := p.pmu.Read()
	return err
}

func (p *power) counters() []counter {
	domains := p.pmu.Domains()
	out := make([]counter, 0, len(domains))
	for _, d := range domains {
		c := counter{name: d.Name, pkg: d.Package, total: d.Joules}
		switch d.Name {
		case "package":
			c.component, c.name = Package, fmt.Sprintf("package-%d", d.Package)
		case "dram":
			c.component = DRAM
		}
		c.id = fmt.Sprintf("power:%d:%s", d.Package, d.Name)
		if d.Name == "psys" {
			c.id, c.pkg = "power:psys", Whole
		}
		out = append(out, c)
	}
	return out
}

func (p *power) within() time.Duration { return 0 }

// Close closes the events.
func (p *power) Close() error { return p.pmu.Close() }
