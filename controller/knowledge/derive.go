package knowledge

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"pitchpipe/controller/tuning"
)

// Aging tells how much old observations count.
type Aging struct {
	Now      time.Time
	HalfLife time.Duration // after it an observation counts for half; default DefaultHalfLife
}

// DefaultHalfLife is the half-life of what was observed.
const DefaultHalfLife = 90 * 24 * time.Hour

func (a Aging) days(at time.Time) float64 {
	return max(0, a.Now.Sub(at).Hours()/24)
}

func (a Aging) weight(at time.Time) float64 {
	half := a.HalfLife
	if half <= 0 {
		half = DefaultHalfLife
	}
	return math.Exp2(-a.days(at) / (half.Hours() / 24))
}

// Effects derives what each setting does to jobs of one kind, compared with own:
// sorted by LogRatio, the best first. Own are the settings to compare with;
// nil: those of the newest run of the kind that ran under its owner's.
// Settings name every knob but memory, which follows from the peak.
//
// Only pairs within one job count: a job that did not run under own, or whose
// joules come from another source or are missing where the measure needs them,
// teaches nothing here.
func Effects(obs []Observation, kind tuning.JobKind, own tuning.Settings, m tuning.Measure, a Aging) []tuning.Effect {
	of := ofKind(obs, kind)
	if own == nil {
		t, ok := LastReference(of, kind)
		if !ok {
			return nil
		}
		own = t.Settings
	}
	own = own.WithoutMemory()
	sums := map[string]*tally{}
	for _, r := range runs(of) {
		base, ok := r.find(own, tuning.Settings.WithoutMemory)
		if !ok {
			continue
		}
		r.collect(sums, base, tuning.Settings.WithoutMemory, m, a)
	}
	return effects(sums, a)
}

// Carried derives the same against what the owner of the newest untuned run asked for, where
// that differs from own: a model of the job can carry them over.
func Carried(obs []Observation, kind tuning.JobKind, own tuning.Settings, m tuning.Measure, a Aging) []tuning.Effect {
	last, ok := LastReference(obs, kind)
	from := last.Settings.WithoutMemory()
	if !ok || from.Equal(own.WithoutMemory()) {
		return nil
	}
	out := Effects(obs, kind, last.Settings, m, a)
	for i := range out {
		out[i].From = from
	}
	return out
}

// find returns the trial under the given settings, where view takes from a
// trial's settings what is compared. Of several (memory differed) the one with
// most epochs counts.
func (r run) find(want tuning.Settings, view func(tuning.Settings) tuning.Settings) (tuning.Trial, bool) {
	var best tuning.Trial
	for _, t := range r.trials {
		if t.Epochs > best.Epochs && view(t.Settings).Equal(want) {
			best = t
		}
	}
	return best, best.Epochs > 0
}

// reference is the trial of the owner's own settings.
func (r run) reference() (tuning.Trial, bool) { return tuning.Reference(r.trials) }

// collect adds, for each setting that the run tried, its ratio to base: one
// value per run, weighted by epochs where memory alone differed.
func (r run) collect(sums map[string]*tally, base tuning.Trial, view func(tuning.Settings) tuning.Settings, m tuning.Measure, a Aging) {
	type mean struct {
		settings             tuning.Settings
		epochs, ratio, times float64
		noise                float64
	}
	means := map[string]*mean{}
	baseView := view(base.Settings)
	for _, t := range r.trials {
		s := view(t.Settings)
		ratio, ok := t.LogRatio(base, m)
		if s == nil || s.Equal(baseView) || !ok {
			continue
		}
		v := means[s.Key()]
		if v == nil {
			v = &mean{settings: s}
			means[s.Key()] = v
		}
		n := t.Weight()
		v.epochs += n
		v.ratio += n * ratio
		v.times += n * math.Log(t.Seconds/base.Seconds)
		v.noise += n * (t.SDLog*t.SDLog/n + base.SDLog*base.SDLog/float64(base.Epochs))
	}
	for _, key := range slices.Sorted(maps.Keys(means)) {
		v := means[key]
		sum := sums[key]
		if sum == nil {
			sum = &tally{settings: v.settings}
			sums[key] = sum
		}
		sum.add(v.ratio/v.epochs, v.times/v.epochs, v.noise/v.epochs, a.weight(r.at), r.at)
	}
}

// tally gathers the runs of one setting.
type tally struct {
	settings       tuning.Settings
	ratios, times  []float64
	noises, weight []float64
	newest         time.Time
}

func (t *tally) add(ratio, times, noise, weight float64, at time.Time) {
	t.ratios = append(t.ratios, ratio)
	t.times = append(t.times, times)
	t.noises = append(t.noises, noise)
	t.weight = append(t.weight, weight)
	if at.After(t.newest) {
		t.newest = at
	}
}

// effects turns tallies into effects, the best first.
func effects(sums map[string]*tally, a Aging) []tuning.Effect {
	var out []tuning.Effect
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		t := sums[key]
		mean := weighted(t.ratios, t.weight)
		out = append(out, tuning.Effect{
			Settings: t.settings,
			LogRatio: mean,
			SD:       t.sd(mean),
			LogTime:  weighted(t.times, t.weight),
			Runs:     len(t.ratios),
			Age:      a.days(t.newest),
		})
	}
	slices.SortStableFunc(out, func(x, y tuning.Effect) int { return cmp.Compare(x.LogRatio, y.LogRatio) })
	return out
}

// sd is the standard deviation between runs. It is never less than the noise
// within them: two runs that agree by chance have not shown that all do. With one
// run the noise within is all there is, and understates.
func (t *tally) sd(mean float64) float64 {
	within := weighted(t.noises, t.weight)
	var sum, sum2, squares float64
	for i, w := range t.weight {
		sum += w
		sum2 += w * w
		squares += w * (t.ratios[i] - mean) * (t.ratios[i] - mean)
	}
	between := 0.0
	// Unbiased with reliability weights: Σw(x-m)² / (Σw - Σw²/Σw).
	if d := sum - sum2/sum; len(t.weight) > 1 && d > 0 {
		between = squares / d
	}
	return math.Sqrt(max(between, within))
}

func weighted(xs, ws []float64) float64 {
	var sum, total float64
	for i, x := range xs {
		sum += ws[i] * x
		total += ws[i]
	}
	if total == 0 { // all so old that their weights vanish: they are alike again
		for _, x := range xs {
			sum += x / float64(len(xs))
		}
		return sum
	}
	return sum / total
}

func ofKind(obs []Observation, kind tuning.JobKind) []Observation {
	var out []Observation
	for _, o := range obs {
		if o.Kind == kind {
			out = append(out, o)
		}
	}
	return out
}
