package sampler

import (
	"context"
	"maps"
	"time"

	"pitchpipe/exporter/collector/energy"
)

// patientMeter asks a meter on a lane of its own. What a reading that came too late has
// counted is told with the next one, so that no joule is lost.
type patientMeter struct {
	energy.Meter
	lane *lane
	base energy.Component // which never changes, and must not be asked of a meter that hangs
	owed *late

	zones []energy.Zone // as of the last answer, as the next two
	watts float64
	basis string
	idle  []energy.Calibration
}

func newPatient(m energy.Meter, l *lane) *patientMeter {
	return &patientMeter{Meter: m, lane: l, base: m.Base()}
}

// late is what a reading told that nobody waited for.
type late struct {
	of    energy.Activity
	split energy.Split
	ok    bool
}

var (
	_ energy.Meter      = (*patientMeter)(nil)
	_ energy.Zoned      = (*patientMeter)(nil)
	_ energy.Frequent   = (*patientMeter)(nil)
	_ energy.Calibrated = (*patientMeter)(nil)
)

// Step returns the joules since the last step that was answered in time. What it did not
// answer is an error.
func (m *patientMeter) Step(ctx context.Context, a energy.Activity) (energy.Split, bool, error) {
	if err := m.lane.stuck(); err != nil {
		return energy.Split{}, false, err
	}
	owed := m.owed
	m.owed = nil
	if owed != nil {
		a = less(a, owed.of)
	}
	now := &late{of: a}
	var failed error
	if err := m.lane.do(func() { now.split, now.ok, failed = m.Meter.Step(ctx, a) }); err != nil {
		m.lane.then(func() {
			if failed == nil && now.ok {
				m.owed = now
			}
			if owed != nil {
				m.owed = &late{of: more(owed.of, a, m.owed != nil), split: both(owed.split, now.split), ok: true}
			}
		})
		return energy.Split{}, false, err
	}
	if owed == nil {
		return now.split, now.ok, failed
	}
	if failed != nil {
		m.owed = owed
		return energy.Split{}, false, failed
	}
	return both(owed.split, now.split), true, nil
}

// less is what is left of an activity beside one that is accounted for.
func less(a, b energy.Activity) energy.Activity {
	a.Elapsed, a.Busy, a.GPUs = max(a.Elapsed-b.Elapsed, 0), max(a.Busy-b.Busy, 0), max(a.GPUs-b.GPUs, 0)
	a.Packages = maps.Clone(a.Packages)
	for pkg, cores := range a.Packages {
		cores.Busy = max(cores.Busy-b.Packages[pkg].Busy, 0)
		a.Packages[pkg] = cores
	}
	return a
}

// more is two activities, of which the second may not count.
func more(a, b energy.Activity, counts bool) energy.Activity {
	if !counts {
		return a
	}
	b.Elapsed, b.Busy, b.GPUs = a.Elapsed+b.Elapsed, a.Busy+b.Busy, a.GPUs+b.GPUs
	b.Packages = maps.Clone(b.Packages)
	for pkg, cores := range b.Packages {
		cores.Busy += a.Packages[pkg].Busy
		b.Packages[pkg] = cores
	}
	return b
}

func both(a, b energy.Split) energy.Split {
	parts := make([]energy.Part, 0, len(a.Parts)+len(b.Parts))
	return energy.Split{
		Total: a.Total + b.Total, Idle: a.Idle + b.Idle, Parts: append(append(parts, a.Parts...), b.Parts...),
		WithGPUs: a.WithGPUs || b.WithGPUs,
	}
}

// Base is what the meter counts beside DRAM.
func (m *patientMeter) Base() energy.Component { return m.base }

// Within is 0 where the meter can wait for the ticks.
func (m *patientMeter) Within() time.Duration {
	if f, ok := m.Meter.(energy.Frequent); ok {
		return f.Within()
	}
	return 0
}

// Refresh reads a meter that cannot wait for the next step.
func (m *patientMeter) Refresh(ctx context.Context, elapsed time.Duration) error {
	f, ok := m.Meter.(energy.Frequent)
	if !ok {
		return nil
	}
	var failed error
	if err := m.lane.do(func() { failed = f.Refresh(ctx, elapsed) }); err != nil {
		return err
	}
	return failed
}

// Zones, IdleWatts and Calibrations are those of the last answer while none comes.
func (m *patientMeter) Zones() []energy.Zone {
	if z, ok := m.Meter.(energy.Zoned); ok && m.lane.stuck() == nil {
		m.zones = z.Zones()
	}
	return m.zones
}

// IdleWatts is what the node takes without work.
func (m *patientMeter) IdleWatts() (watts float64, basis string) {
	if m.lane.stuck() == nil {
		m.watts, m.basis = m.Meter.IdleWatts()
	}
	return m.watts, m.basis
}

// Calibrations are what the meter has learned.
func (m *patientMeter) Calibrations() []energy.Calibration {
	if c, ok := m.Meter.(energy.Calibrated); ok && m.lane.stuck() == nil {
		m.idle = c.Calibrations()
	}
	return m.idle
}

// Recall takes what an earlier exporter learned.
func (m *patientMeter) Recall(known []energy.Calibration) {
	if c, ok := m.Meter.(energy.Calibrated); ok {
		c.Recall(known)
	}
}
