package energy

import (
	"errors"
	"fmt"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/perf"
	"pitchpipe/exporter/hostfs"
)

// Found is the meter of a node.
type Found struct {
	Meter   Meter
	Sources []api.Source // all that were tried, with the means or the reason
}

// Find takes one meter, so that nothing is counted twice: the first that there is of the power
// PMU, powercap, the node's own controller, the board's sensors, and the model. Powercap comes
// before the PMU only if it counts a component that the PMU does not. A source that does not
// answer, such as a sensor behind a controller of the board, is skipped. The opener is of the
// power PMU's events, and sensors are those of the board that count. The caller calls Meter.Close.
func Find(root hostfs.Root, opener perf.Opener, model Model, sensors Sensors) (*Found, error) {
	tries := []struct {
		name string
		open func() (*Measured, error)
	}{
		{PerfPower, func() (*Measured, error) { return NewPerfPower(root, opener, model) }},
		{RAPL, func() (*Measured, error) { return NewPowercap(root, model) }},
		{BMC, func() (*Measured, error) { return NewPMCounters(root, model) }},
		{HWMon, func() (*Measured, error) { return NewHWMon(root, sensors, model) }},
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
	means := fmt.Sprintf("idle %g W, all cores busy %g W", model.Idle, model.Max)
	f.Sources = append(f.Sources, api.Source{Name: "energy/" + Modelled, Support: api.Supported, Reason: means})
	if f.Meter = best; best == nil {
		f.Meter = NewModeller(model)
	}
	return f, errors.Join(errs...)
}
