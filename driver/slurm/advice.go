package slurm

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

var _ driver.Adviser = (*Driver)(nil)

// Queue implements driver.Adviser by one squeue: the jobs of the partitions that are watched,
// marked or not.
func (d *Driver) Queue(ctx context.Context) ([]driver.Job, error) {
	args := arguments{"-h", "-a", "-r", "-t", "all"}
	args.when(!d.cfg.Everyone, "-u", d.cfg.User)
	delimiter := parse.Delimiter()
	out, err := command.Ask(ctx, d.cfg.Commands, "squeue", append(args, "-O", parse.EveryFormat(delimiter))...)
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	all, left, err := parse.Every(out, delimiter)
	if err != nil {
		return nil, fmt.Errorf("queue: %w: %w", driver.ErrTransient, err)
	}
	if left > 0 {
		d.cfg.Logger.Debug("jobs of squeue are left out", "jobs", left)
	}
	var jobs []driver.Job
	for _, j := range all {
		if d.watched(j.User, j.Partition) {
			jobs = append(jobs, plain(j))
		}
	}
	return jobs, nil
}

// Past implements driver.Adviser by sacct, a day at a time: each answer takes a while.
func (d *Driver) Past(ctx context.Context, since, until time.Time) ([]driver.Job, error) {
	conf, err := slurmctl.Config(ctx, d.cfg.Commands)
	if err != nil {
		return nil, err
	}
	if !conf.Accounts() {
		return nil, fmt.Errorf("past jobs: the cluster has no accounting: %w", driver.ErrUnsupported)
	}
	const day = 24 * time.Hour
	var jobs []driver.Job
	for since.Before(until) {
		to := since.Add(min(day, until.Sub(since)))
		more, err := d.ended(ctx, since, to)
		if jobs = append(jobs, more...); err != nil {
			return jobs, fmt.Errorf("past jobs since %s: %w", since.Format(time.DateOnly), err)
		}
		since = to
	}
	return jobs, nil
}

// ended returns the jobs that ended between two times. sacct adds up the CPU time of a job only where
// it is asked for the steps, too.
func (d *Driver) ended(ctx context.Context, since, until time.Time) ([]driver.Job, error) {
	const stamp = "2006-01-02T15:04:05"
	args := arguments{"-n", "-S", since.UTC().Format(stamp), "-E", until.UTC().Format(stamp)}
	args.when(d.cfg.Everyone, "-a")
	used, err := command.Read(ctx, d.cfg.Commands, parse.CPUTimes, "sacct", append(args, "-P", "-o", parse.CPUFields)...)
	ended, err2 := d.accounting(ctx, args...)
	if err := cmp.Or(err, err2); err != nil {
		return nil, err
	}
	var jobs []driver.Job
	for _, j := range ended {
		job := plain(j)
		if job.State.Ended() && d.watched(j.User, j.Partition) && !j.Ended.Before(since) && j.Ended.Before(until) {
			job.Used = used[j.ID]
			jobs = append(jobs, job)
		}
	}
	return jobs, nil
}

// accounting asks sacct for jobs.
func (d *Driver) accounting(ctx context.Context, args ...string) ([]parse.Job, error) {
	delimiter := parse.Delimiter()
	read := func(out []byte) ([]parse.Job, error) { return parse.Accounting(out, delimiter) }
	return command.Read(ctx, d.cfg.Commands, read, "sacct", append(args, "-n", "-X", "-p", "--delimiter="+delimiter, "-o", parse.SacctFields)...)
}

// plain is a job as Slurm prints it, no matter who tunes it.
func plain(j parse.Job) driver.Job {
	job := driver.Job{
		Off: slurmctl.Says(j.Comment, slurmctl.Off), ID: jobID(j.ID, j.ArrayJob, j.ArrayTask), Name: j.Name, Owner: j.User, Partition: j.Partition, Account: j.Account, QOS: j.QOS,
		Detail: detail(j), ExitCode: -1, Submitted: j.Submitted, State: driver.Pending, Nice: j.Nice,
		Resources: driver.Resources{Cores: j.CPUs, GPUs: j.GPUs, TimeLimit: j.Limit()},
	}
	if j.Nodes > 1 {
		job.Nodes = j.Nodes
	}
	if !parse.Waiting(j.State) {
		job.Started, job.State = j.Started, driver.Running
	}
	if parse.Ended(j.State) {
		job.State, job.Ended = final(j), j.Ended
	}
	return job
}

// Advise implements driver.Adviser through the broker of a site. The rights of a user suffice
// to lower a time limit and not to raise it again.
func (d *Driver) Advise(ctx context.Context, a driver.Advice) error {
	if a.Class != "" {
		return fmt.Errorf("advise job %s: nodes of class %s: %w", a.Job, a.Class, driver.ErrUnsupported)
	}
	hand, ok := d.cfg.Actor.(interface {
		Advise(ctx context.Context, a driver.Advice) error
	})
	if !ok {
		return fmt.Errorf("advise job %s: it takes a broker to raise a time limit again: %w", a.Job, driver.ErrUnsupported)
	}
	d.doubt(a.Job)
	defer d.doubt(a.Job)
	if err := hand.Advise(ctx, a); err != nil {
		return fmt.Errorf("advise job %s: %w", a.Job, err)
	}
	d.cfg.AfterStep("advised")
	return nil
}
