package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/local/cgroup"
	"pitchpipe/driver/local/supervise"
	"pitchpipe/driver/move"
	"pitchpipe/driver/output"
)

// Driver is the scheduler. Its records are replaced as a whole under one lock,
// which is held while they are written: one machine's jobs are few.
type Driver struct {
	cfg   Config
	store store
	tree  cgroup.Tree
	cpus  []int
	room  driver.Room
	env   map[string]string
	node  string
	lock  *os.File
	wake  chan struct{} // the loop has something to do
	since time.Time     // when this driver was opened

	outputs output.Reader
	moves   move.Machine
	watch   driver.Watchers

	mu     sync.Mutex
	closed bool
	jobs   map[driver.JobID]*record // never changed in place
	order  []driver.JobID           // oldest first

	// Of this process only.
	children map[int]string // supervisors by number, and their launches, until they were waited for
	failures map[driver.JobID]failures
	touched  map[driver.JobID]time.Time // the last Advance
	told     map[driver.JobID]time.Time // the last error that was logged
	pruned   time.Time                  // when jobs were last forgotten
}

var _ driver.Driver = (*Driver)(nil)

// New opens the state directory, which it locks until Run returns or Close is
// called, and reads what is there. It starts nothing: that is Run's work.
func New(cfg Config) (*Driver, error) {
	cfg, cpus, tree, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	node, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("local driver: %w", err)
	}
	d := &Driver{
		cfg: cfg, store: store{cfg.Dir}, tree: tree, cpus: cpus, node: node, env: baseEnv(cfg.Env),
		room: driver.Room{Cores: len(cpus), Memory: cfg.MemoryBytes}, wake: make(chan struct{}, 1), since: time.Now(),
		jobs: map[driver.JobID]*record{}, children: map[int]string{}, failures: map[driver.JobID]failures{}, touched: map[driver.JobID]time.Time{},
		told: map[driver.JobID]time.Time{},
	}
	d.moves.AfterStep, d.pruned = cfg.AfterStep, d.since
	if err := d.store.prepare(); err != nil {
		return nil, fmt.Errorf("local driver: %w", err)
	}
	if d.lock, err = durable.Lock(cfg.Dir); err != nil {
		return nil, fmt.Errorf("local driver: %w", err)
	}
	records, err := d.store.load(cfg.Logger)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("local driver: %w", err), d.lock.Close())
	}
	for _, r := range records {
		d.jobs[r.Job.ID] = r
		d.order = append(d.order, r.Job.ID)
	}
	if tree.Kind == cgroup.None {
		cfg.Logger.Info("without cgroups jobs are measured by an exporter of their own user alone, or one with --attrib.environ=any", "reason", tree.Reason)
	} else if tree.Reason != "" {
		cfg.Logger.Info("cgroups are not all there", "kind", string(tree.Kind), "reason", tree.Reason)
	}
	return d, nil
}

// Close ends the watches and frees the directory. Jobs run on. Run calls it.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	d.watch.Close()
	return durable.Unlock(d.lock)
}

// Name is local.
func (d *Driver) Name() string { return "local" }

// Capabilities are what this machine offers. Without a cgroup for it memory is
// still enforced, by looking.
func (d *Driver) Capabilities() driver.Capabilities { return Capabilities() }

// Capabilities are those of the embedded scheduler.
func Capabilities() driver.Capabilities {
	return driver.Capabilities{Env: true, Args: true, Live: true, Memory: true, MemoryReturns: true}
}

// Get returns one job.
func (d *Driver) Get(_ context.Context, id driver.JobID) (driver.Job, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.find(id)
	if err != nil {
		return driver.Job{}, fmt.Errorf("get: %w", err)
	}
	return r.Job.Clone(), nil
}

// List returns every job, oldest first.
func (d *Driver) List(context.Context) ([]driver.Job, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("list: %w", errClosed)
	}
	out := make([]driver.Job, len(d.order))
	for i, id := range d.order {
		out[i] = d.jobs[id].Job.Clone()
	}
	return out, nil
}

// Watch sends an event for each job that exists and then for each that changed.
// A slow reader loses nothing: events of one job are merged.
func (d *Driver) Watch(ctx context.Context) (<-chan driver.Event, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("watch: %w", errClosed)
	}
	return d.watch.Watch(ctx, d.order), nil
}

