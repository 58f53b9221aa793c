package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// reconciliation is one look at one job.
type reconciliation struct {
	*Loop
	now       time.Time
	job       driver.Job
	rec       *Record
	dirty     bool  // the record must be saved
	bug       error // a transition that is not permitted
	grew      bool  // a new epoch was measured
	again     time.Duration
	measured  tuning.Reason   // why the present attempt has no usable profile yet
	endSeen   bool            // the exporter saw the end of the present attempt
	heard     time.Time       // since when its ended epochs are reported; zero: some may be missing
	fatal     bool            // see Measurement
	wait      time.Duration   // how long a restart would queue; 0 = none, or not asked
	reference *tuning.Trial   // what the newest untuned job of the kind measured; nil: none did
	effects   []tuning.Effect // what runs of the kind showed
	triable   float64         // how many more returns of the kind may try a setting, running ones not counted
}

// Reconcile looks at one job and takes at most one step with it. It returns when to look
// again; 0 = when the job changes.
func (l *Loop) Reconcile(ctx context.Context, id driver.JobID) (time.Duration, error) {
	p := &reconciliation{Loop: l, now: l.cfg.Now(), measured: tuning.ReasonNoSamples}
	// 1. What is the job at its scheduler, and what do we know of it?
	if done, err := p.look(ctx, id); done || err != nil {
		return p.again, err
	}
	// 2. Did its owner change it? Then start again.
	p.superseded()
	// 3. What does it allow?
	if err := p.read(ctx); err != nil {
		return 0, err
	}
	p.share()
	// 4. Which attempts are there, and what have they done?
	if err := p.adopt(ctx); err != nil {
		return 0, err
	}
	p.place()
	p.caps.see(p.rec.Job, p.job.State == driver.Running, p.rec.Node(p.job.Attempt), p.now)
	if err := p.begun(ctx); err != nil {
		return 0, err
	}
	p.measure(ctx)
	if p.bug != nil {
		return 0, p.bug
	}
	// 5. Which of its actions should it take? Then one step of the present intent, or one decision. It
	// ended: compare, learn, close.
	if err := p.adapt(ctx); err != nil {
		return 0, errors.Join(err, p.store(ctx))
	}
	next := p.act
	if p.job.State.Ended() {
		next = p.finish
	}
	err := next(ctx)
	return p.again, errors.Join(err, p.store(ctx))
}

func (p *reconciliation) store(ctx context.Context) error {
	if !p.dirty || p.bug != nil {
		return p.bug
	}
	p.dirty = false
	return p.save(ctx, p.rec)
}

// to moves the record to another phase. After a transition that is not permitted nothing is stored.
func (p *reconciliation) to(phase Phase, by Trigger, e Entry) {
	if err := p.rec.to(p.now, phase, by, e); err != nil {
		p.cfg.Log.Error("transition refused", "job", p.rec.Job, "error", err)
		p.bug = errors.Join(p.bug, err)
		return
	}
	p.dirty = true
	p.cfg.Log.Info("phase", "job", p.rec.Job, "phase", phase, "trigger", by, "reason", e.Reason)
}

func (p *reconciliation) add(e Entry) {
	e.At = p.now
	p.rec.History, p.dirty = append(p.rec.History, e), true
}

// set changes a field of the record.
func set[T comparable](p *reconciliation, field *T, v T) {
	if *field != v {
		*field, p.dirty = v, true
	}
}

