package reconcile

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// The last epochs of the attempt before may arrive late.
func (p *reconciliation) measure(ctx context.Context) {
	switch {
	case !p.rec.Policy.Progress.IsSet():
		p.measured = tuning.ReasonNoProgress
		return
	case p.job.Attempt == 0:
		p.measured = tuning.ReasonWarmingUp
		return
	case p.job.State == driver.NotStarted: // another job had its id, as under another controller on its node
		p.rec.Epochs = slices.DeleteFunc(p.rec.Epochs, func(e tuning.Epoch) bool { return e.Attempt == p.job.Attempt })
		if run := p.rec.runOf(p.job.Attempt); run != nil {
			run.Joules, run.Source, run.CPU, run.CPUOver = nil, "", 0, 0
		}
		if p.dirty = true; len(p.rec.Epochs) == 0 {
			p.rec.Peak, p.rec.Profiles, p.rec.Class = 0, nil, nil
		}
		return
	}
	p.ensureListener(ctx)
	p.suspensions()
	siblings := p.caps.siblings(p.rec)
	for attempt := max(1, p.job.Attempt-1); attempt <= p.job.Attempt; attempt++ {
		run, old := p.rec.runOf(attempt), attempt < p.job.Attempt
		if old && (run == nil || run.Read || p.since(attempt) > silence) {
			continue
		}
		settings := p.rec.Settings(attempt)
		from, to := p.bounds(attempt)
		m, err := p.services.Measure(ctx, MeasureRequest{
			Job: p.job.ID, Attempt: attempt, Alias: p.rec.Alias, Unit: p.rec.run(attempt).Unit, Node: p.rec.Node(attempt), From: from, To: to, Still: p.rec.run(attempt).Still,
			Siblings: siblings, Settings: settings, Policy: p.rec.Policy, Allowed: p.allowance(attempt),
		})
		if err != nil {
			// The job is not to blame for an exporter that does not answer.
			p.cfg.Log.Debug("not measured", "job", p.job.ID, "attempt", attempt, "error", err)
			continue
		}
		if p.job.Nodes > 1 {
			m = m.partial(p.job.Nodes)
		}
		p.merge(attempt, m, siblings)
		if attempt == p.job.Attempt {
			p.measured, p.endSeen, p.heard, p.fatal = m.Reason, m.Ended, m.Heard, m.Fatal
		}
		if m.Reason == tuning.ReasonNone {
			if p.rec.Profiles == nil {
				p.rec.Profiles = map[string]tuning.Profile{}
			}
			// The first profile stays: it is the one that was classified.
			if _, known := p.rec.Profiles[settings.Key()]; !known {
				p.rec.Profiles[settings.Key()] = m.Profile
			}
		}
		p.rec.Peak = max(p.rec.Peak, m.Peak, m.Profile.PeakRSS, tuning.Bytes(p.attempt(attempt).Peak))
		p.meter(run, m)
		if old && p.since(attempt) > lastEpochs { // the last epochs had time to arrive
			run.Read, p.dirty = true, true
		}
	}
	p.show()
}

// meter keeps the CPU time and the joules of an attempt. Those of one that works outside its epochs are written each time that they grew by a tenth.
func (p *reconciliation) meter(run *Run, m Measurement) {
	if run != nil && m.CPUOver > run.CPUOver {
		run.CPU, run.CPUOver = m.CPU, m.CPUOver
	}
	if run == nil || m.Joules == nil || run.Joules != nil && *m.Joules <= *run.Joules {
		return
	}
	p.dirty = p.dirty || run.Joules == nil || *m.Joules > 1.1**run.Joules
	run.Joules, run.Source = m.Joules, m.Source
}

// show lets the other jobs of the kind know what this one measured so far.
func (p *reconciliation) show() {
	if len(p.rec.Epochs) == 0 || p.job.State.Ended() || !p.grew && p.caps.shows(p.rec.Job) {
		return
	}
	o := p.shown()
	p.caps.edit(p.rec.Job, func(x *counted) { x.shown = &o })
}

// shown is what the job measured so far.
func (p *reconciliation) shown() knowledge.Observation {
	o := p.observation()
	o.Machine = kindOf(p.rec.Epochs)
	o.Trials, o.Regressed, o.Polluted = p.rec.Trials(), slices.Clone(p.rec.Harmed), p.polluted()
	for _, key := range slices.Sorted(maps.Keys(p.rec.Profiles)) {
		o.Profiles = append(o.Profiles, p.rec.Profiles[key])
	}
	return o
}