// Outlook of a job on this machine: none reserves it. A job that ran keeps its room between two
// attempts and comes before all that did not run yet. So its next attempt waits for nothing: it is
// moved to more only where that is free. How long a job waits that never ran depends on the others,
// and is unknown.
func (d *Driver) Outlook(ctx context.Context, id driver.JobID) (driver.Outlook, error) {
	job, err := d.Get(ctx, id)
	if err != nil {
		return driver.Outlook{}, fmt.Errorf("outlook: %w", err)
	}
	if job.State.Ended() || len(job.Attempts) == 0 {
		return driver.Outlook{}, nil
	}
	return driver.Outlook{Wait: new(time.Duration)}, nil
}

// errClosed is what a driver says that is no longer open.
var errClosed = fmt.Errorf("local driver is closed: %w", driver.ErrTransient)

func (d *Driver) find(id driver.JobID) (*record, error) {
	if d.closed {
		return nil, errClosed
	}
	r, ok := d.jobs[id]
	if !ok {
		return nil, fmt.Errorf("job %s: %w", id, driver.ErrNotFound)
	}
	return r, nil
}

// commit makes a record durable, then visible, and names the step for the tests
// that crash there.
func (d *Driver) commit(r *record, step string) error {
	if err := d.store.write(r); err != nil {
		return fmt.Errorf("job %s: %s: %w: %w", r.Job.ID, step, driver.ErrTransient, err)
	}
	old, known := d.jobs[r.Job.ID]
	if !known {
		d.order = append(d.order, r.Job.ID)
	}
	d.jobs[r.Job.ID] = r
	if !known || old.Job.State != r.Job.State {
		d.cfg.Logger.Info("job", "job", string(r.Job.ID), "state", string(r.Job.State),
			"attempt", r.Job.Attempt, "detail", r.Job.Detail)
	}
	d.watch.Changed(r.Job.ID)
	d.cfg.AfterStep(step)
	return nil
}

// nudge lets the loop look.
func (d *Driver) nudge() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Release implements driver.Releaser.
func (d *Driver) Release(_ context.Context, id driver.JobID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.find(id)
	if err != nil || r.Job.NotBefore.IsZero() {
		return err
	}
	defer d.nudge()
	c := r.clone()
	c.Job.NotBefore = time.Time{}
	return d.commit(c, "released")
}

// Stop cancels a job. A running one is asked to end, and killed after 5 s.
func (d *Driver) Stop(_ context.Context, id driver.JobID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.find(id)
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	if r.Job.State.Ended() {
		return nil
	}
	defer d.nudge()
	if r.Job.State != driver.Running {
		c := r.clone()
		d.close(c, driver.Cancelled, "cancelled before it ran on", time.Now())
		return d.commit(c, "cancelled")
	}
	if !r.Cancel {
		r = r.clone()
		r.Cancel = true
		if err := d.commit(r, "cancelling"); err != nil {
			return err
		}
	}
	return d.requestStop(r, supervise.StopCancelled)
}

// Adapt implements driver.Adapter. The record is durable first, so that a file that was not written
// is written by the next call or attempt.
func (d *Driver) Adapt(_ context.Context, id driver.JobID, settings map[string]string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.find(id)
	switch {
	case err != nil:
		return fmt.Errorf("adapt: %w", err)
	case !r.live():
		return fmt.Errorf("adapt job %s: it has no settings file: %w", id, driver.ErrUnsupported)
	case r.Job.State != driver.Running:
		return fmt.Errorf("adapt job %s: it is %s: %w", id, r.Job.State, driver.ErrConflict)
	}
	if !maps.Equal(r.Adapted, settings) {
		r = r.clone()
		r.Adapted, r.Adapts = maps.Clone(settings), r.Adapts+1
		if err := d.commit(r, "adapted"); err != nil {
			return err
		}
	}
	return r.writeSettings(d.store)
}

// requestStop asks the supervisor of the present launch to end it. Repeating it
// changes nothing.
func (d *Driver) requestStop(r *record, why supervise.StopReason) error {
	path := filepath.Join(d.store.launch(r), supervise.StopFile)
	err := order(path, supervise.Stop{Reason: why}, func(have supervise.Stop) bool { return have.Reason == why })
	if err != nil && !errors.Is(err, os.ErrNotExist) { // else it is not launched yet; the launch looks at the record
		return fmt.Errorf("job %s: asking for its end: %w: %w", r.Job.ID, driver.ErrTransient, err)
	}
	return nil
}

// close makes the record that of an ended job.
func (d *Driver) close(r *record, state driver.State, detail string, now time.Time) {
	r.Job.State, r.Job.Detail, r.Job.Ended = state, detail, now
	r.Moving, r.Next, r.CPUs = nil, next{}, nil
	delete(d.failures, r.Job.ID)
}
