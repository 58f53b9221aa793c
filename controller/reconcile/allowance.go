package reconcile

import (
	"time"

	"pitchpipe/controller/tuning"
)

// Allowance is what an attempt may use. The exporter of its node alerts when the attempt is
// about to use more; it stops nothing.
type Allowance struct {
	Energy   tuning.Joules // of all attempts together; 0 = unbounded
	Used     tuning.Joules // of these by earlier attempts, as far as their epochs were measured
	Time     time.Duration // of the attempt's wall time; 0 = unknown
	Modelled bool          // the site lets modelled joules count
}

// allowance is the Allowance of an attempt. The stanza's budget of time covers all attempts;
// the scheduler's limit counts if it comes first.
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
		limit = max(limit, time.Second) // used up; 0 would mean unknown
		if out.Time <= 0 || limit < out.Time {
			out.Time = limit
		}
	}
	return out
}
