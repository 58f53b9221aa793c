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
	id      string // intel-rapl:0:1
	name    string // package-0, dram
	path    string
	counted bool   // in the node's total; the others are shown only
	wrap    uint64 // its largest value, 0 = not readable
	last    uint64
	seen    bool
	total   uint64 // microjoules since the first reading
}

// Zone is what one counter of the powercap tree counted since the exporter began.
type Zone struct {
	ID      string // its directory, such as intel-rapl:0:1
	Name    string // package-0, core, dram, psys
	Counted bool   // it is part of the node's total
	Joules  float64
}

// Powercap measures the package and DRAM zones of a powercap tree, and shows the
// others: core and uncore are part of package, psys is beside all of them, and
// intel-rapl-mmio counts a package a second time, unless it is the only one to.
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
	for _, e := range entries { // sorted, so that intel-rapl-mmio: comes before intel-rapl:
		if z, ok := newZone(top, e.Name()); ok {
			p.zones = append(p.zones, z)
		}
	}
	for _, z := range p.zones {
		if z.counted = p.counts(z); !z.counted {
			continue
		}
		if _, err := z.read(); err != nil {
			return nil, fmt.Errorf("powercap: %w", err)
		}
	}
	if !slices.ContainsFunc(p.zones, func(z *zone) bool { return z.counted && z.isPackage() }) {
		return nil, fmt.Errorf("%w: no package zone below %s", collector.ErrUnsupported, top)
	}
	return p, nil
}

func newZone(top, id string) (*zone, bool) {
	if !strings.HasPrefix(id, "intel-rapl:") && !strings.HasPrefix(id, mmio) {
		return nil, false
	}
	dir := filepath.Join(top, id)
	data, err := hostfs.Read(filepath.Join(dir, "name"))
	if err != nil {
		return nil, false // a zone without a name is none
	}
	z := &zone{id: id, name: strings.TrimSpace(string(data)), path: filepath.Join(dir, "energy_uj")}
	// A zone whose range is unreadable is still good between two wraps.
	if data, err := hostfs.Read(filepath.Join(dir, "max_energy_range_uj")); err == nil {
		if wrap, err := hostfs.Number(data); err == nil {
			z.wrap = wrap
		}
	}
	return z, true
}

const mmio = "intel-rapl-mmio:"

func (z *zone) isPackage() bool { return strings.HasPrefix(z.name, "package") }

func (p *Powercap) counts(z *zone) bool {
	if !z.isPackage() && z.name != "dram" {
		return false
	}
	if !strings.HasPrefix(z.id, mmio) {
		return true
	}
	// Of two interfaces to one counter the first one counts.
	return !slices.ContainsFunc(p.zones, func(o *zone) bool {
		return !strings.HasPrefix(o.id, mmio) && (o.name == z.name || o.isPackage())
	})
}

// Zones lists what each zone counted, in the order of their directories.
func (p *Powercap) Zones() []Zone {
	out := make([]Zone, 0, len(p.zones))
	for _, z := range p.zones {
		out = append(out, Zone{ID: z.id, Name: z.name, Counted: z.counted, Joules: float64(z.total) / 1e6})
	}
	return out
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
	var uj uint64
	switch {
	case !seen:
		return 0, false, nil
	case now >= last:
		uj = now - last
	case z.wrap >= last:
		uj = z.wrap - last + now
	default: // its range is not known: what it counted since zero is a lower bound
		uj = now
	}
	z.total += uj
	return uj, true, nil
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

// Step reads the zones. Where one that counts cannot be read the interval has no
// total; the next one that can be read covers both. One that is only shown stands
// still meanwhile.
func (p *Powercap) Step(_ context.Context, a Activity) (Split, bool, error) {
	before := make([]zone, len(p.zones))
	for i, z := range p.zones {
		before[i] = *z
	}
	var uj uint64
	complete := true
	for _, z := range p.zones {
		d, ok, err := z.step()
		if err != nil && z.counted {
			for i, z := range p.zones {
				*z = before[i]
			}
			return Split{}, false, err
		}
		if z.counted {
			complete = complete && ok
			uj += d
		}
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

// zonesText names the zones that count, and behind a colon those that are shown.
func (p *Powercap) zonesText() string {
	var counted, shown []string
	for _, z := range p.zones {
		if z.counted {
			counted = append(counted, z.name)
		} else {
			shown = append(shown, z.name)
		}
	}
	slices.Sort(counted)
	slices.Sort(shown)
	text := strings.Join(counted, " ")
	if len(shown) > 0 {
		text += "; shown: " + strings.Join(shown, " ")
	}
	return text
}
