package plan

import (
	"math"

	"pitchpipe/controller/tuning"
)

const (
	// lossShare is the share of its objective that tuning may cost a job where it does not
	// work out: restarts and epochs under worse settings included.
	lossShare = 0.05

	unknownEpochs = 40   // that a job has at least which does not say so
	surelySlower  = 1.25 // a pace so far above the owner's max_slowdown is beyond it for sure
	hopeless      = 0.5  // epochs dearer by so large a share need not be waited for

	// lookingOn is how many epochs a probe that turns out hopeless costs at least: the one
	// that is thrown away, and the time until that is clear.
	lookingOn = 1.25
)

// lossLimit is what tuning may cost the whole job, in epochs under its owner's settings: a
// share of it, and half of what its best measured setting surely saves of the rest.
func (s view) lossLimit() float64 {
	return lossShare*float64(s.epochsInAll()) + s.proven()/2
}

// proven is what the best measured setting surely saves of the rest, in such epochs.
func (s view) proven() float64 {
	if _, gained := s.winner(); !gained {
		return 0
	}
	return s.epochsAfterProbe() * max(-math.Expm1(s.BestGain+sure*s.BestError), 0)
}

// epochsInAll are those of the job, where it does not say so a guess.
func (s view) epochsInAll() int {
	if s.EpochsTotal > 0 {
		return s.EpochsTotal
	}
	return max(unknownEpochs, 2*s.EpochsDone)
}

// wayBack is what one restart costs, in epochs under the owner's settings.
func (s view) wayBack() float64 {
	own := s.epoch().Value
	if s.Toll != nil {
		own = s.Toll.Own
	}
	if !(own > 0) {
		return 0
	}
	return s.factors() * s.price().Seconds() / own
}

// harm is what tuning cost where it did not work out, so far.
func (s view) harm() float64 {
	if s.Toll == nil {
		return 0
	}
	return s.Toll.Harm
}

// stop is the stop-loss: a job leaves at once a setting that costs it more than tuning may, is
// hopeless, or is surely slower than its owner allows. The running epoch counts, disturbed or
// not. No budget of restarts holds it: those bound what is tried.
func stop(s view) (tuning.Decision, bool) {
	t := s.Toll
	if t == nil || s.Pending || s.Current.Equal(s.Own) || touchable(s.unbudgeted()) != tuning.ReasonNone {
		return tuning.Decision{}, false
	}
	pace, back, aim := t.Pace(), s.wayBack(), s.Policy.Quality
	// Leaving costs the time until the job saves, or where that is cheaper what it has done
	// since its checkpoint, the running epoch included.
	leaving := t.Present.ToEnd() / t.Own
	redo := float64(t.Present.Done) + min(t.Present.Running/t.Own, 1)
	discard := s.Saved && redo < leaving
	if discard {
		leaving = redo
	}
	each := (t.Present.Epochs - back) / float64(t.Present.Done+1) // its first epoch loads what was saved
	reason := tuning.ReasonStopLoss
	switch {
	case s.Current.EqualButMemory(s.Own) && each <= hopeless:
		return tuning.Decision{}, false // memory that suffices slows nothing: the machine is slower than it was
	case s.Policy.MaxSlowdown > 0 && pace > s.Policy.MaxSlowdown*surelySlower+back:
		reason = tuning.ReasonSlower
	case pace <= unknownSlowdown && aim != nil && aim.Target != nil && s.Policy.Relearns(s.Own, s.Current):
		return tuning.Decision{}, false // it may need fewer epochs to its target, which none of these can show
	case t.Present.Epochs > 0 && t.Harm+back+leaving >= s.lossLimit():
	case s.Probes > 0 && each > hopeless:
	default:
		return tuning.Decision{}, false
	}
	evidence := append([]tuning.Evidence{
		{Name: "pace", Value: pace},
		{Name: "attempt_loss_epochs", Value: t.Present.Epochs},
		{Name: "leaving_epochs", Value: leaving},
	}, s.lossEvidence()...)
	// Where little is left, or what was lost is within what the first epoch of an attempt
	// costs, staying is cheaper than the way back.
	if float64(s.epochsInAll()-s.EpochsDone)*max(each, 0) <= back+leaving {
		return tuning.Decision{}, false
	}
	d := s.back(reason, evidence)
	d.Discard = discard
	return d, true
}

// lossEvidence is what the stop-loss decides by.
func (s view) lossEvidence() []tuning.Evidence {
	out := []tuning.Evidence{
		{Name: "loss_epochs", Value: s.harm()},
		{Name: "way_back_epochs", Value: s.wayBack()},
		{Name: "loss_limit_epochs", Value: s.lossLimit()},
		{Name: "loss_limit_share", Value: lossShare},
	}
	if proven := s.proven(); proven > 0 {
		out = append(out, tuning.Evidence{Name: "proven_saving_epochs", Value: proven})
	}
	return out
}

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

// unsurprising is how long an epoch may take without doubt: as long as untuned jobs of the
// kind, times what the owner allows or the setting is known or sure to cost, and the margin.
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
