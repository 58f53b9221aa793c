package reconcile

import (
	"time"

	"pitchpipe/controller/tuning"
)

// Allowance is what an attempt may use, so that whoever watches its node can tell that
// it is about to use more. It stops nothing.
type Allowance struct {
	Energy   tuning.Joules // of all attempts together; 0 = unbounded
	Used     tuning.Joules // of these by earlier attempts, as far as their epochs were measured
	Time     time.Duration // of the attempt's wall time; 0 = not known
	Modelled bool          // the site lets modelled joules count
}

// allowance is that of an attempt. Its time is what the stanza's budget, which covers
// all attempts, leaves of it, or the scheduler's limit where that is nearer.
func (p *reconciliation) allowance(attempt int) Allowance {
	out := Allowance{Energy: p.rec.Policy.Budget.Energy}
	if out.Energy <= 0 {
		return Allowance{}
	}
	out.Modelled = p.services.Site(p.job).EnforceModel
	for _, e := range p.rec.Epochs {
		if e.Attempt < attempt && e.Joules != nil && (out.Modelled || e.Source != tuning.Modelled) {
			out.Used += *e.Joules
		}
	}
	out.Time = p.job.Resources.TimeLimit
	if limit := p.rec.Policy.Budget.Time; limit > 0 {
		for _, a := range p.job.Attempts {
			if a.Number < attempt && !a.Started.IsZero() && a.Ended.After(a.Started) {
				limit -= a.Ended.Sub(a.Started)
			}
		}
		limit = max(limit, time.Second) // it is used up, which is not the same as unknown
		if out.Time <= 0 || limit < out.Time {
			out.Time = limit
		}
	}
	return out
}
