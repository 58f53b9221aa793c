package reconcile

import (
	"pitchpipe/controller/tuning"
)

// ForecastRequest is what is known of a job whose rest is to be forecast.
type ForecastRequest struct {
	Policy  tuning.Policy
	Own     tuning.Settings
	Current tuning.Settings
	Epochs  []tuning.Epoch // those that can be compared with each other
	Done    int
	Total   int           // 0 = unknown
	Kind    *tuning.Trial // what the newest untuned job of the kind measured; nil: none did
	// Curve asks for where the loss or quality is heading too, which takes longer.
	Curve bool
}

// forecast is what is left of the job; nil where nobody forecasts.
func (p *pass) forecast(policy tuning.Policy, current tuning.Settings, kind *tuning.Trial, curve bool) *tuning.Forecast {
	if p.stages.Forecast == nil {
		return nil
	}
	p.reference = kind
	f := p.stages.Forecast(ForecastRequest{
		Policy: policy, Own: p.rec.Own, Current: current, Epochs: alike(p.rec.Epochs), Done: p.rec.Done(), Total: p.rec.Total,
		Kind: kind, Curve: curve,
	})
	return &f
}

// keep remembers what was decided and by what, and returns it. Where it is news it is
// decided once more with all that is worth telling about it: the planner does not act
// by a curve, and its reader wants to know where it leads. A state that cannot be
// written is no reason to do nothing: the decision stands, and cannot be made again.
func (p *pass) keep(s tuning.State, d tuning.Decision) tuning.Decision {
	waiting := d.Action == tuning.Hold && d.Reason == s.Measured && p.stages.Waits(d.Reason)
	if waiting || p.rec.repeats(d) {
		return d // that a profile is waited for is no news
	}
	if s.Forecast != nil {
		s.Forecast = p.forecast(s.Policy, s.Current, p.reference, true)
		d = p.stages.Decide(s)
	}
	changed, err := p.rec.keep(s, d)
	if err != nil {
		p.cfg.Log.Debug("a decision cannot be replayed", "job", p.rec.Job, "error", err)
	}
	p.dirty = p.dirty || changed
	return d
}
