package energy

import (
	"context"
	"time"
)

// Names of the sources, as api.Node.EnergySource has them.
const (
	PerfPower = "perf-power" // RAPL through the kernel's power PMU
	RAPL      = "rapl"       // RAPL through the powercap tree
	BMC       = "bmc"        // the node's own controller: Cray's pm_counters
	HWMon     = "hwmon"      // power sensors of the board
	GPU       = "gpu"        // of the graphics cards' part
	Modelled  = "modelled"
)

// Component is what a counter counts.
type Component string

// The components that count. A counter without one is shown and not counted.
const (
	Package Component = "package" // cores and caches of a socket
	DRAM    Component = "dram"
	Node    Component = "node" // the whole machine
)

// Whole is the package number of what belongs to no one socket.
const Whole = -1

// Activity is what the node's cores did in an interval, in seconds of all cores together.
type Activity struct {
	Elapsed time.Duration
	At      time.Time // its end; zero = unknown
	Busy    float64
	Cores   int
	// Packages are the same by the number of the socket; nil = unknown.
	Packages map[int]Cores
	// GPUs are the joules of all graphics cards in the interval. A meter that counts the
	// cards too subtracts them.
	GPUs float64
	// Guessed means that GPUs is a guess: nothing can be learned from it.
	Guessed bool
}

// Cores is what the cores of one package did.
type Cores struct {
	Busy  float64
	Count int
}

// share is the part of the cores that was busy, 0 to 1.
func (a Activity) share(c Cores) float64 {
	all := a.Elapsed.Seconds() * float64(c.Count)
	if all <= 0 {
		return 0
	}
	return min(max(c.Busy/all, 0), 1)
}

// of returns what the cores of a package did.
func (a Activity) of(pkg int) Cores {
	if c, ok := a.Packages[pkg]; ok && pkg != Whole {
		return c
	}
	return Cores{a.Busy, a.Cores}
}

// Part is the joules of one component of one package in an interval.
type Part struct {
	Component Component
	Package   int // Whole = of all sockets together
	Total     float64
	Idle      float64 // what it would have taken without work, at most Total
}

// Split is the joules of one interval.
type Split struct {
	Total float64
	Idle  float64 // what the node would have taken without work, at most Total
	Parts []Part  // that sum to both
	// Lacks means that some of its energy is unknown for good: a sum lacks it from now on.
	Lacks bool
	// WithGPUs means that the meter counts the graphics cards too, and that Activity.GPUs
	// was subtracted.
	WithGPUs bool
}

// Active returns the joules above idle.
func (s Split) Active() float64 { return s.Total - s.Idle }

func split(parts []Part) Split {
	s := Split{Parts: parts}
	for _, p := range parts {
		s.Total, s.Idle = s.Total+p.Total, s.Idle+p.Idle
	}
	return s
}

// Meter knows the energy of the node. Read may hang, where a file of the kernel does; the
// caller calls no other method meanwhile.
type Meter interface {
	// Source is PerfPower, RAPL, BMC, HWMon or Modelled.
	Source() string
	// Base is what it counts besides DRAM: Package or Node. It never changes.
	Base() Component
	// Within is the longest time that it may go unread; 0 = any.
	Within() time.Duration
	// Read updates its counters; elapsed is the time since the last call. An error concerns
	// counters that did not move: the next reading has what they missed.
	Read(ctx context.Context, elapsed time.Duration) error
	// Settle returns the joules since the last call, as of the last reading. ok is false for
	// the first call.
	Settle(a Activity) (s Split, ok bool)
	// Zones are what single counters show; nil = it has none.
	Zones() []Zone
	// IdleWatts is the power of the node without work, and how the meter knows.
	IdleWatts() (watts float64, basis string)
	// Calibrations are what it learned of the node without work. Recall takes what an
	// earlier exporter learned.
	Calibrations() []Calibration
	Recall(known []Calibration)
	// Close closes what it holds open.
	Close() error
}

// Zone is what one counter counted since the exporter began.
type Zone struct {
	ID      string // its directory, such as intel-rapl:0:1, or its event
	Name    string // package-0, core, dram, psys
	Counted bool   // it is part of the node's total
	Joules  float64
}
