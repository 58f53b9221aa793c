package plan

import (
	"context"
	"slices"
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

// recall is what the controller's rooms answer of the same observations.
func (s *site) recall(now time.Time, q reconcile.Question) reconcile.Recollection {
	m := q.Policy.Measure()
	out := reconcile.Recollection{
		Knowledge: tuning.Knowledge{KindEffects: knowledge.Effects(s.seen, q.Kind, q.Own, m, now), Carried: knowledge.Carried(s.seen, q.Kind, q.Own, m, now), Regressed: knowledge.Regressions(s.seen, q.Kind)},
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

// Returned is what the jobs showed that came again, by what their earlier runs taught.
// Ratios are those of a Row, each to the same run under its owner's settings all the way.
type Returned struct {
	Jobs    int     `json:"jobs"`    // runs but the first of each
	Changed float64 `json:"changed"` // share that ran under other settings than its owner's from its start
	Moved   float64 `json:"moved"`   // share that was restarted at least once

	Paid      float64  `json:"paid"`
	Hurt      float64  `json:"hurt"`
	Ratio     float64  `json:"ratio"` // geometric mean
	PaidRatio *float64 `json:"paid_ratio"`
	HurtRatio *float64 `json:"hurt_ratio"`
	BestRatio float64  `json:"best_ratio"`
	Worst     float64  `json:"worst_ratio"`
	Last      float64  `json:"last_ratio"` // geometric mean of the last runs alone

	OracleRatio float64 `json:"oracle_ratio"`
	Final       string  `json:"final"` // settings of the last epoch of the first job's last run
}

// returns replays the runs of a job that come after its first, each of another length and
// luck, and adds what they cost.
func (in Input) returns(ctx context.Context, t table, epochs, seed int, s *site, sum *returning) error {
	for n := 1; n <= in.Returns; n++ {
		j := in.job(t, epochs, seed+n*in.Seeds)
		j.begins = time.Duration(n) * between
		c, err := replayAt(ctx, j, s)
		if err != nil {
			return err
		}
		sum.add(j, c, n == in.Returns)
	}
	return nil
}

// returning sums up what returned.
type returning struct {
	ratios, last   []float64
	changed, moved int
	final          string
}

func (r *returning) add(j Job, c Course, last bool) {
	ratio := j.ratio(c)
	r.ratios = append(r.ratios, ratio)
	if !c.Under[0].Equal(j.Own) {
		r.changed++
	}
	r.moved += min(c.Restarts, 1)
	if !last {
		return
	}
	r.last = append(r.last, ratio)
	if r.final == "" {
		r.final = c.Under[len(c.Under)-1].Key()
	}
}

// told is nil where nothing returned.
func (r *returning) told(oracle float64) *Returned {
	if len(r.ratios) == 0 {
		return nil
	}
	n := float64(len(r.ratios))
	paid, hurt := beyond(r.ratios, below), beyond(r.ratios, above)
	return &Returned{
		Jobs: len(r.ratios), Changed: float64(r.changed) / n, Moved: float64(r.moved) / n,
		Paid: float64(len(paid)) / n, Hurt: float64(len(hurt)) / n, Ratio: geometric(r.ratios),
		PaidRatio: meanOf(paid), HurtRatio: meanOf(hurt), BestRatio: slices.Min(r.ratios), Worst: slices.Max(r.ratios),
		Last: geometric(r.last), OracleRatio: oracle, Final: r.final,
	}
}
