package report

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"pitchpipe/controller/tuning"
)

// Row is one job as its scheduler and the tuner know it.
type Row struct {
	Job, Name, User    string
	Account, Partition string // empty: not known
	Kind               tuning.JobKind
	State              string // at its scheduler
	Succeeded          bool
	Submitted          time.Time
	Ended              time.Time // zero while it runs
	Spans              []Span    // when it ran; nil: not known
	Policy             tuning.Policy
	Own                tuning.Settings
	Total              int // epochs in all, 0 unknown
	Epochs             []tuning.Epoch
	Outside            []tuning.Epoch // the joules that it used outside these
	Probed             []int          // attempts that tried a setting
	Restarts, Probes   int
	Toll               *tuning.Toll // what tuning cost it; nil: it was not tuned, or that is unknown

	Control bool // drawn into the untuned share
	Tuned   bool // some attempt ran under other settings than its owner's, or tuning ended it on the way there

	// Forgotten: what the tuner did to it is not known any more, and neither are its
	// epochs. When it ran and on how many cores may be.
	Forgotten bool
}

// Span is the time that one attempt ran.
type Span struct {
	Start, End time.Time
	Cores      int          // 0 = not known
	Memory     tuning.Bytes // that it asked for; 0 = none
	GPUs       int
}

// epochs are the numbers of those that the row's job did, each once, with the
// last attempt at it: in the order of their numbers.
func (r Row) epochs() []tuning.Epoch {
	last := map[int]tuning.Epoch{}
	for _, e := range r.Epochs {
		if old, ok := last[e.Number]; !ok || e.Attempt >= old.Attempt {
			last[e.Number] = e
		}
	}
	return slices.SortedFunc(maps.Values(last), func(a, b tuning.Epoch) int { return cmp.Compare(a.Number, b.Number) })
}

// repeated are the epochs that a later attempt did once more.
func (r Row) repeated() []tuning.Epoch {
	last := map[int]int{}
	for _, e := range r.Epochs {
		last[e.Number] = max(last[e.Number], e.Attempt)
	}
	return slices.DeleteFunc(slices.Clone(r.Epochs), func(e tuning.Epoch) bool { return e.Attempt == last[e.Number] })
}

// Seconds are those that its attempts ran; nil where that is unknown.
func (r Row) Seconds() *float64 {
	if r.Spans == nil {
		return nil
	}
	return new(tuning.Sum(r.Spans, func(s Span) float64 { return max(0, s.End.Sub(s.Start).Seconds()) }))
}

// CoreHours are the cores that its attempts held times hours; nil where that is unknown.
func (r Row) CoreHours() *float64 {
	if r.Spans == nil || slices.ContainsFunc(r.Spans, func(s Span) bool { return s.Cores <= 0 }) {
		return nil
	}
	return new(tuning.Sum(r.Spans, func(s Span) float64 { return float64(s.Cores) * max(0, s.End.Sub(s.Start).Hours()) }))
}

// Cost is what jobs were charged, in the unit of their tariff.
type Cost struct {
	Unit   string  `json:"unit"`
	Amount float64 `json:"amount"`
}

// Cost is the price of what its attempts held, and of its joules where they have one. Free: they have one, and are left out, since they were not measured throughout.
// Not ok where that is unknown.
func (r Row) Cost() (c Cost, free, ok bool) {
	t := r.Policy.Prices()
	t.Hour = 0 // an attempt's span says what it held
	c.Unit = t.Unit
	if r.Spans == nil || r.Forgotten {
		return c, false, false
	}
	for _, s := range r.Spans {
		if s.Cores <= 0 && t.CoreHour > 0 {
			return c, false, false
		}
		held := tuning.Settings{
			tuning.Cores: tuning.Number(float64(s.Cores)), tuning.Memory: tuning.Number(float64(s.Memory)), tuning.GPUs: tuning.Number(float64(s.GPUs)),
		}
		c.Amount += t.WithoutEnergy().Price(max(0, s.End.Sub(s.Start).Seconds()), 0, held)
	}
	if t.KWh == 0 {
		return c, false, true
	}
	energy, measured := r.joules()
	if !measured || slices.ContainsFunc(energy, func(e Energy) bool { return !t.Charges(e.Source) }) {
		return c, true, true
	}
	for _, e := range energy {
		c.Amount += t.KWh * e.Joules / 3.6e6
	}
	return c, false, true
}

// joules are those of all its epochs and outside these, by source; not ok where an epoch lacks them, or is missing.
func (r Row) joules() ([]Energy, bool) {
	var out []Energy
	for _, e := range slices.Concat(r.Epochs, r.Outside) {
		if e.Joules == nil {
			return nil, false
		}
		out = add(out, Energy{Source: e.Source, Joules: float64(*e.Joules)})
	}
	return out, len(r.Epochs) > 0 && tuning.Unbroken(r.Epochs)
}

// Energy is what was used according to one source.
type Energy struct {
	Source string  `json:"source"` // as in tuning.Epoch; tuning.Modelled is computed, not measured
	Joules float64 `json:"joules"`
}

func add(list []Energy, more ...Energy) []Energy {
	for _, e := range more {
		i, found := slices.BinarySearchFunc(list, e.Source, func(have Energy, source string) int {
			return cmp.Compare(have.Source, source)
		})
		if found {
			list[i].Joules += e.Joules
		} else {
			list = slices.Insert(list, i, e)
		}
	}
	return list
}

func charge(list []Cost, c Cost) []Cost {
	i, found := slices.BinarySearchFunc(list, c.Unit, func(have Cost, unit string) int { return cmp.Compare(have.Unit, unit) })
	if found {
		list[i].Amount += c.Amount
		return list
	}
	return slices.Insert(list, i, c)
}
