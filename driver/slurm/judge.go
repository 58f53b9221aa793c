package slurm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
	"pitchpipe/driver/slurm/limits"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

// Check is the dry run of Advance.
func (d *Driver) Check(ctx context.Context, in driver.Intent) error {
	defer d.hold(in.Job)()
	m, err := d.look(ctx, in.Job)
	switch {
	case err != nil:
	case m.past != nil || parse.Ended(m.j.State):
		err = fmt.Errorf("it has ended: %w", driver.ErrConflict)
	default:
		err = m.Judge(ctx, in)
	}
	if err != nil {
		return fmt.Errorf("check: job %s: %w", in.Job, err)
	}
	return nil
}

// opened is observe of a job that gets a record where it has none.
func (d *Driver) opened(ctx context.Context, id driver.JobID) (parse.Job, *Record, error) {
	j, r, err := d.observe(ctx, id)
	if err == nil && r == nil {
		r, err = d.open(ctx, j)
	}
	return j, r, err
}

// open makes the record of a job that had none.
func (d *Driver) open(ctx context.Context, j parse.Job) (*Record, error) {
	t, err := d.script(ctx, j, nil)
	if err != nil {
		return nil, err
	}
	r := d.first(j)
	r.Script = t.script
	r.Delayed = headStart(j)
	follow(r, j, time.Now())
	return r, nil
}

// headStart reports whether the owner lets a job wait for the tuner.
func headStart(j parse.Job) bool {
	return parse.Waiting(j.State) && j.Restarts == 0 && slurmctl.Says(j.Comment, slurmctl.HeadStart)
}

func (d *Driver) first(j parse.Job) *Record {
	have := slurmctl.SizeOf(j)
	r := &Record{Job: nameOf(j), User: j.User, Submitted: j.Submitted, Own: have, Set: &have}
	if parse.Waiting(j.State) && !d.cfg.Everyone {
		r.Output = d.mark(j, j.Restarts+1)
	}
	return r
}

// Judge refuses an intent that this cluster or this job cannot follow.
func (m *mover) Judge(ctx context.Context, in driver.Intent) error {
	d, j, r := m.d, m.j, m.r
	if why := observedOnly(j); why != "" {
		return fmt.Errorf("%s: %w", why, driver.ErrUnsupported)
	}
	if err := d.judgeChange(ctx, j, r, in.Change); err != nil {
		return err
	}
	if parse.Waiting(j.State) {
		return nil
	}
	if err := d.judgeMove(ctx, j, in); err != nil {
		return err
	}
	return d.grow(ctx, j, r, in.Change)
}

// observedOnly says why a job is seen but not changed.
func observedOnly(j parse.Job) string {
	switch {
	case !j.Batch:
		return "only jobs of sbatch are changed: this one has no script to run again"
	case j.HetJob != "":
		return "heterogeneous jobs are observed, not changed"
	case j.Nodes > 1:
		return "jobs on several nodes are observed, not changed"
	case j.Tasks > 1:
		return "jobs of several tasks are observed, not changed"
	case !j.Deadline.IsZero():
		return "jobs with a deadline (--deadline) are observed, not changed: Slurm removes one that it cannot start again in time"
	}
	return ""
}

func (d *Driver) judgeChange(ctx context.Context, j parse.Job, r *Record, c driver.Change) error {
	t, _ := d.known(j, r)
	switch {
	case len(c.Args) > 0:
		return fmt.Errorf("the command line is inside the script, which Slurm does not change: %w", driver.ErrUnsupported)
	case len(c.Env)+len(c.Live) > 0 && !d.cfg.TaskProlog:
		return fmt.Errorf("a requeued job keeps its environment, and slurm.task_prolog does not say that the site runs Pitchpipe's task prolog: %w",
			driver.ErrUnsupported)
	case len(c.Env)+len(c.Live) > 0 && !slurmctl.HasStanza(j) && r.Request != "" && !exported(t.export):
		return fmt.Errorf("the task prolog serves only marked jobs, and this job's --export drops the mark; add ALL to --export, or let the site's submission plugin mark it: %w",
			driver.ErrUnsupported)
	case len(c.Env)+len(c.Live) > 0 && !slurmctl.HasStanza(j) && r.Request == "" && !slurmctl.Says(j.Comment, slurmctl.Marked):
		return fmt.Errorf("the task prolog serves only marked jobs; submit the job with pitchpipe run, or let the site's submission plugin mark it: %w",
			driver.ErrUnsupported)
	case c.Cores > 0 && j.Whole:
		return fmt.Errorf("it has its node to itself (--exclusive), however many cores it asks for: %w", driver.ErrUnsupported)
	case c.Cores > 0 && j.Asks("CpusPerTres"):
		return fmt.Errorf("it has cores by GPU (--cpus-per-gpu), whatever else it asks for: %w", driver.ErrUnsupported)
	case c.MemoryBytes > 0 && (j.Asks("CpusPerTres") || j.Asks("MemPerTres")):
		return fmt.Errorf("its memory goes with its GPUs (--cpus-per-gpu, --mem-per-gpu), whatever else it asks for: %w", driver.ErrUnsupported)
	case c.Cores > r.Own.Cores && d.cfg.Above != nil && !d.cfg.Above(d.sketch(j, r)):
		return fmt.Errorf("%d cores are more than the %d that its owner asks for, and the site does not allow that: %w", c.Cores, r.Own.Cores, driver.ErrDenied)
	}
	if less(c, r.Own) {
		if err := slurmctl.Repairable(ctx, d.cfg.Commands, j, d.cfg.Everyone); err != nil {
			return err
		}
	}
	for name := range c.Env {
		if _, ok := t.fixed[name]; ok {
			return fmt.Errorf("the script sets %s to a literal, whatever its environment says: %w", name, driver.ErrUnsupported)
		}
	}
	if err := move.JudgeChange(c); err != nil {
		return err
	}
	if err := judgeEnv(c.Env); err != nil {
		return err
	}
	size := target(r.Own, c)
	if c.Cores > 0 || c.MemoryBytes > 0 {
		if err := d.fits(ctx, j.Partition, size.Cores, size.Total()); err != nil {
			return err
		}
	}
	// A broker that would refuse the size is asked before the job is stopped for it.
	broker, ok := d.cfg.Actor.(slurmctl.Judge)
	switch update := difference(slurmctl.SizeOf(j), size); {
	case update.Empty():
		return nil
	case ok:
		return broker.May(ctx, string(nameOf(j)), update)
	}
	return d.takes(ctx, j, r.Own, size)
}