func (p *reconciliation) look(ctx context.Context, id driver.JobID) (done bool, err error) {
	p.rec, err = p.cfg.Records.Load(ctx, id)
	if err != nil && !errors.Is(err, ErrNoRecord) {
		return false, fmt.Errorf("load the record of %s: %w", id, err)
	}
	p.job, err = p.cfg.Scheduler.Get(ctx, id)
	if p.rec != nil && p.rec.Phase.Over() {
		if err != nil || !another(p.rec, p.job) {
			return true, nil //nolint:nilerr // an ended job needs nothing, and the next event asks again
		}
		p.cfg.Log.Info("another job has the id of an ended one", "job", p.rec.Job, "kept", p.rec.archived())
		if !p.rec.Pruned { // else there is nothing to archive
			if err := p.archive(ctx); err != nil {
				return true, err
			}
		}
		p.rec = nil
	}
	if p.rec != nil && (err == nil || errors.Is(err, driver.ErrNotFound)) {
		set(p, &p.rec.Unreachable, false)
	}
	switch {
	case err == nil:
		p.inMemory(id).seen = true
	case errors.Is(err, driver.ErrNotFound) && p.rec != nil:
		return true, p.gone(ctx)
	case errors.Is(err, driver.ErrNotFound):
		return true, nil
	case p.rec != nil && !p.rec.Unreachable && !errors.Is(err, context.Canceled):
		p.rec.Unreachable = true
		p.add(Entry{Reason: tuning.ReasonUnreachable, Detail: err.Error()})
		return true, errors.Join(err, p.store(ctx))
	default:
		return true, fmt.Errorf("get job %s: %w", id, err)
	}
	if p.rec != nil && replaced(p.rec, p.job) {
		if err := p.closeReplaced(ctx); err != nil {
			return true, err
		}
	}
	if p.rec == nil {
		p.rec = &Record{
			Identity: Identity{Job: p.job.ID, Name: p.job.Name, Owner: p.job.Owner, Fingerprint: p.job.Fingerprint, Submitted: p.job.Submitted, Requested: p.job.Request},
			Phase:    Seen,
		}
		p.dirty = true
	}
	set(p, &p.rec.State, p.job.State)
	set(p, &p.rec.Held, p.job.Held)
	set(p, &p.rec.Started, cmp.Or(p.rec.Started, p.job.Started))
	set(p, &p.rec.Limit, limit(p.job))
	return false, nil
}

// superseded starts again with a job that its owner changed: by another job file, or by
// another size through the scheduler's own command. During an intent the driver handles a
// change of size.
func (p *reconciliation) superseded() {
	edited := p.job.Fingerprint != "" && p.rec.Fingerprint != p.job.Fingerprint // empty: the scheduler forgot the file
	old, now := p.rec.Asked, asked(p.job)
	resized := old != nil && *old != *now && p.rec.Move == nil && p.rec.Phase != Seen && !p.job.State.Ended()
	if !edited && !resized {
		return
	}
	p.caps.untry(p.rec.Job)
	p.rec.NoRoom, p.rec.Outcome, p.rec.Class, p.rec.Queued = false, nil, nil, nil
	if !edited { // what did not begin will not begin so
		p.rec.Runs = slices.DeleteFunc(p.rec.Runs, func(r Run) bool { return r.Attempt > p.job.Attempt })
	} else { // its earlier attempts ran another file
		for _, r := range p.rec.Runs {
			p.rec.Counted = max(p.rec.Counted, r.Attempt)
		}
		p.rec.Fingerprint, p.rec.KeepMemory, p.rec.Move, p.rec.Runs = p.job.Fingerprint, false, nil, nil
	}
	p.to(Seen, OwnerChanged, Entry{Reason: tuning.ReasonOwnerChanged})
}

// Asked is the size that the owner asked the scheduler for.
type Asked struct {
	Cores       int   `json:"cores"`
	MemoryBytes int64 `json:"memory_bytes"` // 0 = no limit
}

func asked(job driver.Job) *Asked {
	return &Asked{Cores: job.Resources.Cores, MemoryBytes: job.Resources.MemoryBytes}
}

func (p *reconciliation) read(ctx context.Context) error {
	if p.rec.Phase != Seen {
		return nil
	}
	reading := p.services.Read(ctx, p.job)
	p.rec.Kind = reading.Kind
	if reading.Reason != tuning.ReasonNone {
		p.rec.Own, p.rec.Asked, p.rec.Policy = reading.Own, nil, tuning.Policy{Tariff: reading.Policy.Tariff}
		p.to(Ignored, NoStanza, Entry{Reason: reading.Reason, Detail: reading.Detail})
		return nil
	}
	p.rec.Policy, p.rec.Own, p.rec.Total = reading.Policy, reading.Own, reading.Policy.Progress.Total
	p.rec.Asked = asked(p.job)
	p.rec.Control = false
	if err := p.draw(ctx); err != nil {
		return err
	}
	kind := p.rec.Kind
	p.caps.edit(p.rec.Job, func(x *counted) { x.kind = &kind })
	p.to(Waiting, StanzaRead, Entry{Detail: reading.Detail})
	return nil
}

