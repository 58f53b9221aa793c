package reconcile

import (
	"context"

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
	// Curve asks for where the loss or quality is heading too, which takes longer. Lessons
	// are what such forecasts of ended jobs of the kind were worth, the oldest first.
	Curve   bool
	Lessons []tuning.CurveLesson
}

// forecast is what is left of the job; nil where nobody forecasts.
func (p *pass) forecast(policy tuning.Policy, current tuning.Settings, kind *tuning.Trial) *tuning.Forecast {
	if p.stages.Forecast == nil {
		return nil
	}
	p.reference = kind
	f := p.stages.Forecast(p.request(policy, current))
	return &f
}

func (p *pass) request(policy tuning.Policy, current tuning.Settings) ForecastRequest {
	return ForecastRequest{
		Policy: policy, Own: p.rec.Own, Current: current, Epochs: alike(p.rec.Epochs), Done: p.rec.Done(), Total: p.rec.Total,
		Kind: p.reference,
	}
}

// whole is the forecast with where the loss or quality is heading, by what was learned of
// such forecasts. What cannot be read of that is missing, and no more.
func (p *pass) whole(ctx context.Context, policy tuning.Policy, current tuning.Settings) *tuning.Forecast {
	q := p.request(policy, current)
	q.Curve, q.Lessons = true, p.lessons(ctx)
	f := p.stages.Forecast(q)
	return &f
}

func (p *pass) lessons(ctx context.Context) []tuning.CurveLesson {
	if p.stages.Curves == nil {
		return nil
	}
	out, err := p.stages.Curves(ctx, p.rec.Kind)
	if err != nil {
		p.cfg.Log.Warn("what forecasts were worth cannot be read", "job", p.rec.Job, "error", err)
	}
	return out
}

// teach is what forecasts of the job's curve were worth, now that it has ended. One that
// learned under several hyperparameters, or not to its end, teaches nothing about others.
func (p *pass) teach(ctx context.Context) []tuning.CurveLesson {
	if p.stages.Teach == nil {
		return nil
	}
	if _, ok := p.steady(); !ok {
		return nil
	}
	q := p.request(p.rec.Policy, p.rec.Settings(p.job.Attempt))
	q.Lessons = p.lessons(ctx)
	return p.stages.Teach(q)
}

// keep remembers what was decided and by what, and returns it. Where it is news it is
// decided once more with all that is worth telling about it: the planner does not act
// by a curve, and its reader wants to know where it leads. A state that cannot be
// written is no reason to do nothing: the decision stands, and cannot be made again.
func (p *pass) keep(ctx context.Context, s tuning.State, d tuning.Decision) tuning.Decision {
	waiting := d.Action == tuning.Hold && d.Reason == s.Measured && p.stages.Waits(d.Reason)
	if waiting || p.rec.repeats(d) {
		return d // that a profile is waited for is no news
	}
	if s.Forecast != nil {
		s.Forecast = p.whole(ctx, s.Policy, s.Current)
	}
	d = p.stages.Decide(s)
	changed, err := p.rec.keep(s, d)
	if err != nil {
		p.cfg.Log.Debug("a decision cannot be replayed", "job", p.rec.Job, "error", err)
	}
	p.dirty = p.dirty || changed
	return d
}
