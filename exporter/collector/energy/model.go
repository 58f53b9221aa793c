package energy

import (
	"cmp"
	"errors"
	"fmt"
	"math"
)

// Model is a machine whose power is linear in its busy share. Two parameters
// predict a server's power within some ten percent (Fan, Weber, Barroso: Power
// provisioning for a warehouse-sized computer, 2007), averaged over time.
type Model struct {
	Idle float64 // watts without work
	Max  float64 // watts with all cores busy
}

// DefaultModel guesses a server from its cores: 20 W and 1.5 W a core idle, 6 W
// more for each busy core. A site that knows better sets flags.
func DefaultModel(cores int) Model {
	n := float64(max(cores, 1))
	return Model{Idle: 20 + 1.5*n, Max: 20 + 7.5*n}
}

// ErrModel means that the parameters describe no machine.
var ErrModel = errors.New("energy model")

// Or fills parameters that are 0 from other.
func (m Model) Or(other Model) (Model, error) {
	m.Idle = cmp.Or(m.Idle, other.Idle)
	m.Max = cmp.Or(m.Max, max(other.Max, m.Idle))
	if !(m.Idle >= 0 && m.Max >= m.Idle) || math.IsInf(m.Max, 0) {
		return m, fmt.Errorf("%w: want 0 <= idle <= max, got idle %g W and max %g W", ErrModel, m.Idle, m.Max)
	}
	return m, nil
}

// Modeller is the meter of a Model. It has no counters.
type Modeller struct {
	Measured

	model Model
	carry float64 // busy seconds that did not fit their interval
}

// NewModeller returns a meter.
func NewModeller(m Model) *Modeller {
	return &Modeller{model: m, Measured: Measured{source: Modelled}}
}

// Base is the machine.
func (m *Modeller) Base() Component { return Node }

// IdleWatts is the parameter.
func (m *Modeller) IdleWatts() (watts float64, basis string) { return m.model.Idle, basisModelled }

// Settle computes the interval. Busy time is counted in ticks, so a short interval can seem
// busier than there are cores; the excess counts in the next.
func (m *Modeller) Settle(a Activity) (Split, bool) {
	if a.Elapsed <= 0 {
		return Split{}, false
	}
	all := a.Elapsed.Seconds() * float64(a.Cores)
	busy := max(a.Busy, 0) + m.carry
	m.carry = min(max(busy-all, 0), float64(a.Cores)) // at most a second of each core
	idle := m.model.Idle * a.Elapsed.Seconds()
	active := (m.model.Max - m.model.Idle) * a.share(Cores{busy, a.Cores}) * a.Elapsed.Seconds()
	return split([]Part{{Component: Node, Package: Whole, Total: idle + active, Idle: idle}}), true
}
