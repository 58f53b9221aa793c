package slurm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/journal"
	"pitchpipe/driver/slurm/parse"
)

// Driver is one user's view of one Slurm cluster.
type Driver struct {
	cfg     Config
	journal journal.Journal
	lock    *os.File
	site    site

	mu    sync.Mutex
	locks map[driver.JobID]*sync.Mutex // of jobs whose record is being changed
	seen  map[driver.JobID]seen        // what was read, by what squeue said then
	texts map[driver.JobID]text        // scripts of jobs without a record
}

// seen is a record of scontrol that need not be read again as long as squeue
// prints the same.
type seen struct {
	print string
	job   parse.Job
}

var _ driver.Driver = (*Driver)(nil)

// New opens the state directory, which it locks until Close, and asks slurmctld
// for its configuration. A slurmctld that is away is driver.ErrTransient.
func New(ctx context.Context, cfg Config) (*Driver, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	d := &Driver{
		cfg: cfg, locks: map[driver.JobID]*sync.Mutex{}, seen: map[driver.JobID]seen{}, texts: map[driver.JobID]text{},
	}
	if d.journal, err = journal.Open(cfg.Dir); err != nil {
		return nil, fmt.Errorf("slurm driver: %w", err)
	}
	if d.lock, err = durable.Lock(cfg.Dir); err != nil {
		return nil, fmt.Errorf("slurm driver: %w", err)
	}
	if d.site, err = readSite(ctx, cfg.Commands); err != nil {
		return nil, errors.Join(fmt.Errorf("slurm driver: %w", err), d.Close())
	}
	if err := d.prune(time.Now().Add(-cfg.Keep)); err != nil {
		return nil, errors.Join(fmt.Errorf("slurm driver: %w", err), d.Close())
	}
	return d, nil
}

// Close frees the state directory. Jobs run on.
func (d *Driver) Close() error {
	return durable.Unlock(d.lock)
}

// prune forgets jobs that ended long ago.
func (d *Driver) prune(before time.Time) error {
	ids, err := d.journal.Jobs()
	if err != nil {
		return err
	}
	for _, id := range ids {
		r, err := d.journal.Read(id)
		if err != nil {
			d.cfg.Logger.Warn("a record cannot be read", "job", string(id), "error", err)
			continue
		}
		if r.Last == nil || r.Last.Ended.After(before) {
			continue
		}
		if err := d.journal.Forget(id); err != nil {
			return err
		}
		if r.Request != "" {
			if err := d.journal.Free(r.Request); err != nil {
				return err
			}
		}
	}
	return nil
}

// Name is slurm.
func (d *Driver) Name() string { return "slurm" }

// Capabilities tells what Slurm can do to a job. That memory and cores are
// confined is the site's word (cgroups).
func (d *Driver) Capabilities() driver.Capabilities {
	return driver.Capabilities{KeepsID: true, Env: d.cfg.TaskProlog, Live: d.cfg.TaskProlog, Memory: true, Cores: true, Accounts: true}
}

// hold serialises what changes one job's record, and returns the release.
func (d *Driver) hold(id driver.JobID) func() {
	d.mu.Lock()
	l, ok := d.locks[id]
	if !ok {
		l = &sync.Mutex{}
		d.locks[id] = l
	}
	d.mu.Unlock()
	l.Lock()
	return l.Unlock
}

// ask runs a command that changes nothing.
func (d *Driver) ask(ctx context.Context, name string, args ...string) ([]byte, error) {
	out, err := d.cfg.Commands.Run(ctx, command.Call{Name: name, Args: args})
	return out.Stdout, err
}

// effect runs a command that changes something.
func (d *Driver) effect(ctx context.Context, name string, args ...string) error {
	d.cfg.Logger.Info("slurm", "command", command.Call{Name: name, Args: args}.String())
	_, err := d.cfg.Commands.Run(ctx, command.Call{Name: name, Args: args, Effect: true})
	return err
}

// record reads the record of a job; nil without an error is not an answer, so the
// second result tells whether there is one.
func (d *Driver) record(id driver.JobID) (*journal.Record, bool, error) {
	r, err := d.journal.Read(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", driver.ErrTransient, err)
	}
	return r, true, nil
}

// write makes a record durable and names the step for the tests that crash there.
func (d *Driver) write(r *journal.Record, step string) error {
	if err := d.journal.Write(r); err != nil {
		return fmt.Errorf("job %s: %s: %w: %w", r.Job, step, driver.ErrTransient, err)
	}
	d.cfg.AfterStep(step)
	return nil
}

// Stop cancels a job. Stopping an ended job does nothing.
func (d *Driver) Stop(ctx context.Context, id driver.JobID) error {
	job, err := d.Get(ctx, id)
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	if job.State.Ended() {
		return nil
	}
	if err := d.effect(ctx, "scancel", string(id)); err != nil {
		return fmt.Errorf("stop: job %s: %w", id, err)
	}
	d.cfg.AfterStep("cancelled")
	return nil
}
