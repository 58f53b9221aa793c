package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/local/supervise"
)

// Advance takes at most one step towards the intent. The steps of a running job
// are Checkpointing until it left, Stopped, Changed, Started; those of a pending
// one Changed and Started.
func (d *Driver) Advance(ctx context.Context, in driver.Intent) (driver.Step, error) {
	h := d.hear(in)
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.find(in.Job)
	if err != nil {
		return driver.Step{}, fmt.Errorf("advance %s: %w", in.ID, err)
	}
	if in.ID == "" {
		return driver.Step{}, fmt.Errorf("advance %s: an intent without id: %w", in.Job, driver.ErrInvalid)
	}
	d.touched[in.Job] = time.Now()
	if r.Job.State == driver.Running {
		if r, err = d.harvest(ctx, r); err != nil {
			return driver.Step{}, fmt.Errorf("advance %s: %w", in.ID, err)
		}
	}
	step, err := d.advance(r, in, h)
	if err != nil {
		return driver.Step{}, fmt.Errorf("advance %s of %s: %w", in.ID, in.Job, err)
	}
	step.Attempt = d.jobs[in.Job].Job.Attempt
	return step, nil
}

func (d *Driver) advance(r *record, in driver.Intent, h heard) (driver.Step, error) {
	switch kind, detail := r.position(in); {
	case kind != "":
		return driver.Step{Kind: kind, Detail: detail}, nil
	case r.Moving != nil:
		return d.proceed(r, h)
	}
	if err := d.judge(r, in); err != nil {
		return driver.Step{}, err
	}
	c := r.clone()
	if r.Job.State == driver.Pending {
		return d.change(c, in)
	}
	if r.Cancel {
		return driver.Step{Kind: driver.StepRunning, Detail: "the job is being cancelled"}, nil
	}
	if in.Discard {
		c.Moving = &moving{Intent: in, Phase: phaseStopping}
		if err := d.commit(c, "stopping"); err != nil {
			return driver.Step{}, err
		}
		return d.stop(c)
	}
	if h.err != nil {
		return driver.Step{}, h.err
	}
	if h.size < 0 { // it was not running when its output was looked at
		return driver.Step{Kind: driver.StepRunning, Detail: "the attempt has just begun"}, nil
	}
	c.Moving = &moving{Intent: in, Phase: phaseAsking, Asked: time.Now(), Offset: h.size}
	if err := d.commit(c, "asking"); err != nil {
		return driver.Step{}, err
	}
	_, err := d.ask(c)
	return driver.Step{Kind: driver.StepCheckpointing, Detail: "asked to save with " + in.Checkpoint.Signal}, err
}

// position tells where the intent stands where nothing is to be done for it, or
// nothing where it is new or in progress.
func (r *record) position(in driver.Intent) (driver.StepKind, string) {
	if r.Moving != nil && r.Moving.Intent.ID == in.ID {
		return "", ""
	}
	if r.Job.State == driver.Pending && r.Next.Intent == in.ID {
		return driver.StepStarted, "the next attempt is queued"
	}
	if slices.ContainsFunc(r.Job.Attempts, func(a driver.Attempt) bool { return a.Intent == in.ID }) {
		return driver.StepStarted, "the intent was applied"
	}
	if kind, ok := r.Closed[in.ID]; ok && !r.Job.State.Ended() {
		return kind, "the intent has been given up"
	}
	switch {
	case r.Job.State.Ended():
		return driver.StepFinished, string(r.Job.State)
	case in.Fingerprint != r.Job.Fingerprint:
		return driver.StepSuperseded, "the job file is another"
	case in.Attempt != r.Job.Attempt:
		return driver.StepSuperseded, fmt.Sprintf("the job is in attempt %d", r.Job.Attempt)
	case r.Moving != nil:
		return driver.StepSuperseded, "intent " + r.Moving.Intent.ID + " is in progress"
	}
	return "", ""
}

// proceed takes the next step of the intent in progress.
func (d *Driver) proceed(r *record, h heard) (driver.Step, error) {
	m := r.Moving
	switch m.Phase {
	case phaseAsking:
		return d.awaitSaved(r, h)
	case phaseStopping:
		return d.stop(r)
	case phaseLeft:
		c := r.clone()
		c.Moving.Phase = phaseStopped
		return driver.Step{Kind: driver.StepStopped}, d.commit(c, "stopped")
	case phaseStopped:
		return d.change(r.clone(), m.Intent)
	case phaseChanged:
		c := r.clone()
		if c.Job.State == driver.Stopped {
			c.queue("")
		}
		c.Moving, c.NotBefore = nil, time.Time{}
		defer d.nudge()
		return driver.Step{Kind: driver.StepStarted, Detail: "queued"}, d.commit(c, "queued")
	}
	return driver.Step{}, fmt.Errorf("phase %q of its record: %w", m.Phase, driver.ErrInvalid)
}

