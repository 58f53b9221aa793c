package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"pitchpipe/driver"
)

// Jobs starts short jobs and tells of them. Start with the same request is the same job.
type Jobs interface {
	Start(ctx context.Context, id driver.RequestID, s driver.Spec, c driver.Change) (driver.Job, error)
	Get(ctx context.Context, id driver.JobID) (driver.Job, error)
	Stop(ctx context.Context, id driver.JobID) error
	Logs(ctx context.Context, id driver.JobID, offset int64) (io.ReadCloser, error)
}

// By makes Jobs of any driver: a job is started to wait, changed while it waits, and
// begins with that.
func By(d driver.Driver) Jobs { return waiting{d} }

type waiting struct{ driver.Driver }

const (
	// holds is how long a job waits for its change at most. It ends by itself.
	holds = time.Minute
	again = 100 * time.Millisecond
)

// Start starts the job, and changes it where it has not begun.
func (w waiting) Start(ctx context.Context, id driver.RequestID, s driver.Spec, c driver.Change) (driver.Job, error) {
	if c.Empty() {
		return w.Driver.Start(ctx, id, s)
	}
	s.NotBefore = time.Now().Add(holds)
	job, err := w.Driver.Start(ctx, id, s)
	if err != nil {
		return driver.Job{}, err
	}
	in := driver.Intent{
		ID: "probe-" + string(id), Job: job.ID, Fingerprint: job.Fingerprint, Change: c, Note: "a short run before the job itself",
	}
	for {
		step, err := w.Advance(ctx, in)
		switch {
		case err != nil && !errors.Is(err, driver.ErrTransient) && !errors.Is(err, driver.ErrUnknown) && !errors.Is(err, driver.ErrConflict):
			return driver.Job{}, errors.Join(err, w.Stop(context.WithoutCancel(ctx), job.ID))
		case err == nil && step.Kind == driver.StepStarted:
			return w.Get(ctx, job.ID)
		case err == nil && step.Kind.Done():
			return driver.Job{}, errors.Join(fmt.Errorf("it was not changed: %s %s: %w", step.Kind, step.Detail, driver.ErrConflict), w.Stop(context.WithoutCancel(ctx), job.ID))
		}
		select {
		case <-ctx.Done():
			return driver.Job{}, errors.Join(ctx.Err(), w.Stop(context.WithoutCancel(ctx), job.ID))
		case <-time.After(again):
		}
	}
}
