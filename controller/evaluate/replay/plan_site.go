package replay

import (
	"time"

	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
)

// between is after what time a job comes again.
const between = 7 * 24 * time.Hour

// site is what the runs of one job taught so far, as the controller keeps and derives it.
// Classes are not among it: tables of trials have no profiles.
type site struct{ seen []knowledge.Observation }

// recall is what the controller's stages answer from the same observations.
func (s *site) recall(now time.Time, q reconcile.Question) reconcile.Recollection {
	m := q.Policy.Measure()
	out := reconcile.Recollection{
		Knowledge: tuning.Knowledge{
			KindEffects: knowledge.Effects(s.seen, q.Kind, q.Own, m, now),
			Carried:     knowledge.Carried(s.seen, q.Kind, q.Own, m, now),
			Regressed:   knowledge.Regressions(s.seen, q.Kind),
		},
	}
	out.KindSeconds, out.KindRuns = knowledge.KindSeconds(s.seen, q.Kind, q.Own)
	out.RestartCost, _ = knowledge.RestartCost(s.seen, q.Kind)
	if last, ok := knowledge.LastReference(s.seen, q.Kind); ok {
		out.Reference = &last
	}
	return out
}

func (s *site) past(now time.Time, kind tuning.JobKind) []tuning.PastRun {
	return knowledge.PastRuns(s.seen, kind, now)
}

// learn keeps what a run taught.
func (s *site) learn(machine string, o knowledge.Observation) {
	o.Machine, o.Profiles, o.Peak = machine, nil, 0
	s.seen = append(s.seen, o)
}
