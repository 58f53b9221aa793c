package replay

import (
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
)

// never are the stages of a controller that only looks.
func never(j Job) (Job, reconcile.Stages) {
	j.Policy.Mode = tuning.Observe
	return j, reconcile.DefaultStages()
}

// always are the stages of a controller that tries what the search proposes, goes to the
// best that it saw, and never asks whether that pays.
func always(j Job) (Job, reconcile.Stages) {
	s := reconcile.DefaultStages()
	s.Choose, s.Explain = goToBest, func(_ tuning.State, d tuning.Decision) tuning.Decision { return d }
	return j, s
}

func goToBest(s tuning.State) tuning.Decision {
	d := tuning.Decision{Action: tuning.Hold, At: s.Now}
	switch {
	case s.Pending:
		d.Reason = tuning.ReasonFirstSeen
	case s.Measured != tuning.ReasonNone:
		d.Reason = s.Measured
	case s.NextReason == tuning.ReasonNone && s.Probes < s.Policy.Budget.Probes && !s.Next.Equal(s.Current):
		d.Action, d.Reason, d.Settings = tuning.Probe, tuning.ReasonUnknownProbe, s.Next
	default:
		d.Reason = tuning.ReasonAlreadyBest
		if best := bestSeen(s); !best.Equal(s.Current) {
			d.Action, d.Reason, d.Settings = tuning.Move, tuning.ReasonProbeWon, best
		}
	}
	return d
}

// bestSeen are the settings that measured best, the owner's among them.
func bestSeen(s tuning.State) tuning.Settings {
	own, ok := tuning.Reference(s.Trials)
	if !ok || s.Best == nil {
		return s.Own
	}
	if gain, ok := s.Best.LogRatio(own, s.Policy.Measure()); !ok || gain >= 0 {
		return s.Own
	}
	return s.Best.Settings
}
