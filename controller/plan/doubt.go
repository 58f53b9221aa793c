package plan

import (
	"math"

	"pitchpipe/controller/tuning"
)

const (
	// doubtMargin is by how much an epoch must be longer than the longest that would
	// be no surprise. Two runs of one job differ by a few percent (betweenRuns), and
	// inputs of one kind by more than that: below a quarter, another input is the
	// likelier cause, and the doubt would cost two restarts to learn so. A setting
	// that is wrong for a job costs more than a quarter where it matters: half of
	// the cores, or a batch that no longer fits a cache.
	doubtMargin = 0.25

	// doubtEpochs is how many epochs a doubt needs at least: one may be a stall.
	doubtEpochs = 2
)

// doubt tries the owner's settings on a job that was changed before its start
// and runs clearly slower than its kind did untuned. Such a job has no
// measurement of its own to be compared with; another input may be larger, so
// the doubt is no verdict but a probe, with every limit of one. A job that has
// been probed, or has run under its owner's settings, is not doubted (again).
func doubt(s view) (tuning.Decision, bool) {
	t, ok := s.doubtful()
	if !ok {
		return tuning.Decision{}, false
	}
	// If its kind's seconds are its own, every epoch after the probe saves this.
	saving := s.epochsAfterProbe() * (t.Seconds - s.KindSeconds)
	evidence := append([]tuning.Evidence{
		{Name: "epoch_seconds", Value: t.Seconds},
		{Name: "kind_untuned_epoch_seconds", Value: s.KindSeconds},
		{Name: "kind_untuned_runs", Value: float64(s.KindRuns)},
		{Name: "doubted_above_seconds", Value: s.unsurprising()},
		{Name: "epochs_measured", Value: float64(t.Epochs)},
	}, worth(s, saving, 2)...)
	if r := s.mayProbe(saving); r != tuning.ReasonNone {
		return hold(s, r, evidence...), true
	}
	return decide(s, tuning.Probe, tuning.ReasonDoubted, s.Own, evidence...), true
}

// doubtful returns the trial of the present setting where it is a reason to
// doubt.
func (s view) doubtful() (tuning.Trial, bool) {
	if s.Probes > 0 || s.Current.Equal(s.Own) || !(s.KindSeconds > 0) || s.KindRuns < 1 {
		return tuning.Trial{}, false
	}
	if s.Policy.Relearns(s.Own, s.Current) {
		return tuning.Trial{}, false // its epochs do other work, and it goes on with what it began to learn
	}
	if _, measured := tuning.Reference(s.Trials); measured {
		return tuning.Trial{}, false
	}
	t, ok := s.trialOf(s.Current)
	enough := max(doubtEpochs, s.Policy.Profile.Epochs)
	// It costs the least to ask first whether the epochs are longer at all.
	return t, ok && t.Epochs >= enough && t.Seconds > s.KindSeconds*(1+doubtMargin) && t.Seconds > s.unsurprising()
}

// unsurprising is how long an epoch may take without doubt: as long as untuned
// jobs of the kind, times what the owner allows, or what the setting is known,
// or predicted for sure, to cost in time where it was chosen for joules, and the margin.
func (s view) unsurprising() float64 {
	slower := max(1, s.Policy.MaxSlowdown)
	for _, e := range s.KindEffects {
		if s.target(s.usable(e.Settings)).EqualButMemory(s.Current) {
			slower = max(slower, math.Exp(e.LogTime))
		}
	}
	if s.Profile != nil {
		if p := s.model().Predict(s.Current); p.Objective.Quantile(sure) < -noise {
			slower = max(slower, math.Exp(p.Time.Mean))
		}
	}
	return s.KindSeconds * slower * (1 + doubtMargin)
}
