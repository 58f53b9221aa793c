package knowledge

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"pitchpipe/controller/tuning"
)

func days(at, now time.Time) float64 { return max(0, now.Sub(at).Hours()/24) }

// Effects derives what each setting does to jobs of one kind, the best first. Own are the settings
// to compare with; nil: those of the newest untuned run. Settings name every knob but memory, which
// follows from the peak.
//
// Only pairs within one job count: a job that did not run under own, or whose joules come from
// another source or are missing where the measure needs them, teaches nothing here.
func Effects(obs []Observation, kind tuning.JobKind, own tuning.Settings, m tuning.Measure, now time.Time) []tuning.Effect {
	of := ofKind(obs, kind)
	if own == nil {
		t, ok := LastReference(of, kind)
		if !ok {
			return nil
		}
		own = t.Settings
	}
	own = own.WithoutMemory()
	sums := tallies{}
	for _, r := range runs(of) {
		if base, ok := r.longest(own.EqualButMemory); ok {
			sums.collect(r, base, tuning.Settings.WithoutMemory, m, now)
		}
	}
	return sums.effects(now)
}

// Carried derives the same against what the owner of the newest untuned run asked for, so that a
// model of the job can carry them over to own.
func Carried(obs []Observation, kind tuning.JobKind, own tuning.Settings, m tuning.Measure, now time.Time) []tuning.Effect {
	last, ok := LastReference(obs, kind)
	if !ok || last.Settings.EqualButMemory(own) {
		return nil
	}
	out := Effects(obs, kind, last.Settings, m, now)
	for i := range out {
		out[i].From = last.Settings.WithoutMemory()
	}
	return out
}

// Target is the machine that an effect is asked for.
type Target struct {
	Machine string // kind of machine
	Cores   int    // of the node; 0 = unknown
}

// ClassEffects derives what each setting of the system knobs does to the jobs of a class. own are
// the settings of the job that asks; nil compares each job with its own owner's.
//
// Cores and threads count as shares of the node, rounded to whole ones; exactly where the machine
// is of the same kind or has as many cores. An observation of another node of unknown size is left
// out. No other knob travels: a trial that changed one together with its cores teaches nothing
// about the cores.
func ClassEffects(class []Observation, own tuning.Settings, to Target, m tuning.Measure, now time.Time) []tuning.Effect {
	sums := tallies{}
	for _, r := range runs(class) {
		scale, known := to.scale(r)
		base, ok := tuning.Reference(r.trials)
		if !ok || !known {
			continue
		}
		rest := others(base.Settings)
		view := func(s tuning.Settings) tuning.Settings {
			if !others(s).Equal(rest) {
				return nil
			}
			return scaled(s, scale)
		}
		if own != nil {
			asked := scaled(own, 1)
			base, ok = r.longest(func(s tuning.Settings) bool { return others(s).Equal(rest) && agree(scaled(s, scale), asked) })
		}
		if ok {
			sums.collect(r, base, view, m, now)
		}
	}
	return sums.effects(now)
}

func (t Target) scale(r run) (float64, bool) {
	switch {
	case r.machine == t.Machine && r.machine != "" || r.cores == t.Cores && r.cores > 0:
		return 1, true
	case r.cores > 0 && t.Cores > 0:
		return float64(t.Cores) / float64(r.cores), true
	}
	return 0, false
}

func (r run) longest(under func(tuning.Settings) bool) (tuning.Trial, bool) {
	var best tuning.Trial
	for _, t := range r.trials {
		if t.Epochs > best.Epochs && under(t.Settings) {
			best = t
		}
	}
	return best, best.Epochs > 0
}

// agree reports whether two settings of cores and threads are the same as far as
// both name them, cores at least.
func agree(a, b tuning.Settings) bool {
	x, inA := a[tuning.Threads]
	y, inB := b[tuning.Threads]
	return a[tuning.Cores] == b[tuning.Cores] && (!inA || !inB || x == y)
}

func others(s tuning.Settings) tuning.Settings {
	return s.Only(func(name string) bool { return name != tuning.Cores && name != tuning.Threads && name != tuning.Memory })
}

func scaled(s tuning.Settings, scale float64) tuning.Settings {
	out := s.Shape()
	for name, v := range out {
		if v.IsNumber() {
			out[name] = tuning.Number(math.Max(1, math.Round(v.Float()*scale)))
		}
	}
	return out
}

type tally struct {
	settings              tuning.Settings
	ratios, times, noises []float64
	weights               []float64
	newest                time.Time
}

