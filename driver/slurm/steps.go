package slurm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/journal"
	"pitchpipe/driver/slurm/parse"
)

// leave has a job that was asked to save leave, once it saved.
func (m move) leave(ctx context.Context) (driver.Step, error) {
	moving := m.r.Moving
	switch {
	case m.j.Restarts > moving.Restarts && waiting(m.j.State):
		return m.left(ctx)
	case leaving(m.j, time.Now()), m.j.State == "COMPLETING":
		return m.step(driver.StepCheckpointing, "its processes are being ended"), nil
	case waiting(m.j.State):
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
		done, err := m.d.saidDone(m.j, cp.Done, moving.Offset)
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

// requeue puts a job that saved back into the queue: same id, same dependants. It
// waits there for about two minutes and then starts by itself, so that nothing is
// held by a controller that dies. Incomplete: nothing happens to a job that has
// ended meanwhile.
func (m move) requeue(ctx context.Context) (driver.Step, error) {
	moving := m.r.Moving
	if !m.j.Requeue {
		return m.close(ctx, driver.StepSuperseded, "the job's owner forbids restarts")
	}
	if !moving.Requeued && time.Since(moving.Asked) >= moving.Intent.Checkpoint.Grace {
		return m.close(ctx, driver.StepAbandoned, "not ended within the grace of being asked to save")
	}
	if err := m.d.effect(ctx, "scontrol", "requeue", "Incomplete", string(m.r.Job)); err != nil {
		return driver.Step{}, err
	}
	m.d.cfg.AfterStep("requeued")
	moving.Requeued = true
	return m.step(driver.StepCheckpointing, "saved; being ended"), m.d.write(m.r, "requeue-acknowledged")
}

// left: the job is in the queue again, by our word, its own, or the cluster's
// RequeueExit. One that the cluster holds is let go after the window.
func (m move) left(ctx context.Context) (driver.Step, error) {
	if err := m.d.delay(ctx, m.j, m.d.cfg.Window); err != nil {
		return driver.Step{}, err
	}
	m.r.Moving.Phase = journal.Stopped
	return m.step(driver.StepStopped, ""), m.d.write(m.r, "stopped")
}

// delay has a waiting job start by itself after a time, 0 = now.
func (d *Driver) delay(ctx context.Context, j parse.Job, wait time.Duration) error {
	when := "StartTime=now"
	if wait > 0 {
		when = fmt.Sprintf("StartTime=now+%d", int(wait.Seconds()))
	}
	if err := d.effect(ctx, "scontrol", "update", "JobId="+j.ID, when); err != nil {
		return err
	}
	d.cfg.AfterStep("delayed")
	if j.State != "SPECIAL_EXIT" {
		return nil
	}
	if err := d.effect(ctx, "scontrol", "release", j.ID); err != nil {
		return err
	}
	d.cfg.AfterStep("released")
	return nil
}

// restart is the least time between the end of an attempt and the start of the
// next. Slurm's nodes refuse what was launched in the second in which the attempt
// before was revoked, and the job fails.
const restart = 2 * time.Second

// resume ends the wait of a job whose next attempt may start.
func (d *Driver) resume(ctx context.Context, j parse.Job, r *journal.Record) error {
	var wait time.Duration
	if n := len(r.Attempts); n > 0 {
		wait = time.Until(r.Attempts[n-1].Ended.Add(restart))
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
	moving.Phase = journal.Changed
	m.r.Next = &journal.Next{
		Number: m.j.Restarts + 1, Change: moving.Intent.Change, Intent: moving.Intent.ID, Size: want,
	}
	m.r.Output = m.d.mark(m.j, m.r.Next.Number)
	// The settings first: an attempt must not be credited with what was not there.
	if err := m.d.writeSettings(m.r, m.r.Next.Number, moving.Intent.Change); err != nil {
		return driver.Step{}, err
	}
	if err := m.d.write(m.r, "changing"); err != nil {
		return driver.Step{}, err
	}
	args := difference(sizeOf(m.j), want)
	if !moving.Queued {
		args = append(args, fmt.Sprintf("StartTime=now+%d", int(m.d.cfg.Window.Seconds())))
	}
	if len(args) > 0 {
		err := m.d.effect(ctx, "scontrol", append([]string{"update", "JobId=" + m.j.ID}, args...)...)
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
	if !m.r.Moving.Queued {
		if err := m.d.resume(ctx, m.j, m.r); err != nil {
			return driver.Step{}, err
		}
	}
	if _, err := m.close(ctx, driver.StepSuperseded, why.Error()); err != nil {
		return driver.Step{}, err
	}
	return driver.Step{}, why
}

// difference is what scontrol is told. The CPUs of the job and those of its one
// task are set together, since either alone leaves the other.
func difference(have, want journal.Size) []string {
	var args []string
	if have.Cores != want.Cores {
		args = append(args, fmt.Sprintf("NumCPUs=%d", want.Cores), fmt.Sprintf("CpusPerTask=%d", want.Cores))
	}
	if have.MemoryBytes != want.MemoryBytes || have.MemoryPerCPU != want.MemoryPerCPU {
		key := "MinMemoryNode"
		if want.MemoryPerCPU {
			key = "MinMemoryCPU"
		}
		args = append(args, fmt.Sprintf("%s=%d", key, want.MemoryBytes>>20))
	}
	if have.TimeLimit != want.TimeLimit {
		limit := "UNLIMITED"
		if want.TimeLimit > 0 {
			limit = fmt.Sprint(int(want.TimeLimit.Minutes()))
		}
		args = append(args, "TimeLimit="+limit)
	}
	return args
}

// start ends the wait of the changed job.
func (m move) start(ctx context.Context) (driver.Step, error) {
	if !m.r.Moving.Queued || m.r.Delayed {
		if err := m.d.resume(ctx, m.j, m.r); err != nil {
			return driver.Step{}, err
		}
	}
	m.r.Moving, m.r.Delayed = nil, false
	return m.step(driver.StepStarted, "queued"), m.d.write(m.r, "queued")
}

// settle lets a job go that the cluster holds because it saved for an intent of
// ours that was given up: saving late loses nothing. What its owner or the site
// holds stays.
func (d *Driver) settle(ctx context.Context, j parse.Job, r *journal.Record) error {
	if r == nil || j.State != "SPECIAL_EXIT" || r.Moving != nil || r.Late == nil {
		return nil
	}
	if j.Restarts == r.Late.Restarts && j.Exit.Exit == r.Late.Exit {
		err := d.resume(ctx, j, r)
		if err != nil && !errors.Is(err, driver.ErrDenied) {
			return err
		}
		if err != nil {
			d.cfg.Logger.Warn("a job that saved late is not ours to let go", "job", string(r.Job), "error", err)
		}
	}
	r.Late = nil
	return d.write(r, "settled")
}
