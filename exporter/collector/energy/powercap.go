package energy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
)

// zone is one energy counter of the powercap tree.
type zone struct {
	name string // package-0, dram
	path string
	wrap uint64 // its largest value, 0 = not readable
	last uint64
	seen bool
}

// Powercap measures the package and DRAM zones of a powercap tree.
type Powercap struct {
	zones    []*zone
	model    Model
	observed float64 // lowest power of an interval so far, 0 = none yet
}

var _ Meter = (*Powercap)(nil)

// NewPowercap finds the zones below root. The error says why there are none:
// collector.ErrUnsupported, or fs.ErrPermission where their counters are closed.
// model gives the idle power until less is observed.
func NewPowercap(root hostfs.Root, model Model) (*Powercap, error) {
	top := root.Sys("class", "powercap")
	entries, err := os.ReadDir(top)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: no powercap tree at %s", collector.ErrUnsupported, top)
	}
	if err != nil {
		return nil, fmt.Errorf("powercap: %w", err)
	}
	p := &Powercap{model: model}
	for _, e := range entries {
		// intel-rapl-mmio counts package-0 a second time.
		if !strings.HasPrefix(e.Name(), "intel-rapl:") {
			continue
		}
		dir := filepath.Join(top, e.Name())
		data, err := hostfs.Read(filepath.Join(dir, "name"))
		if err != nil {
			continue // a zone without a name is none
		}
		name := strings.TrimSpace(string(data))
		// Core and uncore are part of package; psys is beside all of them.
		if !strings.HasPrefix(name, "package") && name != "dram" {
			continue
		}
		z := &zone{name: name, path: filepath.Join(dir, "energy_uj")}
		if _, err := z.read(); err != nil {
			return nil, fmt.Errorf("powercap: %w", err)
		}
		// A zone whose range is unreadable is still good between two wraps.
		if data, err := hostfs.Read(filepath.Join(dir, "max_energy_range_uj")); err == nil {
			if wrap, err := hostfs.Number(data); err == nil {
				z.wrap = wrap
			}
		}
		p.zones = append(p.zones, z)
	}
	if !slices.ContainsFunc(p.zones, func(z *zone) bool { return strings.HasPrefix(z.name, "package") }) {
		return nil, fmt.Errorf("%w: no package zone below %s", collector.ErrUnsupported, top)
	}
	return p, nil
}

func (z *zone) read() (uint64, error) {
	data, err := hostfs.Read(z.path)
	if err != nil {
		return 0, err
	}
	return hostfs.Number(data)
}

// step returns the microjoules since the last reading. A counter that went down
// wrapped once; the sampler reads often enough that it never wraps twice.
func (z *zone) step() (uint64, bool, error) {
	now, err := z.read()
	if err != nil {
		return 0, false, fmt.Errorf("powercap %s: %w", z.name, err)
	}
	last, seen := z.last, z.seen
	z.last, z.seen = now, true
	switch {
	case !seen:
		return 0, false, nil
	case now >= last:
		return now - last, true, nil
	case z.wrap >= last:
		return z.wrap - last + now, true, nil
	default: // its range is not known: what it counted since zero is a lower bound
		return now, true, nil
	}
}

// Source is "rapl".
func (p *Powercap) Source() string { return RAPL }

// IdleWatts is the model's guess until an interval took less.
func (p *Powercap) IdleWatts() (watts float64, basis string) {
	if p.observed > 0 && p.observed < p.model.Idle {
		return p.observed, "observed"
	}
	return p.model.Idle, "modelled"
}

// Step reads the zones. Where one cannot be read the interval has no total; the
// next one that can be read covers both.
func (p *Powercap) Step(_ context.Context, a Activity) (Split, bool, error) {
	type reading struct {
		last uint64
		seen bool
	}
	before := make([]reading, len(p.zones))
	for i, z := range p.zones {
		before[i] = reading{z.last, z.seen}
	}
	var uj uint64
	complete := true
	for _, z := range p.zones {
		d, ok, err := z.step()
		if err != nil {
			for i, z := range p.zones {
				z.last, z.seen = before[i].last, before[i].seen
			}
			return Split{}, false, err
		}
		complete = complete && ok
		uj += d
	}
	if !complete || a.Elapsed <= 0 {
		return Split{}, false, nil
	}
	total := float64(uj) / 1e6
	// Intervals of some length only: a short one is the counter's own granularity.
	if watts := total / a.Elapsed.Seconds(); a.Elapsed.Seconds() >= 0.5 && watts > 0 && (p.observed == 0 || watts < p.observed) {
		p.observed = watts
	}
	idle, _ := p.IdleWatts()
	return Split{Total: total, Idle: min(idle*a.Elapsed.Seconds(), total)}, true, nil
}

func (p *Powercap) zonesText() string {
	names := make([]string, 0, len(p.zones))
	for _, z := range p.zones {
		names = append(names, z.name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