// share notes what the trials of its search share. GPUs and whole nodes are not divided. What a setting was chosen by
// is what it is judged by.
func (p *reconciliation) share() {
	policy := &p.rec.Policy
	t := policy.TrialOf
	if t == nil || p.services.Share == nil || p.job.State.Ended() || policy.Mode == tuning.Observe {
		return
	}
	s := p.services.Share(t.ID)
	switch {
	case p.rec.touched() || p.rec.Move != nil:
		s.Cores, s.Trials, s.Serial = t.Share.Cores, t.Share.Trials, t.Share.Serial
	case p.rec.Own[tuning.GPUs].Float() > 0 || policy.Tariff.Hour > 0:
		s = tuning.Share{Next: s.Next}
	case t.Share.Cores == 0 && s.Cores > 0 && policy.Objective == tuning.Time:
		p.add(Entry{Reason: tuning.ReasonTrialsWait, Detail: fmt.Sprintf("%g trials at a time share %g cores", s.Trials, s.Cores)})
	}
	set(p, &t.Share, s)
}

// adopt records each attempt once, ours or not.
func (p *reconciliation) adopt(ctx context.Context) error {
	for _, a := range p.job.Attempts {
		if known := p.rec.runOf(a.Number); known != nil {
			measured := func(e tuning.Epoch) bool { return e.Attempt == a.Number }
			if known.Intent == "" || known.Intent == a.Intent || a.Number < p.job.Attempt || slices.ContainsFunc(p.rec.Epochs, measured) {
				continue
			}
			// It was to begin with a change, and its owner undid that.
			p.rec.Runs = slices.DeleteFunc(p.rec.Runs, func(r Run) bool { return r.Attempt == a.Number })
		}
		if p.rec.Counted > 0 && a.Number == p.rec.Counted+1 && a.Intent == "" {
			p.rec.anew()
		}
		run := Run{Attempt: a.Number, Action: tuning.Hold, Intent: a.Intent, Settings: SettingsOf(p.rec.Policy, p.rec.Own, a.Change)}
		fresh := a.Intent != "" && !slices.ContainsFunc(p.rec.Runs, func(r Run) bool { return r.Intent == a.Intent })
		ours := false // counted with its intent
		if m := p.rec.Move; m != nil && m.Driver.ID == a.Intent {
			run.Action, run.Wait, ours = m.Decision.Action, m.Wait, true
		}
		if q := p.rec.Queued; q != nil && q.Intent == a.Intent {
			run.Action, run.Wait, p.rec.Queued, ours = q.Action, q.Wait, nil, true
		}
		switch o, err := p.offer(ctx, a.Intent); {
		case err != nil:
			return err
		case o != nil:
			run.Action = o.Decision.Action
		}
		p.rec.Runs = append(p.rec.Runs, run)
		p.dirty = true
		// It saved after its move was abandoned, or the abandoned intent had its effect: that is a restart too.
		late := a.Cause == driver.CauseLate || p.gaveUp(a.Number-1)
		if a.Number > max(1, p.rec.Counted) && !ours && a.Cause != driver.CauseMemory && (late || fresh) {
			p.rec.Restarts = append(p.rec.Restarts, a.Started)
		}
		if a.Cause == driver.CauseMemory {
			p.rec.Harmed = append(p.rec.Harmed, p.rec.Settings(a.Number-1))
			p.add(Entry{Reason: tuning.ReasonOutOfMemory, Attempt: a.Number})
			p.rec.Reason = tuning.ReasonOutOfMemory
			// The scheduler did this by itself; the audit has it too.
			if err := p.services.Audit(ctx, Audit{
				At: p.now, Actor: "scheduler", Job: string(p.job.ID), Action: "memory-return",
				Before: p.rec.Settings(a.Number - 1), After: run.Settings, Reason: tuning.ReasonOutOfMemory,
			}); err != nil {
				p.cfg.Log.Error("the return of memory is not in the audit", "job", p.job.ID, "error", err)
			}
		}
	}
	return nil
}

