package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/local/supervise"
)

// lookEvery is how often running attempts are looked at, and idle how often the loop looks where
// none runs: for holds that end, and for what went wrong.
const (
	lookEvery = 50 * time.Millisecond
	idle      = time.Second
)

// Run schedules until ctx ends, and then closes the driver. Jobs run on.
func (d *Driver) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return d.Close()
		case <-d.wake:
		case <-timer.C:
		}
		timer.Reset(d.pass(ctx, time.Now()))
	}
}

// pass makes one round of the loop, and returns the time until the next is due.
func (d *Driver) pass(ctx context.Context, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return idle
	}
	// 1. What ended, or never began, or is to end and may not know yet.
	d.bury()
	for _, id := range d.order {
		if d.jobs[id].Job.State == driver.Running {
			d.check(id, d.harvest(ctx, d.jobs[id]), now)
		}
		if r := d.jobs[id]; r.Job.State == driver.Running && r.Cancel {
			d.check(id, d.requestStop(r, supervise.StopCancelled), now)
		}
	}
	// 2. Intents whose controller does not come back: nothing is held for ever.
	for _, id := range d.order {
		if d.jobs[id].Moving != nil {
			d.check(id, d.overdue(ctx, d.jobs[id], now), now)
		}
	}
	// 3. What no longer fits, and what may start.
	for _, id := range d.order {
		if d.jobs[id].Job.State == driver.Pending {
			d.check(id, d.refit(d.jobs[id]), now)
		}
	}
	for _, id := range d.pick(now) {
		d.check(id, d.begin(d.jobs[id]), now)
	}
	d.prune(now)
	if len(d.children) > 0 || slices.ContainsFunc(d.order, func(id driver.JobID) bool { return d.jobs[id].Job.State == driver.Running }) {
		return lookEvery
	}
	return idle
}

// Jobs are forgotten when they ended so long ago, and looked for so often.
const (
	keepEnded  = 30 * 24 * time.Hour
	pruneEvery = time.Hour
)

// prune forgets jobs that ended long ago, first when the controller had time to learn what ended
// while it did not run. The request is freed first: a number is never claimed without its job. After
// a crash in between the job is still there, or gone.
func (d *Driver) prune(now time.Time) {
	if now.Sub(d.pruned) < pruneEvery {
		return
	}
	d.pruned = now
	d.order = slices.DeleteFunc(d.order, func(id driver.JobID) bool {
		r := d.jobs[id]
		if !r.Job.State.Ended() || now.Sub(r.Job.Ended) < keepEnded {
			return false
		}
		var of claim // of another job where an earlier round freed the request and failed then
		path := d.store.claim(r.Job.Request)
		err := durable.ReadJSON(path, &of)
		if err == nil && of.Number == r.Number {
			err = os.Remove(path)
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = os.RemoveAll(d.store.job(id))
		}
		if err != nil {
			d.check(id, err, now)
			return false
		}
		delete(d.jobs, id)
		delete(d.touched, id)
		delete(d.told, id)
		d.watch.Changed(id)
		return true
	})
}

// check logs what went wrong with one job, at most once a minute: the next round tries again.
func (d *Driver) check(id driver.JobID, err error, now time.Time) {
	if err != nil && now.Sub(d.told[id]) >= time.Minute {
		d.told[id] = now
		d.cfg.Logger.Error("job is not handled", "job", string(id), "error", err)
	}
}

// pick asks the pure scheduler. A job that is being moved keeps its room, and a job that
// ran already comes before those that did not.
func (d *Driver) pick(now time.Time) []driver.JobID {
	free := d.room
	var again, queue []waiting
	var running []busy
	for _, id := range d.order {
		r := d.jobs[id]
		switch w := (waiting{ID: id, Want: r.want(r.Next.Change), Limit: r.limit(r.Next.Change), NotBefore: r.Job.NotBefore}); {
		case r.Job.State == driver.Running || r.Job.State == driver.Stopped:
			b := d.holds(r)
			running = append(running, b)
			free = free.Minus(b.Has)
		case r.Job.State != driver.Pending || d.Fits(w.Want) != nil: // it would hold up all others for ever
		case r.Job.Attempt > 1:
			again = append(again, w)
		default:
			queue = append(queue, w)
		}
	}
	return schedule(now, free, append(again, queue...), running)
}

// grow refuses to give a running job more where it would have to wait: for what others hold, or
// will have before the jobs that did not run yet.
func (d *Driver) grow(r *record, c driver.Change) error {
	if c.Empty() { // the way back to what its owner asked for is always open
		return nil
	}
	free := d.room
	for id, other := range d.jobs {
		switch s := other.Job.State; {
		case id == r.Job.ID:
		case s == driver.Running || s == driver.Stopped:
			free = free.Minus(d.holds(other).Has)
		case s == driver.Pending && other.Job.Attempt > 1 && d.Fits(other.want(other.Next.Change)) == nil:
			free = free.Minus(other.want(other.Next.Change))
		}
	}
	return driver.Grow(r.want(r.Job.Change), r.want(c), free)
}

// holds is what a job holds that runs, until its time limit. Where an intent moves it, that
// is what it had or what it will have, whichever is more, at the latest until Hold has
// passed and the next attempt has used up its time.
func (d *Driver) holds(r *record) busy {
	if r.Moving == nil {
		b := busy{Has: r.want(r.Job.Change)}
		if limit := r.limit(r.Job.Change); limit > 0 {
			b.Ends = r.attempt().Started.Add(limit)
		}
		return b
	}
	had, will := r.want(r.Job.Change), r.want(r.Moving.Intent.Change)
	b := busy{Has: driver.Room{Cores: max(had.Cores, will.Cores), Memory: max(had.Memory, will.Memory)}}
	before, after := r.limit(r.Job.Change), r.limit(r.Moving.Intent.Change)
	if before > 0 && after > 0 {
		b.Ends = d.patience(r).Add(max(before, after))
	}
	return b
}

// waitsForRoom begins the Detail of a job that this machine cannot run.
const waitsForRoom = "waits for a larger machine: "

// refit looks whether a queued job fits the machine, which may have less room than
// when the job was accepted. A change that is too large is dropped.
func (d *Driver) refit(r *record) error {
	tooLarge := d.Fits(r.want(r.Next.Change))
	detail := r.Job.Detail
	switch {
	case tooLarge == nil:
		if strings.HasPrefix(detail, waitsForRoom) {
			detail = ""
		}
	case d.Fits(r.want(driver.Change{})) == nil:
		c := r.clone()
		c.Close(driver.StepSuperseded, "its change no longer fits the machine")
		c.Next = next{Cause: driver.CauseSubmitted, Note: oneLine("its change no longer fits the machine; running under its own settings: " + tooLarge.Error())}
		if c.Job.Attempt > 1 {
			c.Next.Cause = CauseRoom
		}
		c.Job.Detail = c.Next.Note
		return d.commit(c, "unfit")
	default:
		detail = waitsForRoom + tooLarge.Error()
	}
	if detail == r.Job.Detail {
		return nil
	}
	c := r.clone()
	c.Job.Detail = detail
	return d.commit(c, "unfit")
}

// patience returns the time until which a job waits for its intent's next Advance.
func (d *Driver) patience(r *record) time.Time {
	return slices.MaxFunc([]time.Time{d.since, r.Moving.Left, d.touched[r.Job.ID]}, time.Time.Compare).Add(d.cfg.Hold)
}