// The first of several nodes is measured: its counters and its memory are not the job's.
func (m Measurement) partial(nodes int) Measurement {
	m.Epochs = slices.Clone(m.Epochs)
	for i, e := range m.Epochs {
		if e.Source != "" {
			m.Epochs[i].Source = tuning.Part(e.Source, nodes)
		}
	}
	if m.Profile, m.Peak, m.CPUOver = (tuning.Profile{}), 0, 0; m.Source != "" {
		m.Source = tuning.Part(m.Source, nodes)
	}
	if m.Reason == tuning.ReasonNone {
		m.Reason = tuning.ReasonPartial
	}
	return m
}

// The scheduler reports only the total time, by its clock of whole seconds: it was after the last known
// epoch, since no epoch ends meanwhile, or, where less time has passed since then, in the newest epoch that
// took as long.
func (p *reconciliation) suspensions() {
	for _, a := range p.job.Attempts {
		run := p.rec.runOf(a.Number)
		if run == nil || a.Suspended <= run.Suspended {
			continue
		}
		more, at, within := a.Suspended-run.Suspended-2*time.Second, tuning.Span{From: a.Started, To: p.now}, tuning.Span{}
		for _, e := range p.rec.Epochs {
			if e.Attempt != a.Number || !e.End.After(at.From) {
				continue
			}
			if at.From = e.End; e.End.Sub(e.Start) >= more {
				within = tuning.Span{From: e.Start, To: e.End}
			}
		}
		if at.To.Sub(at.From) < more && !within.To.IsZero() {
			at = within
		}
		still := slices.DeleteFunc(slices.Clone(run.Still), func(s tuning.Span) bool { return s.From.Equal(at.From) })
		run.Suspended, run.Still, p.dirty = a.Suspended, append(still, at), true
	}
}

// bounds leave out what an earlier job under the id did, as before a state directory was deleted. An attempt with a unit is
// bounded where it shares that with the one before or after it: an in-place restart with other variables.
func (p *reconciliation) bounds(attempt int) (from, to time.Time) {
	from = p.rec.Submitted
	for i, a := range p.job.Attempts {
		if a.Number != attempt || a.Unit == "" {
			continue
		}
		from = time.Time{}
		if i > 0 && p.job.Attempts[i-1].Unit == a.Unit {
			from = a.Started
		}
		if i+1 < len(p.job.Attempts) && p.job.Attempts[i+1].Unit == a.Unit {
			to = p.job.Attempts[i+1].Started
		}
	}
	return from, to
}

const (
	// lastEpochs is how long to wait for the last epochs of the attempt before; the first
	// answer after that is final.
	lastEpochs = 10 * time.Second
	// silence is how long to ask for an ended attempt without an answer.
	silence = 2 * time.Minute
)

func (p *reconciliation) since(attempt int) time.Duration {
	if next := p.attempt(attempt + 1); !next.Started.IsZero() {
		return p.now.Sub(next.Started)
	}
	return 0
}

// attempt is as the scheduler knows it; without a number where it does not.
func (p *reconciliation) attempt(number int) driver.Attempt {
	a, _ := tuning.First(p.job.Attempts, func(a driver.Attempt) bool { return a.Number == number })
	return a
}

// When to check a listener again: soon after its start, when most failures happen.
const (
	listenRetry = 10 * time.Second
	listenSoon  = time.Minute
	listenAgain = 5 * time.Minute
)

// ensureListener starts the listener of a running attempt, and starts it again after it died.
func (p *reconciliation) ensureListener(ctx context.Context) {
	progress := p.rec.Policy.Progress
	if p.services.Listen == nil || progress.Pattern == "" || p.job.State != driver.Running {
		return
	}
	m := p.inMemory(p.rec.Job)
	if m.listening == p.job.Attempt && p.now.Before(m.listenAt) {
		return
	}
	wait := listenAgain
	unheard := ""
	switch err := p.services.Listen(ctx, p.rec.Job, p.job.Attempt, progress); {
	case errors.Is(err, driver.ErrUnsupported):
		p.cfg.Log.Warn("no listener in this job, so its epochs are not seen", "job", p.rec.Job, "error", err)
	case errors.Is(err, driver.ErrConflict): // the attempt has just ended
		return
	case err != nil:
		p.cfg.Log.Warn("the listener was not started", "job", p.rec.Job, "attempt", p.job.Attempt, "error", err)
		wait = listenRetry
		if unheard = p.rec.Unheard; errors.Is(err, driver.ErrDenied) {
			unheard = err.Error()
		}
	case m.listening != p.job.Attempt:
		wait = listenSoon
	}
	set(p, &p.rec.Unheard, unheard)
	m.listening, m.listenAt = p.job.Attempt, p.now.Add(wait)
}

// tick is how long to wait until the job is measured again: an old attempt has more to read.
func (p *reconciliation) tick() time.Duration {
	age := time.Duration(0)
	if n := len(p.job.Attempts); n > 0 {
		age = p.now.Sub(p.job.Attempts[n-1].Started)
	}
	return min(max(p.cfg.Tick, age/200), max(p.cfg.Tick, 30*time.Second))
}

