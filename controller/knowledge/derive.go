package knowledge

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"pitchpipe/controller/tuning"
)

func days(at, now time.Time) float64 { return max(0, now.Sub(at).Hours()/24) }

// Effects derives what each setting does to jobs of one kind, the best first. Settings name every
// knob but memory, which follows from the peak.
//
// Only pairs within one job count: a job that did not run under the asker's own settings, or whose
// joules come from another source or are missing where the measure needs them, teaches nothing here,
// unless the asker is a trial of a search.
// A job that learned something else (another learning rate, batch size, width) teaches what the
// other knobs do, the more the nearer the work of its epochs is: see Effect.Apart.
func Effects(obs []Observation, a Asker, m tuning.Measure, now time.Time) []tuning.Effect {
	of := ofKind(obs, a.Kind)
	if a.Own == nil {
		t, ok := LastReference(of, a.Kind)
		if !ok {
			return nil
		}
		a.Own = t.Settings
	}
	asked := a
	a.Own = a.Own.WithoutMemory()
	sums, all := tallies{}, runs(of)
	lessons, _, sd := a.lessons(all)
	for _, l := range lessons {
		view := tuning.Settings.WithoutMemory
		if !l.same {
			view = func(s tuning.Settings) tuning.Settings {
				if !a.learned(s).Equal(a.learned(l.base.Settings)) {
					return nil
				}
				return a.learned(a.Own).Merge(a.others(s).WithoutMemory())
			}
		}
		sums.collect(l, view, m, now)
	}
	if a.Search == "" {
		return sums.effects(now, sd)
	}
	return surer(sums.effects(now, sd), asked.between(all, m, now))
}

// Carried derives the same against what the owner of the newest untuned run asked for, where that
// were other cores, so that a model of the job can carry them over to the asker's own. Runs with
// other cores hint besides at what all of the asker's bring (tuning.Effect.Between).
func Carried(obs []Observation, a Asker, m tuning.Measure, now time.Time) []tuning.Effect {
	last, ok := LastReference(obs, a.Kind)
	if !ok {
		return nil
	}
	between := a.scaling(obs, now)
	was := a
	was.Own, was.Seconds = a.learned(a.Own).Merge(a.others(last.Settings)).WithoutMemory(), 0
	if was.Own.EqualButMemory(a.Own) {
		return between
	}
	out := Effects(obs, was, m, now)
	for i := range out {
		out[i].From = was.Own
	}
	return append(out, between...)
}

// scaling is how the asker's epochs compare with those of untuned runs of its kind with other cores,
// the newest of each number.
func (a Asker) scaling(obs []Observation, now time.Time) []tuning.Effect {
	if !(a.Seconds > 0) {
		return nil
	}
	newest := map[string]tuning.Effect{}
	for _, r := range runs(ofKind(obs, a.Kind)) {
		own, ok := tuning.Reference(r.trials)
		from := own.Settings.WithoutMemory()
		if !ok || !(own.Seconds > 0) || from[tuning.Cores] == a.Own[tuning.Cores] || !a.learned(from).Equal(a.learned(a.Own)) {
			continue
		}
		newest[from.Key()] = tuning.Effect{
			Settings: a.Own.WithoutMemory(), From: from, LogTime: math.Log(a.Seconds / own.Seconds), Runs: 1, Age: days(r.at, now), Between: true,
		}
	}
	return tuning.Each(slices.Sorted(maps.Keys(newest)), func(key string) tuning.Effect { return newest[key] })
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
			names := func(t tuning.Trial) bool { return t.Settings[tuning.Threads].IsSet() }
			asked, left := scaled(own, 1), !names(base) && slices.ContainsFunc(r.trials, names) // to the program
			base, ok = r.longest(func(s tuning.Settings) bool {
				alike := !left || s[tuning.Threads].IsSet() == own[tuning.Threads].IsSet()
				return alike && others(s).Equal(rest) && agree(scaled(s, scale), asked)
			})
		}
		if ok {
			sums.collect(lesson{run: r, base: base}, view, m, now)
		}
	}
	return sums.effects(now, 0)
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

// PeakRSS is the largest memory seen in jobs of the kind, disturbed or not, and in how many all that they needed was: not in
// those that outgrew it. Where none learned the same as the asker, it is at least what the line through the others foretells at 95 %; 0: that is unknown.
func PeakRSS(obs []Observation, a Asker) (peak tuning.Bytes, jobs int) {
	var seen []point
	for _, r := range runs(ofKind(obs, a.Kind)) {
		var most tuning.Bytes
		for _, o := range r.observations {
			most = max(most, o.Peak)
			for _, p := range o.Profiles {
				most = max(most, p.PeakRSS)
			}
		}
		peak = max(peak, most)
		if most > 0 {
			if !slices.ContainsFunc(r.observations, Observation.outgrew) {
				jobs++
			}
			if len(r.trials) > 0 {
				seen = append(seen, point{a.learned(r.trials[0].Settings), math.Log(float64(most))})
			}
		}
	}
	if len(seen) > 0 {
		switch log, sd := a.foretell(seen); {
		case sd > foretold:
			return 0, 0
		case sd > 0:
			peak = max(peak, tuning.Bytes(math.Exp(log+2*sd)))
		}
	}
	return peak, jobs
}

