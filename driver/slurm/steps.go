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

// leave has a job that was asked to save leave, once it saved.
func (m move) leave(ctx context.Context) (driver.Step, error) {
	moving := m.r.Moving
	switch {
	case m.j.Restarts > moving.Restarts && m.heldByTheSite():
		return m.close(ctx, driver.StepSuperseded, fmt.Sprintf("the job left with status %d, for which the cluster holds it", m.j.Exit.Code()))
	case m.j.Restarts > moving.Restarts && parse.Waiting(m.j.State):
		return m.left(ctx)
	case leaving(m.j, time.Now()), m.j.State == "COMPLETING":
		return m.step(driver.StepCheckpointing, "its processes are being ended"), nil
	case parse.Waiting(m.j.State):
		// The restart was not counted: slurmctld lost what it knew.
		return m.close(ctx, driver.StepSuperseded, "slurmctld took the attempt back")
	case moving.Phase == journal.Stopping:
		return m.requeue(ctx)
	case !moving.Signalled:
		return m.step(driver.StepCheckpointing, "asked to save again"), m.signal(ctx)
	}
	cp := moving.Intent.Checkpoint
	late := time.Since(moving.Asked) >= cp.Grace
	if cp.Done != "" && !late { // later it has worked on since, and would lose that
		done, err := m.saved(ctx)
		if err != nil {
			return driver.Step{}, err
		}
		if done {
			moving.Phase = journal.Stopping
			if err := m.d.write(m.r, "stopping"); err != nil {
				return driver.Step{}, err
			}
			return m.requeue(ctx)
		}
	}
	if !late {
		return m.step(driver.StepCheckpointing, "has not saved yet"), nil
	}
	return m.close(ctx, driver.StepAbandoned, fmt.Sprintf("did not save within %v", cp.Grace))
}

// heldByTheSite tells of a job that left, before it was put back into the queue, with a
// status that is held here (RequeueExitHold) and does not mean that it saved for us: somebody
// is to look at it.
func (m move) heldByTheSite() bool {
	return m.j.State == "SPECIAL_EXIT" && m.r.Moving.Phase == journal.Asking && m.j.Exit.Code() != m.r.Moving.Intent.Checkpoint.Exit
}

// saved tells whether the job has said since it was asked that it saved.
func (m move) saved(ctx context.Context) (bool, error) {
	moving := m.r.Moving
	if *m.d.cfg.ReadOutput {
		return m.d.saidDone(m.j, moving.Intent.Checkpoint.Done, moving.Offset)
	}
	saves, err := m.d.cfg.Saves(ctx, m.j.Node, driver.JobID(m.j.ID), m.j.Restarts+1)
	if err != nil {
		m.d.cfg.Logger.Warn("nobody tells whether the job saved", "job", string(m.r.Job), "error", err)
		return false, nil
	}
	// A report may come late: what was saved before it was asked is not what it was asked for.
	return saves.Count > moving.Saves && (saves.Last.IsZero() || !saves.Last.Before(moving.Since)), nil
}

// requeue puts a job that saved, or that the intent discards, back into the queue: same id,
// same dependants. It
// waits there for about two minutes and then starts by itself, so that nothing is
// held by a controller that dies. Incomplete: nothing happens to a job that has
// ended meanwhile.
func (m move) requeue(ctx context.Context) (driver.Step, error) {
	moving := m.r.Moving
	if !m.j.Requeue {
		return m.close(ctx, driver.StepSuperseded, "the job's owner forbids restarts")
	}
	requeue := m.d.cfg.Actor.Requeue
	switch {
	case moving.Memory:
		requeue = m.d.cfg.Actor.Rerun
	case moving.Intent.Discard:
		requeue = m.d.cfg.Actor.Discard
	case !moving.Requeued && time.Since(moving.Asked) >= moving.Intent.Checkpoint.Grace:
		return m.close(ctx, driver.StepAbandoned, "not ended within the grace of being asked to save")
	}
	if err := requeue(ctx, string(m.r.Job)); err != nil {
		return driver.Step{}, err
	}
	m.d.cfg.AfterStep("requeued")
	moving.Requeued = true
	return m.step(driver.StepCheckpointing, "being ended"), m.d.write(m.r, "requeue-acknowledged")
}

// left: the job is in the queue again, by our word, its own, or the cluster's
// RequeueExit. One that the cluster holds is let go after the window.
func (m move) left(ctx context.Context) (driver.Step, error) {
	if err := m.d.delay(ctx, m.j, m.d.cfg.Window); err != nil {
		return driver.Step{}, err
	}
	m.r.Moving.Phase, m.r.Moving.Left = journal.Stopped, time.Now().UTC()
	return m.step(driver.StepStopped, ""), m.d.write(m.r, "stopped")
}

// delay has a waiting job start by itself after a time, 0 = now.
func (d *Driver) delay(ctx context.Context, j parse.Job, wait time.Duration) error {
	wait = max(wait, 0)
	if err := d.cfg.Actor.Update(ctx, string(nameOf(j)), act.Update{Start: &wait}); err != nil {
		return err
	}
	d.cfg.AfterStep("delayed")
	if j.State != "SPECIAL_EXIT" {
		return nil
	}
	if err := d.cfg.Actor.Release(ctx, string(nameOf(j))); err != nil {
		return err
	}
	d.cfg.AfterStep("released")
	return nil
}

// restart is the least time between the end of an attempt and the start of the
// next. Slurm's nodes refuse what was launched in the second in which the attempt
// before was revoked, and the job fails; or the node waits for a prolog that it never
// runs, fails the job after two minutes and is drained.
const restart = 2 * time.Second

