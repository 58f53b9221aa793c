package sim

import (
	"context"
	"time"

	"pitchpipe/driver"
)

// Outlook of a job in the simulated cluster.
func (c *Cluster) Outlook(ctx context.Context, id driver.JobID) (driver.Outlook, error) {
	if _, err := c.Get(ctx, id); err != nil {
		return driver.Outlook{}, err
	}
	return driver.Outlook{Wait: new(time.Duration)}, nil
}
