package slurm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/act"
	"pitchpipe/driver/slurm/journal"
	"pitchpipe/driver/slurm/parse"
)

// Advance takes at most one step towards the intent. The steps of a running job
// are Checkpointing until it left, Stopped, Changed, Started; those of a waiting
// one Changed and Started.
func (d *Driver) Advance(ctx context.Context, in driver.Intent) (driver.Step, error) {
	if in.ID == "" {
		return driver.Step{}, fmt.Errorf("advance %s: an intent without id: %w", in.Job, driver.ErrInvalid)
	}
	defer d.hold(in.Job)()
	step, err := d.advance(ctx, in)
	if err != nil {
		return driver.Step{}, fmt.Errorf("advance %s of %s: %w", in.ID, in.Job, err)
	}
	return step, nil
}

func (d *Driver) advance(ctx context.Context, in driver.Intent) (driver.Step, error) {
	j, r, err := d.observe(ctx, in.Job)
	if errors.Is(err, driver.ErrNotFound) && number(in.Job) {
		job, err := d.past(ctx, in.Job)
		return over(job, in), err
	}
	if err != nil {
		return driver.Step{}, err
	}
	if r == nil {
		if r, err = d.open(ctx, j); err != nil {
			return driver.Step{}, err
		}
	}
	m := move{d: d, j: j, r: r}
	if r.Moving != nil && r.Moving.Intent.ID == in.ID {
		step, err := m.proceed(ctx)
		return m.denied(ctx, step, err)
	}
	job, err := d.view(ctx, j, r)
	if err != nil {
		return driver.Step{}, err
	}
	if at, done := position(job, r, in); done {
		return at, nil
	}
	if has, want := rooms(j, r, in.Change); want.Beyond(has) {
		d.growing.Lock()
		defer d.growing.Unlock()
	}
	if err := d.judge(ctx, j, r, in); err != nil {
		return driver.Step{}, err
	}
	step, err := m.begin(ctx, in)
	return m.denied(ctx, step, err)
}

// denied ends an intent of which a step was refused: nobody asks for another of its steps,
// and while it is in progress no other intent begins.
func (m move) denied(ctx context.Context, step driver.Step, err error) (driver.Step, error) {
	if m.r.Moving == nil || !errors.Is(err, driver.ErrDenied) && !errors.Is(err, driver.ErrUnsupported) && !errors.Is(err, driver.ErrInvalid) {
		return step, err
	}
	if _, failed := m.close(ctx, driver.StepSuperseded, err.Error()); failed != nil {
		return step, failed
	}
	return step, err
}

// over is where an intent stands whose job slurmctld has forgotten.
func over(job driver.Job, in driver.Intent) driver.Step {
	if n := len(job.Attempts); n > 0 && job.Attempts[n-1].Intent == in.ID {
		return driver.Step{Kind: driver.StepStarted, Attempt: job.Attempt, Detail: "the attempt had the settings of the intent"}
	}
	return driver.Step{Kind: driver.StepFinished, Attempt: job.Attempt, Detail: string(job.State)}
}

// position tells where the intent stands where nothing is to be done for it.
func position(job driver.Job, r *journal.Record, in driver.Intent) (driver.Step, bool) {
	step := func(kind driver.StepKind, detail string) (driver.Step, bool) {
		return driver.Step{Kind: kind, Attempt: job.Attempt, Detail: detail}, true
	}
	if r.Next != nil && r.Next.Intent == in.ID && !job.State.Ended() {
		return step(driver.StepStarted, "the next attempt is queued")
	}
	if n := len(job.Attempts); n > 0 && job.Attempts[n-1].Intent == in.ID {
		return step(driver.StepStarted, "the attempt has the settings of the intent")
	}
	if kind, ok := r.Closed[in.ID]; ok && kind == driver.StepStarted {
		return step(kind, "its owner has changed the job since")
	} else if ok && !job.State.Ended() {
		return step(kind, "the intent has been given up")
	}
	switch {
	case job.State.Ended():
		return step(driver.StepFinished, string(job.State))
	case in.Fingerprint != job.Fingerprint:
		return step(driver.StepSuperseded, "the job file is another")
	case in.Attempt != job.Attempt:
		return step(driver.StepSuperseded, fmt.Sprintf("the job is in attempt %d", job.Attempt))
	case r.Moving != nil:
		return step(driver.StepSuperseded, "intent "+r.Moving.Intent.ID+" is in progress")
	}
	return driver.Step{}, false
}

