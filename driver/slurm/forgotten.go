package slurm

import (
	"context"
	"errors"
	"slices"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

// A slurmctld that is killed forgets what it acknowledged in its last seconds.

// unbegin takes back the start of an attempt that slurmctld has forgotten: the job
// waits for it again, as its intent has set it up.
func unbegin(r *Record, j parse.Job, number int) {
	if !parse.Waiting(j.State) || len(r.Attempts) != number+1 {
		return
	}
	a := r.Attempts[number]
	r.Attempts = r.Attempts[:number]
	if a.Intent != "" && r.Next == nil && r.Moving == nil {
		r.Next = &Next{Number: a.Number, Change: a.Change, Intent: a.Intent, Size: target(r.Own, a.Change), Before: new(slurmctl.SizeOf(j)), At: a.Started}
	}
}

// given reports whether a size is one that an attempt of the job had by our word, or the
// owner's own: that it is shown again is not his change.
func given(r *Record, have Size) bool {
	return unchanged(r.Own, have) || slices.ContainsFunc(r.Attempts, func(a driver.Attempt) bool {
		return !a.Change.Empty() && same(target(r.Own, a.Change), have)
	})
}

// redo gives a job the size again that its next attempt was to have, where slurmctld
// was started since and has forgotten it: else it was the owner who took it back. It
// reports whether it did.
func (d *Driver) redo(ctx context.Context, j parse.Job, r *Record) (bool, error) {
	n, have := r.Next, slurmctl.SizeOf(j)
	if n == nil || n.Overruled || n.Before == nil || !parse.Waiting(j.State) || j.Restarts+1 != n.Number ||
		same(n.Size, have) || !unchanged(*n.Before, have) && !given(r, have) {
		return false, nil
	}
	conf, err := slurmctl.Config(ctx, d.cfg.Commands)
	if err != nil {
		return false, err
	}
	if booted, err := conf.Booted(); err != nil || booted.Before(n.At.Add(-skew)) {
		return false, err
	}
	err = d.cfg.Actor.Update(ctx, string(r.Job), difference(have, n.Size))
	if errors.Is(err, driver.ErrTransient) || errors.Is(err, driver.ErrUnknown) {
		return false, err
	}
	if err != nil {
		d.cfg.Logger.Warn("cannot restore a size that slurmctld forgot", "job", string(r.Job), "error", err)
		return false, nil
	}
	d.cfg.AfterStep("redone")
	n.At = time.Now().UTC()
	return true, d.write(r, "redone-acknowledged")
}

// skew is how much the clock of slurmctld may be behind.
const skew = 2 * time.Second

// settle does what is left to be done for a job that no intent is about. It lets a
// job go that the cluster holds because it saved for an intent of ours, be it given
// up since, or carried out and forgotten by slurmctld: saving late loses nothing.
// What its owner or the site holds stays. A wait that is ours and over is ended, since
// slurmctld looks at such a job again only at its next full pass, which may take it a
// minute.
func (d *Driver) settle(ctx context.Context, j parse.Job, r *Record) error {
	switch {
	case r != nil && r.Moving != nil && r.From.Memory:
		return d.giveBackMemory(ctx, j, r)
	case r == nil || r.Moving != nil || parse.Ended(j.State) || r.Held && r.saved(j):
		return nil
	case r.Delayed:
		return d.wake(ctx, j, r)
	}
	redone, err := d.redo(ctx, j, r)
	if err != nil {
		return err
	}
	if r.saved(j) || redone && j.Restarts > 0 && !j.Held {
		if err = d.resume(ctx, j, r); !errors.Is(err, driver.ErrDenied) {
			return err
		}
		d.cfg.Logger.Warn("cannot release a job that saved", "job", string(r.Job), "error", err)
	}
	if r.Late == nil || j.State != "SPECIAL_EXIT" && j.Restarts <= r.Late.Restarts {
		return nil
	}
	r.Late = nil
	return d.write(r, "settled")
}

// saved reports whether the cluster holds a job because it saved for an intent that is over.
func (r *Record) saved(j parse.Job) bool {
	return j.State == "SPECIAL_EXIT" && r.Late != nil && j.Restarts <= r.Late.Restarts && j.Exit.Exit == r.Late.Exit
}
