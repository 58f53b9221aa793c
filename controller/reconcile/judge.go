package reconcile

import (
	"context"
	"slices"
	"time"

	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// recheck asks for a probe of the owner's settings where no comparison within the job can show
// that a recalled setting is worse.
func (p *reconciliation) recheck(ctx context.Context) error {
	own := func(e tuning.Epoch) bool { return e.Settings.Equal(p.rec.Own) }
	if !p.grew || p.rec.Phase != Verifying || !p.rec.Recalled() || p.rec.Expired >= expiries || slices.ContainsFunc(p.rec.Epochs, own) {
		return nil
	}
	d, err := p.decide(ctx)
	if err == nil && d.Action == tuning.Probe && d.Reason == tuning.ReasonDoubted {
		err = p.begin(ctx, DecidedChange, d)
	}
	return err
}

// spread gives a trial that runs on fewer cores more of them once no other waits for cores. It is judged by what it was
// chosen by, and decided by what its search shares now.
func (p *reconciliation) spread(ctx context.Context) (bool, error) {
	t := p.rec.Policy.TrialOf
	if !p.grew || t == nil || t.Share.Cores == 0 || p.services.Share == nil || p.rec.Expired >= expiries {
		return false, nil
	}
	now := *t
	if now.Share = p.services.Share(t.ID); !now.Share.Fit(p.rec.Own) {
		return false, nil
	}
	p.rec.Policy.TrialOf = &now
	d, err := p.decide(ctx)
	p.rec.Policy.TrialOf = t
	if err != nil || d.Action != tuning.RollBack && d.Action != tuning.Move || !more(p.rec.Settings(p.job.Attempt), d.Settings) {
		return false, err
	}
	return true, p.begin(ctx, DecidedChange, d)
}

// judgeAtEnd judges what could not be judged while the job ran.
func (p *reconciliation) judgeAtEnd(ctx context.Context) error {
	if !p.rec.Recalled() {
		return nil
	}
	current := p.rec.Settings(p.job.Attempt)
	if current.Equal(p.rec.Own) {
		if o, ok := p.compareWith(p.rec.Settings(1), time.Time{}); ok && o.Verdict == tuning.Regressed {
			p.rec.Outcome = &o
		}
		return nil
	}
	past, err := p.past(ctx)
	if err != nil {
		return err
	}
	p.compareWithKind(past, current)
	final := p.final()
	if final == nil || !p.rec.Policy.Relearns(p.rec.Own, current) {
		return nil
	}
	past = append(slices.Clip(past), tuning.PastRun{Began: current, End: tuning.EndReached, Quality: &final.Quality})
	if !p.stages.Breaks(returning(p.rec.Policy, p.rec.Own, past), current) {
		return nil
	}
	known := p.rec.Outcome
	if known != nil && !known.Tuned.Equal(current) {
		known = nil
	}
	p.regressed(current, tuning.ReasonQualityLost, known)
	return nil
}

// regressed notes that a setting made the job worse, with what was measured of it before.
func (p *reconciliation) regressed(tuned tuning.Settings, why tuning.Reason, known *tuning.Outcome) {
	o := tuning.Outcome{Measure: p.rec.Policy.Measure().Objective, Baseline: p.rec.Own, At: p.now}
	if known != nil {
		o = *known
	}
	o.Verdict, o.Reason, o.Tuned = tuning.Regressed, why, tuned
	p.rec.Outcome, p.dirty = &o, true
}

// compareWithKind compares a job that ran under a recalled setting with untuned runs of its kind.
func (p *reconciliation) compareWithKind(past []tuning.PastRun, current tuning.Settings) {
	if o := p.rec.Outcome; o != nil && o.Verdict != tuning.Inconclusive || len(p.rec.Runs) > 1 || p.polluted() {
		return
	}
	past = append(slices.Clip(past), tuning.PastRun{
		Job: string(p.rec.Job), Machine: kindOf(p.rec.Epochs), Began: current, Trials: p.rec.Trials(), Epochs: p.rec.Done(), End: p.end(),
	})
	site := p.services.Site(p.job)
	q := returning(site.Narrow(p.rec.Policy, p.rec.Own), p.rec.Own, past)
	q.Modelled = site.EnforceModel
	if o, ok := p.stages.Stands(q, current); ok {
		o.At = p.now
		p.rec.Outcome = &o
		p.add(Entry{Reason: o.Reason, Outcome: &o, Attempt: p.job.Attempt})
	}
}

func (p *reconciliation) final() *knowledge.Final {
	settings, ok := p.steady()
	if !ok {
		return nil
	}
	for _, e := range slices.Backward(p.rec.Epochs) {
		if e.Number == p.rec.Total && e.Quality != nil {
			return &knowledge.Final{Settings: settings, Epochs: e.Number, Quality: *e.Quality}
		}
	}
	return nil
}

// steady returns the hyperparameters that a job had from its start to its good end. An action
// changes them, too.
func (p *reconciliation) steady() (tuning.Settings, bool) {
	if p.job.State != driver.Succeeded || p.rec.Total <= 0 || len(p.rec.Runs) == 0 || len(p.rec.Taken) > 0 {
		return nil, false
	}
	settings := p.rec.Runs[0].Settings.Only(p.rec.Policy.Learns)
	changed := slices.ContainsFunc(p.rec.Runs, func(r Run) bool { return !r.Settings.Only(p.rec.Policy.Learns).Equal(settings) })
	return settings, !changed
}

func (p *reconciliation) reached() *tuning.Reached {
	q := p.rec.Policy.Quality
	if _, ok := p.steady(); !ok || q == nil || q.Target == nil {
		return nil
	}
	var out *tuning.Reached
	for _, e := range p.rec.Epochs {
		if e.Quality == nil {
			continue
		}
		if out == nil {
			out = &tuning.Reached{Target: *q.Target}
		}
		if q.Reaches(*e.Quality) && (out.Epochs == 0 || e.Number < out.Epochs) {
			out.Epochs = e.Number
		}
	}
	return out
}

func (p *reconciliation) polluted() bool {
	epochs := tuning.InCompany(p.rec.Epochs, p.rec.Own)
	judged := tuning.Count(epochs, func(e tuning.Epoch) bool { return !e.Warmup })
	return 2*tuning.Count(epochs, func(e tuning.Epoch) bool { return !e.Warmup && e.Polluted }) > judged
}

// clearly is the log ratio from which a recalled setting counts as worse than the owner's in
// one job: twice the usual difference of two attempts.
const clearly = 0.08

// disproved is the recalled setting of a job that was clearly better under its owner's.
func (p *reconciliation) disproved(trials []tuning.Trial) (tuning.Settings, bool) {
	own, measured := tuning.Reference(trials)
	if !p.rec.Recalled() || !measured || !p.rec.Settings(p.job.Attempt).Equal(p.rec.Own) {
		return nil, false
	}
	recalled := p.rec.Settings(1)
	for _, t := range trials {
		if t.Settings.Equal(recalled) {
			ratio, ok := t.LogRatio(own, p.rec.Policy.Measure())
			return recalled, ok && ratio > clearly
		}
	}
	return nil, false
}

// Trials are the trials that decisions compare: of epochs on machines of one kind, in which the job was not suspended.
func (r *Record) Trials() []tuning.Trial { return tuning.TrialsOf(r.awake(), r.Own) }

// course is every epoch of the job, cut ones included.
func (r *Record) course() []tuning.Epoch {
	if len(r.Cut) == 0 {
		return r.Epochs
	}
	out := slices.Concat(r.Epochs, r.Cut)
	slices.SortStableFunc(out, tuning.Epoch.Compare)
	return out
}

// awake are the epochs that tell of their settings: the job was not suspended in them.
func (r *Record) awake() []tuning.Epoch {
	return tuning.Awake(r.comparable(r.course()), r.still())
}

// still are the spans in which the job was suspended.
func (r *Record) still() []tuning.Span {
	return slices.Concat(tuning.Each(r.Runs, func(run Run) []tuning.Span { return run.Still })...)
}

// An untuned epoch that was not measured is taken to last as long as for the kind.
func (p *reconciliation) toll(trials []tuning.Trial, kindSeconds float64) *tuning.Toll {
	own, measured := tuning.Reference(trials)
	if !measured {
		own = tuning.Trial{Settings: p.rec.Own, Epochs: 1, Seconds: kindSeconds, Reference: true}
	}
	c := tuning.Course{
		Policy: p.rec.Policy, Own: p.rec.Own, Current: p.rec.Settings(p.job.Attempt), Attempt: p.job.Attempt,
		Reference: own, Kind: !measured, Epochs: p.rec.comparable(p.rec.course()), Running: p.job.State == driver.Running, Heard: p.heard, Now: p.now,
		Ours: func(attempt int) bool { return p.rec.run(attempt).Action != tuning.Hold || p.rec.starved(attempt) }, Still: p.rec.still(), Began: p.rec.Started,
	}
	if n := len(p.job.Attempts); n > 0 {
		c.Started = p.job.Attempts[n-1].Started
	}
	if c.Lost = p.broke() != tuning.ReasonNone; c.Lost {
		c.Ours, c.Now = func(int) bool { return true }, p.job.Ended
	}
	return c.Toll()
}

// inputsDiffer is how many times as long as for its kind an epoch may last because of a
// larger input: so much is not blamed on a setting while the job runs.
const inputsDiffer = 1.25

// total is what tuning cost a job that ended; nil: it is unknown, or other runs differ from this one, of which only
// the memory was changed, by no more than their inputs do.
func (p *reconciliation) total(ctx context.Context) *tuning.Toll {
	if !p.rec.touched() && p.broke() == tuning.ReasonNone {
		return nil
	}
	known, err := p.recall(ctx, p.rec.Policy, p.services.Site(p.job))
	if err != nil {
		p.cfg.Log.Warn("the untuned time of its kind is unknown", "job", p.rec.Job, "error", err)
	}
	out := p.toll(p.rec.Trials(), known.KindSeconds)
	memory := !slices.ContainsFunc(p.rec.Runs, func(x Run) bool { return !x.Settings.EqualButMemory(p.rec.Own) })
	starved := slices.ContainsFunc(p.rec.Runs, func(x Run) bool { return p.rec.starved(x.Attempt) })
	if out == nil && memory && starved { // the epochs that ran again show what they took, though others disturbed them all
		again := slices.DeleteFunc(slices.Clone(p.rec.comparable(p.rec.Epochs)), func(e tuning.Epoch) bool { return !e.Settings.Equal(p.rec.Own) })
		if out = p.toll(nil, tuning.Sum(again, tuning.Epoch.Seconds)/float64(len(again))); out != nil {
			out.Kind = false
		}
	}
	if out != nil && out.Kind && p.rec.Restarted() == 0 && memory && out.Harm <= (inputsDiffer-1)*float64(p.rec.Done()) {
		return nil
	}
	return out
}

// watch is the stop-loss: it takes a job off a setting that costs too much.
func (p *reconciliation) watch(ctx context.Context) (stopped bool, err error) {
	if p.job.State != driver.Running || p.rec.Phase == Changing || p.rec.Expired >= expiries ||
		p.rec.Settings(p.job.Attempt).Equal(p.rec.Own) || !slices.Contains(Arrows(), Arrow{p.rec.Phase, Changing, StopLoss}) {
		return false, nil
	}
	if p.crashed() {
		d := tuning.Decision{Action: tuning.RollBack, Reason: tuning.ReasonResumeFailed, Settings: p.rec.Own, Discard: true, At: p.now}
		p.again = p.tick()
		return true, p.begin(ctx, StopLoss, d)
	}
	// Without a toll the job itself cannot show what the attempt costs.
	if toll := p.toll(p.rec.Trials(), 0); toll != nil && toll.Present.Epochs <= 0 && (p.rec.Policy.MaxSlowdown <= 0 || toll.Pace() <= p.rec.Policy.MaxSlowdown) {
		return false, nil
	}
	d, err := p.decide(ctx)
	losing := d.Reason == tuning.ReasonStopLoss || d.Reason == tuning.ReasonSlower
	if err != nil || !losing || d.Action != tuning.RollBack && d.Action != tuning.Move {
		return false, err
	}
	p.again = p.tick() // a cap may refuse it
	return true, p.begin(ctx, StopLoss, d)
}

// crashed reports whether the job failed since tuning restarted it, and its scheduler begins it again. One that saved
// and left did not fail.
func (p *reconciliation) crashed() bool {
	from, save := p.unresumed(), p.rec.Policy.Checkpoint
	return from > 0 && slices.ContainsFunc(p.job.Attempts, func(a driver.Attempt) bool {
		failed := a.Number < p.job.Attempt && a.ExitCode > 0 && !(save != nil && a.ExitCode == save.Exit)
		return a.Number >= from && (a.Crashes > 0 || failed)
	})
}

// stopped remembers the setting. If others disturbed the job, it is not barred for good.
func (p *reconciliation) stopped(d tuning.Decision) {
	left := p.rec.Settings(p.job.Attempt)
	p.regressed(left, d.Reason, nil)
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
	if d.Discard && d.Reason != tuning.ReasonResumeFailed { // else the epoch ends and is measured, or it did no work
		p.rec.Cut = append(p.rec.Cut, cut)
	}
	if !disturbed && !slices.ContainsFunc(p.rec.Harmed, left.WithoutMemory().Equal) {
		p.rec.Harmed = append(p.rec.Harmed, left.WithoutMemory())
	}
}
