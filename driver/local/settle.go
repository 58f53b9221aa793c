package local

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/local/supervise"
)

// harvest looks at the running attempt of a job and draws the consequences of its
// end. It returns the record as it is then.
func (d *Driver) harvest(ctx context.Context, r *record) (*record, error) {
	id := r.Job.ID
	dir := d.store.launch(r)
	own, ours := d.forked[id]
	if ours && !fileExists(filepath.Join(dir, supervise.ExitFile)) {
		return r, nil // our own child lives, and may not have its lock yet
	}
	status, exit, err := supervise.Resolve(dir)
	if err != nil {
		return r, err
	}
	switch status {
	case supervise.Alive:
		delete(d.failures, id)
		return r, nil
	case supervise.Void:
		if now := time.Now(); now.Before(d.failures[id].again) {
			return r, nil
		}
		err = d.relaunch(r)
	case supervise.Nobody:
		if !fileExists(filepath.Join(dir, supervise.ProcessFile)) {
			return d.retry(r, "its supervisor died before it started the job", -1)
		}
		now := time.Now()
		if now.Before(d.failures[id].again) {
			return r, nil
		}
		if err := supervise.KillRemains(ctx, dir); err != nil {
			d.failed(id, now)
			return r, err // not lost while something of it may run
		}
		delete(d.failures, id)
		c := r.clone()
		c.endAttempt(now, -1)
		d.close(c, driver.Lost, "its supervisor died; what was left of it was ended", now)
		err = d.commit(c, "lost")
	case supervise.Ended:
		if exit.Reason == supervise.NotStarted && !r.Cancel && !fileExists(filepath.Join(dir, supervise.ProcessFile)) {
			return d.retry(r, exit.Detail, exit.Code)
		}
		c := r.clone()
		d.settle(c, exit)
		err = d.commit(c, "ended")
	}
	if err == nil && ours && d.jobs[id].Job.State != driver.Running {
		d.buried = append(d.buried, own)
		delete(d.forked, id)
	}
	if err == nil {
		d.nudge()
	}
	return d.jobs[id], err
}

// settle decides what the end of an attempt means for its job.
func (d *Driver) settle(r *record, exit supervise.Exit) {
	r.endAttempt(exit.Ended, exit.Code)
	delete(d.failures, r.Job.ID)
	well := exit.Reason == supervise.Exited && exit.Code == 0
	switch {
	case r.Cancel && !well:
		d.close(r, driver.Cancelled, exit.Detail, exit.Ended)
	case r.goesOn(exit):
		r.leave(exit.Ended)
	case exit.Reason == supervise.Memory && !r.Job.Change.Empty():
		r.Close(driver.StepSuperseded, "the attempt was killed for memory under a change")
		r.returnMemory()
	default:
		d.close(r, stateOf(exit), exit.Detail, exit.Ended)
	}
}

// stateOf names the end of an attempt that nobody asked for.
func stateOf(exit supervise.Exit) driver.State {
	switch exit.Reason {
	case supervise.Exited:
		if exit.Code == 0 {
			return driver.Succeeded
		}
	case supervise.Memory:
		return driver.MemoryExceeded
	case supervise.TimeUp:
		return driver.TimeExceeded
	case supervise.NotStarted:
		return driver.NotStarted
	case supervise.Stopped:
		return driver.Cancelled
	case supervise.Signalled:
	}
	return driver.Failed
}

// goesOn reports whether the job goes on after the attempt: it had saved, for the intent
// in progress or late for one that was abandoned, or the intent had it ended unsaved.
func (r *record) goesOn(exit supervise.Exit) bool {
	if exit.Reason == supervise.Stopped {
		return exit.Stop == supervise.StopSaved || exit.Stop == supervise.StopDiscarded
	}
	if exit.Reason != supervise.Exited || exit.Code == 0 {
		return false
	}
	if slices.Contains(r.SavedExits, exit.Code) {
		return true
	}
	return r.Moving != nil && r.Moving.Intent.Checkpoint.Exit == exit.Code
}

// leave is what follows an attempt after which the job goes on: the intent goes on, or, where there is
// none any more, the job under its old settings.
func (r *record) leave(at time.Time) {
	if r.Moving == nil {
		r.requeue(r.Job.Change, driver.CauseLate, "saved after its change was given up; running on under the settings before")
		return
	}
	r.Moving.Left = at
	r.Job.State, r.Job.Detail, r.CPUs = driver.Stopped, "waits for its change", nil
}

// returnMemory queues a job that was killed for memory under a change: it may live
// without. A tuned limit goes first, alone; then everything, since more threads or
// a larger batch need more memory too. The attempt is no longer the intent's.
func (r *record) returnMemory() {
	change, note := driver.Change{}, "killed for memory under changed settings; the owner's settings return"
	if r.tunedMemory() {
		change = r.Job.Change.Clone()
		change.MemoryBytes = 0
		note = fmt.Sprintf("killed for memory at the tuned limit of %d bytes; the owner's limit returns", r.Job.Change.MemoryBytes)
	}
	r.requeue(change, driver.CauseMemory, note)
	r.Next.Intent = ""
}

// tunedMemory tells whether the present attempt has less memory than its owner
// asked for.
func (r *record) tunedMemory() bool {
	tuned, own := r.Job.Change.MemoryBytes, r.Job.Resources.MemoryBytes
	return tuned > 0 && (own == 0 || tuned < own)
}

// requeue queues the next attempt. It keeps the intent that its change is from.
func (r *record) requeue(c driver.Change, cause driver.Cause, note string) {
	r.Next = next{Change: c.Clone(), Cause: cause, Intent: r.attempt().Intent, Note: note}
	r.queue(note)
}

// queue makes the job pending, and its attempt the one that is in Next.
func (r *record) queue(detail string) {
	r.Job.State, r.Job.Detail, r.CPUs = driver.Pending, detail, nil
	r.Job.Attempt = len(r.Job.Attempts) + 1
	r.NotBefore = time.Time{}
}

func (r *record) endAttempt(at time.Time, code int) {
	a := r.attempt()
	a.Ended, a.ExitCode = at, code
	r.Job.ExitCode = code
}

// oneLine makes a note that stays one line of the output.
func oneLine(note string) string { return strings.Join(strings.Fields(note), " ") }
