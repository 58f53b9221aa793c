package plan

import (
	"math"

	"pitchpipe/controller/tuning"
)

const (
	// doubtMargin is by how much an epoch must be longer than the longest that would be no
	// surprise. Inputs of one kind differ: below a quarter that is the likelier cause, and
	// the doubt would cost two restarts to learn so.
	doubtMargin = 0.25

	// doubtEpochs is how many epochs a doubt needs at least: one may be a stall.
	doubtEpochs = 2
)

// doubt tries the owner's settings, once, on a job that was changed before its start and runs
// clearly slower than its kind did untuned. It has no measurement of its own to be compared
// with, and its input may be larger: that is no verdict but a probe, with every limit of one.
func doubt(s view) (tuning.Decision, bool) {
	_, measured := tuning.Reference(s.Trials)
	// Where it learns otherwise its epochs do other work, and it goes on as it began.
	if s.Probes > 0 || measured || s.Current.Equal(s.Own) || !(s.KindSeconds > 0) || s.KindRuns < 1 || s.Policy.Relearns(s.Own, s.Current) {
		return tuning.Decision{}, false
	}
	t, ok := s.trialOf(s.Current)
	enough := max(doubtEpochs, s.Policy.Profile.Epochs)
	// It costs the least to ask first whether the epochs are longer at all.
	if !ok || t.Epochs < enough || !(t.Seconds > s.KindSeconds*(1+doubtMargin)) || !(t.Seconds > s.unsurprising()) {
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
