package reconcile

import (
	"cmp"
	"context"
	"slices"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// trials are the measurements under each setting, on comparable machines.
func (p *reconciliation) trials() []tuning.Trial {
	return tuning.TrialsOf(alike(p.course()), p.rec.Own)
}

// course is every epoch of the job, cut ones included, by attempt and number.
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

// toll is what tuning has cost the job. If its owner's settings were not measured in it, an
// untuned epoch is taken to last as long as for its kind.
func (p *reconciliation) toll(trials []tuning.Trial, kindSeconds float64) (tuning.Toll, bool) {
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

// total is the toll of an ended job; nil: it was not tuned, or its owner's settings were
// measured neither in it nor in its kind.
func (p *reconciliation) total(ctx context.Context) *tuning.Toll {
	if !p.rec.touched() {
		return nil
	}
	known, err := p.services.Recall(ctx, Question{
		Kind: p.rec.Kind, Own: p.rec.Own, Policy: p.rec.Policy, Site: p.services.Site(p.job), Node: p.rec.Node(p.job.Attempt),
	})
	if err != nil {
		p.cfg.Log.Warn("what its kind takes untuned is unknown", "job", p.rec.Job, "error", err)
	}
	toll, ok := p.toll(p.trials(), known.KindSeconds)
	if !ok {
		return nil
	}
	return &toll
}

// watch is the stop-loss: in any phase, it takes a job off another setting than its owner's
// at once if that costs too much.
func (p *reconciliation) watch(ctx context.Context) (stopped bool, err error) {
	if p.job.State != driver.Running || p.rec.Phase == Changing || p.rec.Expired >= expiries ||
		p.rec.Settings(p.job.Attempt).Equal(p.rec.Own) || !slices.Contains(Arrows(), Arrow{p.rec.Phase, Changing, StopLoss}) {
		return false, nil
	}
	// Without a toll the job itself cannot show what the attempt costs.
	if toll, ok := p.toll(p.trials(), 0); ok && toll.Present.Epochs <= 0 && (p.rec.Policy.MaxSlowdown <= 0 || toll.Pace() <= p.rec.Policy.MaxSlowdown) {
		return false, nil
	}
	d, err := p.decide(ctx)
	losing := d.Reason == tuning.ReasonStopLoss || d.Reason == tuning.ReasonSlower
	if err != nil || !losing || d.Action != tuning.RollBack && d.Action != tuning.Move {
		return false, err
	}
	return true, p.begin(ctx, StopLoss, d)
}

// stopped remembers the setting that the stop-loss left. If others disturbed the job, the
// setting may not be to blame: its trial counts, and it is not barred for good.
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
