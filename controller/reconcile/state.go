package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"pitchpipe/controller/search"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// rangeValues is the number of values that a knob's range is divided into.
const rangeValues = 5

func (p *reconciliation) state(ctx context.Context) (tuning.State, error) {
	site := p.services.Site(p.job)
	if p.rec.NoRoom && p.rec.Phase == Waiting { // a smaller setting may still be better
		site.AboveRequest = false
	}
	policy := site.Narrow(p.rec.Policy, p.rec.Own)
	trials := p.rec.Trials()
	known, err := p.recall(ctx, policy, site)
	if err != nil {
		return tuning.State{}, err
	}
	current, run := p.rec.Settings(p.job.Attempt), p.rec.run(p.job.Attempt)
	p.reference = known.Reference
	s := tuning.State{
		Now: p.now, Policy: policy, Site: site, Gate: p.gate(),
		Standing: tuning.Standing{
			Own: p.rec.Own, Current: current, Pending: p.job.State == driver.Pending && p.job.Attempt == 0,
			EpochsDone: p.rec.Done(), EpochsTotal: p.rec.Total, EpochsLikely: p.rec.Policy.Likely(p.rec.Done(), p.rec.Total), EpochSeconds: epochSeconds(trials, current), LimitLeft: limitLeft(p.job, p.now),
			Restarts: len(p.rec.Restarts), Probes: len(p.rec.Probed), ProbeEpochs: tuning.Count(p.rec.Epochs, func(e tuning.Epoch) bool { return p.rec.run(e.Attempt).Action == tuning.Probe }),
			Saved: run.Attempt > 1 && run.Action != tuning.Hold, Observed: p.job.Observed, NoRequeue: p.job.NoRequeue,
		},
		RestartOutlook: tuning.RestartOutlook{RestartCost: p.cost(known)},
		Findings: tuning.Findings{
			Measured: p.measured, Fatal: p.fatal, Class: p.rec.Class, Trials: trials, Outcome: p.rec.Outcome,
			Refused: p.stages.Refused(policy, trials, current), Forecast: new(p.stages.Forecast(p.work(policy, current))),
		},
		Knowledge: known.Knowledge,
	}
	if search := policy.SearchID(); search != "" {
		p.caps.edit("", func(*counted) { s.SearchProbes = p.caps.probes[search] })
	}
	s.Regressed = append(s.Regressed, p.rec.Harmed...)
	s.MemoryHeld = s.MemoryHeld || p.rec.KeepMemory
	s.Joules, s.JoulesSource = p.rec.SpentJoules(site.EnforceModel)
	s.Elapsed = elapsed(p.job, p.now)
	if profile, ok := p.rec.Profiles[p.rec.Own.Key()]; ok {
		s.Profile = &profile
	} else if _, measured := tuning.Reference(trials); !measured {
		s.Profile = known.Profile
	}
	s.Toll = p.toll(trials, known.KindSeconds*inputsDiffer)
	s.Proposal = p.stages.Propose(search.Study{
		Policy: policy, Own: p.rec.Own, Space: search.Space(policy, p.rec.Own, rangeValues), Trials: trials, Avoid: s.Regressed,
	})
	p.effects = s.KindEffects
	return s, p.returns(ctx, &s)
}

func (p *reconciliation) recall(ctx context.Context, policy tuning.Policy, site tuning.Site) (Recollection, error) {
	last, of := p.inMemory(p.rec.Job), recalled{phase: p.rec.Phase, attempt: p.job.Attempt, epochs: len(p.rec.Epochs), measure: policy.Measure()}
	if c := p.rec.Class; c != nil {
		of.class = c.ID + "@" + c.Model
	}
	if p.rec.Phase != Waiting && last.knownOf == of && p.now.Sub(last.knownAt) < recallTicks*p.cfg.Tick {
		return last.known, nil
	}
	own, _ := tuning.Reference(p.rec.Trials())
	known, err := p.services.Recall(ctx, Question{
		Kind: p.rec.Kind, Class: p.rec.Class, Own: p.rec.Own, Policy: policy, Site: site, Node: p.rec.Node(p.job.Attempt),
		Seconds: own.Seconds, Machine: kindOf(p.rec.Epochs), Live: p.caps.shown(p.rec),
	})
	if err != nil {
		return known, fmt.Errorf("recall %s: %w", p.rec.Kind, err)
	}
	last.known, last.knownAt, last.knownOf = known, p.now, of
	return known, nil
}

func (p *reconciliation) gate() tuning.Reason {
	job := p.job
	job.Submitted = p.rec.Submitted
	if r := p.services.Gate(job); r != tuning.ReasonNone {
		return r
	}
	if p.rec.Control {
		return tuning.ReasonControlGroup
	}
	if p.elsewhere() {
		return tuning.ReasonOtherMachine
	}
	return tuning.ReasonNone
}

// The owner's settings count first.
func epochSeconds(trials []tuning.Trial, current tuning.Settings) float64 {
	t, ok := tuning.Reference(trials)
	if !ok {
		t, _ = tuning.First(trials, func(t tuning.Trial) bool { return t.Settings.Equal(current) })
	}
	return t.Seconds
}

// cost is the dearest restart of this job, else that of others, else the configured one.
func (p *reconciliation) cost(known Recollection) time.Duration {
	if len(p.rec.RestartCosts) == 0 {
		return max(p.startup(), cmp.Or(known.RestartCost, p.cfg.RestartCost))
	}
	return max(p.startup(), slices.Max(p.rec.RestartCosts))
}

