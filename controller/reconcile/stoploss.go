package reconcile

import (
	"cmp"
	"context"
	"slices"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

func (p *reconciliation) trials() []tuning.Trial {
	return tuning.TrialsOf(alike(p.course()), p.rec.Own)
}

// course is every epoch of the job, cut ones included.
func (p *reconciliation) course() []tuning.Epoch {
	if len(p.rec.Cut) == 0 {
		return p.rec.Epochs
	}
	out := slices.Concat(p.rec.Epochs, p.rec.Cut)
	slices.SortStableFunc(out, func(a, b tuning.Epoch) int {
		return cmp.Or(cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Number, b.Number))
	})
	return out
}

// An untuned epoch that was not measured is taken to last as long as for the kind.
func (p *reconciliation) toll(trials []tuning.Trial, kindSeconds float64) *tuning.Toll {
	own, measured := tuning.Reference(trials)
	if !measured {
		own = tuning.Trial{Settings: p.rec.Own, Epochs: 1, Seconds: kindSeconds, Reference: true}
	}
	c := tuning.Course{
		Policy: p.rec.Policy, Own: p.rec.Own, Current: p.rec.Settings(p.job.Attempt), Attempt: p.job.Attempt,
		Reference: own, Kind: !measured, Epochs: alike(p.course()), Running: p.job.State == driver.Running, Now: p.now,
		Ours: func(attempt int) bool { return p.rec.run(attempt).Action != tuning.Hold },
	}
	if n := len(p.job.Attempts); n > 0 {
		c.Started = p.job.Attempts[n-1].Started
	}
	return c.Toll()
}

// inputsDiffer is how many times as long as for its kind an epoch may last because of a
// larger input: so much is not blamed on a setting while the job runs.
const inputsDiffer = 1.25

func (p *reconciliation) total(ctx context.Context) *tuning.Toll {
	if !p.rec.touched() {
		return nil
	}
	known, err := p.recall(ctx, p.rec.Policy, p.services.Site(p.job))
	if err != nil {
		p.cfg.Log.Warn("what its kind takes untuned is unknown", "job", p.rec.Job, "error", err)
	}
	return p.toll(p.trials(), known.KindSeconds)
}

// watch is the stop-loss: it takes a job off a setting that costs too much.
func (p *reconciliation) watch(ctx context.Context) (stopped bool, err error) {
	if p.job.State != driver.Running || p.rec.Phase == Changing || p.rec.Expired >= expiries ||
		p.rec.Settings(p.job.Attempt).Equal(p.rec.Own) || !slices.Contains(Arrows(), Arrow{p.rec.Phase, Changing, StopLoss}) {
		return false, nil
	}
	// Without a toll the job itself cannot show what the attempt costs.
	if toll := p.toll(p.trials(), 0); toll != nil && toll.Present.Epochs <= 0 && (p.rec.Policy.MaxSlowdown <= 0 || toll.Pace() <= p.rec.Policy.MaxSlowdown) {
		return false, nil
	}
	d, err := p.decide(ctx)
	losing := d.Reason == tuning.ReasonStopLoss || d.Reason == tuning.ReasonSlower
	if err != nil || !losing || d.Action != tuning.RollBack && d.Action != tuning.Move {
		return false, err
	}
	return true, p.begin(ctx, StopLoss, d)
}

// stopped remembers the setting. If others disturbed the job, it is not barred for good.
func (p *reconciliation) stopped(d tuning.Decision) {
	left := p.rec.Settings(p.job.Attempt)
	p.rec.Outcome = &tuning.Outcome{
		Verdict: tuning.Regressed, Reason: d.Reason, Measure: p.rec.Policy.Objective, Baseline: p.rec.Own, Tuned: left, At: p.now,
	}
	cut := tuning.Epoch{
		Number: p.rec.Done() + 1, Attempt: p.job.Attempt, Start: p.job.Attempts[len(p.job.Attempts)-1].Started, End: p.now,
		Settings: left, Machine: kindOf(p.rec.Epochs), Cut: true,
	}
	disturbed := p.measured == tuning.ReasonPolluted
	for _, e := range p.rec.Epochs {
		if e.Attempt == p.job.Attempt {
			cut.Start = e.End
			disturbed = disturbed || e.Polluted
		}
	}
	if d.Discard { // else the epoch ends and is measured
		p.rec.Cut = append(p.rec.Cut, cut)
	}
	if !disturbed && !slices.ContainsFunc(p.rec.Harmed, left.WithoutMemory().Equal) {
		p.rec.Harmed = append(p.rec.Harmed, left.WithoutMemory())
	}
}
