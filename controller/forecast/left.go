package forecast

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"pitchpipe/controller/tuning"
)

// Work is what is known about the epochs of a job, and of the ones like it.
type Work struct {
	Epochs  []tuning.Epoch // measured so far, those that can be compared with each other
	Own     tuning.Settings
	Current tuning.Settings
	Done    int // epochs that ended
	Total   int // epochs in all; 0: unknown

	// Kind is what the newest untuned job of the kind measured under the very settings
	// Own; nil: there was none. It counts only until the job has its own epochs.
	Kind *tuning.Trial

	// Curve asks where the loss or quality is heading, which takes longer. Direction is
	// that of the quality, where the job has one.
	Curve     bool
	Direction Direction
	Lessons   []Lesson // of ended jobs of the kind, oldest first

	// Learns reports whether a knob changes what the job learns; nil: none does.
	Learns func(knob string) bool
}

// What is assumed of an epoch's seconds and joules.
const (
	// usualSD is how much ln(seconds) of epochs of one job usually spreads; it counts
	// as much as usualDegrees epochs, since early on there are few.
	usualSD      = 0.05
	usualDegrees = 4

	// betweenAttempts is how much two attempts of one job usually differ, in natural
	// logs, and betweenInputs two jobs of one kind, whose inputs are another's.
	betweenAttempts = 0.04
	betweenInputs   = 0.25

	outside = 0.1 // of the truths lie beyond either end of an interval
)

// Left is what is left of a job: its epochs, and the seconds and joules that they take;
// unknown where the job does not say how many epochs it has. An epoch to come is taken to
// be like the newest third of those measured, from which the rest may differ by chance,
// and as much as the newest ones differ from all.
func Left(w Work) tuning.Forecast {
	if w.Total <= 0 {
		return tuning.Forecast{Reason: tuning.ReasonNoTotal}
	}
	left := float64(max(w.Total-w.Done, 0)) // it may do more than it said
	out := tuning.Forecast{Epochs: new(tuning.Exactly(left))}
	if w.Curve {
		out.Final, out.FinalOf = w.final()
	}
	mine, basis := w.alike()
	if len(mine) == 0 {
		return w.ofKind(out, left)
	}
	out.Basis, out.Measured, out.Settings, out.JoulesSource = basis, len(mine), mine[0].Settings, w.source()
	var seconds, joules []float64
	for _, e := range mine {
		seconds = append(seconds, e.Seconds())
		if e.Joules != nil && e.Source == out.JoulesSource && *e.Joules > 0 {
			joules = append(joules, float64(*e.Joules))
		}
	}
	out.Seconds = rest(seconds, left, betweenAttempts)
	out.Joules = rest(joules, left, betweenAttempts)
	out.Spent = w.spent(out.JoulesSource, joules)
	return out
}

// alike are the usable epochs under the owner's settings, else under the present ones.
func (w Work) alike() ([]tuning.Epoch, tuning.Basis) {
	under := func(s tuning.Settings) []tuning.Epoch {
		return slices.DeleteFunc(slices.Clone(w.Epochs), func(e tuning.Epoch) bool { return !e.Counts() || !e.Settings.Equal(s) })
	}
	if own := under(w.Own); len(own) > 0 {
		return own, tuning.BasisOwn
	}
	return under(w.Current), tuning.BasisPresent
}

// ofKind is the forecast of a job that has measured nothing yet.
func (w Work) ofKind(out tuning.Forecast, left float64) tuning.Forecast {
	if w.Kind == nil || !(w.Kind.Seconds > 0) || w.Done > 0 {
		out.Reason = tuning.ReasonProfiling
		return out
	}
	out.Basis, out.Measured, out.Settings = tuning.BasisKind, w.Kind.Epochs, w.Own
	out.Seconds = rest([]float64{w.Kind.Seconds}, left, betweenInputs)
	if j := w.Kind.Joules; j != nil && *j > 0 {
		out.Joules, out.JoulesSource = rest([]float64{float64(*j)}, left, betweenInputs), w.Kind.Source
		out.Spent = new(tuning.Exactly(0))
	}
	return out
}

// source returns the source of the newest measured joules, modelled if all are modelled.
func (w Work) source() string {
	source := ""
	for _, e := range w.Epochs {
		if e.Joules != nil && (source == "" || !tuning.IsModelled(e.Source)) {
			source = e.Source
		}
	}
	return source
}

