package reconcile

import (
	"context"
	"fmt"
	"math"
	"slices"

	"pitchpipe/controller/plan"
	"pitchpipe/controller/search"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// returns adds what the earlier runs say, for a pending job and for one that only whole runs can
// tune.
func (p *reconciliation) returns(ctx context.Context, s *tuning.State) error {
	if !s.Pending && s.NextReason != tuning.ReasonWholeRuns || s.Gate != tuning.ReasonNone {
		return nil
	}
	past, err := p.past(ctx)
	if err != nil || len(past) == 0 {
		return err
	}
	q := returning(s.Policy, s.Own, past)
	q.Avoid, q.Underway, q.Modelled, q.Unlikely = s.Regressed, p.caps.underway(p.rec), s.Site.EnforceModel, plan.Unlikely(*s)
	out := p.stages.Return(q)
	s.Returns, p.effects = &out, slices.Concat(p.effects, out.Seen)
	tried := s.Policy.Tried(s.Own, past)
	if p.triable = float64(s.Policy.Budget.Returns) - tried; s.Policy.TrialOf != nil {
		p.triable = float64(s.Policy.Budget.Probes) - tried
		out.Underway = q.Underway
		out.Room = min(p.triable, p.few()) - tuning.Sum(q.Underway, func(t tuning.Settings) float64 { return s.Policy.Part(s.Own, t) })
	}
	return nil
}

func (p *reconciliation) past(ctx context.Context) ([]tuning.PastRun, error) {
	runs, err := p.services.Past(ctx, p.rec.Kind)
	if err != nil {
		return nil, fmt.Errorf("recall the runs of %s: %w", p.rec.Kind, err)
	}
	return runs, nil
}

func returning(p tuning.Policy, own tuning.Settings, past []tuning.PastRun) search.Returning {
	return search.Returning{Policy: p, Own: own, Space: search.Space(p, own, rangeValues), Past: past}
}

// reserve counts a change, or returns what forbids it.
func (p *reconciliation) reserve(d tuning.Decision) (tuning.Reason, []tuning.Rule) {
	p.caps.lapse(p.now)
	site := p.services.Site(p.job)
	if r := p.claim(d); r != tuning.ReasonNone {
		return r, tuning.Rules(r, site.Narrow(p.rec.Policy, p.rec.Own), site)
	}
	if key := p.caps.admit(p.now, p.rec, d.Action, site); key != "" {
		p.unclaim(d)
		return tuning.ReasonSiteCap, []tuning.Rule{site.Rule(key)}
	}
	return tuning.ReasonNone, nil
}

// claim takes a place among the jobs of the kind that try a setting, before the intent is
// made, since several waiting jobs are decided side by side. The owner bounds the number of
// tries; the site bounds the share of jobs with predicted settings.
func (p *reconciliation) claim(d tuning.Decision) tuning.Reason {
	most, full := p.triable, tuning.ReasonBudgetReturns
	switch few := p.few(); {
	case d.Action == tuning.Probe && !d.Settings.Equal(p.rec.Own):
		if !p.caps.probe(p.now, p.rec, d, p.rec.Trials()) {
			return tuning.ReasonSiblingProbes
		}
		return tuning.ReasonNone
	case !tries(d.Reason):
		p.caps.edit(p.rec.Job, func(x *counted) { x.probing = nil })
		return tuning.ReasonNone
	case d.Reason == tuning.ReasonTryingReturn:
	case d.Reason == tuning.ReasonPredictedStart && few > 0:
		most, full = few+perRun*float64(p.runsUnder(d.Settings)), tuning.ReasonSiteCap
	default:
		most, full = min(most, few), tuning.ReasonSiteCap
	}
	if p.caps.try(p.rec, d, most) {
		return tuning.ReasonNone
	}
	return full
}

// few is how many live jobs of the kind the site lets run under what no run has proven.
func (p *reconciliation) few() float64 {
	share := p.services.Site(p.job).ProbeShare
	if !(share > 0) {
		return 0
	}
	return max(1, math.Floor(share*float64(p.caps.alive(p.rec.Kind))))
}

// perRun is how many more jobs may run under what is predicted for each run that showed it.
const perRun = 2

// runsUnder is in how many runs of the kind a setting was seen.
func (p *reconciliation) runsUnder(s tuning.Settings) (n int) {
	for _, e := range p.effects {
		if p.rec.Policy.Over(p.rec.Own, e.Settings).EqualButMemory(s) {
			n = max(n, e.Runs)
		}
	}
	return n
}

// trying reports whether a setting is to be tried, so that others of the kind profit.
func trying(r tuning.Reason) bool {
	return r == tuning.ReasonTryingReturn || r == tuning.ReasonTryingTrial
}

// tries reports whether no run of the kind has proven the setting.
func tries(r tuning.Reason) bool { return trying(r) || r == tuning.ReasonPredictedStart }

func (p *reconciliation) unclaim(d tuning.Decision) {
	switch {
	case d.Action == tuning.Probe:
		p.caps.edit(p.rec.Job, func(x *counted) { x.probing = nil })
	case tries(d.Reason):
		p.caps.untry(p.rec.Job)
	}
}

// shared are the settings that jobs of a kind share whatever they learn.
func (r *Record) shared(s tuning.Settings) tuning.Settings {
	return s.Only(func(knob string) bool { return !r.Policy.Learns(knob) })
}

// probes is the setting that a job probes or is about to; nil: none.
func (r *Record) probes() tuning.Settings {
	if r.Move != nil && r.Move.Decision.Action == tuning.Probe {
		return r.Move.Decision.Settings
	}
	if n := len(r.Runs); n > 0 && r.Runs[n-1].Action == tuning.Probe {
		return r.Runs[n-1].Settings
	}
	return nil
}

// Trying reports whether the job started under a setting to try, within its owner's budget.
func (r *Record) Trying() bool {
	d := r.began()
	return d != nil && trying(d.Reason)
}

// began is the decision that started the job under another setting than its owner's.
func (r *Record) began() *tuning.Decision {
	if r.run(1).Action != tuning.Move {
		return nil
	}
	for _, e := range slices.Backward(r.History) {
		if e.Trigger == KnownKind && e.Decision != nil {
			return e.Decision
		}
	}
	return nil
}

// tries is the decision for a live job to try a setting, now or later; nil: it tries none.
func (r *Record) tries() *tuning.Decision {
	d := r.began()
	if r.Move != nil && r.Move.AtStart() {
		d = &r.Move.Decision
	}
	if d == nil || !tries(d.Reason) {
		return nil
	}
	return d
}

func (p *reconciliation) end() tuning.End {
	began := p.rec.Settings(1)
	died := p.killed() || slices.ContainsFunc(p.rec.Harmed, began.Equal)
	switch {
	case len(p.rec.Runs) == 0:
		return tuning.EndUnknown
	case p.job.State == driver.Succeeded && p.rec.Done() > 0:
		return tuning.EndReached
	case p.job.State == driver.Succeeded:
		return tuning.EndUnknown // none of its epochs was seen
	case died && p.rec.Settings(p.job.Attempt).Equal(began):
		return tuning.EndFailed
	case p.job.State == driver.MemoryExceeded:
		return tuning.EndMemory
	}
	return tuning.EndCut
}

func (p *reconciliation) lost(ctx context.Context) error {
	defer p.caps.remove(p.rec.Job)
	if p.rec.Learned || !p.rec.Trying() {
		return nil
	}
	o := p.observation()
	o.Began, o.Trying = p.rec.Settings(1), true
	err := p.services.Learn(ctx, o, "")
	if err != nil {
		return fmt.Errorf("learn that %s was tried: %w", p.rec.Job, err)
	}
	p.rec.Learned = true
	return nil
}
