package daemon

import (
	"context"

	"pitchpipe/controller/tuning"
)

// past are the earlier runs of a kind of job.
func (r *rooms) past(_ context.Context, kind tuning.JobKind) ([]tuning.PastRun, error) {
	return r.store.PastRuns(kind)
}
