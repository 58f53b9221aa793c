package stages

import (
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/search"
	"pitchpipe/controller/tuning"
)

func returned(q reconcile.ReturnRequest) tuning.Returns { return returning(q).Propose() }

func breaks(q reconcile.ReturnRequest, s tuning.Settings) bool { return returning(q).Breaks(s) }

func stands(q reconcile.ReturnRequest, s tuning.Settings) (tuning.Outcome, bool) {
	return returning(q).Stands(s)
}

func returning(q reconcile.ReturnRequest) search.Returning {
	return search.Returning{
		Policy: q.Policy, Own: q.Own, Space: search.Space(q.Policy, q.Own, candidates), Past: q.Past, Avoid: q.Avoid,
		Underway: q.Underway, Modelled: q.Modelled, Unlikely: q.Unlikely,
	}
}
