package reconcile

import (
	"context"

	"pitchpipe/controller/forecast"
	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
)

// forecast is what is left of the job. kind is what the newest untuned job of its kind
// measured, nil where none did.
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

// whole is the forecast with where the loss or quality is heading, by what was learned of
// such forecasts. What cannot be read of that is missing, and no more.
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
		p.cfg.Log.Warn("what forecasts were worth cannot be read", "job", p.rec.Job, "error", err)
	}
	return out
}

// teach is what forecasts of the job's curve were worth, now that it has ended. One that
// learned under several hyperparameters, or not to its end, teaches nothing about others.
func (p *reconciliation) teach(ctx context.Context) []tuning.CurveLesson {
	if _, ok := p.steady(); !ok {
		return nil
	}
	w := p.work(p.rec.Policy, p.rec.Settings(p.job.Attempt))
	w.Lessons = p.lessons(ctx)
	return p.stages.Teach(w)
}

// record adds a decision that is new together with its state, so that it can be replayed,
// and returns it with all that was considered. The planner does not act by the curve, so
// the curve is fitted only here, for the reader. A state that cannot be written stops
// nothing: the decision stands, and cannot be replayed.
func (p *reconciliation) record(ctx context.Context, s tuning.State, d tuning.Decision) tuning.Decision {
	waiting := d.Action == tuning.Hold && d.Reason == s.Measured && plan.Waits(d.Reason)
	if waiting || p.rec.repeats(d) {
		return d // that a profile is waited for is no news
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
