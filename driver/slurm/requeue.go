package slurm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
	"pitchpipe/driver/output"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

// heldByTheSite reports a job that left, before it was put back into the queue, with a
// status that is held here (RequeueExitHold) and does not mean that it saved for us: someone
// is to look at it.
func (m *mover) heldByTheSite() bool {
	return m.j.State == "SPECIAL_EXIT" && m.r.Moving.Phase == move.Asking && m.j.Exit.Code() != m.r.Moving.Intent.Checkpoint.Exit
}

func (m *mover) Saved(ctx context.Context) (bool, error) {
	moving := m.r.Moving
	if !m.d.cfg.Everyone {
		said, err := m.d.outputs.Tail(m.j.StdOut, int(m.j.UID), m.r.From.Offset)
		if err != nil {
			return false, err
		}
		return output.Says(said, moving.Intent.Checkpoint.Done)
	}
	saves, err := m.d.cfg.Saves(ctx, m.j.Node, driver.JobID(m.j.ID), m.j.Restarts+1)
	if err != nil {
		m.d.cfg.Logger.Warn("no one reports whether the job saved", "job", string(m.r.Job), "error", err)
		return false, nil
	}
	// A report may come late: what was saved before it was asked is not what it was asked for.
	return saves.Count > m.r.From.Saves && (saves.Last.IsZero() || !saves.Last.Before(m.r.From.Since)), nil
}

// Stop implements move.Job: the job goes back into the queue with the same id and the same
// dependants. It waits there for about two minutes and then starts by itself, so that
// nothing is held by a controller that dies. Incomplete: nothing happens to a job that has
// ended meanwhile.
func (m *mover) Stop(ctx context.Context) error {
	verb := slurmctl.Requeue
	switch {
	case m.r.From.Memory:
		verb = slurmctl.Rerun
	case m.r.Moving.Intent.Discard:
		verb = slurmctl.Discard
	}
	return m.d.cfg.Actor.Do(ctx, verb, string(m.r.Job))
}

// Keep implements move.Job: the job is in the queue again, by our word, its own, or the
// cluster's RequeueExit. One that the cluster alone holds is let go after the window.
func (m *mover) Keep(ctx context.Context) error { return m.d.delay(ctx, m.j, m.r, m.d.cfg.Window) }

// delay has a waiting job start by itself after a time, 0 = now.
func (d *Driver) delay(ctx context.Context, j parse.Job, r *Record, wait time.Duration) error {
	wait = max(wait, 0)
	if err := d.cfg.Actor.Update(ctx, string(nameOf(j)), slurmctl.Update{Start: &wait}); err != nil {
		return err
	}
	d.cfg.AfterStep("delayed")
	if j.State != "SPECIAL_EXIT" || r.Held {
		return nil
	}
	if err := d.cfg.Actor.Do(ctx, slurmctl.Release, string(nameOf(j))); err != nil {
		return err
	}
	d.cfg.AfterStep("released")
	return nil
}

// resume ends the wait of a job whose next attempt may start.
func (d *Driver) resume(ctx context.Context, j parse.Job, r *Record) error {
	wait := time.Until(r.latest().Ended.Add(slurmctl.Gap))
	// An attempt counts as ended when its processes are signalled. The node revokes it
	// when they have gone, which is before the job is back in the queue.
	if r.Moving != nil {
		wait = max(wait, time.Until(r.Moving.Left.Add(slurmctl.Gap)))
	}
	if wait > 0 {
		wait = wait.Truncate(time.Second) + time.Second
	}
	return d.delay(ctx, j, r, wait)
}

