package energy

import "time"

// How the power without work is known, from the weakest on.
const (
	basisModelled   = "modelled"   // the model's parameter
	basisObserved   = "observed"   // an interval took less than that
	basisCalibrated = "calibrated" // measured while nothing ran
)

const (
	// calmShare is the part of a package's cores that may be busy while it counts as
	// without work: the exporter itself and the system's housekeeping.
	calmShare = 0.01
	// calmFor is how long it has to last to be a calibration.
	calmFor = 10 * time.Second
	// calmAge is the age from which on a higher calibration replaces a lower one: fans,
	// firmware and memory change.
	calmAge = 24 * time.Hour
	// Shorter intervals are no more than a counter's own granularity: they are added up.
	shortest = 500 * time.Millisecond
)

// Calibration is what one counter took without work.
type Calibration struct {
	ID    string    `json:"id"` // of the counter
	Watts float64   `json:"watts"`
	At    time.Time `json:"at,omitzero"` // when it was measured
}

// idle learns what one counter's part takes without work.
type idle struct {
	model  float64 // watts that are assumed until something better is known
	lowest float64 // of an interval so far, 0 = none yet

	known bool
	watts float64
	at    time.Time

	joules float64 // of the calm so far
	calm   time.Duration

	taken, busy float64 // joules, and seconds times the busy share, of short intervals so far
	span        time.Duration
}

// add takes an interval in which that share of the cores was busy.
func (i *idle) add(joules, busyShare float64, a Activity) {
	i.taken, i.busy, i.span = i.taken+joules, i.busy+busyShare*a.Elapsed.Seconds(), i.span+a.Elapsed
	if i.span < shortest {
		return
	}
	busyShare, watts := i.busy/i.span.Seconds(), i.taken/i.span.Seconds()
	if watts > 0 && (i.lowest == 0 || watts < i.lowest) {
		i.lowest = watts
	}
	if watts <= 0 || busyShare > calmShare {
		i.stir()
		return
	}
	i.joules, i.calm = i.joules+i.taken, i.calm+i.span
	i.taken, i.busy, i.span = 0, 0, 0
	if i.calm < calmFor {
		return
	}
	watts = i.joules / i.calm.Seconds()
	i.stir()
	if !i.known || watts < i.watts || a.At.Sub(i.at) > calmAge {
		i.known, i.watts, i.at = true, watts, a.At
	}
}

func (i *idle) stir() { i.joules, i.calm, i.taken, i.busy, i.span = 0, 0, 0, 0, 0 }

// now returns the idle watts of the part, and how they are known.
func (i *idle) now() (watts float64, basis string) {
	switch {
	case i.known:
		return i.watts, basisCalibrated
	case i.lowest > 0 && i.lowest < i.model:
		return i.lowest, basisObserved
	default:
		return i.model, basisModelled
	}
}