// resume ends the wait of a job whose next attempt may start.
func (d *Driver) resume(ctx context.Context, j parse.Job, r *journal.Record) error {
	var wait time.Duration
	if n := len(r.Attempts); n > 0 {
		wait = time.Until(r.Attempts[n-1].Ended.Add(restart))
	}
	// An attempt counts as ended when its processes are told to go. The node revokes it
	// when they have gone, which is before the job is back in the queue.
	if r.Moving != nil {
		wait = max(wait, time.Until(r.Moving.Left.Add(restart)))
	}
	if wait > 0 {
		wait = wait.Truncate(time.Second) + time.Second
	}
	return d.delay(ctx, j, wait)
}

// change gives the waiting job its new size and settings. What the attempt is to
// be is durable first.
func (m move) change(ctx context.Context) (driver.Step, error) {
	moving, want := m.r.Moving, m.want()
	if m.j.Unnumbered() {
		c := moving.Intent.Change
		if !moving.Split && m.d.cfg.TaskProlog && len(c.Env)+len(c.Live) > 0 {
			return m.split(ctx)
		}
		if moving.Split { // the last of its array, which keeps its number
			m.r.Number = m.j.ID
		}
	}
	moving.Phase = journal.Changed
	m.r.Next = &journal.Next{
		Number: m.j.Restarts + 1, Change: moving.Intent.Change, Intent: moving.Intent.ID, Size: want, Before: &moving.Before, At: time.Now().UTC(), Memory: moving.Memory,
	}
	m.r.Output = m.d.mark(m.j, m.r.Next.Number)
	note := moving.Intent.Note
	if m.j.Unnumbered() && m.r.Number == "" {
		note = "" // the TaskProlog knows a task by its number, which this one has not yet
	}
	// The settings first: an attempt must not be credited with what was not there.
	if err := m.d.writeSettings(m.j, m.r, moving.Intent.Change, note); err != nil {
		return driver.Step{}, err
	}
	if err := m.d.write(m.r, "changing"); err != nil {
		return driver.Step{}, err
	}
	update := difference(sizeOf(m.j), want)
	if !moving.Queued {
		update.Start = &m.d.cfg.Window
	}
	if !update.Empty() {
		err := m.d.cfg.Actor.Update(ctx, string(m.r.Job), update)
		if errors.Is(err, driver.ErrDenied) || errors.Is(err, driver.ErrInvalid) {
			return m.refused(ctx, err)
		}
		if err != nil {
			return driver.Step{}, err
		}
	}
	m.d.cfg.AfterStep("changed")
	return m.step(driver.StepChanged, ""), nil
}

// refused ends an intent whose change Slurm does not take: the job goes on under
// its old settings, and nothing waits for us.
func (m move) refused(ctx context.Context, why error) (driver.Step, error) {
	if err := m.letGo(ctx); err != nil {
		return driver.Step{}, err
	}
	if _, err := m.close(ctx, driver.StepSuperseded, why.Error()); err != nil {
		return driver.Step{}, err
	}
	return driver.Step{}, why
}

// letGo has a job that we made wait go on under the settings that it had. They are in
// their place first: an attempt of the old size must not meet the new threads.
func (m move) letGo(ctx context.Context) error {
	if err := m.keepSettings(); err != nil {
		return err
	}
	m.d.cfg.AfterStep("settings-kept")
	if m.r.Moving.Queued {
		return nil
	}
	return m.d.resume(ctx, m.j, m.r)
}

// keepSettings puts the settings of the last attempt back.
func (m move) keepSettings() error {
	var kept driver.Change
	if n := len(m.r.Attempts); n > 0 {
		kept = m.r.Attempts[n-1].Change
	}
	return m.d.writeSettings(m.j, m.r, kept, "")
}

// difference is what Slurm is told, so that a job gets the wanted size.
func difference(have, want journal.Size) act.Update {
	var u act.Update
	if have.Cores != want.Cores {
		u.Cores = &want.Cores
	}
	if have.MemoryBytes != want.MemoryBytes || have.MemoryPerCPU != want.MemoryPerCPU {
		u.Memory = &act.Memory{Bytes: want.MemoryBytes, PerCPU: want.MemoryPerCPU}
	}
	if have.TimeLimit != want.TimeLimit {
		u.TimeLimit = &want.TimeLimit
	}
	return u
}

// start ends the wait of the changed job.
func (m move) start(ctx context.Context) (driver.Step, error) {
	if !m.r.Moving.Queued || m.r.Delayed {
		if err := m.d.resume(ctx, m.j, m.r); err != nil {
			return driver.Step{}, err
		}
	}
	m.late()
	m.r.Moving, m.r.Delayed = nil, false
	return m.step(driver.StepStarted, "queued"), m.d.write(m.r, "queued")
}

// wake ends the wait of a job that is ours to end, once its time has come. It would
// end by itself: where it cannot be ended nothing is lost but time.
func (d *Driver) wake(ctx context.Context, j parse.Job, r *journal.Record) error {
	if parse.Waiting(j.State) && (j.Held || j.Eligible.IsZero() || j.Eligible.After(time.Now())) {
		return nil
	}
	if j.Unnumbered() {
		// One of them is enough to have slurmctld look at all.
		if req, err := d.journal.Request(r.Request); err != nil || req.Job != r.Job {
			return nil //nolint:nilerr // then it is left to slurmctld
		}
	}
	if parse.Waiting(j.State) {
		err := d.resume(ctx, j, r)
		if errors.Is(err, driver.ErrTransient) || errors.Is(err, driver.ErrUnknown) {
			return nil //nolint:nilerr // whoever asks next tries again
		}
		if err != nil {
			d.cfg.Logger.Warn("a wait that is over is not ours to end", "job", string(r.Job), "error", err)
		}
	}
	r.Delayed = false
	return d.write(r, "woken")
}
