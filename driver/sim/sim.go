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
	return driver.Capabilities{KeepsID: true, Env: true, Live: true, Memory: true, MemoryReturns: true, Cores: true, Accounts: true}
}

// Start implements driver.Driver.
func (c *Cluster) Start(ctx context.Context, id driver.RequestID, spec driver.Spec) (driver.Job, error) {
	var out driver.Job
	err := c.do(ctx, OpStart, "", func() error {
		if j, ok := c.byRequest[id]; ok {
			out = j.snapshot()
			return nil
		}
		if id == "" {
			return fmt.Errorf("%w: no request id", driver.ErrInvalid)
		}
		j, err := c.newJob(id, spec)
		if err != nil {
			return fmt.Errorf("request %s: %w", id, err)
		}
		c.jobs = append(c.jobs, j)
		c.byRequest[id] = j
		j.view.ID = driver.JobID(strconv.Itoa(len(c.jobs)))
		j.view.Submitted = c.now
		if d := j.act.OwnerChangesAt; d > 0 {
			c.after(d, func() { c.ownerChanges(j) })
		}
		if j.notBefore.After(c.now) {
			c.at(j.notBefore, c.schedule)
		}
		c.enqueue(j, driver.CauseSubmitted, "")
		out = j.snapshot()
		return nil
	})
	if err != nil {
		return driver.Job{}, err
	}
	return out, nil
}

// Get implements driver.Driver.
func (c *Cluster) Get(ctx context.Context, id driver.JobID) (driver.Job, error) {
	var out driver.Job
	err := c.do(ctx, OpGet, id, func() error {
		j, err := c.find(id)
		if err != nil {
			return err
		}
		out = j.snapshot()
		return nil
	})
	if err != nil {
		return driver.Job{}, err
	}
	return out, nil
}

// List implements driver.Driver.
func (c *Cluster) List(ctx context.Context) ([]driver.Job, error) {
	var out []driver.Job
	err := c.do(ctx, OpList, "", func() error {
		for _, j := range c.jobs {
			out = append(out, j.snapshot())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Stop implements driver.Driver.
func (c *Cluster) Stop(ctx context.Context, id driver.JobID) error {
	return c.do(ctx, OpStop, id, func() error {
		j, err := c.find(id)
		if err != nil || j.view.State.Ended() {
			return err
		}
		const detail = "stopped on request"
		if r := j.current(); r != nil {
			c.end(r, driver.Cancelled, exitTerminated, detail)
			return nil
		}
		c.leaveQueue(j)
		c.finish(j, driver.Cancelled, detail)
		return nil
	})
}

// Logs implements driver.Driver. The output of all attempts is one text.
func (c *Cluster) Logs(ctx context.Context, id driver.JobID, offset int64) (io.ReadCloser, error) {
	var text []byte
	err := c.do(ctx, OpLogs, id, func() error {
		j, err := c.find(id)
		if err != nil {
			return err
		}
		if offset < 0 {
			return fmt.Errorf("%w: offset %d", driver.ErrInvalid, offset)
		}
		// What is written never changes: the next line lands behind this slice.
		text = j.log[min(offset, int64(len(j.log))):len(j.log):len(j.log)]
		return nil
	})
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(text)), nil
}

// find looks a job up.
func (c *Cluster) find(id driver.JobID) (*job, error) {
	if n, err := strconv.Atoi(string(id)); err == nil && n >= 1 && n <= len(c.jobs) && c.jobs[n-1].view.ID == id {
		return c.jobs[n-1], nil
	}
	return nil, driver.ErrNotFound
}

// leaveQueue takes a job out of the queue, where it is in it.
func (c *Cluster) leaveQueue(j *job) {
	kept := c.queue[:0]
	for _, q := range c.queue {
		if q != j {
			kept = append(kept, q)
		}
	}
	c.queue = kept
}