// startup is how much longer the first epoch, which begins with the attempt, is than the second.
func (p *reconciliation) startup() time.Duration {
	if e := p.rec.Epochs; len(e) > 1 && e[0].Number == 1 && e[0].Attempt == 1 && e[1].Attempt == 1 && !tuning.Meet(p.rec.still(), e[0].Start, e[1].End) {
		return max(0, e[0].End.Sub(e[0].Start)-e[1].End.Sub(e[1].Start))
	}
	return 0
}

// elapsed is how long the attempts ran in all. Time in the queue and suspended time do not count.
func elapsed(job driver.Job, now time.Time) (sum time.Duration) {
	for _, a := range job.Attempts {
		sum += runTime(a, now)
	}
	return sum
}

func runTime(a driver.Attempt, now time.Time) time.Duration {
	if a.Started.IsZero() {
		return 0
	}
	return max(0, cmp.Or(a.Ended, now).Sub(a.Started)-a.Suspended)
}

func limitLeft(job driver.Job, now time.Time) time.Duration {
	at := limit(job)
	if at.IsZero() {
		return job.Resources.TimeLimit
	}
	return max(time.Nanosecond, at.Sub(now))
}

// limit is when the scheduler ends the present attempt; zero: never, or it has not begun.
func limit(job driver.Job) time.Time {
	n := len(job.Attempts)
	if job.Resources.TimeLimit <= 0 || n == 0 {
		return time.Time{}
	}
	return job.Attempts[n-1].Started.Add(job.Resources.TimeLimit + job.Attempts[n-1].Suspended)
}

// The first of a kind is never drawn, since all others learn from it. A search is drawn whole, since its trials
// share what they learn and the cores that others leave.
func (p *reconciliation) draw(ctx context.Context) error {
	id, at := string(p.job.ID), p.rec.Submitted
	if search := p.rec.Policy.SearchID(); search != "" {
		id, at = search, time.Time{}
	}
	if p.rec.Control || p.rec.Policy.Mode != tuning.Apply || !drawn(id, at, p.services.Site(p.job).Control) {
		return nil
	}
	past, err := p.past(ctx)
	if err != nil || !slices.ContainsFunc(past, func(r tuning.PastRun) bool { return r.Search == "" || r.Search != p.rec.Policy.SearchID() }) {
		return err
	}
	p.rec.Control, p.dirty = true, true
	return nil
}

// drawn is random over jobs and searches, and the same for all runs of one id in a day.
func drawn(id string, submitted time.Time, share float64) bool {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "control/%s:%d", id, submitted.Unix()/86400)
	// FNV's high bits are weak for short keys; a multiply spreads them.
	return float64((h.Sum64()*0x9e3779b97f4a7c15)>>11)/math.Pow(2, 53) < share
}

// outlookAge is how long an answer of the scheduler is reused: a job that only the queue
// holds back would ask again at every look.
const outlookAge = 10 * time.Second

// foresee adds to the state what a restart would meet now. What is unknown is nothing to wait
// for, unless the scheduler says that others wait for the same room.
func (p *reconciliation) foresee(ctx context.Context, s *tuning.State) {
	m := p.inMemory(p.rec.Job)
	if m.outlookAt.IsZero() || p.now.Sub(m.outlookAt) >= outlookAge {
		answer, err := p.services.Outlook(ctx, p.rec.Job)
		if err != nil {
			answer = driver.Outlook{}
			if !errors.Is(err, driver.ErrUnsupported) {
				p.cfg.Log.Warn("the wait that a restart faces is unknown", "job", p.rec.Job, "error", err)
			}
		}
		m.outlook, m.outlookAt = answer, p.now
	}
	o := m.outlook
	if o.Wait != nil {
		s.Wait = *o.Wait
	}
	s.Crowded = o.Crowded
	if !o.Closed.IsZero() {
		s.ClosedIn, s.ClosedBy = max(time.Nanosecond, o.Closed.Sub(p.now)), o.ClosedBy
	}
}

// alike returns the epochs on machines of the kind of the latest one, or all if that is unknown.
func alike(epochs []tuning.Epoch) []tuning.Epoch {
	kind := kindOf(epochs)
	other := func(e tuning.Epoch) bool { return e.Machine != "" && e.Machine != kind }
	if kind == "" || !slices.ContainsFunc(epochs, other) {
		return epochs
	}
	return slices.DeleteFunc(slices.Clone(epochs), other)
}

func (r *Record) comparable(epochs []tuning.Epoch) []tuning.Epoch {
	return tuning.InCompany(alike(epochs), r.Own)
}

// kindOf is the kind of machine of the latest epoch.
func kindOf(epochs []tuning.Epoch) string {
	for _, e := range slices.Backward(epochs) {
		if e.Machine != "" {
			return e.Machine
		}
	}
	return ""
}

// elsewhere reports whether the owner's settings were measured only on another kind of machine.
func (p *reconciliation) elsewhere() bool {
	own := func(e tuning.Epoch) bool { return !e.Warmup && e.Settings.Equal(p.rec.Own) }
	return slices.ContainsFunc(p.rec.Epochs, own) && !slices.ContainsFunc(alike(p.rec.Epochs), own)
}
