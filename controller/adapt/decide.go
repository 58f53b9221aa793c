package adapt

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"pitchpipe/controller/tuning"
)

// Decide decides about the actions of a job that runs, by earlier runs of its kind. What the mode,
// the site or the scheduler forbids is advice.
func Decide(s tuning.State) tuning.Decision {
	a, d := s.Adaptation, tuning.Decision{Action: tuning.Hold, At: s.Now}
	left := float64(s.EpochsTotal - s.EpochsDone - 1) // the epoch that runs ends without it
	var alone []float64
	var runs []Run
	for _, past := range a.Past {
		switch {
		case past.Quality == nil:
		case len(past.Taken) == 0:
			alone = append(alone, *past.Quality)
		default:
			runs = append(runs, Run{Actions: past.Taken, Gain: *past.Quality})
		}
	}
	never := stat.Mean(alone, nil)
	switch {
	case s.EpochsTotal == 0:
		d.Reason = tuning.ReasonNoTotal
	case left < 1:
		d.Reason = tuning.ReasonTooShort
	case len(alone) == 0 || never == 0:
		d.Reason = tuning.ReasonOwnFirst
	}
	if d.Reason != tuning.ReasonNone {
		return d
	}
	for i := range runs {
		runs[i].Gain = (runs[i].Gain - never) / math.Abs(never)
		if s.Policy.Quality.Direction == "min" {
			runs[i].Gain *= -1
		}
	}
	c := Learn(runs).Choose(Question{Taken: a.Taken, Offered: s.Policy.Actions, Left: left, Decisions: ahead})
	d.Evidence = []tuning.Evidence{
		{Name: "epochs_to_go", Value: left}, {Name: "undisturbed_runs", Value: float64(len(alone))}, {Name: "adapted_runs", Value: float64(len(runs))},
	}
	name, reason := c.Action, tuning.ReasonActionKnown
	switch {
	case name != "":
		d.Evidence = append(d.Evidence, tuning.Evidence{Name: "action_gain", Value: c.Gain}, tuning.Evidence{Name: "action_standard_error", Value: c.SD})
	case len(a.Taken) == 0 && 2*left >= float64(s.EpochsTotal):
		name, reason = unexplored(s.Policy.Actions, a.Past), tuning.ReasonActionTried
	}
	if name == "" {
		d.Reason = tuning.ReasonActionDoubtful
		return d
	}
	want := tuning.Counts(append(slices.Clip(a.Taken), tuning.Taken{Name: name}))
	if d.Reason = s.MayAdapt(); d.Reason != tuning.ReasonNone {
		d.Advice = want
		return d
	}
	d.Action, d.Reason, d.Settings = tuning.Adapt, reason, want
	return d
}

// unexplored is an action that too few runs took to say what it brings, and that one more may try.
func unexplored(offered []tuning.Offer, past []tuning.Adapted) string {
	for _, o := range offered {
		tried := tuning.Sum(past, func(p tuning.Adapted) int { return min(1, tuning.Times(p.Taken, o.Name)) })
		if tried < o.Explore {
			return o.Name
		}
	}
	return ""
}
