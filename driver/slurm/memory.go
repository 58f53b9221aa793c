package slurm

import (
	"context"
	"errors"
	"fmt"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

// less reports whether a change gives a job less memory than its owner asked for.
func less(c driver.Change, own Size) bool {
	return c.MemoryBytes > 0 && (c.MemoryBytes < own.Total() || own.Total() == 0)
}

// repairs reports whether a kill for memory under a change can be taken back here: by a
// broker only one for less memory.
func (d *Driver) repairs(c driver.Change, own Size) bool {
	_, broker := d.cfg.Actor.(slurmctl.Judge)
	return !c.Empty() && (!broker || less(c, own))
}

// repairable notes whether a kill for memory under what the next attempt is to have may be taken
// back. Until then the note is about the attempt that runs. Less memory that could not be given
// back any more is refused.
func (m *mover) repairable(ctx context.Context) error {
	c := m.r.Moving.Intent.Change
	if m.r.From.Memory {
		return nil // it was when the job was changed
	}
	repairs := m.d.repairs(c, m.r.Own)
	if repairs {
		err := slurmctl.Repairable(ctx, m.d.cfg.Commands, m.j, m.d.cfg.Everyone)
		if repairs = err == nil; !repairs && less(c, m.r.Own) {
			return err
		}
	}
	m.r.Repairs = repairs
	return nil
}

// returnID names the intent that takes back what an attempt was killed for.
func returnID(attempt int) string { return fmt.Sprintf("memory/%d", attempt) }

// killed reports whether a job was killed for memory under a change and is to run again:
// Slurm has ended it, no one depended on it when it was changed, and no one heard of its
// end from us.
func (d *Driver) killed(j parse.Job, r *Record) bool {
	n := len(r.Attempts)
	if j.State != "OUT_OF_MEMORY" || !r.Repairs || !j.Requeue || observedOnly(j) != "" || r.Last != nil || n == 0 || n != j.Restarts+1 {
		return false
	}
	_, given := r.Closed[returnID(n)]
	return !given && d.repairs(r.latest().Change, r.Own)
}

// takeBack makes it durable that the job runs again: with its owner's memory where the
// change had less, else under all of its owner's settings.
func takeBack(j parse.Job, r *Record) {
	last := r.latest()
	left := last.Change
	if less(left, r.Own) {
		left.MemoryBytes = 0
	} else {
		left = driver.Change{}
	}
	if last.Intent != "" {
		r.Note(last.Intent, driver.StepStarted, "applied")
	}
	r.Node = j.Node
	r.Moving = &move.Moving{
		Intent: driver.Intent{ID: returnID(last.Number), Job: r.Job, Attempt: last.Number, Change: left, Note: "killed for memory under changed settings"},
		Phase:  move.Ending,
	}
	r.From = From{Restarts: j.Restarts, Before: slurmctl.SizeOf(j), Memory: true}
}

// giveBackMemory takes the next step of the return of memory; any call that looks at the job
// does so, since no other has it in progress.
func (d *Driver) giveBackMemory(ctx context.Context, j parse.Job, r *Record) error {
	_, err := d.moves.Proceed(ctx, &mover{d: d, j: j, r: r})
	switch {
	case errors.Is(err, driver.ErrTransient), errors.Is(err, driver.ErrUnknown):
		return nil // the next look tries again
	case err != nil && r.Moving == nil:
		d.cfg.Logger.Warn("a job that was killed for memory under changed settings does not run again", "job", string(r.Job), "error", err)
		return nil
	}
	return err
}