// move takes one step of one intent. Its job was read in this call.
type move struct {
	d *Driver
	j parse.Job
	r *journal.Record
}

// step says where the job is.
func (m move) step(kind driver.StepKind, detail string) driver.Step {
	return driver.Step{Kind: kind, Attempt: m.d.sketch(m.j, m.r).Attempt, Detail: detail}
}

// begin makes the intent durable before anything is done for it.
func (m move) begin(ctx context.Context, in driver.Intent) (driver.Step, error) {
	moving := &journal.Moving{Intent: in, Phase: journal.Asking, Restarts: m.j.Restarts, Before: sizeOf(m.j)}
	m.r.Repairs = m.d.repairs(in.Change, m.r.Own) && act.Repairable(ctx, m.d.cfg.Commands, m.j) == nil
	m.r.Node = ""
	if parse.Waiting(m.j.State) {
		moving.Phase, moving.Queued, moving.Restarts = journal.Stopped, true, m.j.Restarts-1
		m.r.Moving = moving
		if err := m.d.write(m.r, "beginning"); err != nil {
			return driver.Step{}, err
		}
		return m.change(ctx)
	}
	m.r.Node = m.j.Node
	switch m.j.State {
	case "COMPLETING":
		return m.step(driver.StepRunning, "the attempt is just ending"), nil
	case "SUSPENDED": // it would not hear the signal
		return m.step(driver.StepRunning, "the attempt is suspended"), nil
	}
	if n := len(m.r.Attempts); n > 0 && m.r.Attempts[n-1].Change.Cores == 0 { // as it runs it may say less
		moving.Before.Cores = max(moving.Before.Cores, m.r.Own.Cores)
	}
	if in.Discard {
		moving.Phase, m.r.Moving = journal.Stopping, moving
		if err := m.d.write(m.r, "stopping"); err != nil {
			return driver.Step{}, err
		}
		return m.requeue(ctx)
	}
	size, err := m.d.outputSize(m.j, m.j.StdOut)
	if err != nil {
		return driver.Step{}, err
	}
	moving.Asked, moving.Offset = time.Now(), size
	if in.Checkpoint.Done != "" && !*m.d.cfg.ReadOutput {
		saves, err := m.d.cfg.Saves(ctx, m.j.Node, driver.JobID(m.j.ID), m.j.Restarts+1)
		if err != nil {
			return driver.Step{}, fmt.Errorf("how often it saved before: %w: %w", driver.ErrTransient, err)
		}
		moving.Saves, moving.Since = saves.Count, saves.Now
	}
	m.r.Moving = moving
	if err := m.d.write(m.r, "asking"); err != nil {
		return driver.Step{}, err
	}
	return m.step(driver.StepCheckpointing, "asked to save with "+in.Checkpoint.Signal), m.signal(ctx)
}

// signal asks the job to save. A crash between the signal and its record sends it
// again; that is why a job's handler must bear a second one.
func (m move) signal(ctx context.Context) error {
	err := m.d.cfg.Actor.Signal(ctx, string(m.r.Job), m.r.Moving.Intent.Checkpoint.SignalName())
	if errors.Is(err, driver.ErrNotFound) {
		return nil // so says scancel of a job that has just ended, as the next look shows
	}
	if err != nil {
		return err
	}
	m.d.cfg.AfterStep("signal-sent")
	m.r.Moving.Signalled = true
	return m.d.write(m.r, "signalled")
}

