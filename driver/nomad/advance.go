package nomad

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/driver/nomad/view"
)

// Advance takes at most one step towards the intent: of a running job Checkpointing
// until it saved, Changed, Started; of a waiting one, or where the intent discards,
// Changed and Started.
func (d *Driver) Advance(ctx context.Context, in driver.Intent) (driver.Step, error) {
	if in.ID == "" {
		return driver.Step{}, fmt.Errorf("advance %s: an intent without id: %w", in.Job, driver.ErrInvalid)
	}
	defer d.hold(in.Job)()
	defer d.unglance(in.Job)
	step, err := d.advance(ctx, in)
	if err != nil {
		return driver.Step{}, fmt.Errorf("advance %s of %s: %w", in.ID, in.Job, err)
	}
	return step, nil
}

func markOf(in driver.Intent) spec.Mark {
	return spec.Mark{Intent: in.ID, Cause: driver.CauseIntent, Change: in.Change.Clone()}
}

func (d *Driver) advance(ctx context.Context, in driver.Intent) (driver.Step, error) {
	f, job, err := d.get(ctx, in.Job)
	if last, ok := d.forgotten(ctx, in.Job, err); ok {
		return d.over(ctx, last, in)
	}
	if err != nil {
		return driver.Step{}, err
	}
	m := &move{d: d, f: f, job: job}
	if r := f.rec; r != nil {
		if r.Moving != nil && r.Moving.Intent.ID == in.ID {
			step, err := m.proceed(ctx)
			return m.orClose(ctx, step, err)
		}
		if step, done := m.position(in); done {
			return step, nil
		}
	}
	if why := spec.ObservedOnly(f.own); why != "" && !job.State.Ended() {
		return driver.Step{}, fmt.Errorf("%s: %w", why, driver.ErrUnsupported)
	}
	if step, done := m.outside(in); done {
		return step, nil
	}
	if m.grows(in) {
		d.growing.Lock()
		defer d.growing.Unlock()
	}
	if err := d.judge(ctx, f, in); err != nil {
		return driver.Step{}, err
	}
	step, err := m.begin(ctx, in)
	return m.orClose(ctx, step, err)
}

// over is where an intent stands whose job Nomad has forgotten.
func (d *Driver) over(ctx context.Context, last driver.Job, in driver.Intent) (driver.Step, error) {
	r, err := d.load(ctx, last.ID)
	if err != nil {
		return driver.Step{}, err
	}
	if r != nil && r.Closed[in.ID] == driver.StepStarted {
		return driver.Step{Kind: driver.StepStarted, Attempt: last.Attempt, Detail: "the attempt had the settings of the intent"}, nil
	}
	return driver.Step{Kind: driver.StepFinished, Attempt: last.Attempt, Detail: string(last.State)}, nil
}

// move takes one step of one intent. Its job was read in this call.
type move struct {
	d   *Driver
	f   *facts
	job driver.Job
}

func (m *move) step(kind driver.StepKind, detail string) driver.Step {
	return driver.Step{Kind: kind, Attempt: m.job.Attempt, Detail: detail}
}

// position tells where an intent stands that is on record as ended, or whose place
// another has.
func (m *move) position(in driver.Intent) (driver.Step, bool) {
	r := m.f.rec
	kind, ok := r.Closed[in.ID]
	switch {
	case ok && kind == driver.StepStarted:
		return m.step(kind, "applied"), true
	case ok && (kind == driver.StepFinished || !m.job.State.Ended()):
		return m.step(kind, r.Why[in.ID]), true
	case m.job.State.Ended():
		return m.step(driver.StepFinished, string(m.job.State)), true
	case r.Moving != nil:
		return m.step(driver.StepSuperseded, "intent "+r.Moving.Intent.ID+" is in progress"), true
	case m.f.mark != nil && m.f.mark.Intent != "" && r.Closed[m.f.mark.Intent] == driver.StepStarted && in.Attempt > 0 && m.pending():
		return m.step(driver.StepSuperseded, "the next attempt is queued with intent "+m.f.mark.Intent), true
	}
	return driver.Step{}, false
}

// pending tells whether the registered version has not begun.
func (m *move) pending() bool {
	for _, k := range m.f.rec.Attempts {
		if k.Version == m.f.version() {
			return false
		}
	}
	return true
}

// outside tells where an intent stands by what others did.
func (m *move) outside(in driver.Intent) (driver.Step, bool) {
	switch {
	case m.job.State.Ended():
		return m.step(driver.StepFinished, string(m.job.State)), true
	case in.Fingerprint != m.job.Fingerprint:
		return m.step(driver.StepSuperseded, "what its owner wrote is another"), true
	case in.Attempt != m.job.Attempt:
		return m.step(driver.StepSuperseded, fmt.Sprintf("the job is in attempt %d", m.job.Attempt)), true
	}
	return driver.Step{}, false
}

