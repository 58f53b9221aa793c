package knowledge

import (
	"cmp"
	"slices"
	"time"

	"pitchpipe/controller/tuning"
)

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
