package sim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"

	"pitchpipe/driver"
)

var _ driver.Driver = (*Cluster)(nil)

// Name implements driver.Driver.
func (c *Cluster) Name() string { return "sim" }

// Capabilities implements driver.Driver: those of Slurm with requeue in place.
func (c *Cluster) Capabilities() driver.Capabilities {
	return driver.Capabilities{Env: true, Live: true, Memory: true, MemoryReturns: true, Accounts: true}
}

// Start implements driver.Driver.
func (c *Cluster) Start(ctx context.Context, id driver.RequestID, spec driver.Spec) (driver.Job, error) {
	return do(ctx, c, OpStart, "", func() (driver.Job, error) {
		if j, ok := c.byRequest[id]; ok {
			return j.view.Clone(), nil
		}
		if id == "" {
			return driver.Job{}, fmt.Errorf("%w: no request id", driver.ErrInvalid)
		}
		j, err := c.newJob(id, spec)
		if err != nil {
			return driver.Job{}, fmt.Errorf("request %s: %w", id, err)
		}
		c.jobs = append(c.jobs, j)
		c.byRequest[id] = j
		j.view.ID = driver.JobID(strconv.Itoa(len(c.jobs)))
		j.view.Submitted = c.now
		if d := j.act.OwnerChangesAt; d > 0 {
			c.after(d, func() { c.ownerChanges(j) })
		}
		if j.view.NotBefore.After(c.now) {
			c.at(j.view.NotBefore, c.schedule)
		}
		c.enqueue(j, driver.CauseSubmitted, "")
		return j.view.Clone(), nil
	})
}

// Get implements driver.Driver.
func (c *Cluster) Get(ctx context.Context, id driver.JobID) (driver.Job, error) {
	return about(ctx, c, OpGet, id, func(j *job) (driver.Job, error) { return j.view.Clone(), nil })
}

// List implements driver.Driver.
func (c *Cluster) List(ctx context.Context) ([]driver.Job, error) {
	return do(ctx, c, OpList, "", func() (out []driver.Job, err error) {
		for _, j := range c.jobs {
			out = append(out, j.view.Clone())
		}
		return out, nil
	})
}

// Watch implements driver.Driver.
func (c *Cluster) Watch(ctx context.Context) (<-chan driver.Event, error) {
	return do(ctx, c, OpWatch, "", func() (<-chan driver.Event, error) {
		var ids []driver.JobID
		for _, j := range c.jobs {
			ids = append(ids, j.view.ID)
		}
		return c.watchers.Watch(ctx, ids), nil
	})
}

// Stop implements driver.Driver.
func (c *Cluster) Stop(ctx context.Context, id driver.JobID) error {
	_, err := about(ctx, c, OpStop, id, func(j *job) (none struct{}, err error) {
		const detail = "stopped on request"
		switch r := j.current(); {
		case j.view.State.Ended():
		case r != nil:
			c.end(r, driver.Cancelled, exitTerminated, detail)
		default:
			c.leaveQueue(j)
			c.finish(j, driver.Cancelled, detail)
		}
		return none, nil
	})
	return err
}

// Logs implements driver.Driver. The output of all attempts is one text.
func (c *Cluster) Logs(ctx context.Context, id driver.JobID, offset int64) (io.ReadCloser, error) {
	return about(ctx, c, OpLogs, id, func(j *job) (io.ReadCloser, error) {
		if offset < 0 {
			return nil, fmt.Errorf("%w: offset %d", driver.ErrInvalid, offset)
		}
		// What is written never changes: the next line lands after this slice.
		text := j.log[min(offset, int64(len(j.log))):len(j.log):len(j.log)]
		return io.NopCloser(bytes.NewReader(text)), nil
	})
}

// find looks a job up.
func (c *Cluster) find(id driver.JobID) (*job, error) {
	if n, err := strconv.Atoi(string(id)); err == nil && n >= 1 && n <= len(c.jobs) && c.jobs[n-1].view.ID == id {
		return c.jobs[n-1], nil
	}
	return nil, driver.ErrNotFound
}

// changed sends an event of the job.
func (c *Cluster) changed(j *job) { c.watchers.Changed(j.view.ID) }
