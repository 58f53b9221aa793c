package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

func (p *reconciliation) act(ctx context.Context) error {
	if p.rec.Phase != Changing && p.job.Attempt > 0 && (p.job.State != driver.Running || p.job.Suspended) {
		// Between two attempts, and while it is suspended, there is nothing to decide.
		p.again = p.cfg.Tick
		return nil
	}
	if done, err := p.divide(ctx); done || err != nil {
		return err
	}
	if stopped, err := p.watch(ctx); stopped || err != nil {
		return err
	}
	switch p.rec.Phase {
	case Changing:
		return p.advance(ctx)
	case Waiting:
		return p.waiting(ctx)
	case Held, Profiling:
		return p.running(ctx)
	case Verifying, Settled:
		return p.verify(ctx)
	case Ignored, Seen, Ended:
	}
	return nil
}

func (p *reconciliation) waiting(ctx context.Context) error {
	if p.job.State != driver.Pending {
		p.again = p.cfg.Tick
		p.to(Profiling, JobStarted, Entry{Attempt: p.job.Attempt})
		return nil
	}
	if err := p.draw(ctx); err != nil { // its kind may have run since
		return err
	}
	d, err := p.decide(ctx)
	if err != nil {
		return err
	}
	if d.Action != tuning.Hold {
		return p.begin(ctx, KnownKind, d)
	}
	if d.Reason != p.rec.Reason && !p.rec.NoRoom { // its reason says more
		p.rec.Reason = d.Reason
		p.add(Entry{Reason: d.Reason, Decision: &d})
	}
	p.again = p.patience()
	if p.job.NotBefore.After(p.now) && p.services.Release != nil {
		if err := p.services.Release(ctx, p.job.ID); err != nil { // it begins by itself
			p.cfg.Log.Warn("a job that stays unchanged could not be released", "job", p.rec.Job, "error", err)
		}
	}
	return nil
}

// running decides about a running job, again where a hold may end by itself. Nothing is written
// while the answer stays the same.
func (p *reconciliation) running(ctx context.Context) error {
	p.again = p.tick()
	p.classify()
	d, err := p.decide(ctx)
	if err != nil {
		return err
	}
	to, ready, held, waits := Settled, p.measured == tuning.ReasonNone, p.rec.Phase == Held, plan.Waits(d.Reason)
	switch {
	case d.Action != tuning.Hold:
		if held {
			p.to(Profiling, LookAgain, Entry{Reason: d.Reason})
		}
		return p.begin(ctx, DecidedChange, d)
	case waits && (held || !ready):
		set(p, &p.rec.Reason, d.Reason)
		return nil
	case waits:
		to = Held
	case ready && !held && d.Reason == tuning.ReasonAlreadyBest && !p.rec.Settings(p.job.Attempt).Equal(p.rec.Own):
		to, p.rec.Settle = Verifying, p.now
	}
	p.to(to, DecidedHold, Entry{Reason: d.Reason, Decision: &d})
	return nil
}

func (p *reconciliation) decide(ctx context.Context) (tuning.Decision, error) {
	s, err := p.state(ctx)
	if err != nil {
		return tuning.Decision{}, err
	}
	return p.chosen(ctx, s), nil
}

func (p *reconciliation) chosen(ctx context.Context, s tuning.State) tuning.Decision {
	d := p.stages.Choose(s)
	if d.Action == tuning.Hold || s.Pending {
		return p.record(ctx, s, d)
	}
	// It would act. The outlook of a restart is expensive for the scheduler, so it is asked
	// only now.
	p.foresee(ctx, &s)
	p.wait = s.Wait
	return p.record(ctx, s, p.stages.Choose(s))
}

