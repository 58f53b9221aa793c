package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
	"pitchpipe/controller/verify"
	"pitchpipe/driver"
)

const (
	// linger is how long to wait for the last epochs of an ended job from an exporter that
	// has reported none.
	linger = 5 * time.Second
	// lingerKnown is the same for an exporter that has reported epochs and not the job's
	// end yet, which takes longer on a busy node.
	lingerKnown = 20 * time.Second
)

func (p *reconciliation) verify(ctx context.Context) error {
	p.again = p.tick()
	p.classify()
	if p.rec.Phase == Settled && !p.rec.NeedsAttention() && p.gate() == tuning.ReasonOff {
		p.refused(tuning.ReasonOff, nil) // nothing is decided about it again
	}
	if p.rec.Phase == Settled && p.rec.Settings(p.job.Attempt).Equal(p.rec.Own) {
		if p.job.Attempt == 1 && plan.Revisable(p.rec.Reason) && p.grown() {
			return p.further(ctx, tuning.Inconclusive)
		}
		p.again *= 4 // it is only measured, for the next job of its kind
		return nil
	}
	if p.rec.Phase == Verifying && p.foreign() {
		// The present attempt is not ours, such as one after an out-of-memory kill.
		p.to(Profiling, LookAgain, Entry{Attempt: p.job.Attempt})
		return nil
	}
	if back, err := p.spread(ctx); back || err != nil {
		return err
	}
	outcome, ok := p.compare()
	if ok {
		if o := p.rec.Outcome; o != nil && o.Reason == p.rec.Reason { // which follows the comparison
			set(p, &p.rec.Reason, outcome.Reason)
		}
		p.rec.Outcome = &outcome
	}
	if !ok || outcome.Verdict == tuning.Inconclusive {
		return p.recheck(ctx)
	}
	if p.rec.Phase == Verifying {
		p.to(Settled, OutcomeKnown, Entry{Reason: outcome.Reason, Outcome: &outcome})
		p.rec.Looked = 0
	}
	if outcome.Verdict == tuning.Improved && p.grown() || outcome.Verdict == tuning.Regressed && p.rec.Expired < expiries {
		return p.further(ctx, outcome.Verdict)
	}
	return nil
}

func (p *reconciliation) grown() bool {
	n := tuning.Count(p.rec.Epochs, func(e tuning.Epoch) bool { return e.Attempt == p.job.Attempt })
	if n == 0 || n < 2*p.rec.Looked {
		return false
	}
	p.rec.Looked, p.dirty = n, true
	return true
}

// further changes a settled job again. A job that improved moves on if its epochs promise an
// even better setting, or show that it is slower than its owner allows. A job that got worse
// goes back, or to a better setting that it measured; only for that job a hold is noted.
func (p *reconciliation) further(ctx context.Context, verdict tuning.Verdict) error {
	d, err := p.decide(ctx)
	if err != nil {
		return err
	}
	switch d.Action {
	case tuning.Move, tuning.Probe:
		return p.begin(ctx, DecidedChange, d)
	case tuning.RollBack:
		return p.begin(ctx, Worse, d)
	case tuning.Hold, tuning.Adapt:
		if verdict == tuning.Regressed {
			set(p, &p.rec.Reason, d.Reason)
		}
	}
	return nil
}

// foreign reports whether the present attempt began after the last change and is not the tuner's.
func (p *reconciliation) foreign() bool {
	ours := slices.ContainsFunc(p.rec.Runs, func(r Run) bool { return r.Attempt == p.job.Attempt && r.Action != tuning.Hold })
	return !ours && slices.ContainsFunc(p.job.Attempts, func(a driver.Attempt) bool {
		return a.Number == p.job.Attempt && a.Started.After(p.rec.Settle)
	})
}

// compare compares the present setting with the owner's.
func (p *reconciliation) compare() (tuning.Outcome, bool) {
	return p.compareWith(p.rec.Settings(p.job.Attempt), p.rec.Settle)
}

func (p *reconciliation) compareWith(tuned tuning.Settings, chosen time.Time) (tuning.Outcome, bool) {
	if tuned.Equal(p.rec.Own) {
		return tuning.Outcome{}, false
	}
	policy := p.rec.Policy
	in := verify.Input{
		Measure: policy.Measure(), MaxSlowdown: policy.MaxSlowdown, Quality: policy.Quality,
		EnforceModelled: p.services.Site(p.job).EnforceModel, Candidates: len(p.rec.Probed),
		Baseline: p.rec.Own, Tuned: tuned, At: p.now,
	}
	for _, e := range p.rec.comparable(p.rec.Epochs) {
		switch {
		case e.Inner: // all epochs of a report are one measurement
		case e.Settings.Equal(p.rec.Own):
			in.Before = append(in.Before, e)
		case e.Settings.Equal(tuned) && !e.Start.Before(chosen):
			in.After = append(in.After, e)
		}
	}
	if len(in.After) == 0 {
		return tuning.Outcome{}, false
	}
	if len(in.Before) == 0 && p.elsewhere() {
		return tuning.Outcome{
			Verdict: tuning.Inconclusive, Reason: tuning.ReasonOtherMachine, Measure: policy.Measure().Objective,
			Baseline: p.rec.Own, Tuned: tuned, At: p.now,
		}, true
	}
	out := p.stages.Compare(in)
	if policy.Relearns(p.rec.Own, tuned) && out.Reason != tuning.ReasonQualityLost {
		out.Verdict, out.Reason = tuning.Inconclusive, tuning.ReasonWholeRuns // the epochs did different work
	}
	return out, true
}

