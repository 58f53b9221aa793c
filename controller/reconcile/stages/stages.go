package stages

import (
	"pitchpipe/controller/plan"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/resubmit"
	"pitchpipe/controller/search"
	"pitchpipe/controller/tuning"
	"pitchpipe/controller/verify"
)

// Pure returns the stages that compute; those that know the world are nil.
func Pure() reconcile.Stages {
	return reconcile.Stages{
		Propose: propose, Forecast: left, Teach: teach, Refused: refused, Choose: plan.Choose, Decide: plan.Decide, Unlikely: plan.Unlikely, Waits: plan.Waits,
		Return: returned, Breaks: breaks, Stands: stands, Intent: resubmit.Intent, Settings: resubmit.Settings, Compare: compare,
	}
}

// candidates is into how many values a range is divided for probing.
const candidates = 5

func propose(q reconcile.ProposeRequest) reconcile.Proposal {
	var out reconcile.Proposal
	study := search.Study{
		Policy: q.Policy, Own: q.Own, Space: search.Space(q.Policy, q.Own, candidates), Trials: q.Trials, Avoid: q.Avoid,
	}
	out.Next, out.Reason = study.Next()
	out.All = study.All()
	if gain, ok := study.Best(); ok {
		out.Best, out.Gain, out.GainSE = &gain.Trial, gain.Expected, gain.SE
	}
	return out
}

// refused says why the owner would not accept a setting, as far as it was tried.
func refused(p tuning.Policy, trials []tuning.Trial, s tuning.Settings) tuning.Reason {
	reference, ok := tuning.Reference(trials)
	if !ok {
		return tuning.ReasonNone
	}
	for _, t := range trials {
		if !t.Reference && t.Settings.Equal(s) {
			return search.Refusal(t, reference, p)
		}
	}
	return tuning.ReasonNone
}

func compare(c reconcile.Comparison) tuning.Outcome {
	in := verify.Input{
		Before: c.Before, After: c.After,
		Measure: c.Policy.Measure(), MaxSlowdown: c.Policy.MaxSlowdown,
		Quality: c.Policy.Quality, EnforceModelled: c.Site.EnforceModel, Baseline: c.Own, Tuned: c.Tuned, At: c.Now, Candidates: c.Tried,
	}
	out := verify.Compare(in)
	if c.Policy.Relearns(c.Own, c.Tuned) && out.Reason != tuning.ReasonQualityLost {
		out.Verdict, out.Reason = tuning.Inconclusive, tuning.ReasonWholeRuns // its epochs did other work
	}
	return out
}