// begin makes the intent durable before anything is done for it.
func (m *move) begin(ctx context.Context, in driver.Intent) (driver.Step, error) {
	f := m.f
	moving := &moving{Intent: in, Phase: asking, Before: f.version()}
	a := f.latest()
	if a != nil {
		moving.Alloc, moving.Newest = a.ID, a.CreateIndex
	}
	switch {
	case f.parent != nil && time.Until(f.waits()) < ahead:
		return m.step(driver.StepRunning, "it is about to begin"), nil
	case m.d.queued(f):
		moving.Queued, moving.Phase = true, changing
	case view.TaskOf(a, f.task).Began.IsZero() || a.ClientStatus != "running":
		return m.step(driver.StepRunning, "its allocation is about to begin"), nil
	}
	if m.grows(in) {
		moving.Grows = a.NodeID
	}
	m.open(ctx)
	f.rec.Moving = moving
	var err error
	if moving.Queued {
		return m.change(ctx)
	}
	if !in.Discard { // a template takes its time, and ends what runs as politely as Nomad does
		if moving.Turn, err = m.turns(ctx, in); err != nil {
			return driver.Step{}, err
		}
	}
	if moving.Node, err = m.d.c.registered(ctx, a.NodeID); err != nil {
		return driver.Step{}, err
	}
	moving.Asked, moving.Since = time.Now().UTC(), view.TaskOf(a, f.task).Last
	if in.Checkpoint.Done != "" || in.Discard { // its client answers
		size, err := m.d.outputSize(ctx, f.at, a.ID, f.task)
		if err != nil {
			return driver.Step{}, err
		}
		moving.Offset = size
	}
	if in.Discard && time.Since(time.Unix(moving.Node, 0)) < settling {
		moving.Back = time.Now().UTC()
	}
	if err := m.d.save(ctx, f.rec); err != nil {
		return driver.Step{}, err
	}
	if in.Discard {
		return m.leave(ctx)
	}
	return m.step(driver.StepCheckpointing, "asked to save with "+in.Checkpoint.SignalName()), m.signal(ctx)
}

// grows reports whether a job that runs is to have more than it has.
func (m *move) grows(in driver.Intent) bool {
	job, err := m.d.target(m.f, markOf(in))
	return err == nil && !m.d.queued(m.f) && larger(m.f.job, job)
}

// open makes the record of a job of which there is none: what its owner wrote is kept
// before it is changed for the first time.
func (m *move) open(ctx context.Context) {
	f := m.f
	if f.rec == nil {
		f.rec = &record{Job: f.id}
	}
	r := f.rec
	if r.Own == nil || r.Submitted.IsZero() {
		r.Own, r.Index, r.First, r.Submitted = f.own, deref(f.job.CreateIndex), f.first, m.job.Submitted
		r.Attempts = known(f)
	}
	if r.Submission == nil {
		r.Submission = f.theirs(m.d.c.submission(ctx, f.at, f.version()))
	}
}

// known are the attempts of a job without a record.
func known(f *facts) []view.Known {
	_, k := view.Job(view.Input{ID: f.id, Job: f.job, Own: f.own, Task: f.task, Allocs: f.allocs})
	return k
}

// signal asks the job to save. A crash between the signal and its record would send it
// again, were it not for the events that tell of it.
func (m *move) signal(ctx context.Context) error {
	moving := m.f.rec.Moving
	if err := m.d.c.signal(ctx, m.f.at, moving.Alloc, m.f.task, moving.Intent.Checkpoint.SignalName()); err != nil {
		if errors.Is(err, driver.ErrNotFound) || strings.Contains(err.Error(), "not running") {
			return nil // it has just ended: the next look tells how
		}
		return err
	}
	moving.Signalled = true
	return m.d.save(ctx, m.f.rec)
}

// close ends the intent in progress.
func (m *move) close(ctx context.Context, kind driver.StepKind, detail string) (driver.Step, error) {
	m.d.cfg.Logger.Info("intent ended", "job", string(m.f.id), "intent", m.f.rec.Moving.Intent.ID, "step", string(kind), "detail", detail)
	m.f.rec.close(kind, detail)
	return m.step(kind, detail), m.d.save(ctx, m.f.rec)
}

// unglance has a job read anew by whoever asks next.
func (d *Driver) unglance(id driver.JobID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.glances, id)
}