// spent are the joules of the epochs that ended. Those of another source, or without
// any, may have used what such epochs use.
func (w Work) spent(source string, known []float64) *tuning.Estimate {
	if source == "" {
		return nil
	}
	var sum float64
	counted := map[int]bool{}
	for _, e := range w.Epochs {
		if e.Joules != nil && e.Source == source {
			sum += float64(*e.Joules)
			counted[e.Number] = true
		}
	}
	out := tuning.Exactly(sum)
	if missing := w.Done - len(counted); missing > 0 {
		more := rest(known, float64(missing), betweenAttempts)
		if more == nil {
			return nil // how much they used is unknown
		}
		out.Value, out.High = sum+more.Value, sum+more.High
	}
	return &out
}

// rest is what n epochs to come take in all, by what those before took; nil: there were
// none. between is how much the rest may differ as a whole, in natural logs.
func rest(seen []float64, n, between float64) *tuning.Estimate {
	if len(seen) == 0 {
		return nil
	}
	newest := seen[len(seen)-min(len(seen), max(len(seen)/3, fewest)):]
	mean, pace := stat.Mean(seen, nil), stat.Mean(newest, nil)
	squares := usualDegrees * usualSD * usualSD
	for _, v := range seen {
		squares += square(math.Log(v / mean))
	}
	degrees := usualDegrees + float64(len(seen)-1)
	variance := squares / degrees * (1/float64(len(newest)) + 1/max(n, 1))
	sd := math.Sqrt(variance + square(between) + square(math.Log(pace/mean)))
	reach := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: degrees}.Quantile(1 - outside)
	out := tuning.Estimate{Value: n * pace, Low: n * pace * math.Exp(-reach*sd), High: n * pace * math.Exp(reach*sd)}
	if !out.IsFinite() {
		return nil
	}
	return &out
}

// final is what the curve of the quality, else of the loss, leads to in the last epoch;
// nil: it says nothing.
func (w Work) final() (*tuning.Estimate, string) {
	for _, m := range w.measures() {
		f, known := New(w.curve(m), w.options(m))
		if !known {
			continue
		}
		if e, known := f.Value(float64(w.Total)); known && e.IsFinite() {
			return &e, m.name
		}
	}
	return nil, ""
}

// measure is what a curve may be of.
type measure struct {
	name string
	read func(tuning.Epoch) *float64
	to   Direction
}

// measures are those of the job, the one that is asked first before the other.
func (w Work) measures() []measure {
	loss := measure{"loss", func(e tuning.Epoch) *float64 { return e.Loss }, Min}
	if w.Direction == "" {
		return []measure{loss} // whether more or less quality is better is unknown
	}
	return []measure{{"quality", func(e tuning.Epoch) *float64 { return e.Quality }, w.Direction}, loss}
}

func (w Work) options(m measure) Options {
	o := Options{Direction: m.to, Total: float64(w.Total), Best: Bound(m.to), Changes: w.changes()}
	for _, l := range w.Lessons {
		if l.Of == "" || l.Of == m.name {
			o.Lessons = append(o.Lessons, l)
		}
	}
	return o
}

// Teach is what the forecasts of an ended job were worth, or would have been, had they
// been made with w.Lessons; see the function Teach. Those of the quality, else of the loss.
func (w Work) Teach() []Lesson {
	for _, m := range w.measures() {
		if out := Teach(w.curve(m), w.options(m)); len(out) > 0 {
			for i := range out {
				out[i].Of = m.name
			}
			return out
		}
	}
	return nil
}

// curve are the values after each epoch; of an epoch that was done twice the last one.
func (w Work) curve(m measure) Curve {
	values := make(map[int]float64, len(w.Epochs))
	for _, e := range w.Epochs {
		if v := m.read(e); v != nil && e.Number > 0 {
			values[e.Number] = *v
		}
	}
	var c Curve
	for _, n := range slices.Sorted(maps.Keys(values)) {
		c.Epochs, c.Values = append(c.Epochs, float64(n)), append(c.Values, values[n])
	}
	return c
}

// changes are the epochs from which on the job learned under other hyperparameters: the
// curve starts again there.
func (w Work) changes() []float64 {
	if w.Learns == nil {
		return nil
	}
	epochs := slices.Clone(w.Epochs)
	slices.SortStableFunc(epochs, func(a, b tuning.Epoch) int { return a.Number - b.Number })
	var out []float64
	for i := 1; i < len(epochs); i++ {
		a, b := epochs[i-1].Settings, epochs[i].Settings
		if !a.Equal(b) && !a.Only(w.Learns).Equal(b.Only(w.Learns)) && epochs[i].Number > epochs[i-1].Number {
			out = append(out, float64(epochs[i].Number))
		}
	}
	return out
}