// begin stores the intent; the next reconciliation takes the first step.
func (p *reconciliation) begin(ctx context.Context, by Trigger, d tuning.Decision) error {
	home := d.Action == tuning.RollBack && !d.Settings.Equal(p.rec.RoomFor) // drivers keep the room for that
	if p.now.Before(p.rec.RoomAt) && !home && more(p.rec.Settings(p.job.Attempt), d.Settings) {
		p.refused(tuning.ReasonNoRoom, nil)
		p.again = p.tick()
		return nil
	}
	if r, rules := p.reserve(d); r != tuning.ReasonNone {
		p.refused(r, rules)
		if p.rec.Phase == Waiting { // another job may try the setting instead: decide again
			p.again = p.patience()
		}
		return nil
	}
	id := fmt.Sprintf("%s/%d", p.job.ID, len(p.rec.Runs)+len(p.rec.History)+1)
	in, err := NewIntent(id, p.job, p.rec.Policy, p.rec.Own, d.Settings, note(d))
	if err != nil {
		p.fail(Entry{Reason: tuning.ReasonUnsupported, Detail: err.Error(), Decision: &d})
		return nil
	}
	// The audit comes first: no intent without its audit entry.
	if err := p.audit(ctx, string(d.Action), p.rec.Settings(p.job.Attempt), d, id); err != nil {
		p.caps.drop(p.rec.Job)
		p.unclaim(d)
		return err
	}
	in.Discard = d.Discard
	if by == StopLoss {
		p.stopped(d)
	}
	p.rec.Move = &Intent{Driver: in, Decision: d, Made: p.now, Wait: p.wait}
	p.to(Changing, by, Entry{Reason: d.Reason, Decision: &d, Attempt: p.job.Attempt})
	p.again = time.Millisecond
	return p.store(ctx)
}

