package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/journal"
	"pitchpipe/driver/slurm/parse"
)

// number tells whether an id is one that Slurm could have given: a number, or
// those of an array and of its task.
func number(id driver.JobID) bool {
	array, task, isTask := strings.Cut(string(id), "_")
	return digits(array) && (!isTask || digits(task))
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// jobID names a job as its owner does: a task of an array by the array's number.
func jobID(id, array, task string) driver.JobID {
	if array != "" && digits(task) {
		return driver.JobID(array + "_" + task)
	}
	return driver.JobID(id)
}

// read returns one job of the partitions that are watched. One that has a record
// is ours wherever it was moved to.
func (d *Driver) read(ctx context.Context, id driver.JobID) (parse.Job, error) {
	j, err := d.look(ctx, id)
	if err != nil || d.mine(j.User, j.Partition) {
		return j, err
	}
	if _, ok, err := d.record(id); err != nil || ok {
		return j, err
	}
	return parse.Job{}, fmt.Errorf("job %s: %w", id, driver.ErrNotFound)
}

// look asks scontrol for one job, in whichever partition. Of an array whose tasks
// wait it returns the record of those.
func (d *Driver) look(ctx context.Context, id driver.JobID) (parse.Job, error) {
	if !number(id) {
		return parse.Job{}, fmt.Errorf("job %q: %w", id, driver.ErrNotFound)
	}
	out, err := d.ask(ctx, "scontrol", "-o", "show", "job", string(id))
	if err != nil {
		return parse.Job{}, fmt.Errorf("job %s: %w", id, err)
	}
	jobs, unreadable := parse.Jobs(out)
	i := slices.IndexFunc(jobs, func(j parse.Job) bool { return jobID(j.ID, j.ArrayJob, j.ArrayTask) == id })
	if i < 0 {
		i = slices.IndexFunc(jobs, func(j parse.Job) bool { return j.ID == string(id) })
	}
	if i < 0 && unreadable != nil {
		return parse.Job{}, fmt.Errorf("job %s: %w: %w", id, driver.ErrUnsupported, unreadable)
	}
	if i < 0 || jobs[i].User != d.cfg.User {
		return parse.Job{}, fmt.Errorf("job %s: %w", id, driver.ErrNotFound)
	}
	return jobs[i], nil
}

func (d *Driver) mine(user, partition string) bool {
	if user != d.cfg.User {
		return false
	}
	if len(d.cfg.Partitions) == 0 {
		return true
	}
	for p := range strings.SplitSeq(partition, ",") {
		if slices.Contains(d.cfg.Partitions, p) {
			return true
		}
	}
	return false
}

// Get returns one job: as slurmctld has it, as it was seen last where slurmctld
// has forgotten it, or as the accounting remembers it.
func (d *Driver) Get(ctx context.Context, id driver.JobID) (driver.Job, error) {
	defer d.hold(id)()
	j, r, err := d.observe(ctx, id)
	if errors.Is(err, driver.ErrNotFound) && number(id) {
		return d.past(ctx, id)
	}
	if err != nil {
		return driver.Job{}, fmt.Errorf("get: %w", err)
	}
	if err := d.settle(ctx, j, r); err != nil {
		return driver.Job{}, fmt.Errorf("get: job %s: %w", id, err)
	}
	return d.view(ctx, j, r)
}

// observe reads a job and brings its record up to date. The record is nil where
// there is none. The caller holds the job.
func (d *Driver) observe(ctx context.Context, id driver.JobID) (parse.Job, *journal.Record, error) {
	j, err := d.read(ctx, id)
	if err != nil {
		return j, nil, err
	}
	r, ok, err := d.record(id)
	if err != nil || !ok {
		return j, nil, err
	}
	if j.Submitted.Before(r.Submitted.Add(-time.Minute)) || r.Last != nil && !ended(j.State) && len(r.Attempts) > j.Restarts+1 {
		// Another job under a number that came round.
		return j, nil, nil
	}
	heard := d.listenToOwner(r, j)
	if follow(r, j, time.Now()) || heard {
		if ended(j.State) {
			last, err := d.view(ctx, j, r)
			if err != nil {
				return j, r, err
			}
			r.Last = &last
			if err := d.dropSettings(r.Job); err != nil {
				return j, r, err
			}
		}
		if err := d.write(r, "followed"); err != nil {
			return j, r, err
		}
	}
	return j, r, nil
}

// past returns a job that slurmctld no longer knows.
func (d *Driver) past(ctx context.Context, id driver.JobID) (driver.Job, error) {
	r, ok, err := d.record(id)
	if err != nil {
		return driver.Job{}, fmt.Errorf("get: %w", err)
	}
	if ok && r.Last != nil {
		return *r.Last, nil
	}
	if d.site.accounting {
		job, err := d.accounted(ctx, id, r)
		if err == nil || !errors.Is(err, driver.ErrNotFound) {
			return job, err
		}
	}
	if ok {
		return d.lost(r)
	}
	return driver.Job{}, fmt.Errorf("get: job %s: %w", id, driver.ErrNotFound)
}

// accounted asks the accounting for a job.
func (d *Driver) accounted(ctx context.Context, id driver.JobID, r *journal.Record) (driver.Job, error) {
	out, err := d.ask(ctx, "sacct", "-n", "-P", "-X", "-j", string(id), "-u", d.cfg.User, "-S", "1970-01-01", "-o", parse.SacctFields)
	if err != nil {
		return driver.Job{}, fmt.Errorf("get: job %s: accounting: %w", id, err)
	}
	jobs, err := parse.Accounting(out)
	if err != nil {
		return driver.Job{}, fmt.Errorf("get: job %s: %w: %w", id, driver.ErrTransient, err)
	}
	if len(jobs) == 0 || !d.mine(jobs[0].User, jobs[0].Partition) {
		return driver.Job{}, fmt.Errorf("get: job %s: %w", id, driver.ErrNotFound)
	}
	p := jobs[len(jobs)-1]
	j := parse.Job{
		ID: p.ID, Name: p.Name, User: p.User, Partition: p.Partition, Account: p.Account, QOS: p.QOS, State: p.State,
		Exit: p.Exit, Submitted: p.Submitted, Started: p.Started, Ended: p.Ended, Node: "accounted", Nodes: p.Nodes,
		CPUs: p.CPUs, Tasks: 1, CPUsPerTask: p.CPUs, MemoryBytes: p.MemoryBytes, TimeLimit: p.TimeLimit,
	}
	if r != nil {
		j.Restarts = max(len(r.Attempts)-1, 0)
	}
	job := d.sketch(j, r)
	job.Node = ""
	if r != nil && job.State.Ended() {
		follow(r, j, time.Now())
		job = d.sketch(j, r)
		job.Node = ""
		r.Last = &job
		return job, d.write(r, "accounted")
	}
	return job, nil
}

// lost is a job of ours that nobody remembers.
func (d *Driver) lost(r *journal.Record) (driver.Job, error) {
	job := d.sketch(parse.Job{
		ID: string(r.Job), State: "NODE_FAIL", User: d.cfg.User, Submitted: r.Submitted, Ended: time.Now().UTC(),
		Restarts: max(len(r.Attempts)-1, 0), Node: "?", Tasks: 1,
	}, r)
	job.Node, job.Detail, job.ExitCode = "", "slurmctld does not know it any more", -1
	r.Last, r.Moving = &job, nil
	return job, d.write(r, "lost")
}
