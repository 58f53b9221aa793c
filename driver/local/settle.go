package local

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/local/supervise"
)

// harvest looks at the running attempt of a job and draws the consequences of its
// end.
func (d *Driver) harvest(ctx context.Context, r *record) error {
	id, dir := r.Job.ID, d.store.launch(r)
	exit := supervise.Exit{Code: -1, Detail: "its supervisor does not start; see " + filepath.Join(dir, logFile)}
	status := supervise.Alive // our own child lives, and may not have its lock yet
	if !slices.Contains(slices.Collect(maps.Values(d.children)), dir) || supervise.Has(dir, supervise.ExitFile) {
		var err error
		if status, err = supervise.Resolve(dir, &exit); err != nil {
			return err
		}
	} else if !supervise.Has(dir, supervise.ProcessFile) {
		return nil
	}
	if status == supervise.Alive {
		delete(d.failures, id)
		return nil
	}
	defer func() {
		if d.jobs[id] != r {
			d.nudge()
		}
	}()
	begun := supervise.Has(dir, supervise.ProcessFile)
	switch {
	case status == supervise.Died && !begun:
		exit.Detail = "its supervisor died before it started the job"
		fallthrough
	case status == supervise.Void, exit.Reason == supervise.NotStarted && !r.Cancel && !begun:
		return d.again(r, exit.Detail, exit.Code)
	case status == supervise.Died:
		now := time.Now()
		if now.Before(d.failures[id].again) {
			return nil
		}
		if err := supervise.KillRemains(ctx, dir); err != nil {
			d.later(id, now)
			return err // not lost while something of it may run
		}
		c := r.clone()
		c.endAttempt(now, -1)
		d.close(c, driver.Lost, "its supervisor died; what was left of it was ended", now)
		return d.commit(c, "lost")
	}
	c := r.clone()
	d.settle(c, exit)
	return d.commit(c, "ended")
}

// settle decides what the end of an attempt means for its job.
func (d *Driver) settle(r *record, exit supervise.Exit) {
	r.endAttempt(exit.Ended, exit.Code)
	r.attempt().Peak = exit.Peak
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

// stateOf names the end of an attempt that no one asked for.
func stateOf(exit supervise.Exit) driver.State {
	if exit.Reason == supervise.Exited && exit.Code == 0 {
		return driver.Succeeded
	}
	return cmp.Or(map[supervise.Reason]driver.State{
		supervise.Memory: driver.MemoryExceeded, supervise.TimeUp: driver.TimeExceeded,
		supervise.NotStarted: driver.NotStarted, supervise.Stopped: driver.Cancelled,
	}[exit.Reason], driver.Failed)
}

// goesOn reports whether the job goes on after the attempt: it had saved, for the intent
// in progress or late for one that was abandoned, or the intent had it ended unsaved.
func (r *record) goesOn(exit supervise.Exit) bool {
	switch {
	case exit.Reason == supervise.Stopped:
		return exit.Stop == supervise.StopSaved || exit.Stop == supervise.StopDiscarded
	case exit.Reason != supervise.Exited || exit.Code == 0:
		return false
	}
	return slices.Contains(r.SavedExits, exit.Code) || r.Moving != nil && r.Moving.Intent.Checkpoint.Exit == exit.Code
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
	if tuned, own := r.Job.Change.MemoryBytes, r.Job.Resources.MemoryBytes; tuned > 0 && (own == 0 || tuned < own) {
		change = r.Job.Change.Clone()
		change.MemoryBytes = 0
		note = fmt.Sprintf("killed for memory at the tuned limit of %g MiB; the owner's limit returns", float64(tuned)/(1<<20))
	}
	r.requeue(change, driver.CauseMemory, note)
	r.Next.Intent = ""
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
	r.Job.NotBefore = time.Time{}
}

func (r *record) endAttempt(at time.Time, code int) {
	a := r.attempt()
	a.Ended, a.ExitCode = at, code
	r.Job.ExitCode = code
}

// oneLine makes a note that stays one line of the output.
func oneLine(note string) string { return strings.Join(strings.Fields(note), " ") }