// change gives the next attempt the settings of the intent.
func (d *Driver) change(c *record, in driver.Intent) (driver.Step, error) {
	c.Next = next{Change: in.Change.Clone(), Cause: driver.CauseIntent, Intent: in.ID, Note: oneLine(in.Note)}
	if c.Moving == nil {
		c.Moving = &moving{Intent: in}
	}
	c.Moving.Phase = phaseChanged
	return driver.Step{Kind: driver.StepChanged}, d.commit(c, "changed")
}

// ask has the supervisor send the signal, once for each intent, and returns since
// when it is asked for.
func (d *Driver) ask(r *record) (time.Time, error) {
	path := filepath.Join(d.store.launch(r), supervise.SignalFile)
	var have supervise.Signal
	if err := durable.ReadJSON(path, &have); err == nil && have.ID == r.Moving.Intent.ID {
		return have.At, nil
	}
	sig := supervise.Signal{ID: r.Moving.Intent.ID, Signal: r.Moving.Intent.Checkpoint.SignalName(), At: time.Now()}
	if err := durable.WriteJSON(path, sig, 0o600); err != nil {
		return sig.At, fmt.Errorf("asking it to save: %w: %w", driver.ErrTransient, err)
	}
	d.cfg.AfterStep("signal-requested")
	return sig.At, nil
}

// awaitSaved looks whether the job that was asked to save did, or will not.
func (d *Driver) awaitSaved(r *record, h heard) (driver.Step, error) {
	asked, err := d.ask(r)
	if err != nil {
		return driver.Step{}, err
	}
	cp := r.Moving.Intent.Checkpoint
	late := time.Since(asked) >= cp.Grace
	if cp.Done != "" && !late { // later it has worked on since, and would lose that
		if h.err != nil {
			return driver.Step{}, h.err
		}
		if h.saved && h.intent == r.Moving.Intent.ID {
			c := r.clone()
			c.Moving.Phase = phaseStopping
			if err := d.commit(c, "stopping"); err != nil {
				return driver.Step{}, err
			}
			return d.stop(c)
		}
	}
	if !late {
		return driver.Step{Kind: driver.StepCheckpointing, Detail: "has not saved yet"}, nil
	}
	c := r.clone()
	c.abandon()
	return driver.Step{Kind: driver.StepAbandoned, Detail: fmt.Sprintf("did not save within %v", cp.Grace)}, d.commit(c, "abandoned")
}

// stop has a job ended that said that it saved, or whose intent discards what it did
// since it saved. Where a job that saved was not ended in time, because this process
// was gone meanwhile, it has worked on since and would lose that: the intent is
// abandoned.
func (d *Driver) stop(r *record) (driver.Step, error) {
	ending := driver.Step{Kind: driver.StepCheckpointing, Detail: "being ended"}
	var have supervise.Stop
	if err := durable.ReadJSON(filepath.Join(d.store.launch(r), supervise.StopFile), &have); err == nil {
		return ending, nil
	}
	if r.Moving.Intent.Discard {
		return ending, d.requestStop(r, supervise.StopDiscarded)
	}
	asked, err := d.ask(r)
	if err != nil {
		return driver.Step{}, err
	}
	grace := r.Moving.Intent.Checkpoint.Grace
	if time.Since(asked) < grace {
		return ending, d.requestStop(r, supervise.StopSaved)
	}
	c := r.clone()
	c.abandon()
	return driver.Step{Kind: driver.StepAbandoned, Detail: fmt.Sprintf("not ended within %v of being asked to save", grace)},
		d.commit(c, "abandoned")
}

// Check is the dry run of Advance.
func (d *Driver) Check(_ context.Context, in driver.Intent) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.find(in.Job)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if r.Job.State.Ended() {
		return fmt.Errorf("check: job %s has ended: %w", in.Job, driver.ErrConflict)
	}
	if err := d.judge(r, in); err != nil {
		return fmt.Errorf("check: job %s: %w", in.Job, err)
	}
	return nil
}

// judge refuses an intent that this machine or this job cannot follow.
func (d *Driver) judge(r *record, in driver.Intent) error {
	if err := d.checkChange(r, in.Change); err != nil {
		return err
	}
	if r.Job.State == driver.Pending {
		return nil
	}
	cp := in.Checkpoint
	if cp == nil {
		return fmt.Errorf("a running job is not touched without a checkpoint: %w", driver.ErrUnsupported)
	}
	if r.File.NoRequeue {
		return fmt.Errorf("the job file forbids restarts: %w", driver.ErrDenied)
	}
	if unix.SignalNum(cp.SignalName()) == 0 {
		return fmt.Errorf("signal %q: %w", cp.Signal, driver.ErrInvalid)
	}
	if cp.Exit == 0 && cp.Done == "" {
		return fmt.Errorf("a checkpoint that says neither by which exit status nor by which line it is known: %w", driver.ErrInvalid)
	}
	if _, err := regexp.Compile(cp.Done); err != nil {
		return fmt.Errorf("checkpoint: %w: %w", driver.ErrInvalid, err)
	}
	return d.grow(r, in.Change)
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}