// proceed takes the next step of the intent in progress.
func (m move) proceed(ctx context.Context) (driver.Step, error) {
	moving := m.r.Moving
	switch {
	case parse.Ended(m.j.State) && !(moving.Memory && m.j.Restarts == moving.Restarts):
		return m.close(ctx, driver.StepFinished, "the job has ended")
	case m.j.Restarts > moving.Restarts+1:
		return m.close(ctx, driver.StepSuperseded, "the job was put back into the queue by another")
	case parse.Running(m.j.State) && begun(m.j, m.r, time.Now()) > moving.Restarts+1:
		return m.running(ctx)
	}
	switch moving.Phase {
	case journal.Asking, journal.Stopping:
		return m.leave(ctx)
	case journal.Stopped, journal.Changed:
		if !parse.Waiting(m.j.State) {
			return m.step(driver.StepStopped, "its processes are being ended"), nil
		}
		if detail := m.ownersWord(); detail != "" {
			return m.giveBack(ctx, detail)
		}
		if moving.Phase == journal.Stopped || !same(m.want(), sizeOf(m.j)) {
			return m.change(ctx)
		}
		return m.start(ctx)
	}
	return driver.Step{}, fmt.Errorf("phase %q of its record: %w", moving.Phase, driver.ErrInvalid)
}

// running: the next attempt runs already, under the new settings or without them.
func (m move) running(ctx context.Context) (driver.Step, error) {
	if n := len(m.r.Attempts); n > 0 && (m.r.Attempts[n-1].Intent == m.r.Moving.Intent.ID || m.r.Moving.Memory && m.r.Attempts[n-1].Cause == driver.CauseMemory) {
		m.late()
		m.r.Moving = nil
		return m.step(driver.StepStarted, "runs"), m.d.write(m.r, "started")
	}
	m.heed()
	return m.close(ctx, driver.StepSuperseded, "the next attempt began before it was changed")
}

// want is the size that the intent gives the job.
func (m move) want() journal.Size { return target(m.r.Own, m.r.Moving.Intent.Change) }

// ownersWord tells what the owner did to the waiting job meanwhile.
func (m move) ownersWord() string {
	have := sizeOf(m.j)
	switch {
	case !unchanged(m.r.Moving.Before, have) && !same(m.want(), have):
		return fmt.Sprintf("the job's owner changed it from %+v to %+v", m.r.Moving.Before, have)
	case m.j.Held && !m.r.Moving.Queued && m.j.State != "SPECIAL_EXIT":
		return "the job's owner holds it"
	case !m.j.Requeue && !m.r.Moving.Queued:
		return "the job's owner forbids restarts"
	}
	return ""
}

// giveBack ends an intent after its owner's word: what we made wait goes on. What he
// holds stays held, and does not wait for us once he lets it go.
func (m move) giveBack(ctx context.Context, detail string) (driver.Step, error) {
	if !unchanged(m.r.Moving.Before, sizeOf(m.j)) {
		m.r.Own = sizeOf(m.j)
	}
	if err := m.letGo(ctx); err != nil {
		return driver.Step{}, err
	}
	return m.close(ctx, driver.StepSuperseded, detail)
}

// close ends an intent that came to nothing.
func (m move) close(_ context.Context, kind driver.StepKind, detail string) (driver.Step, error) {
	if m.r.Closed == nil {
		m.r.Closed = map[string]driver.StepKind{}
	}
	m.r.Closed[m.r.Moving.Intent.ID] = kind
	m.late()
	m.r.Moving, m.r.Next = nil, nil
	if kind == driver.StepSuperseded {
		if err := m.keepSettings(); err != nil {
			return driver.Step{}, err
		}
	}
	return m.step(kind, detail), m.d.write(m.r, string(kind))
}

// late notes that the job was asked to save: whenever it is seen to have left for that
// reason it is ours to let go, even when slurmctld forgot that it was. One that left was
// asked, though a crash may have come between the signal and its record.
func (m move) late() {
	moving := m.r.Moving
	asked := moving.Signalled || !moving.Queued && (moving.Phase != journal.Asking || m.j.Restarts > moving.Restarts)
	if cp := moving.Intent.Checkpoint; asked && cp != nil && cp.Exit != 0 {
		m.r.Late = &journal.Late{Restarts: moving.Restarts + 1, Exit: cp.Exit}
	}
}
