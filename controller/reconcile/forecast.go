package reconcile

import (
	"context"

	"pitchpipe/controller/forecast"
	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
)

// kind is what the newest untuned job of its kind measured, if any.
func (p *reconciliation) forecast(policy tuning.Policy, current tuning.Settings, kind *tuning.Trial) *tuning.Forecast {
	p.reference = kind
	f := p.stages.Forecast(p.work(policy, current))
	return &f
}

func (p *reconciliation) work(policy tuning.Policy, current tuning.Settings) forecast.Work {
	w := forecast.Work{
		Epochs: alike(p.rec.Epochs), Own: p.rec.Own, Current: current, Done: p.rec.Done(), Total: p.rec.Total, Learns: policy.Learns,
	}
	if policy.Quality != nil {
		w.Direction = forecast.Direction(policy.Quality.Direction)
	}
	if t := p.reference; t != nil && t.Settings.Equal(p.rec.Own) {
		w.Kind = t
	}
	return w
}

// whole is the forecast with the curve, corrected by how good such forecasts were.
func (p *reconciliation) whole(ctx context.Context, policy tuning.Policy, current tuning.Settings) *tuning.Forecast {
	w := p.work(policy, current)
	w.Curve, w.Lessons = true, p.lessons(ctx)
	f := p.stages.Forecast(w)
	return &f
}

func (p *reconciliation) lessons(ctx context.Context) []tuning.CurveLesson {
	if p.services.Curves == nil {
		return nil
	}
	out, err := p.services.Curves(ctx, p.rec.Kind)
	if err != nil {
		p.cfg.Log.Warn("the errors of earlier forecasts cannot be read", "job", p.rec.Job, "error", err)
	}
	return out
}

// A job that changed its hyperparameters or did not reach its end teaches nothing.
func (p *reconciliation) teach(ctx context.Context) []tuning.CurveLesson {
	if _, ok := p.steady(); !ok {
		return nil
	}
	w := p.work(p.rec.Policy, p.rec.Settings(p.job.Attempt))
	w.Lessons = p.lessons(ctx)
	return p.stages.Teach(w)
}

// record keeps a new decision and its state for replay, and adds what was considered. The
// planner does not use the curve, so it is fitted only here. A state that cannot be written
// only cannot be replayed.
func (p *reconciliation) record(ctx context.Context, s tuning.State, d tuning.Decision) tuning.Decision {
	waiting := d.Action == tuning.Hold && d.Reason == s.Measured && plan.Waits(d.Reason)
	if waiting || p.rec.repeats(d) {
		return d // waiting for a profile is no news
	}
	s.Forecast = p.whole(ctx, s.Policy, s.Current)
	d = p.stages.Explain(s, d)
	changed, err := p.rec.addDecision(s, d)
	if err != nil {
		p.cfg.Log.Debug("a decision cannot be replayed", "job", p.rec.Job, "error", err)
	}
	p.dirty = p.dirty || changed
	return d
}
