package energy

import (
	"errors"
	"fmt"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/perf"
	"pitchpipe/exporter/hostfs"
)

// Config says what may be read, and what is computed where nothing can be.
type Config struct {
	Root    hostfs.Root
	Opener  perf.Opener // of the power PMU's events
	Model   Model
	Sensors Sensors // of the board, that count
}

// Found is the meter of a node.
type Found struct {
	Meter   Meter
	Sources []api.Source // all that were tried, with the means or the reason
}

// Find takes one meter, so that nothing is counted twice: the first that there is of the power
// PMU, powercap, the node's own controller, the board's sensors, and the model. Powercap comes
// before the PMU only if it counts a component that the PMU does not. A source that does not
// answer, such as a sensor behind a controller of the board, is skipped. The caller calls
// Meter.Close.
func Find(c Config) (*Found, error) {
	tries := []struct {
		name string
		open func() (*Measured, error)
	}{
		{PerfPower, func() (*Measured, error) { return NewPerfPower(c.Root, c.Opener, c.Model) }},
		{RAPL, func() (*Measured, error) { return NewPowercap(c.Root, c.Model) }},
		{BMC, func() (*Measured, error) { return NewPMCounters(c.Root, c.Model) }},
		{HWMon, func() (*Measured, error) { return NewHWMon(c.Root, c.Sensors, c.Model) }},
	}
	f := &Found{}
	var best *Measured
	var errs []error
	for _, try := range tries {
		m, err := collector.Ask("energy/"+try.name, try.open)
		if errors.Is(err, collector.ErrSilent) {
			err = fmt.Errorf("%w; it is not used until the exporter is restarted", err)
		}
		s := collector.Source("energy/"+try.name, "", err)
		if err == nil {
			s.Reason = m.means()
			if best == nil || best.source == PerfPower && m.source == RAPL && len(m.counted) > len(best.counted) {
				best, m = m, best
			}
			if m != nil {
				errs = append(errs, m.Close())
			}
		}
		f.Sources = append(f.Sources, s)
	}
	f.Sources = append(f.Sources, api.Source{Name: "energy/" + Modelled, Support: api.Supported, Reason: c.Model.String()})
	if f.Meter = best; best == nil {
		f.Meter = NewModeller(c.Model)
	}
	return f, errors.Join(errs...)
}

// Parts names the source of each component of a job's joules on this node; gpus reports
// whether those of graphics cards are part of them.
func (f *Found) Parts(gpus bool) map[string]string {
	source := f.Meter.Source()
	out := map[string]string{string(f.Meter.Base()): source}
	if m, ok := f.Meter.(*Measured); ok && m.has(DRAM) {
		out[string(DRAM)] = source
	}
	if gpus {
		out[GPU] = GPU
	}
	return out
}