// merge updates the attempt's epochs. If the exporter restarted and lost some, the known ones
// stay. What is new ended while so many siblings ran.
func (p *reconciliation) merge(attempt int, m Measurement, siblings int) {
	old, had := len(p.rec.Epochs), tuning.Count(p.rec.Epochs, func(e tuning.Epoch) bool { return e.Attempt == attempt })
	fresh := make(map[int]int, len(m.Epochs))
	for i, e := range m.Epochs {
		fresh[e.Number], m.Epochs[i].Siblings = i, siblings
	}
	keep := slices.DeleteFunc(slices.Clone(p.rec.Epochs), func(e tuning.Epoch) bool {
		i, again := fresh[e.Number]
		if again = again && e.Attempt == attempt; again {
			m.Epochs[i].Siblings = e.Siblings
		}
		return again
	})
	p.rec.Epochs = append(keep, m.Epochs...)
	slices.SortFunc(p.rec.Epochs, tuning.Epoch.Compare)
	set(p, &p.rec.Total, cmp.Or(m.Total, p.rec.Total))
	if len(p.rec.Epochs) != old {
		p.dirty, p.grew = true, true
		if had < 2 {
			p.restartCost(attempt)
		}
	}
}

// restartCost measures the cost of the tuner's restart before this attempt: the time between the
// last epoch before and the first after it, less one epoch and less the announced wait in the
// queue, which each decision accounts for again. Of suspended ones it is unknown.
func (p *reconciliation) restartCost(attempt int) {
	if run := p.rec.runOf(attempt); attempt < 2 || run == nil || run.Action == tuning.Hold {
		return
	}
	var last, first, second *tuning.Epoch
	for _, e := range p.rec.course() {
		switch {
		case e.Attempt < attempt:
			last = &e
		case e.Attempt > attempt, e.Cut:
		case first == nil:
			first = &e
		case second == nil:
			second = &e
		}
	}
	if last == nil || second == nil || tuning.Meet(p.rec.still(), last.End, second.End) {
		return
	}
	gap := first.End.Sub(last.End) - second.End.Sub(second.Start)
	p.rec.RestartCosts = append(p.rec.RestartCosts, max(0, gap-p.queued(attempt)))
}

// queued is how long an attempt waited in the queue, at most as long as announced, unless
// others were to go first.
func (p *reconciliation) queued(attempt int) time.Duration {
	ended, started := p.attempt(attempt-1).Ended, p.attempt(attempt).Started
	run := p.rec.runOf(attempt)
	switch {
	case run == nil || ended.IsZero() || started.Before(ended):
		return 0
	case p.rec.divided():
		return started.Sub(ended)
	}
	return min(run.Wait, started.Sub(ended))
}

func (p *reconciliation) classify() {
	profile, ok := p.rec.Profiles[p.rec.Settings(p.job.Attempt).Key()]
	if !ok || p.rec.Class != nil || p.measured != tuning.ReasonNone {
		return
	}
	class := p.services.Classify(profile)
	p.rec.Class = &class
	p.add(Entry{Attempt: p.job.Attempt, Reason: class.Reason, Class: &class})
}

// Allowance is what an attempt may use. The exporter of its node alerts and stops nothing.
type Allowance struct {
	Energy   tuning.Joules // of all attempts together; 0 = unbounded
	Used     tuning.Joules // of these by earlier attempts, as far as they were measured
	Time     time.Duration // of the attempt's wall time; 0 = unknown
	Modelled bool          // the site lets modelled joules count
}

// allowance is the Allowance of an attempt. The stanza's budget of time covers all attempts;
// the scheduler's limit counts if it comes first.
func (p *reconciliation) allowance(attempt int) Allowance {
	out := Allowance{Energy: p.rec.Policy.Budget.Energy}
	if out.Energy <= 0 {
		return Allowance{}
	}
	out.Modelled = p.services.Site(p.job).EnforceModel
	for _, e := range p.rec.used() {
		if e.Attempt < attempt && e.Joules != nil && (out.Modelled || !tuning.IsModelled(e.Source)) {
			out.Used += *e.Joules
		}
	}
	out.Time = p.job.Resources.TimeLimit
	if limit := p.rec.Policy.Budget.Time; limit > 0 {
		for _, a := range p.job.Attempts {
			if a.Number < attempt && !a.Ended.IsZero() {
				limit -= runTime(a, p.now)
			}
		}
		limit = max(limit, time.Second) // used up; 0 would mean unknown
		if out.Time <= 0 || limit < out.Time {
			out.Time = limit
		}
	}
	return out
}
