package plan

import (
	"math"

	"pitchpipe/controller/tuning"
)

const (
	// lossShare is the share of its objective that failed tuning may cost a job, restarts and
	// epochs under worse settings included.
	lossShare = 0.05

	unknownEpochs = 40   // assumed of a job that does not report its number
	surelySlower  = 1.25 // a pace this far above max_slowdown surely breaks it
	hopeless      = 0.5  // epochs that cost this share more are not waited for

	// lookingOn is how many epochs a hopeless probe costs at least: the one that is thrown
	// away, and the time until that is clear.
	lookingOn = 1.25
)

// lossLimit is what tuning may cost the job, in epochs under its owner's settings. A probe serves the trials that follow.
func (s view) lossLimit(probe bool) float64 {
	epochs := float64(s.epochsInAll())
	if probe {
		epochs += s.following() / float64(max(s.Policy.Budget.Probes, 1))
	}
	return lossShare*epochs + s.proven()/2
}

func (s view) proven() float64 {
	if _, gained := s.winner(); !gained {
		return 0
	}
	return s.epochsAfterProbe() * max(-math.Expm1(s.BestGain+sure*s.BestError), 0)
}

func (s view) epochsInAll() int {
	if s.EpochsTotal > 0 {
		return s.EpochsTotal
	}
	return max(unknownEpochs, 2*s.EpochsDone)
}

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

func (s view) harm() float64 {
	if s.Toll == nil {
		return 0
	}
	return s.Toll.Harm
}

// stop is the stop-loss. The running epoch counts, disturbed or not. No budget of restarts forbids
// it, since those bound what is tried.
func stop(s view) (tuning.Decision, bool) {
	t := s.Toll
	if t == nil || s.Pending || s.Current.Equal(s.Own) || touchable(s.unbudgeted()) != tuning.ReasonNone {
		return tuning.Decision{}, false
	}
	pace, back, aim := t.Pace(), s.wayBack(), s.Policy.Quality
	// Leaving costs the time until the job saves or, if that is cheaper, the work since its
	// checkpoint, the running epoch included.
	leaving := t.Present.ToEnd() / t.Own
	redo := float64(t.Present.Done) + min(t.Present.Running/t.Own, 1)
	discard := s.Saved && redo < leaving
	if discard {
		leaving = redo
	}
	each := (t.Present.Epochs - back) / float64(t.Present.Done+1) // the first epoch loads the checkpoint
	reason := tuning.ReasonStopLoss
	switch {
	case s.Current.EqualButMemory(s.Own) && each <= hopeless:
		return tuning.Decision{}, false // enough memory slows nothing: the machine got slower
	case s.Policy.MaxSlowdown > 0 && pace > s.Policy.MaxSlowdown*surelySlower+back:
		reason = tuning.ReasonSlower
	case pace <= unknownSlowdown && aim != nil && aim.Target != nil && s.Policy.Relearns(s.Own, s.Current):
		return tuning.Decision{}, false // it may need fewer epochs to its target
	case t.Present.Epochs > 0 && t.Harm+back+leaving >= s.lossLimit(s.Probes > 0):
	case s.Probes > 0 && each > hopeless:
	default:
		return tuning.Decision{}, false
	}
	evidence := append([]tuning.Evidence{
		{Name: "pace", Value: pace},
		{Name: "attempt_loss_epochs", Value: t.Present.Epochs},
		{Name: "leaving_epochs", Value: leaving},
	}, s.lossEvidence(s.Probes > 0, tuning.Evidence{Name: "way_back_epochs", Value: back})...)
	// If little is left, or the loss is within what the first epoch of an attempt costs,
	// staying is cheaper than the way back.
	if float64(s.epochsInAll()-s.EpochsDone)*max(each, 0) <= back+leaving {
		return tuning.Decision{}, false
	}
	d := s.back(reason, evidence)
	d.Discard = discard
	return d, true
}

// lossEvidence is what was lost and would be besides, and what may be.
func (s view) lossEvidence(probe bool, besides ...tuning.Evidence) []tuning.Evidence {
	out := append([]tuning.Evidence{{Name: "loss_epochs", Value: s.harm()}}, besides...)
	out = append(out, tuning.Evidence{Name: "loss_limit_epochs", Value: s.lossLimit(probe)}, tuning.Evidence{Name: "loss_limit_share", Value: lossShare})
	if proven := s.proven(); proven > 0 {
		out = append(out, tuning.Evidence{Name: "proven_saving_epochs", Value: proven})
	}
	return out
}

const (
	// doubtMargin is how much an epoch must exceed the longest one that is expected.
	// Inputs of one kind differ: below a quarter that is the likelier cause, and a check
	// would cost two restarts.
	doubtMargin = 0.25

	// doubtEpochs is how many epochs a check needs at least: one may be a stall.
	doubtEpochs = 2
)

// doubt probes the owner's settings once on a job that runs clearly slower than its kind did
// untuned. Its input may be larger, so this is not a verdict.
func doubt(s view) (tuning.Decision, bool) {
	_, measured := tuning.Reference(s.Trials)
	// With other hyperparameters the epochs do different work, and cannot be compared.
	if s.Probes > 0 || measured || s.Current.Equal(s.Own) || !(s.KindSeconds > 0) || s.KindRuns < 1 || s.Policy.Relearns(s.Own, s.Current) {
		return tuning.Decision{}, false
	}
	t, ok := s.trialOf(s.Current)
	enough := max(doubtEpochs, s.Policy.Profile.Epochs)
	// The cheapest question first: are the epochs longer at all?
	if !ok || t.Epochs < enough || !(t.Seconds > s.KindSeconds*(1+doubtMargin)) || !(t.Seconds > s.unsurprising()) {
		return tuning.Decision{}, false
	}
	// Fewer cores may take as long as they like where only what they cost counts.
	if s.Policy.Measure().Priced() && s.Policy.MaxSlowdown == 0 {
		ratio, ok := t.LogRatio(tuning.Trial{Settings: s.Own, Seconds: s.KindSeconds}, s.Policy.Measure())
		if ok && math.Expm1(ratio) < doubtMargin {
			return tuning.Decision{}, false
		}
	}
	// If its kind's seconds hold for this job, every epoch after the probe saves this.
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

// unsurprising is how many seconds an epoch may take without a check.
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