// finish closes the record of an ended job and learns from it.
func (p *reconciliation) finish(ctx context.Context) error {
	wait := lingerKnown
	if p.endSeen || len(p.rec.Epochs) == 0 {
		wait = linger
	}
	if p.rec.Done() < p.rec.Total && p.job.State == driver.Succeeded && p.now.Sub(p.job.Ended) < wait {
		p.again = p.cfg.Step
		return nil
	}
	return p.close(ctx, Entry{Detail: p.job.Detail, Attempt: p.job.Attempt})
}

// gone closes the record of a job that the scheduler forgot. A job whose end was not seen is
// lost; if the tuner had changed it and it ended while this controller ran, the tuner pauses itself.
func (p *reconciliation) gone(ctx context.Context) error {
	if !p.rec.State.Ended() {
		p.rec.State, p.rec.Held = driver.Lost, ""
	}
	p.job = driver.Job{ID: p.rec.Job, Name: p.rec.Name, Owner: p.rec.Owner, State: p.rec.State}
	err := p.close(ctx, Entry{Reason: endReason(p.rec.State), Detail: "the scheduler no longer knows the job"})
	return errors.Join(err, p.store(ctx))
}

func (p *reconciliation) close(ctx context.Context, e Entry) error {
	if len(p.rec.Runs) > 0 && !p.rec.Learned && p.diedTuned() {
		p.rec.Harmed = append(p.rec.Harmed, p.rec.Settings(p.job.Attempt))
	}
	if len(p.rec.Runs) > 0 {
		p.classify()
	}
	if !p.rec.Learned {
		if err := p.learn(ctx); err != nil {
			return err
		}
		p.rec.Learned, p.dirty = true, true
	}
	if p.rec.Reason == tuning.ReasonNone && p.measured == tuning.ReasonNoSamples && p.rec.Policy.Progress.IsSet() && e.Reason == tuning.ReasonNone {
		p.rec.Reason = tuning.ReasonNoSamples
	}
	why, broke := p.rec.Reason, p.broke()
	// One that ended unseen while no controller ran is lost by no move.
	lost := p.job.State == driver.Lost && (p.rec.Move != nil && p.rec.Move.Tried || p.inMemory(p.rec.Job).seen && p.rec.touched())
	if err := p.pauseIfHarmful(ctx, lost); err != nil {
		return err // it is closed once that is done
	}
	p.countUnseen()
	p.rec.Ended, p.rec.Attempts, p.rec.Move, e.Outcome = p.job.Ended, p.job.Attempts, nil, p.rec.Outcome
	p.to(Ended, JobEnded, e)
	if why == tuning.ReasonNone || p.job.State != driver.Succeeded {
		p.rec.Reason = cmp.Or(broke, endReason(p.job.State))
	}
	p.caps.remove(p.rec.Job)
	p.mu.Lock()
	delete(p.jobs, p.rec.Job)
	p.mu.Unlock()
	return nil
}

func (p *reconciliation) learn(ctx context.Context) error {
	silent, broke := len(p.rec.Epochs) == 0 && p.peak() == 0, p.broke() != tuning.ReasonNone
	if p.rec.Phase == Ignored || silent && !p.rec.Trying() && len(p.rec.Harmed) == 0 && !broke {
		return nil
	}
	p.rec.Toll = p.total(ctx)
	if !p.rec.divided() {
		if o, ok := p.compare(); ok {
			p.rec.Outcome = &o
		}
		if err := p.judgeAtEnd(ctx); err != nil {
			return err
		}
	}
	if p.killed() {
		p.regressed(p.rec.Settings(p.job.Attempt), tuning.ReasonKilled, p.rec.Outcome)
	}
	o := p.shown()
	o.Outcome, o.Peak, o.RestartCosts, o.Toll, o.Adapted = p.rec.Outcome, p.peak(), p.rec.RestartCosts, p.rec.Toll, p.adapted()
	o.Final, o.Reached, o.Curve, o.Startup = p.final(), p.reached(), p.teach(ctx), p.startup()
	o.Trying, o.Epochs, o.End, o.Broke = p.rec.Trying(), p.rec.Done(), p.end(), broke
	if len(p.rec.Runs) > 0 {
		o.Began = p.rec.Settings(1)
	}
	for _, t := range o.Trials {
		if !t.Reference && !p.rec.divided() && p.stages.Refused(p.rec.Policy, o.Trials, t.Settings) != tuning.ReasonNone {
			o.Regressed = append(o.Regressed, t.Settings.WithoutMemory()) // its owner would refuse it next time too
		}
	}
	if p.rec.regressed() && p.rec.Outcome.Reason != tuning.ReasonStopLoss {
		o.Regressed = append(o.Regressed, p.rec.Outcome.Tuned.WithoutMemory())
	}
	if s, ok := p.disproved(o.Trials); ok && !slices.ContainsFunc(o.Regressed, s.WithoutMemory().Equal) {
		o.Regressed = append(o.Regressed, s.WithoutMemory())
	}
	if err := p.services.Learn(ctx, o, p.rec.Node(p.job.Attempt)); err != nil {
		return fmt.Errorf("learn from %s: %w", p.rec.Job, err)
	}
	return nil
}