// Plan implements move.Job: the settings are in their place before an attempt could be
// credited with them.
func (m *mover) Plan(ctx context.Context) (move.End, error) {
	moving, from := m.r.Moving, &m.r.From
	if m.j.Unnumbered() {
		c := moving.Intent.Change
		if !from.Split && m.d.cfg.TaskProlog && len(c.Env)+len(c.Live) > 0 {
			return m.split(ctx)
		}
		if from.Split { // the last of its array, which keeps its number
			m.r.Number = m.j.ID
		}
	}
	if err := m.repairable(ctx); err != nil {
		return move.End{}, err
	}
	m.r.Next = &Next{
		Number: m.j.Restarts + 1, Change: moving.Intent.Change, Intent: moving.Intent.ID, Size: m.want(), Before: new(from.Before), At: time.Now().UTC(), Memory: from.Memory,
	}
	m.r.Output = m.d.mark(m.j, m.r.Next.Number)
	note := moving.Intent.Note
	if m.j.Unnumbered() && m.r.Number == "" {
		note = "" // the TaskProlog knows a task by its number, which this one lacks so far
	}
	return move.End{}, m.d.writeSettings(m.j, m.r, moving.Intent.Change, note)
}

func (m *mover) Change(ctx context.Context) (move.End, error) {
	update := difference(slurmctl.SizeOf(m.j), m.want())
	if !m.r.Moving.Queued {
		update.Start = &m.d.cfg.Window
	}
	if update.Empty() {
		return move.End{}, nil
	}
	return move.End{}, m.d.cfg.Actor.Update(ctx, string(m.r.Job), update)
}

// letGo has a job that we made wait go on under the settings that it had. They are in
// their place first: an attempt of the old size must not meet the new threads.
func (m *mover) letGo(ctx context.Context) error {
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
func (m *mover) keepSettings() error {
	return m.d.writeSettings(m.j, m.r, m.r.latest().Change, "")
}

// difference is the update of Slurm, so that a job gets the wanted size.
func difference(have, want Size) slurmctl.Update {
	var u slurmctl.Update
	if have.Cores != want.Cores {
		u.Cores = &want.Cores
	}
	if have.Memory != want.Memory {
		u.Memory = &want.Memory
	}
	if have.TimeLimit != want.TimeLimit {
		u.TimeLimit = &want.TimeLimit
	}
	return u
}

// Start implements move.Job: the wait of the changed job ends.
func (m *mover) Start(ctx context.Context) (move.End, error) {
	if !m.r.Moving.Queued || m.r.Delayed {
		if err := m.d.resume(ctx, m.j, m.r); err != nil {
			return move.End{}, err
		}
	}
	m.r.Delayed = false
	return move.End{}, nil
}

// Release implements driver.Releaser.
func (d *Driver) Release(ctx context.Context, id driver.JobID) error {
	defer d.hold(id)()
	j, r, err := d.opened(ctx, id)
	if err == nil && r.Delayed && r.Moving == nil && !j.Held && !j.Unnumbered() {
		err = d.free(ctx, j, r)
	}
	if err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}

// wake ends the wait of a job that is ours to end, once its time has come. It would
// end by itself: where it cannot be ended nothing is lost but time.
func (d *Driver) wake(ctx context.Context, j parse.Job, r *Record) error {
	if parse.Waiting(j.State) && (j.Held || j.Eligible.IsZero() || j.Eligible.After(time.Now())) {
		return nil
	}
	if j.Unnumbered() {
		// One of them is enough to make slurmctld look at all.
		if req, err := d.journal.Request(r.Request); err != nil || req.Job != r.Job {
			return nil //nolint:nilerr // then it is left to slurmctld
		}
	}
	return d.free(ctx, j, r)
}

// free ends a wait that is ours to end.
func (d *Driver) free(ctx context.Context, j parse.Job, r *Record) error {
	if parse.Waiting(j.State) {
		err := d.resume(ctx, j, r)
		if errors.Is(err, driver.ErrTransient) || errors.Is(err, driver.ErrUnknown) {
			return nil //nolint:nilerr // the next call tries again
		}
		if err != nil {
			d.cfg.Logger.Warn("cannot end a wait that is over", "job", string(r.Job), "error", err)
		}
	}
	r.Delayed = false
	return d.write(r, "woken")
}
