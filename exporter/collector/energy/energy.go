package energy

import (
	"context"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
)

// Names of the sources, as api.Node.EnergySource has them.
const (
	RAPL     = "rapl"
	Modelled = "modelled"
)

// Activity is what the node's cores did in an interval, in seconds of all cores
// together.
type Activity struct {
	Elapsed time.Duration
	Busy    float64
	Cores   int
}

// BusyShare is the part of the cores that was busy, 0 to 1.
func (a Activity) BusyShare() float64 {
	all := a.Elapsed.Seconds() * float64(a.Cores)
	if all <= 0 {
		return 0
	}
	return min(max(a.Busy/all, 0), 1)
}

// Split is the joules of one interval.
type Split struct {
	Total float64
	Idle  float64 // what the node would have taken without work, at most Total
}

// Active is what the work took.
func (s Split) Active() float64 { return s.Total - s.Idle }

// Meter tells the energy of the node interval by interval.
type Meter interface {
	// Source is RAPL or Modelled.
	Source() string
	// Step returns the joules since the last step. ok is false for the first one of
	// a meter that measures, and where it could not be read.
	Step(ctx context.Context, a Activity) (s Split, ok bool, err error)
	// IdleWatts is what the meter takes for the node without work, and how it knows.
	IdleWatts() (watts float64, basis string)
}

// Zoned is a meter that reads several counters.
type Zoned interface {
	Zones() []Zone
}

// Probe answers for each source and says what is missing.
func Probe(r *Powercap, err error, m Model) []api.Source {
	rapl := collector.Source("energy/rapl", "", err)
	if err == nil {
		rapl.Reason = r.zonesText()
	}
	return []api.Source{rapl, {Name: "energy/modelled", Support: api.Supported, Reason: m.String()}}
}
