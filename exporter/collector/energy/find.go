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

// Find returns the meter that this node's joules come from, which is one alone, so that
// nothing is counted twice; and what is to be said about each source: by what means it
// counts, or why it is unsupported or denied. The order is the power PMU, powercap, the
// node's own controller, the board's sensors, and the model. Powercap comes before the
// PMU only where it counts a component that the PMU does not. One that does not answer, as
// a sensor behind a controller of the board may not, is not taken: what comes after it is.
// Close what is returned.
func Find(c Config) (*Found, error) {
	pmu, pmuErr := ask(PerfPower, func() (*Measured, error) { return NewPerfPower(c.Root, c.Opener, c.Model) })
	rapl, raplErr := ask(RAPL, func() (*Measured, error) { return NewPowercap(c.Root, c.Model) })
	bmc, bmcErr := ask(BMC, func() (*Measured, error) { return NewPMCounters(c.Root, c.Model) })
	hwmon, hwmonErr := ask(HWMon, func() (*Measured, error) { return NewHWMon(c.Root, c.Sensors, c.Model) })
	candidates := []*Measured{pmu, rapl, bmc, hwmon}
	if pmu != nil && rapl != nil && rapl.parts() > pmu.parts() {
		candidates[0], candidates[1] = rapl, pmu
	}
	f := &Found{Meter: NewModeller(c.Model)}
	f.Sources = []api.Source{
		answer(PerfPower, pmu, pmuErr), answer(RAPL, rapl, raplErr), answer(BMC, bmc, bmcErr), answer(HWMon, hwmon, hwmonErr),
		{Name: "energy/" + Modelled, Support: api.Supported, Reason: c.Model.String()},
	}
	var errs []error
	for _, m := range candidates {
		switch {
		case m == nil:
		case f.measured == nil:
			f.measured, f.Meter = m, m
		default:
			errs = append(errs, m.Close())
		}
	}
	return f, errors.Join(errs...)
}

// ask opens a meter, which reads it. One that comes too late is closed.
func ask(name string, open func() (*Measured, error)) (*Measured, error) {
	w := collector.NewWorker(name)
	var m *Measured
	var failed error
	if w.DoWithin(collector.Patience, func() { m, failed = open() }) != nil {
		w.Then(func() {
			if m != nil {
				_ = m.Close() // it is not used
			}
		})
		return nil, fmt.Errorf("energy/%s: %w; it is not used until the exporter is restarted", name, collector.ErrSilent)
	}
	return m, failed
}

// Found is the meter of a node.
type Found struct {
	Meter   Meter
	Sources []api.Source

	measured *Measured
}

// Close lets go of what the meter holds.
func (f *Found) Close() error {
	if f.measured == nil {
		return nil
	}
	return f.measured.Close()
}

// Parts names the source of each component that the joules of a job on this node are made
// of; gpus reports whether those of graphics cards are.
func (f *Found) Parts(gpus bool) map[string]string {
	source := f.Meter.Source()
	out := map[string]string{string(f.Meter.Base()): source}
	if f.measured != nil {
		for _, c := range f.measured.reader.counters() {
			if c.component == DRAM {
				out[string(DRAM)] = source
			}
		}
	}
	if gpus {
		out[GPU] = GPU
	}
	return out
}

func answer(name string, m *Measured, err error) api.Source {
	s := collector.Source("energy/"+name, "", err)
	if err == nil {
		s.Reason = m.means()
	}
	return s
}
