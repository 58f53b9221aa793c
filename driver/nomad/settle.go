package nomad

import (
	"context"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/driver/nomad/view"
)

// going is what becomes of a job whose attempt has ended for a reason of ours.
type going int

const (
	stays   going = iota // nothing of ours
	moves                // it left for an intent, which goes on
	reruns               // it left for an intent that was given up
	returns              // it was killed for memory under a change
)

// goes tells why a job goes on whose attempt has ended.
func (d *Driver) goes(f *facts) going {
	a, r := f.latest(), f.rec
	if a == nil || r == nil || f.stopped() || r.Finished {
		return stays
	}
	t := view.TaskOf(a, f.task)
	if m := r.Moving; m != nil && a.ID == r.From.Alloc && m.Intent.Checkpoint != nil && view.Over(a) {
		if code, left := view.Left(a, f.task, r.From.Since); left && code == m.Intent.Checkpoint.Exit && code != 0 && t.Exit == code {
			return moves
		}
	}
	if l := r.Late; l != nil && a.ID == l.Alloc && view.Over(a) && f.dead() && a.JobVersion == f.version() {
		if code, left := view.Left(a, f.task, l.Since); left && code == l.Exit && t.Exit == code { // else it has run again since, and ended otherwise
			return reruns
		}
	}
	if t.Memory && (view.Over(a) || t.Waits) && a.JobVersion == f.version() && !f.has().Empty() {
		return returns
	}
	return stays
}

// settle takes the steps that are the driver's own, whoever looks. The caller holds the
// job. It reports whether something was done.
func (d *Driver) settle(ctx context.Context, f *facts) (bool, error) {
	r := f.rec
	m := newMover(d, f, d.look(f))
	if a := f.latest(); a != nil && !f.stopped() && view.Again(a, f.task) && spec.ObservedOnly(f.own) == "" {
		return true, m.repeated(ctx, a)
	}
	passed, _ := m.past()
	switch {
	case r.Finished && !f.stopped() && !f.ownersWord():
		r.ignore(f)
		if err := d.save(ctx, r); err != nil {
			return false, err
		}
		return true, d.c.stop(ctx, f.at)
	case r.Finished && r.Own != nil && f.ownersWord() && !f.stopped():
		r.Finished = false // its owner runs it again
		return true, d.save(ctx, r)
	case m.registered(), r.inPlace() && f.version() == r.From.Before, passed != "":
		// Whoever wants it may have given it up for the same reason, and not ask again.
		step, err := new(move.Machine).Proceed(ctx, m)
		return step.Kind.Done(), err
	}
	if m.hadFinished() {
		return true, m.doneBefore(ctx)
	}
	switch d.goes(f) {
	case stays, moves:
	case reruns:
		return true, d.rerun(ctx, f)
	case returns:
		return true, d.giveBack(ctx, f)
	}
	return false, nil
}

// giveBack returns memory to a job that was killed for it under a change: its owner's
// where the change had less, else all of its owner's settings.
func (d *Driver) giveBack(ctx context.Context, f *facts) error {
	r, was := f.rec, f.has()
	next := driver.Change{}
	if own := spec.Resources(f.own).MemoryBytes; was.MemoryBytes > 0 && was.MemoryBytes < own {
		next = was.Clone()
		next.MemoryBytes = 0
	}
	mark := spec.Mark{Cause: driver.CauseMemory, Change: next}
	job, err := d.target(f, mark)
	if err != nil {
		return err
	}
	r.end(driver.StepSuperseded, "the attempt was killed for memory under a change")
	r.Expect = &expected{Version: f.version() + 1, Mark: mark}
	if err := d.save(ctx, r); err != nil {
		return err
	}
	d.cfg.Logger.Warn("killed for memory under a change; its owner's returns", "job", string(f.id))
	return d.c.register(ctx, f.at, job, deref(f.job.JobModifyIndex), note(r.Submission, "memory returned", mark))
}

// rerun has a job run again, under the settings that it had, that saved and left for an
// intent that was given up. Its own policy would where it has one; Nomad has none forced
// that is off.
func (d *Driver) rerun(ctx context.Context, f *facts) error {
	r := f.rec
	mark := spec.Mark{Cause: view.CauseRescheduled, Again: 1}
	if f.mark != nil {
		mark = *f.mark
		mark.Again++
	}
	mark.Change = f.has()
	job, err := d.target(f, mark)
	if err != nil {
		return err
	}
	r.Expect = &expected{Version: f.version() + 1, Mark: mark}
	if err := d.save(ctx, r); err != nil {
		return err
	}
	d.cfg.Logger.Info("it saved too late and runs again", "job", string(f.id))
	return d.c.register(ctx, f.at, job, deref(f.job.JobModifyIndex), note(r.Submission, "runs again", mark))
}
