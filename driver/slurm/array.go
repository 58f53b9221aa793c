package slurm

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

// nameOf names a job as its owner does.
func nameOf(j parse.Job) driver.JobID { return jobID(j.ID, j.ArrayJob, j.ArrayTask) }

// arrayOf is the array that an id is a task of; empty where it is none.
func arrayOf(id driver.JobID) string {
	array, _, isTask := strings.Cut(string(id), "_")
	if !isTask {
		return ""
	}
	return array
}

// numberOf is the own number of an array's task; empty where it has none yet, and
// for other jobs.
func numberOf(j parse.Job) string {
	if j.ArrayJob == "" || j.Unnumbered() {
		return ""
	}
	return j.ID
}

// scriptID is the job under which a job's script is kept: all tasks of an array have one.
func scriptID(j parse.Job) driver.JobID {
	return driver.JobID(cmp.Or(j.ArrayJob, j.ID))
}

// tasks returns the jobs of scontrol's records: the tasks of an array for a record
// that stands for several.
func tasks(jobs []parse.Job) []parse.Job {
	out := make([]parse.Job, 0, len(jobs))
	for _, j := range jobs {
		out = append(out, j.EachTask()...)
	}
	return out
}

// entered is the record of a job, or what it has from its array.
func (d *Driver) entered(j parse.Job) (*Record, bool, error) {
	r, ok, err := d.journal.Find(nameOf(j))
	if err == nil && !ok {
		return d.inherit(j)
	}
	return r, ok, err
}

// inherit makes the record of an array's task that has none, where the array was
// submitted here. It is not written yet.
func (d *Driver) inherit(j parse.Job) (*Record, bool, error) {
	if j.ArrayJob == "" {
		return nil, false, nil
	}
	a, ok, err := d.journal.Arrays.Find(driver.JobID(j.ArrayJob))
	if err != nil || !ok || j.Submitted.Before(a.Submitted.Add(-time.Minute)) {
		return nil, false, err
	}
	r := d.first(j)
	r.Request, r.Filename, r.Script, r.Env, r.Submitted = a.Request, a.Filename, a.Script, maps.Clone(a.Env), a.Submitted
	r.Delayed = a.Delayed && parse.Waiting(j.State) && j.Restarts == 0
	return r, true, nil
}

// enlist makes the record of an array's task that is about to be stopped: slurmctld
// keeps nothing of a task without a number.
func (d *Driver) enlist(ctx context.Context, id driver.JobID) error {
	defer d.hold(id)()
	_, r, err := d.opened(ctx, id)
	if err != nil {
		return err
	}
	return d.write(r, "entered")
}

// split gives a waiting task its own number; the TaskProlog finds its settings by
// it. It is done by having it wait for the window, so that it does not start before
// they are there; where it waits for a time of its owner's that is left alone.
func (m *mover) split(ctx context.Context) (move.End, error) {
	own := m.j.Eligible.After(time.Now().Add(ample))
	u := slurmctl.Update{Start: &m.d.cfg.Window}
	if own {
		u = slurmctl.Update{Requeue: &m.j.Requeue}
	}
	waited := m.r.Delayed
	m.r.Delayed = m.r.Delayed || !own
	if err := m.d.write(m.r, "splitting"); err != nil {
		return move.End{}, err
	}
	if err := m.d.cfg.Actor.Update(ctx, string(m.r.Job), u); err != nil {
		if errors.Is(err, driver.ErrDenied) || errors.Is(err, driver.ErrInvalid) {
			m.r.Delayed = waited
		}
		return move.End{}, err
	}
	m.d.cfg.AfterStep("split")
	m.r.From.Split = true
	return move.End{Kind: driver.StepStopped, Why: "has its own record"}, m.d.write(m.r, "split-acknowledged")
}

// ample is the remaining wait of a job, for its own reasons, that needs no further
// delay.
const ample = 30 * time.Second
