package slurm

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"sync"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/move"
	"pitchpipe/driver/output"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/slurmctl"
)

// Driver is one user's view of one Slurm cluster.
type Driver struct {
	cfg     Config
	journal Journal
	lock    *os.File
	outputs output.Reader
	moves   move.Machine
	locks   move.Locks // of jobs that are being looked at or changed

	hashes  maphash.Seed
	polling sync.Mutex // one look at the whole queue at a time
	openly  sync.Once  // it was said that everybody can read the settings

	mu        sync.Mutex
	lines     map[driver.JobID]uint64     // what squeue said last of each job that is seen; replaced, never changed
	seen      map[driver.JobID]seen       // what was read of them
	strangers map[string]time.Time        // numbers of jobs that are none of ours or cannot be read, and since when
	doubted   map[driver.JobID]time.Time  // when something was done here to a job
	until     time.Time                   // until when seen counts
	whole     time.Time                   // when the last of what squeue does not print was read
	over      map[driver.JobID]driver.Job // that slurmctld has forgotten, without their scripts
	texts     map[driver.JobID]text       // scripts of jobs without a record
	claims    map[driver.JobID]claim      // what jobs will have of their nodes
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
		cfg: cfg, hashes: maphash.MakeSeed(), seen: map[driver.JobID]seen{},
		doubted: map[driver.JobID]time.Time{}, strangers: map[string]time.Time{}, over: map[driver.JobID]driver.Job{}, texts: map[driver.JobID]text{},
		claims: map[driver.JobID]claim{},
	}
	d.moves.AfterStep = cfg.AfterStep
	if d.journal, err = OpenJournal(cfg.Dir); err != nil {
		return nil, fmt.Errorf("slurm driver: %w", err)
	}
	if d.lock, err = durable.Lock(cfg.Dir); err != nil {
		return nil, fmt.Errorf("slurm driver: %w", err)
	}
	if _, err = slurmctl.Config(ctx, cfg.Commands); err == nil {
		err = d.prune(time.Now().Add(-cfg.Keep))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("slurm driver: %w", err), d.Close())
	}
	return d, nil
}

// Close frees the state directory. Jobs run on.
func (d *Driver) Close() error { return durable.Unlock(d.lock) }

// prune forgets jobs that ended long ago, and arrays that were submitted long ago and have no
// task on record any more.
func (d *Driver) prune(before time.Time) error {
	ids, err := d.journal.List()
	arrays, bad := d.journal.Arrays.List()
	if err := errors.Join(err, bad); err != nil {
		return err
	}
	left := map[driver.JobID]bool{}
	for _, id := range ids {
		gone, err := d.pruneJob(id, before)
		if err != nil {
			return err
		}
		if !gone {
			left[driver.JobID(arrayOf(id))] = true
		}
	}
	for _, id := range arrays {
		a, err := d.journal.Arrays.Read(id)
		if err != nil {
			d.cfg.Logger.Warn("a record cannot be read", "array", string(id), "error", err)
			continue
		}
		if left[id] || a.Submitted.After(before) {
			continue
		}
		if err := d.journal.Arrays.Forget(id); err != nil {
			return err
		}
	}
	return nil
}

func (d *Driver) pruneJob(id driver.JobID, before time.Time) (gone bool, err error) {
	defer d.locks.Hold(string(id))()
	r, err := d.journal.Read(id)
	if err != nil {
		d.cfg.Logger.Warn("a record cannot be read", "job", string(id), "error", err)
		return false, nil
	}
	d.claim(r)
	if r.Last == nil || r.Last.Ended.After(before) {
		return false, nil
	}
	if err := d.dropSettings(r); err != nil {
		return false, err
	}
	if err := d.journal.Forget(id); err != nil {
		return false, err
	}
	d.mu.Lock()
	delete(d.over, id)
	d.mu.Unlock()
	if req, err := d.journal.Request(r.Request); err == nil && req.Job == id { // of an array its first task's
		return true, d.journal.Free(r.Request)
	}
	return true, nil
}

// Name is slurm.
func (d *Driver) Name() string { return "slurm" }

// Capabilities are what Slurm can do to a job. That memory is confined is the site's word (cgroups).
func (d *Driver) Capabilities() driver.Capabilities {
	return Capabilities(d.cfg.TaskProlog, d.cfg.Everyone)
}

// Capabilities are those of a cluster with or without the TaskProlog, for a controller of
// everybody's jobs or of one user's.
func Capabilities(taskProlog, everyone bool) driver.Capabilities {
	return driver.Capabilities{
		Env: taskProlog, Live: taskProlog, Memory: true, MemoryReturns: true, Accounts: true, UsersSubmit: everyone,
	}
}

// paid runs a command that changes nothing, and returns what CPU that took.
func (d *Driver) paid(ctx context.Context, name string, args ...string) ([]byte, time.Duration, error) {
	out, err := d.cfg.Commands.Run(ctx, command.Call{Name: name, Args: args})
	return out.Stdout, out.CPU, err
}

// write makes a record durable and names the step for the tests that crash there.
func (d *Driver) write(r *Record, step string) error {
	if err := d.journal.Write(r); err != nil {
		return fmt.Errorf("job %s: %s: %w: %w", r.Job, step, driver.ErrTransient, err)
	}
	d.claim(r)
	d.cfg.AfterStep(step)
	return nil
}

// Stop cancels a job. Stopping an ended job does nothing.
func (d *Driver) Stop(ctx context.Context, id driver.JobID) error {
	d.doubt(id)
	defer d.doubt(id)
	job, err := d.Get(ctx, id)
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	if job.State.Ended() {
		return nil
	}
	if arrayOf(id) != "" {
		if err := d.enlist(ctx, id); err != nil {
			return fmt.Errorf("stop: %w", err)
		}
	}
	if err := d.cfg.Actor.Do(ctx, slurmctl.Cancel, string(id)); err != nil {
		return fmt.Errorf("stop: job %s: %w", id, err)
	}
	d.cfg.AfterStep("cancelled")
	return nil
}