func (p *reconciliation) audit(ctx context.Context, action string, before tuning.Settings, d tuning.Decision, intent string) error {
	err := p.services.Audit(ctx, Audit{
		At: p.now, Actor: "tuner", Job: string(p.job.ID), Action: action, Before: before, After: d.Settings, Reason: d.Reason, Intent: intent,
	})
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

func (p *reconciliation) fail(e Entry) {
	if p.rec.Phase != Settled || p.rec.Detail != e.Detail {
		p.to(Settled, OurFailure, e)
	}
}

func more(have, want tuning.Settings) bool {
	return slices.ContainsFunc([]string{tuning.Cores, tuning.Memory}, func(knob string) bool { return want[knob].Float() > have[knob].Float() })
}

func (p *reconciliation) refused(r tuning.Reason, rules []tuning.Rule) {
	if r == p.rec.Reason {
		return
	}
	p.rec.Reason = r
	p.add(Entry{Reason: r, Detail: strings.Join(tuning.Each(rules, tuning.Rule.String), ", ")})
}

func note(d tuning.Decision) string {
	return fmt.Sprintf("%s to %s: %s", d.Action, d.Settings, d.Reason.Sentence())
}

func (p *reconciliation) advance(ctx context.Context) error {
	m := p.rec.Move
	if m == nil {
		p.fail(Entry{Reason: tuning.ReasonDriverFailure, Detail: "the intent is missing"})
		return nil
	}
	// A pause ends an intent that has had no effect; a stopped job is started again. After
	// the first try it is unknown whether it had an effect, since the answer may have been
	// lost. The intent stays open, so that a job that saves and leaves is started again.
	untouched := m.Step == "" || m.Step == driver.StepRunning || m.Step == driver.StepCheckpointing
	if r := p.gate(); r != tuning.ReasonNone && untouched {
		if !m.Tried {
			p.void(driver.Step{Kind: driver.StepAbandoned, Attempt: p.job.Attempt}, r)
			return nil
		}
		if p.job.Attempt == m.Driver.Attempt && p.job.State != driver.Stopped {
			p.again = p.cfg.Step
			return nil
		}
	}
	if p.job.Suspended && untouched && m.Step != driver.StepCheckpointing { // it would not hear the signal
		p.again = p.cfg.Tick
		return nil
	}
	if !m.Tried {
		m.Tried, p.dirty = true, true
		if err := p.store(ctx); err != nil {
			return err
		}
	}
	step, reason, err := p.services.Step(ctx, m.Driver)
	if err != nil {
		return err
	}
	if reason == tuning.ReasonFinished { // the next reconciliation finds that it ended
		p.again = time.Millisecond
		return nil
	}
	set(p, &m.Step, step.Kind)
	switch {
	case reason != tuning.ReasonNone:
		p.void(step, reason)
	case step.Kind == driver.StepStarted:
		p.started(step)
	default:
		p.again = p.cfg.Step
	}
	return nil
}

func (p *reconciliation) started(step driver.Step) {
	m := p.rec.Move
	d := m.Decision
	run := Run{Attempt: max(step.Attempt, 1), Settings: d.Settings, Action: d.Action, Intent: m.Driver.ID, Wait: m.Wait}
	adopted := slices.IndexFunc(p.rec.Runs, func(r Run) bool { return r.Intent == run.Intent })
	switch {
	case adopted >= 0:
		run.Attempt = p.rec.Runs[adopted].Attempt
	case slices.ContainsFunc(p.rec.Runs, func(r Run) bool { return r.Attempt == run.Attempt }):
		run.Attempt++ // its attempt waits in the queue
		p.rec.Queued = &run
	default:
		p.rec.Runs = append(p.rec.Runs, run)
	}
	attempt, atStart := run.Attempt, m.AtStart()
	p.rec.Move, p.rec.Settle, p.again = nil, p.now, p.cfg.Tick
	to := Verifying
	switch {
	case d.Action == tuning.Probe:
		to = Profiling
	case d.Action == tuning.RollBack, d.Reason == tuning.ReasonAllocation:
		to = Settled
	}
	if !atStart || attempt > 1 { // a change before the start restarts nothing, unless the job began meanwhile
		p.spend(d.Action)
	}
	p.to(to, IntentDone, Entry{Attempt: attempt})
}

// countUnseen counts the restart or probe of an intent that was carried out unnoticed before
// the job ended.
func (p *reconciliation) countUnseen() {
	m := p.rec.Move
	if m == nil || !slices.ContainsFunc(p.rec.Runs, func(r Run) bool { return r.Intent == m.Driver.ID && r.Attempt > max(1, m.Driver.Attempt) }) {
		return
	}
	p.spend(m.Decision.Action)
}

// spend counts a restart or a probe that was carried out.
func (p *reconciliation) spend(a tuning.Action) {
	to := &p.rec.Restarts
	if a == tuning.Probe {
		to = &p.rec.Probed
	}
	*to, p.dirty = append(*to, p.now), true
	p.caps.edit(p.rec.Job, func(x *counted) {
		x.restarting = ""
		if search := p.rec.Policy.SearchID(); search != "" && a == tuning.Probe {
			p.caps.probes[search]++
		}
		p.caps.restarts = append(p.caps.restarts, restart{p.now, p.rec.Owner})
	})
}

// expiries is how often a job may fail to save in time, or its scheduler refuse to change it, until it is left alone.
const expiries = 3

func (p *reconciliation) void(step driver.Step, reason tuning.Reason) {
	to := Profiling
	refused := reason == tuning.ReasonUnsupported || reason == tuning.ReasonDenied
	atStart := p.rec.Move.AtStart()
	if reason == tuning.ReasonGraceExpired || refused && !atStart {
		p.rec.Expired++
	}
	// A way back to the owner's setting is tried again, a few times.
	retry := reason == tuning.ReasonGraceExpired && p.rec.Expired < expiries &&
		!p.rec.Settings(p.job.Attempt).Equal(p.rec.Own)
	overtaken := atStart && max(p.job.Attempt, step.Attempt) > 0 && reason == tuning.ReasonOwnerChanged
	if overtaken {
		reason = tuning.ReasonBeganFirst // its owner did nothing
	}
	later := overtaken || retry // the change may be tried again
	p.again = p.cfg.Tick

	switch {
	case p.rec.Move.Decision.Action == tuning.RollBack:
		to = Settled
	case atStart:
		to = Waiting
		p.rec.NoRoom = reason == tuning.ReasonNoRoom
		// The scheduler may refuse to lower the memory if it could not undo an out-of-memory
		// kill: the change is decided again with the memory unchanged.
		if refused && !p.rec.KeepMemory && p.rec.Move.Decision.Settings[tuning.Memory] != p.rec.Own[tuning.Memory] {
			p.rec.KeepMemory, later, p.again = true, true, time.Millisecond
		}
		later = later || p.rec.NoRoom
	}
	p.unclaim(p.rec.Move.Decision)
	if want := p.rec.Move.Decision.Settings; reason == tuning.ReasonNoRoom && !atStart && more(p.rec.Settings(p.job.Attempt), want) { // it runs on, and is tried again later
		later, p.rec.RoomFor = true, want
		p.rec.RoomAt = p.now.Add(min(max(10*time.Second, p.now.Sub(p.rec.Started)/10), 10*time.Minute))
	}
	p.rec.Cut = slices.DeleteFunc(p.rec.Cut, func(e tuning.Epoch) bool { return e.Attempt == p.job.Attempt }) // it goes on
	p.rec.Move = nil
	p.caps.drop(p.rec.Job)
	if len(p.rec.Restarts)+len(p.rec.Probed) == 0 && !p.rec.touched() {
		p.caps.release(p.rec.Job)
	}
	p.to(to, IntentVoid, Entry{Reason: reason, Detail: step.Detail, Attempt: step.Attempt})
	if to != Settled && !later && !plan.Waits(reason) {
		p.to(Settled, DecidedHold, Entry{Reason: reason}) // it would be refused again
	}
}
