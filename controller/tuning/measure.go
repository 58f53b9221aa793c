package tuning

import (
	"cmp"
	"math"
)

// Measure is what is minimised: an objective with what it takes to count it.
type Measure struct {
	Objective Objective `json:"objective"`
	Weight    float64   `json:"weight"`          // share of energy in Blend, 0 to 1
	Tariff    Tariff    `json:"tariff,omitzero"` // prices of Cost
}

// Policies of older records have no tariff.
func (p Policy) Measure() Measure {
	return Measure{p.Objective, p.Weight, cmp.Or(p.Tariff, DefaultTariff())}
}

// Cost is no such sum: it has the weights of Time, with which it grows.
func (m Measure) Weights() (joules, seconds float64) {
	switch m.Objective {
	case Energy:
		return 1, 0
	case EDP:
		return 1, 1
	case Blend:
		w := min(max(m.Weight, 0), 1)
		return w, 1 - w
	case Time, Cost:
	}
	return 0, 1
}

// NeedsJoules reports whether nothing can be compared without joules.
func (m Measure) NeedsJoules() bool {
	if m.Objective == Cost {
		return m.Tariff.isFree()
	}
	joules, _ := m.Weights()
	return joules > 0
}

// Degree is the power to which the measure grows with work.
func (m Measure) Degree() float64 {
	joules, seconds := m.Weights()
	return joules + seconds
}

// WithoutEnergy is the measure where joules are not known: energy is free in Cost.
func (m Measure) WithoutEnergy() Measure {
	m.Tariff = m.Tariff.WithoutEnergy()
	return m
}

// Spent is what work took.
type Spent struct {
	Seconds float64
	Joules  float64 // NaN: not measured
	Price   float64 // by a tariff; NaN: not known
}

// joules are NaN where they were not measured.
func (m Measure) Spent(seconds, joules float64, s Settings) Spent {
	return Spent{seconds, joules, m.Tariff.Price(seconds, joules, s)}
}

// Plus adds what other work took.
func (a Spent) Plus(b Spent) Spent {
	return Spent{a.Seconds + b.Seconds, a.Joules + b.Joules, a.Price + b.Price}
}

// Times is what so many times the work took.
func (a Spent) Times(n float64) Spent { return Spent{n * a.Seconds, n * a.Joules, n * a.Price} }

// Log is the natural logarithm of what is minimised; +Inf where a number is missing.
func (m Measure) Log(a Spent) float64 {
	if m.Objective == Cost {
		return logOf(a.Price)
	}
	wj, ws := m.Weights()
	v := 0.0
	if wj > 0 {
		v += wj * logOf(a.Joules)
	}
	if ws > 0 {
		v += ws * logOf(a.Seconds)
	}
	return v
}

func logOf(v float64) float64 {
	if !(v > 0) {
		return math.Inf(1)
	}
	return math.Log(v)
}

// LogRatio is how much better (below 0) or worse the trial is per epoch. Not ok: a needed number is
// missing, or the joules come from different sources; energy is then free in Cost.
func (t Trial) LogRatio(reference Trial, m Measure) (float64, bool) {
	if t.Failed || reference.Failed || !(t.Seconds > 0) || !(reference.Seconds > 0) {
		return 0, false
	}
	alike := t.Joules != nil && reference.Joules != nil && t.Source == reference.Source && *t.Joules > 0 && *reference.Joules > 0
	if m.Objective == Cost {
		if !alike || !m.Tariff.Charges(t.Source) {
			m = m.WithoutEnergy()
		}
		v := m.Log(m.spent(t)) - m.Log(m.spent(reference))
		return v, !math.IsInf(v, 0) && !math.IsNaN(v)
	}
	wj, ws := m.Weights()
	v := ws * math.Log(t.Seconds/reference.Seconds)
	if wj > 0 {
		if !alike {
			return 0, false
		}
		v += wj * math.Log(float64(*t.Joules / *reference.Joules))
	}
	return v, !math.IsInf(v, 0) && !math.IsNaN(v)
}

func (m Measure) spent(t Trial) Spent {
	joules := math.NaN()
	if t.Joules != nil {
		joules = float64(*t.Joules)
	}
	return m.Spent(t.Seconds, joules, t.Settings)
}
