package knowledge

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"pitchpipe/controller/tuning"
)

// Asker is the job that asks what others of its kind showed.
type Asker struct {
	Kind    tuning.JobKind
	Own     tuning.Settings        // what its owner asked for; nil: as the newest untuned run
	Learns  func(knob string) bool // whether a knob changes what the job learns; nil: none does
	Seconds float64                // that its epochs take under Own; 0: not measured
	Machine string                 // kind of machine that they ran on; empty: unknown
	Search  string                 // that it is a trial of; empty: of none
}

// How much the epochs of two jobs differ that do different work, in natural logs.
const (
	// knobWork is how much the work of an epoch may change, per unit of the logarithm of
	// a knob that changes what the job learns, or from one of its words to another, where it
	// changes at all. Many change nothing: learning rate, momentum, seed.
	knobWork  = 1.0
	idleWork  = 0.02
	usualWork = 0.3 // as long as that is not weighed
	// workNoise is how far the work of an epoch is from the line through that of others.
	workNoise = 0.1
	// workEffect is how much an effect may change, per unit of the logarithm of the work.
	workEffect = 0.15
	// workBend is how far an effect is from the line along which it changes, per unit of the same.
	workBend = 0.1
	// foretold is how well the work of an epoch must be known, as a standard deviation.
	foretold = 0.25
	// alikeProfile is how much the work of jobs may differ that make the same use of their cores.
	alikeProfile = 0.2
	// apartSD is how much a setting or another machine may change.
	apartSD = 1.0
	// mostUncertain is of how many knobs it is weighed whether they matter.
	mostUncertain = 4
	// alikeWork is from which difference of the work on a run counts half.
	alikeWork = 0.7
)

func (a Asker) learned(s tuning.Settings) tuning.Settings { return s.Only(a.learns) }

// others are the knobs that leave what the job learns alone: those that are shared.
func (a Asker) others(s tuning.Settings) tuning.Settings {
	return s.Only(func(knob string) bool { return !a.learns(knob) })
}

func (a Asker) learns(knob string) bool { return a.Learns != nil && a.Learns(knob) }

// lesson is a run that was measured under the asker's own settings, apart from what it learned.
type lesson struct {
	run
	base tuning.Trial
	same bool    // it learned the same
	work float64 // of an epoch, as a log ratio to the asker's
}

// lessons are the runs that teach the asker, with the logarithm of the seconds that its epochs take
// and the standard deviation of that. Where the work of its epochs is unknown, only runs that learned
// the same do.
func (a Asker) lessons(all []run) (out []lesson, work, sd float64) {
	var seconds []point
	others := a.others(a.Own)
	for _, r := range all {
		base, ok := r.longest(a.Own.EqualButMemory)
		same := ok
		if !ok {
			base, ok = r.longest(func(s tuning.Settings) bool { return a.others(s).EqualButMemory(others) })
		}
		if ok {
			out = append(out, lesson{run: r, base: base, same: same})
			seconds = append(seconds, point{a.learned(base.Settings), math.Log(base.Seconds)})
		}
	}
	if work, sd = math.Log(a.Seconds), 0; !(a.Seconds > 0) {
		work, sd = a.foretell(seconds)
	}
	if sd > foretold {
		return nil, work, sd
	}
	for i, l := range out {
		if !l.same {
			out[i].work = math.Log(l.base.Seconds) - work
		}
	}
	return out, work, sd
}

// otherSettings begins the name of a column for runs under other settings. No knob begins with a space.
const otherSettings = " under "

// point is what a run under some hyperparameters showed.
type point struct {
	at    tuning.Settings
	value float64
}

// foretell is the value at the asker's hyperparameters: the mean of those there, else by the line through
// the others.
func (a Asker) foretell(from []point) (value, sd float64) {
	own := a.learned(a.Own)
	var sum, n float64
	for _, p := range from {
		if own.Equal(p.at) {
			sum, n = sum+p.value, n+1
		}
	}
	if n > 0 {
		return sum / n, 0
	}
	f, ok := a.fit(from)
	if !ok {
		return 0, math.MaxFloat64
	}
	return f[""].value, math.Hypot(f[""].sd, workNoise)
}

// estimate is a number with its standard error.
type estimate struct{ value, sd float64 }

// fit is by how much the values change per unit of each knob in which they are away from the asker, and under the name ""
// the value at the asker itself. It is a Bayesian linear regression, averaged over which of the hyperparameters matter
// (Hoeting et al., "Bayesian Model Averaging", 1999).
func (a Asker) fit(from []point) (map[string]estimate, bool) {
	own, columns, mean := a.learned(a.Own), []string{""}, 0.0
	for _, p := range from {
		mean += p.value / float64(len(from))
		for _, knob := range own.Diff(p.at) {
			if !slices.Contains(columns, knob) {
				columns = append(columns, knob)
			}
		}
	}
	if len(from) == 0 {
		return nil, false
	}
	slices.Sort(columns)
	n := len(columns)
	gram, right := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for _, p := range from {
		row := mat.NewVecDense(n, nil)
		row.SetVec(0, 1)
		for i, knob := range columns[1:] {
			row.SetVec(i+1, away(own[knob], p.at[knob]))
		}
		gram.SymRankOne(gram, 1/(workNoise*workNoise), row)
		right.AddScaledVec(right, (p.value-mean)/(workNoise*workNoise), row)
	}
	hyper := func(column string) bool { return column[0] != ' ' && a.learns(column) }
	uncertain := min(tuning.Count(columns[1:], hyper), mostUncertain)
	lines, covariances, evidences := make([]mat.VecDense, 1<<uncertain), make([]mat.SymDense, 1<<uncertain), make([]float64, 1<<uncertain)
	for matter := range evidences {
		precision, bit := mat.NewSymDense(n, nil), 0
		precision.CopySym(gram)
		for i, knob := range columns[1:] {
			sd := apartSD
			if hyper(knob) {
				sd = []float64{idleWork, knobWork}[matter>>bit&1]
				if bit++; bit > uncertain {
					sd = usualWork
				}
			}
			precision.SetSym(i+1, i+1, precision.At(i+1, i+1)+1/(sd*sd))
			evidences[matter] -= math.Log(sd)
		}
		var cholesky mat.Cholesky
		if !cholesky.Factorize(precision) || cholesky.SolveVecTo(&lines[matter], right) != nil || cholesky.InverseTo(&covariances[matter]) != nil {
			return nil, false
		}
		evidences[matter] += (mat.Dot(&lines[matter], right) - cholesky.LogDet()) / 2
	}
	sum, out := floats.LogSumExp(evidences), make(map[string]estimate, n)
	for i, name := range columns {
		value, squares := 0.0, 0.0
		for m, e := range evidences {
			w, v := math.Exp(e-sum), lines[m].AtVec(i)
			value, squares = value+w*v, squares+w*(v*v+covariances[m].At(i, i))
		}
		out[name] = estimate{value, math.Sqrt(max(squares-value*value, 0))}
	}
	out[""] = estimate{out[""].value + mean, out[""].sd}
	return out, true
}

// away is how far one value of a knob is from another: the log ratio of numbers, 1 for words.
func away(from, to tuning.Value) float64 {
	ratio := math.Log(to.Float() / from.Float())
	switch {
	case from == to:
		return 0
	case math.IsNaN(ratio) || math.IsInf(ratio, 0):
		return 1
	}
	return ratio
}

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