type tallies map[string]*tally

func (ts tallies) add(s tuning.Settings, ratio, seconds, noise, weight float64, at time.Time) {
	t := ts[s.Key()]
	if t == nil {
		t = &tally{settings: s}
		ts[s.Key()] = t
	}
	t.ratios, t.times = append(t.ratios, ratio), append(t.times, seconds)
	t.noises, t.weights = append(t.noises, noise), append(t.weights, weight)
	if at.After(t.newest) {
		t.newest = at
	}
}

// One value per run, weighted by epochs. Trials without a view are left out.
func (ts tallies) collect(r run, base tuning.Trial, view func(tuning.Settings) tuning.Settings, m tuning.Measure, now time.Time) {
	own := tallies{}
	for _, t := range r.trials {
		s := view(t.Settings)
		ratio, ok := t.LogRatio(base, m)
		if s == nil || s.Equal(view(base.Settings)) || !ok {
			continue
		}
		noise := t.SDLog*t.SDLog/t.Weight() + base.SDLog*base.SDLog/float64(base.Epochs)
		own.add(s, ratio, math.Log(t.Seconds/base.Seconds), noise, t.Weight(), r.at)
	}
	age := max(tuning.Aged(days(r.at, now)), 1e-100) // so old that none counts, all are alike
	for _, t := range own {
		ts.add(t.settings, t.mean(t.ratios), t.mean(t.times), t.mean(t.noises), age, r.at)
	}
}

func (t *tally) mean(values []float64) float64 { return stat.Mean(values, t.weights) }

func (ts tallies) effects(now time.Time) []tuning.Effect {
	var out []tuning.Effect
	for _, key := range slices.Sorted(maps.Keys(ts)) {
		t := ts[key]
		out = append(out, tuning.Effect{
			Settings: t.settings, LogRatio: t.mean(t.ratios), SD: t.sd(), LogTime: t.mean(t.times),
			Runs: len(t.ratios), Age: days(t.newest, now),
		})
	}
	slices.SortStableFunc(out, func(x, y tuning.Effect) int { return cmp.Compare(x.LogRatio, y.LogRatio) })
	return out
}

// Two runs that agree by chance have not shown that all do.
func (t *tally) sd() float64 {
	var sum, sum2, squares float64
	mean := t.mean(t.ratios)
	for i, w := range t.weights {
		sum += w
		sum2 += w * w
		squares += w * (t.ratios[i] - mean) * (t.ratios[i] - mean)
	}
	between := 0.0
	// Unbiased with reliability weights: Σw(x-m)² / (Σw - Σw²/Σw).
	if d := sum - sum2/sum; len(t.weights) > 1 && d > 0 {
		between = squares / d
	}
	return math.Sqrt(max(between, t.mean(t.noises)))
}

// PeakRSS is the largest memory seen in jobs of the kind and in how many of them any was seen. A
// job that others disturbed needs its memory all the same.
func PeakRSS(obs []Observation, kind tuning.JobKind) (peak tuning.Bytes, jobs int) {
	for _, r := range runs(ofKind(obs, kind)) {
		var most tuning.Bytes
		for _, o := range r.observations {
			most = max(most, o.Peak)
			for _, p := range o.Profiles {
				most = max(most, p.PeakRSS)
			}
		}
		peak = max(peak, most)
		if most > 0 {
			jobs++
		}
	}
	return peak, jobs
}

// memoryCalm is how many runs keep their memory after one died under tuned settings.
const memoryCalm = 5

// MemoryHeld reports whether a job of the kind died under tuned memory, and too few have run since.
func MemoryHeld(obs []Observation, kind tuning.JobKind) bool {
	since := memoryCalm
	for _, o := range unique(ofKind(obs, kind)) {
		since++
		if slices.ContainsFunc(o.Regressed, func(s tuning.Settings) bool { return s[tuning.Memory].IsSet() }) {
			since = 0
		}
	}
	return since < memoryCalm
}

