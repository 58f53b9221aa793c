package tuning

import (
	"cmp"
	"math"
	"time"
)

// Measure is what is minimised: an objective with what it takes to count it.
type Measure struct {
	Objective Objective `json:"objective"`
	Weight    float64   `json:"weight"`          // share of energy in Blend, 0 to 1
	Tariff    Tariff    `json:"tariff,omitzero"` // prices of Cost
}

// Measure is what the policy minimises. Policies of older records have no tariff.
func (p Policy) Measure() Measure {
	return Measure{p.Objective, p.Weight, cmp.Or(p.Tariff, DefaultTariff())}
}

// Weights are those of ln(joules) and ln(seconds). Cost has those of Time, with which it grows.
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
		return m.Tariff.CoreHour == 0 && m.Tariff.GiBHour == 0 && m.Tariff.GPUHour == 0
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
	if m.Objective == Cost {
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

// LogOf is the natural logarithm; +Inf of what is not above 0.
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
	if m.Objective == Cost {
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
	Unit     string  `json:"unit"` // of the prices, such as EUR

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
	if t.Dearest {
		return max(cores, memory, gpus)
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
func (t Tariff) Charges(source string) bool { return t.KWh > 0 && (source != Modelled || t.Modelled) }

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

// Toll is what tuning cost a job so far against the same epochs under its owner's settings. Every
// epoch counts, disturbed or not, ended or not. Below 0 it saved.
type Toll struct {
	Seconds float64 `json:"seconds"`
	Joules  *Joules `json:"joules,omitempty"` // nil: unknown, since an epoch of it or of the reference has none
	Source  string  `json:"source,omitempty"` // of Joules

	// Epochs is the toll in the objective, counted in epochs under the owner's settings.
	// Harm leaves out what settings saved: it is what tuning lost where it did not work out.
	Epochs float64 `json:"epochs"`
	Harm   float64 `json:"harm"`

	Own  float64 `json:"own_seconds"`    // seconds of an epoch under the owner's settings
	Kind bool    `json:"kind,omitempty"` // Own is that of other runs of the kind, not of this job

	Present Present `json:"present,omitzero"` // the attempt under way, where it is not under the owner's settings
}

// Present is what an attempt under other settings than the owner's took so far.
type Present struct {
	Epochs    float64 `json:"epochs"`    // its part of the toll
	Done      int     `json:"done"`      // epochs that ended
	Disturbed int     `json:"disturbed"` // of these, by other work on the node
	Seconds   float64 `json:"seconds"`   // of these
	Running   float64 `json:"running"`   // seconds that the running epoch has taken
}

// Pace is how many times as long an epoch of the present attempt takes at least. The running epoch
// counts once it makes the pace worse.
func (t Toll) Pace() float64 {
	p, pace := t.Present, 0.0
	if p.Done > 0 {
		pace = p.Seconds / float64(p.Done)
	}
	return max(pace, (p.Seconds+p.Running)/float64(p.Done+1)) / t.Own
}

// Course is what a Toll is made of.
type Course struct {
	Policy    Policy
	Own       Settings
	Current   Settings
	Attempt   int                    // the present one
	Reference Trial                  // what an epoch takes under Own
	Kind      bool                   // Reference is that of other runs of the kind
	Epochs    []Epoch                // of all attempts, by attempt and number; cut ones included
	Ours      func(attempt int) bool // reports whether tuning began the attempt
	Started   time.Time              // of the present attempt
	Running   bool                   // the present attempt runs: an epoch is under way
	Heard     time.Time              // since when ended epochs of that are reported; zero: some may have ended unreported
	Now       time.Time
}

// Toll adds up the course; nil: the reference is unknown.
func (c Course) Toll() *Toll {
	if !(c.Reference.Seconds > 0) {
		return nil
	}
	t := ledger{Course: c, restart: c.Policy.Measure().Degree(), out: Toll{Kind: c.Kind, Own: c.Reference.Seconds}, settings: map[string]float64{}}
	if j := c.Reference.Joules; j != nil && *j > 0 {
		t.out.Joules, t.out.Source = new(Joules), c.Reference.Source
	}
	var last *Epoch
	for i := range c.Epochs {
		e := &c.Epochs[i]
		first := last == nil || last.Attempt != e.Attempt
		if last != nil && first {
			t.gap(e.Attempt, e.Start.Sub(last.End))
		}
		t.epoch(*e, first)
		last = e
	}
	t.running(last)
	for _, v := range t.settings {
		t.out.Epochs += v
		t.out.Harm += max(v, 0)
	}
	t.out.Epochs += t.restarts
	t.out.Harm += t.restarts
	return &t.out
}

type ledger struct {
	Course
	restart  float64 // factors of the objective that a second without work counts in
	restarts float64 // epochs that restarts cost
	settings map[string]float64
	out      Toll
}

func (t *ledger) gap(attempt int, d time.Duration) {
	if !t.Ours(attempt) || d <= 0 {
		return
	}
	n := d.Seconds() / t.Reference.Seconds
	t.restarts += t.restart * n
	t.add(d.Seconds(), n)
}

func (t *ledger) add(seconds, epochs float64) {
	t.out.Seconds += seconds
	if t.out.Joules != nil {
		*t.out.Joules += Joules(epochs) * *t.Reference.Joules
	}
}

// A cut epoch did no work.
func (t *ledger) epoch(e Epoch, first bool) {
	home := e.Settings.Equal(t.Own)
	if home && !(first && e.Attempt > 1 && t.Ours(e.Attempt)) {
		return
	}
	loss := t.loss(e)
	if e.Cut {
		loss++
	}
	if home {
		t.restarts += max(loss, 0) // it loads what it saved
	} else {
		t.settings[e.Settings.Key()] += loss
	}
	work := 1.0
	if e.Cut {
		work = 0
	}
	t.out.Seconds += e.Seconds() - work*t.Reference.Seconds
	if t.out.Joules != nil {
		if e.Joules == nil || e.Source != t.Reference.Source {
			t.out.Joules, t.out.Source = nil, ""
		} else {
			*t.out.Joules += *e.Joules - Joules(work)**t.Reference.Joules
		}
	}
	if e.Attempt == t.Attempt && !home && !e.Cut {
		p := &t.out.Present
		p.Epochs += loss
		p.Seconds += e.Seconds()
		p.Done++
		if e.Polluted {
			p.Disturbed++
		}
	}
}

// Where joules are missing, watts are taken to be in proportion to cores.
func (t *ledger) loss(e Epoch) float64 {
	one, reference := Trial{Settings: e.Settings, Epochs: 1, Seconds: e.Seconds(), Joules: e.Joules, Source: e.Source}, t.Reference
	ratio, ok := one.LogRatio(reference, t.Policy.Measure())
	if !ok {
		cores := 1.0
		if now, own := e.Settings[Cores].Float(), t.Own[Cores].Float(); now > 0 && own > 0 {
			cores = now / own
		}
		used, before := Joules(cores*one.Seconds), Joules(reference.Seconds)
		one.Joules, reference.Joules, one.Source, reference.Source = &used, &before, "", ""
		ratio, _ = one.LogRatio(reference, t.Policy.Measure())
	}
	return math.Expm1(ratio)
}

// Before the first mark of the attempt it adds the time since the last epoch.
func (t *ledger) running(last *Epoch) {
	if !t.Course.Running {
		return
	}
	from := t.Started
	switch {
	case last != nil && last.Attempt == t.Attempt:
		from = last.End
	case last != nil:
		t.gap(t.Attempt, t.Started.Sub(last.End))
	}
	if t.Heard.IsZero() {
		return // how long the running epoch takes is unknown
	}
	if t.Heard.After(from) {
		from = t.Heard
	}
	elapsed := t.Now.Sub(from).Seconds()
	if t.Current.Equal(t.Own) || !(elapsed > 0) {
		return
	}
	t.out.Present.Running = elapsed
	// What it has cost so far is the least that it will have cost.
	if loss := t.loss(Epoch{Settings: t.Current, End: t.Started.Add(t.Now.Sub(from)), Start: t.Started}); loss > 0 {
		t.settings[t.Current.Key()] += loss
		t.out.Present.Epochs += loss
		t.add(max(elapsed-t.Reference.Seconds, 0), loss)
	}
}

// ToEnd is how many seconds the running epoch is expected to take still: as long as those of its
// attempt, or as long again as it has taken.
func (p Present) ToEnd() float64 {
	if p.Done > 0 {
		if left := p.Seconds/float64(p.Done) - p.Running; left > 0 {
			return left
		}
	}
	return p.Running
}