// judgeMove refuses the end of a running attempt. How a job shows that it saved does not count where
// the intent discards: none is waited for.
func (d *Driver) judgeMove(ctx context.Context, j parse.Job, in driver.Intent) error {
	if err := move.Judge(in, j.Requeue); err != nil {
		return err
	}
	cp := in.Checkpoint
	if cp.Done != "" && !in.Discard && d.cfg.Everyone && d.cfg.Saves == nil {
		return fmt.Errorf("this user may not read the job's output, so that no line of it can show a checkpoint: %w", driver.ErrUnsupported)
	}
	if cp.Done != "" || in.Discard {
		return nil
	}
	// As it is now: this process may run for months, and a job that leaves with a status
	// that was taken out since has failed.
	conf, err := slurmctl.Config(ctx, d.cfg.Commands)
	if err != nil {
		return err
	}
	if !conf.Requeues(cp.Exit) {
		return fmt.Errorf("a job that exits with status %d fails here, for its dependants too: neither RequeueExit nor RequeueExitHold of this cluster names the status; "+
			"print a line and keep running instead (checkpoint done=...): %w", cp.Exit, driver.ErrUnsupported)
	}
	return nil
}

// target is the size that a change gives a job. Slurm counts memory in MiB and
// time in minutes; both are rounded up.
func target(own Size, c driver.Change) Size {
	s := own
	if c.Cores > 0 {
		s = own.With(c.Cores)
	}
	if c.MemoryBytes > 0 {
		const mebibyte = 1 << 20
		s.Memory = slurmctl.Memory{Bytes: (c.MemoryBytes + mebibyte - 1) / mebibyte * mebibyte}
	}
	if c.TimeLimit > 0 {
		s.TimeLimit = (c.TimeLimit + time.Minute - 1).Truncate(time.Minute)
	}
	return s
}

// Billing implements driver.Biller: TRESBillingWeights, else the CPUs.
// Of several partitions the first counts.
func (d *Driver) Billing(ctx context.Context, partition string) (driver.Billing, error) {
	partitions, conf, err := slurmctl.Rules(ctx, d.cfg.Commands)
	if err != nil {
		return driver.Billing{}, fmt.Errorf("billing: %w", err)
	}
	name, _, _ := strings.Cut(partition, ",")
	i := slices.IndexFunc(partitions, func(p parse.Partition) bool { return p.Name == name })
	if i < 0 {
		return driver.Billing{}, fmt.Errorf("billing: partition %q: %w", name, driver.ErrNotFound)
	}
	p := partitions[i]
	w, err := parse.Billing(p.Weights)
	if err != nil {
		return driver.Billing{}, fmt.Errorf("billing: partition %q: %w: %w", name, driver.ErrUnsupported, err)
	}
	dearest := conf.Has("PriorityFlags", "MAX_TRES")
	return driver.Billing{Core: w.CPU, GiB: w.GiB, GPU: w.GPU, Dearest: dearest, Whole: p.Exclusive}, nil
}

// Partition is that of a job which names none; empty: there is none, or it is not known.
func (d *Driver) Partition(ctx context.Context) string {
	if !d.cfg.Everyone && len(d.cfg.Partitions) > 0 { // Start says so
		return d.cfg.Partitions[0]
	}
	partitions, _, err := slurmctl.Rules(ctx, d.cfg.Commands)
	if err != nil {
		d.cfg.Logger.Debug("the default partition is not known", "error", err)
	}
	for _, p := range partitions {
		if p.Default {
			return p.Name
		}
	}
	return ""
}

// takes refuses a size with which none of a job's partitions would start it. Fewer cores
// with the same memory may be more memory for each than MaxMemPerCPU, which Slurm says
// only when the job has been stopped for it.
func (d *Driver) takes(ctx context.Context, j parse.Job, own, after Size) error {
	if err := slurmctl.ByCPU(ctx, d.cfg.Commands, j, own, after); err != nil {
		return err
	}
	partitions, conf, err := slurmctl.Rules(ctx, d.cfg.Commands)
	if err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	if err := limits.Takes(partitions, conf, strings.Split(j.Partition, ","), slurmctl.SizeOf(j).Counted(), after.Counted()); err != nil {
		return fmt.Errorf("%w: %w", driver.ErrDenied, err)
	}
	return nil
}