// anew leaves behind what the attempts of an earlier job file did. An edit that restarted nothing, such as one of the stanza,
// leaves it evidence.
func (r *Record) anew() {
	r.Earlier = append(r.Earlier, r.Epochs...)
	r.Epochs, r.Cut, r.Profiles, r.Class, r.Peak = nil, nil, nil, nil, 0
	for i := range r.Runs {
		r.Runs[i].Read = true
	}
}

// gaveUp reports whether an attempt did not save in time for a change.
func (p *reconciliation) gaveUp(attempt int) bool {
	return slices.ContainsFunc(p.rec.History, func(e Entry) bool {
		return e.Trigger == IntentVoid && e.Reason == tuning.ReasonGraceExpired && e.Attempt == attempt
	})
}

// place notes where the present attempt runs, since the scheduler may forget it.
func (p *reconciliation) place() {
	set(p, &p.rec.Alias, cmp.Or(p.job.Alias, p.rec.Alias))
	for _, a := range p.job.Attempts {
		if run := p.rec.runOf(a.Number); run != nil {
			set(p, &run.Unit, cmp.Or(a.Unit, run.Unit))
		}
	}
	if run := p.rec.runOf(p.job.Attempt); run != nil && (run.Node == "" || p.job.State == driver.Running) {
		set(p, &run.Node, cmp.Or(p.job.Node, run.Node))
	}
}

// another reports whether a job is not the one of the ended record but a later one with the
// same id: schedulers reuse numbers, and users reuse names. It was submitted after the
// record's end, and waits or has begun since. A requeue before the end, which some schedulers
// report as a submission, is the same job.
func another(r *Record, job driver.Job) bool {
	if r.Requested != "" && job.Request != "" {
		return r.Requested != job.Request
	}
	over := r.OverAt()
	switch {
	case job.Submitted.Equal(r.Submitted), !job.Submitted.After(over):
		return false
	case !job.State.Ended():
		return true
	}
	return slices.ContainsFunc(job.Attempts, func(a driver.Attempt) bool { return a.Started.After(over) })
}

// Of reports whether the record is of this job, and not of an earlier one with the same id.
func (r *Record) Of(job driver.Job) bool { return !r.Phase.Over() || !another(r, job) }

// replaced reports whether a job is not the one of the open record: it was submitted later
// and its attempts began again. A requeued job keeps its attempts.
func replaced(r *Record, job driver.Job) bool {
	if r.Requested != "" && job.Request != "" {
		return r.Requested != job.Request
	}
	if !job.Submitted.After(r.Submitted) {
		return false
	}
	if n := len(r.Runs); n > 0 && job.Attempt < r.Runs[n-1].Attempt {
		return true
	}
	return slices.ContainsFunc(job.Attempts, func(a driver.Attempt) bool {
		known := r.run(a.Number).Unit
		return known != "" && a.Unit != "" && a.Unit != known
	})
}

// closeReplaced closes the record of a job whose id another job got before its end was seen.
// Nothing is learned of its end.
func (p *reconciliation) closeReplaced(ctx context.Context) error {
	p.cfg.Log.Info("another job has this id; the end of the first was not seen", "job", p.rec.Job, "kept", p.rec.archived())
	if err := p.lost(ctx); err != nil {
		return err
	}
	p.rec.Move = nil
	p.to(Ended, JobEnded, Entry{Detail: "another job got its id before its end was seen"})
	if err := p.archive(ctx); err != nil {
		return err
	}
	p.rec, p.dirty = nil, false
	return nil
}

func (p *reconciliation) archive(ctx context.Context) error {
	old := *p.rec
	old.Job = p.rec.archived()
	if err := errors.Join(p.bug, p.save(ctx, &old)); err != nil {
		return fmt.Errorf("archive the record of the earlier job %s: %w", p.rec.Job, err)
	}
	return nil
}

func (r *Record) archived() driver.JobID {
	return r.Job + "~" + driver.JobID(strconv.FormatInt(r.Submitted.Unix(), 10))
}
