package knowledge

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"pitchpipe/controller/tuning"
)

type tally struct {
	settings              tuning.Settings
	ratios, times, noises []float64
	works                 []float64 // of an epoch, see lesson
	weights               []float64
	newest                time.Time
}

type tallies map[string]*tally

func (ts tallies) add(s tuning.Settings, ratio, seconds, noise, work, weight float64, at time.Time) {
	t := ts[s.Key()]
	if t == nil {
		t = &tally{settings: s}
		ts[s.Key()] = t
	}
	t.ratios, t.times = append(t.ratios, ratio), append(t.times, seconds)
	t.noises, t.weights = append(t.noises, noise), append(t.weights, weight)
	t.works = append(t.works, work)
	if at.After(t.newest) {
		t.newest = at
	}
}

// One value per run, weighted by epochs. Trials without a view are left out.
func (ts tallies) collect(l lesson, view func(tuning.Settings) tuning.Settings, m tuning.Measure, now time.Time) {
	own := tallies{}
	for _, t := range l.trials {
		s := view(t.Settings)
		ratio, ok := t.LogRatio(l.base, m)
		if s == nil || s.Equal(view(l.base.Settings)) || !ok {
			continue
		}
		noise := t.SDLog*t.SDLog/t.Weight() + l.base.SDLog*l.base.SDLog/float64(l.base.Epochs)
		own.add(s, ratio, math.Log(t.Seconds/l.base.Seconds), noise, 0, t.Weight(), l.at)
	}
	weight := max(tuning.Aged(days(l.at, now)), 1e-100) // so old that none counts, all are alike
	weight /= 1 + l.work*l.work/(alikeWork*alikeWork)
	for _, t := range own {
		ts.add(t.settings, t.mean(t.ratios), t.mean(t.times), t.mean(t.noises), l.work, weight, l.at)
	}
}

func (t *tally) mean(values []float64) float64 { return stat.Mean(values, t.weights) }

// The asker's own work is known to within sd.
func (ts tallies) effects(now time.Time, sd float64) []tuning.Effect {
	var out []tuning.Effect
	for _, key := range slices.Sorted(maps.Keys(ts)) {
		t := ts[key]
		e := tuning.Effect{Settings: t.settings, Runs: len(t.ratios), Age: days(t.newest, now)}
		e.LogTime, _, _ = t.atWork(t.times, sd)
		e.LogRatio, e.SD, e.Apart = t.atWork(t.ratios, sd)
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(x, y tuning.Effect) int { return cmp.Compare(x.LogRatio, y.LogRatio) })
	return out
}

// atWork is what the values are at the asker's work, by the line through them over the logarithm of the
// work, with the standard deviation around it, and the standard error of the way along it.
func (t *tally) atWork(values []float64, sd float64) (value, spread, apart float64) {
	x, y := t.mean(t.works), t.mean(values)
	var xx, xy, far float64
	for i, w := range t.weights {
		far += w * t.works[i] * t.works[i]
		xx += w * (t.works[i] - x) * (t.works[i] - x)
		xy += w * (t.works[i] - x) * (values[i] - y)
	}
	variance := max(t.mean(t.noises), workNoise*workNoise)
	precision := xx/variance + 1/(workEffect*workEffect)
	slope := xy / variance / precision
	along := math.Hypot(slope, 1/math.Sqrt(precision))
	apart = math.Hypot(x/math.Sqrt(precision), along*sd)
	return y - slope*x, t.spread(values, slope), math.Hypot(apart, workBend*math.Sqrt(far/floats.Sum(t.weights)))
}

// Two runs that agree by chance have not shown that all do.
func (t *tally) spread(values []float64, slope float64) float64 {
	var sum, sum2, squares float64
	x, y := t.mean(t.works), t.mean(values)
	for i, w := range t.weights {
		away := values[i] - y - slope*(t.works[i]-x)
		sum += w
		sum2 += w * w
		squares += w * away * away
	}
	between := 0.0
	// Unbiased with reliability weights: Σw(x-m)² / (Σw - Σw²/Σw).
	if d := sum - sum2/sum; len(t.weights) > 1 && d > 0 {
		between = squares / d
	}
	return math.Sqrt(max(between, t.mean(t.noises)))
}