// Regressions are the settings that made jobs of the kind worse, and did not improve a later one.
func Regressions(obs []Observation, kind tuning.JobKind) []tuning.Settings {
	var out []tuning.Settings
	forget := func(s tuning.Settings) {
		out = slices.DeleteFunc(out, s.Equal)
	}
	remember := func(s tuning.Settings) {
		forget(s)
		out = append(out, s)
	}
	for _, o := range unique(ofKind(obs, kind)) {
		if c := o.Outcome; c != nil && len(c.Tuned) > 0 {
			// How much memory was reserved made nothing slower. What a job died of is
			// remembered with its memory, below.
			tuned := c.Tuned.WithoutMemory()
			switch {
			case c.Verdict == tuning.Improved:
				forget(tuned)
				forget(c.Tuned)
			case c.Verdict == tuning.Regressed && c.Reason != tuning.ReasonStopLoss: // its trial says what a stop-loss cost
				remember(tuned)
			}
		}
		for _, s := range o.Regressed {
			if len(s) > 0 {
				remember(s)
			}
		}
	}
	return out
}

// LastReference is what the newest job of the kind that ran under its owner's
// settings measured there.
func LastReference(obs []Observation, kind tuning.JobKind) (tuning.Trial, bool) {
	rs := runs(ofKind(obs, kind))
	slices.SortStableFunc(rs, func(a, b run) int { return b.at.Compare(a.at) })
	for _, r := range rs {
		if t, ok := tuning.Reference(r.trials); ok {
			return t, true
		}
	}
	return tuning.Trial{}, false
}

// KindProfile is the newest profile of the kind under its owner's settings that is not poor.
func KindProfile(obs []Observation, kind tuning.JobKind) *tuning.Profile {
	var out *tuning.Profile
	for _, o := range unique(ofKind(obs, kind)) {
		own, ok := tuning.Reference(o.Trials)
		if !ok || o.Polluted {
			continue
		}
		for _, p := range o.Profiles {
			if cores, known := p.Settings[tuning.Cores]; known && cores == own.Settings[tuning.Cores] && !p.Poor() {
				out = &p
			}
		}
	}
	return out
}

// KindSeconds is the median of the seconds per epoch under the very settings own, and in how many
// jobs.
func KindSeconds(obs []Observation, kind tuning.JobKind, own tuning.Settings) (seconds float64, jobs int) {
	var all []float64
	for _, r := range runs(ofKind(obs, kind)) {
		for _, t := range r.trials {
			if t.Reference && t.Settings.Equal(own) {
				all = append(all, t.Seconds)
			}
		}
	}
	return median(all), len(all)
}

// RestartCost is the median cost of a restart of the kind, else of all jobs, and of how many.
func RestartCost(obs []Observation, kind tuning.JobKind) (cost time.Duration, restarts int) {
	var all, own []time.Duration
	for _, o := range unique(obs) {
		all = append(all, o.RestartCosts...)
		if o.Kind == kind {
			own = append(own, o.RestartCosts...)
		}
	}
	if len(own) > 0 {
		return median(own), len(own)
	}
	return median(all), len(all)
}

func median[T time.Duration | float64](xs []T) T {
	if len(xs) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(xs))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// PastRuns are the runs of a kind, the oldest first. That a disturbed run was there, what it was to
// try and how it ended counts.
func PastRuns(obs []Observation, kind tuning.JobKind, now time.Time) []tuning.PastRun {
	var out []tuning.PastRun
	for _, r := range runs(ofKind(obs, kind)) {
		p := tuning.PastRun{Trials: r.trials}
		for _, o := range r.observations {
			p.Job = o.Job
			p.Age = days(o.At, now)
			p.Trying = p.Trying || o.Trying
			p.Epochs = max(p.Epochs, o.Epochs)
			p.Machine = cmp.Or(o.Machine, p.Machine)
			p.End = cmp.Or(o.End, p.End)
			p.Reached = cmp.Or(o.Reached, p.Reached)
			if len(o.Began) > 0 {
				p.Began = o.Began
			}
			if o.Final != nil {
				p.Quality = &o.Final.Quality
			}
		}
		out = append(out, p)
	}
	return out
}

// CurveLessons are the newest errors of forecasts of the kind, the oldest first. That others
// disturbed a job did not change what it learned.
func CurveLessons(obs []Observation, kind tuning.JobKind, most int) []tuning.CurveLesson {
	var out []tuning.CurveLesson
	for _, o := range unique(ofKind(obs, kind)) {
		out = append(out, o.Curve...)
	}
	return out[max(0, len(out)-most):]
}

// Jobs counts the jobs among the observations, those that come again once for each run.
func Jobs(obs []Observation) int { return len(runs(obs)) }

func ofKind(obs []Observation, kind tuning.JobKind) []Observation {
	return slices.DeleteFunc(slices.Clone(obs), func(o Observation) bool { return o.Kind != kind })
}
