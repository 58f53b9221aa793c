package local

import (
	"context"
	"fmt"
	"time"

	"pitchpipe/driver"
)

// Outlook of a job on this machine: nobody reserves it. A job that ran keeps its
// room between two attempts and comes before all that did not run yet, so that its
// next attempt waits for nothing: it is moved to more only where that is free. How long a
// job waits that never ran depends on the others, and nobody can tell.
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
