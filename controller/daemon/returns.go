package daemon

import (
	"context"

	"pitchpipe/controller/forecast"
	"pitchpipe/controller/tuning"
)

// past are the earlier runs of a kind of job.
func (r *rooms) past(_ context.Context, kind tuning.JobKind) ([]tuning.PastRun, error) {
	return r.store.PastRuns(kind)
}

// curves are what forecasts of earlier jobs of a kind were worth.
func (r *rooms) curves(_ context.Context, kind tuning.JobKind) ([]tuning.CurveLesson, error) {
	return r.store.CurveLessons(kind, forecast.Remembered)
}
