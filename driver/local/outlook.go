package local

import (
	"context"
	"time"

	"pitchpipe/driver"
)

// Outlook of a job on this machine: a move keeps the job's room, so the next
// attempt waits for nothing, and nobody reserves the machine.
func (d *Driver) Outlook(ctx context.Context, id driver.JobID) (driver.Outlook, error) {
	if _, err := d.Get(ctx, id); err != nil {
		return driver.Outlook{}, err
	}
	return driver.Outlook{Wait: new(time.Duration)}, nil
}
