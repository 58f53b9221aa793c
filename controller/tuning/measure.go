package tuning

import (
	"cmp"
	"math"
)

// Measure is what is minimised: an objective with what it takes to count it.
type Measure struct {
	Objective Objective `json:"objective"`
	Weight    float64   `json:"weight"`          // share of energy in Blend, 0 to 1
	Tariff    Tariff    `json:"tariff,omitzero"` // prices of Cost and SearchTime
}

// Measure is what the policy minimises.
func (p Policy) Measure() Measure {
	if s := p.TrialOf; s != nil && s.Share.Cores > 0 && p.Objective == Time {
		return Measure{Objective: SearchTime, Tariff: s.Share.tariff()}
	}
	return Measure{p.Objective, p.Weight, p.Prices()}
}

// Prices are those of the site. Policies of older records have none.
func (p Policy) Prices() Tariff { return cmp.Or(p.Tariff, DefaultTariff()) }

// Priced reports whether the measure is a price by Tariff.
func (m Measure) Priced() bool { return m.Objective == Cost || m.Objective == SearchTime }

// Weights are those of ln(joules) and ln(seconds). A price has those of Time, with which it grows.
func (m Measure) Weights() (joules, seconds float64) {
	switch m.Objective {
	case Energy:
		return 1, 0
	case EDP:
		return 1, 1
	case Blend:
		w := min(max(m.Weight, 0), 1)
		return w, 1 - w
	case Time, Cost, SearchTime:
	}
	return 0, 1
}

// NeedsJoules reports whether nothing can be compared without joules.
func (m Measure) NeedsJoules() bool {
	if m.Priced() {
		return m.Tariff.CoreHour == 0 && m.Tariff.GiBHour == 0 && m.Tariff.GPUHour == 0
	}
	joules, _ := m.Weights()
	return joules > 0
}

// Degree is the exponent of the measure's growth with work.
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

// Spent is what work took; joules are NaN where they were not measured.
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
	if m.Priced() {
		return LogOf(a.Price)
	}
	wj, ws := m.Weights()
	v := 0.0
	if wj > 0 {
		v += wj * LogOf(a.Joules)
	}
	if ws > 0 {
		v += ws * LogOf(a.Seconds)
	}
	return v
}

// LogOf is the natural logarithm of v; +Inf if v is not above 0.
func LogOf(v float64) float64 {
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
	joules := t.JoulesRatio(reference)
	if m.Priced() {
		if math.IsNaN(joules) || !m.Tariff.Charges(t.Source) {
			m = m.WithoutEnergy()
		}
		v := m.Log(m.spent(t)) - m.Log(m.spent(reference))
		return v, Finite(v)
	}
	wj, ws := m.Weights()
	v := ws * math.Log(t.Seconds/reference.Seconds)
	if wj > 0 {
		v += wj * joules
	}
	return v, Finite(v)
}

// JoulesRatio is the same of the joules alone; NaN where they cannot be compared.
func (t Trial) JoulesRatio(reference Trial) float64 {
	if t.Joules == nil || reference.Joules == nil || t.Source != reference.Source || !(*t.Joules > 0) || !(*reference.Joules > 0) {
		return math.NaN()
	}
	return math.Log(float64(*t.Joules / *reference.Joules))
}

func (m Measure) spent(t Trial) Spent {
	joules := math.NaN()
	if t.Joules != nil {
		joules = float64(*t.Joules)
	}
	return m.Spent(t.Seconds, joules, t.Settings)
}

// Tariff is what a job is charged by the hour for what it asks for, and for the joules that it
// uses.
type Tariff struct {
	CoreHour float64 `json:"core_hour,omitempty"`
	GiBHour  float64 `json:"gib_hour,omitempty"` // of memory
	GPUHour  float64 `json:"gpu_hour,omitempty"`
	KWh      float64 `json:"kwh,omitempty"`
	Unit     string  `json:"unit"`            // of the prices, such as EUR
	Least    float64 `json:"least,omitempty"` // of SearchTime: what an hour costs at least
	Slack    float64 `json:"slack,omitempty"` // of SearchTime: see Share

	// Hour is the price of an hour of a job that holds the same whatever it asks for, such
	// as whole nodes, in place of the prices above; 0 = it holds what it asks for.
	Hour float64 `json:"hour,omitempty"`
	// Dearest charges for that one of cores, memory and GPUs which costs most, not for
	// their sum, as PriorityFlags=MAX_TRES of Slurm does.
	Dearest  bool `json:"dearest,omitempty"`
	Billed   bool `json:"billed,omitempty"`   // stands for what the scheduler says that it bills
	Modelled bool `json:"modelled,omitempty"` // charges for modelled joules too
}

// DefaultTariff is that of a site without prices: a core-hour costs 1.
func DefaultTariff() Tariff { return Tariff{CoreHour: 1, Unit: "core-hours"} }

// Rate is the price of an hour under settings s, energy left out.
func (t Tariff) Rate(s Settings) float64 {
	if t.Hour > 0 {
		return t.Hour
	}
	cores, memory, gpus := t.CoreHour*s[Cores].Float(), t.GiBHour*s[Memory].Float()/(1<<30), t.GPUHour*s[GPUs].Float()
	switch {
	case t.Dearest:
		return max(cores, memory, gpus)
	case t.Least > 0: // between the bounds of R. L. Graham, "Bounds on multiprocessing timing anomalies" (1969)
		held := min(max(cores, t.Least), 1) // more cores than there are make no others wait
		return held + (1-held)*t.Slack/2
	}
	return cores + memory + gpus
}

// Price is what so many seconds and joules cost; NaN where energy has a price and joules are NaN.
func (t Tariff) Price(seconds, joules float64, s Settings) float64 {
	price := t.Rate(s) * seconds / 3600
	if t.KWh > 0 {
		price += t.KWh * joules / 3.6e6
	}
	return price
}

// Charges reports whether joules of this source have a price.
func (t Tariff) Charges(source string) bool {
	return t.KWh > 0 && (!IsModelled(source) || t.Modelled) && !IsPart(source)
}

// WithoutEnergy is the tariff with energy free.
func (t Tariff) WithoutEnergy() Tariff {
	t.KWh = 0
	return t
}

// Fixed is the tariff of a job that holds as much as under s, whatever it asks for.
func (t Tariff) Fixed(s Settings) Tariff {
	t.Hour = t.Rate(s)
	return t
}