// calm is how many runs of a kind are spared what ended one.
const calm = 5

// MemoryHeld reports whether a job of the kind died under tuned memory or outgrew its owner's, and too few have run since.
func MemoryHeld(obs []Observation, kind tuning.JobKind) bool {
	return lately(obs, kind, func(o Observation) bool {
		return o.outgrew() || slices.ContainsFunc(o.Regressed, func(s tuning.Settings) bool { return s[tuning.Memory].IsSet() })
	})
}

// RestartsEnd reports whether a restart by tuning ended a job of the kind, and too few have run since.
func RestartsEnd(obs []Observation, kind tuning.JobKind) bool {
	return lately(obs, kind, func(o Observation) bool { return o.Broke })
}

func lately(obs []Observation, kind tuning.JobKind, ended func(Observation) bool) bool {
	since := calm
	for _, o := range unique(ofKind(obs, kind)) {
		if since++; ended(o) {
			since = 0
		}
	}
	return since < calm
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

// KindProfile is the newest profile of the kind under its owner's settings that is not poor, of a job
// whose epochs do the same work as the asker's. A trial has that of another trial where there is none.
func KindProfile(obs []Observation, a Asker) *tuning.Profile {
	near := map[string]bool{}
	lessons, _, sd := a.lessons(runs(ofKind(obs, a.Kind)))
	for _, l := range lessons {
		for _, o := range l.observations {
			near[o.ID] = math.Hypot(l.work, sd) < alikeProfile
		}
	}
	var out, other *tuning.Profile
	for _, o := range unique(ofKind(obs, a.Kind)) {
		own, ok := tuning.Reference(o.Trials)
		if !ok || o.Polluted {
			continue
		}
		for _, p := range o.Profiles {
			switch {
			case !p.Settings[tuning.Cores].IsSet() || !p.Settings.Shape().Equal(own.Settings.Shape()) || p.Poor():
			case near[o.ID] || a.learned(own.Settings).Equal(a.learned(a.Own)):
				out = &p
			case a.Search != "" && o.Search == a.Search:
				p.Other, other = true, &p
			}
		}
	}
	return cmp.Or(out, other)
}

// KindSeconds is the median of the seconds per epoch under the very settings of the asker, with the number
// of jobs. Where there are none it is what runs that learned something else foretell.
func KindSeconds(obs []Observation, a Asker) (seconds float64, jobs int) {
	var all []float64
	of := runs(ofKind(obs, a.Kind))
	for _, r := range of {
		for _, t := range r.trials {
			if t.Reference && t.Settings.Equal(a.Own) {
				all = append(all, t.Seconds)
			}
		}
	}
	if len(all) > 0 {
		return tuning.Median(all), len(all)
	}
	a.Seconds = 0
	lessons, work, sd := a.lessons(of)
	if len(lessons) == 0 || sd == 0 {
		return 0, 0
	}
	return math.Exp(work), len(lessons)
}

// RestartCost is the median cost of a restart of the kind, else of all jobs, with their number. A kind that
// was never restarted does not take less than its start.
func RestartCost(obs []Observation, kind tuning.JobKind) (cost time.Duration, restarts int) {
	var all, own, starts []time.Duration
	for _, o := range unique(obs) {
		all = append(all, o.RestartCosts...)
		if o.Kind == kind {
			if own = append(own, o.RestartCosts...); o.Startup > 0 {
				starts = append(starts, o.Startup)
			}
		}
	}
	if len(own) > 0 {
		return tuning.Median(own), len(own)
	}
	return max(tuning.Median(all), tuning.Median(starts)), len(all)
}

// PastRuns are the runs of a kind, the oldest first. That a disturbed run was there, what it was to
// try and how it ended counts.
func PastRuns(obs []Observation, kind tuning.JobKind, now time.Time) []tuning.PastRun {
	var out []tuning.PastRun
	for _, r := range runs(ofKind(obs, kind)) {
		p := tuning.PastRun{Trials: r.trials, Search: r.search}
		for _, o := range r.observations {
			p.Job = o.Job
			p.Age = days(o.At, now)
			p.Trying = p.Trying || o.Trying
			p.Epochs = max(p.Epochs, o.Epochs)
			p.Machine = cmp.Or(o.Machine, p.Machine)
			p.End = cmp.Or(o.End, p.End)
			p.Reached = cmp.Or(o.Reached, p.Reached)
			p.Adapted = cmp.Or(o.Adapted, p.Adapted)
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
	other := func(o Observation) bool { return o.Kind != kind }
	if !slices.ContainsFunc(obs, other) { // no copy of what a store has apart
		return obs
	}
	return slices.DeleteFunc(slices.Clone(obs), other)
}