// peak is the largest memory that was seen. An attempt that was killed for memory needed its whole limit at least.
func (p *reconciliation) peak() tuning.Bytes {
	out := p.rec.Peak
	for _, run := range p.rec.Runs {
		died := run.Attempt == p.job.Attempt && p.job.State == driver.MemoryExceeded
		if p.job.Nodes <= 1 && (died || out > 0 && p.rec.starved(run.Attempt+1)) {
			out = max(out, tuning.Bytes(run.Settings[tuning.Memory].Float()))
		}
	}
	return out
}

func (p *reconciliation) observation() knowledge.Observation {
	return knowledge.Observation{
		Search: p.rec.Policy.SearchID(),
		ID:     fmt.Sprintf("%s@%d", p.rec.Job, p.rec.Submitted.Unix()), Job: string(p.rec.Job), Submitted: p.rec.Submitted,
		Kind: p.rec.Kind, User: p.rec.Owner, At: p.now,
	}
}

// diedTuned reports whether the job ended badly under another setting than its owner's, in
// a way that the setting may have caused. If the cause was another one, the caution costs
// nothing.
func (p *reconciliation) diedTuned() bool {
	current := p.rec.Settings(p.job.Attempt)
	switch p.job.State { //nolint:exhaustive // the setting causes none of the others
	case driver.Failed, driver.NotStarted, driver.MemoryExceeded:
		return !current.Equal(p.rec.Own)
	case driver.TimeExceeded:
		trials := p.rec.Trials()
		own, ok := tuning.Reference(trials)
		faster := ok && slices.ContainsFunc(trials, func(t tuning.Trial) bool {
			return t.Settings.Equal(current) && t.Seconds < own.Seconds
		})
		return !current.Equal(p.rec.Own) && !faster
	}
	return false
}

// broke is how a restart by tuning ended the job; ReasonNone: it did not.
func (p *reconciliation) broke() tuning.Reason {
	switch m := p.rec.Move; {
	case p.job.State != driver.Failed:
	case m != nil && m.Step == driver.StepCheckpointing && !m.Driver.Discard && m.Driver.Attempt == p.job.Attempt &&
		p.job.ExitCode == 128+int(unix.SignalNum(m.Driver.Checkpoint.SignalName())):
		return tuning.ReasonSignalEnded
	case p.unresumed() > 0:
		return tuning.ReasonResumeFailed
	}
	return tuning.ReasonNone
}

// unresumed is the last attempt that tuning began by a restart, where no epoch ended since; 0: there is none.
func (p *reconciliation) unresumed() int {
	for _, run := range slices.Backward(p.rec.Runs) {
		if slices.ContainsFunc(p.rec.Epochs, func(e tuning.Epoch) bool { return e.Attempt >= run.Attempt }) {
			break
		}
		if run.Action != tuning.Hold && run.Attempt > 1 {
			return run.Attempt
		}
	}
	return 0
}

func (p *reconciliation) killed() bool {
	return (p.job.State == driver.MemoryExceeded || p.job.State == driver.TimeExceeded) && p.diedTuned()
}

func (p *reconciliation) pauseIfHarmful(ctx context.Context, lost bool) error {
	why := ""
	if lost {
		why = fmt.Sprintf("job %s was lost after it had been moved", p.rec.Job)
	} else if p.rec.harmful() || p.broke() != tuning.ReasonNone {
		n := p.caps.regressed(p.rec.Job, p.now, p.services.Cleared())
		if limit := p.services.Site(p.job).PauseAfter; limit > 0 && n >= limit {
			why = fmt.Sprintf("%d tuned jobs regressed, the latest was %s", n, p.rec.Job)
		}
	}
	if why == "" {
		return nil
	}
	if err := p.services.Pause(ctx, why); err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	return nil
}

func endReason(s driver.State) tuning.Reason {
	return cmp.Or(map[driver.State]tuning.Reason{
		driver.Succeeded: tuning.ReasonFinished, driver.Cancelled: tuning.ReasonCancelled, driver.Lost: tuning.ReasonLost,
	}[s], tuning.ReasonFailed)
}
